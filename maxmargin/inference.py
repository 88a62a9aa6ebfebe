"""Predictions for all examples of a problem, on several threads: best, K best, best through each part,
marginals, samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import (
    exp_oracle,
    gold,
    max_marginals,
    max_oracle,
    new_weights,
    sample_oracle,
    score_output,
    scores,
    topk_oracle,
)
from maxmargin.runtime.blocks import Blocks, new_blocks
from maxmargin.runtime.dispatch import kernel
from maxmargin.runtime.passes import Passes
from maxmargin.runtime.views import matrix
from maxmargin.smoothing import EVERY


def best_outputs(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """The output of the highest score of every example."""
    passes = Passes(problem, n_jobs)
    outputs = new_blocks(passes.output_sizes, np.int32)
    passes.run(_decode, _checked(passes, w), passes.part_sizes, outputs)
    return outputs


def best_k_outputs(problem: Any, w: np.ndarray, k: int, n_jobs: int | None = None) -> list[tuple[Any, Any]]:
    """For every example the K best outputs, as rows, and their scores: fewer where there are fewer outputs."""
    passes = Passes(problem, n_jobs, n_best=k)
    n = passes.n
    outputs = new_blocks(passes.output_sizes * k, np.int32)
    values = np.zeros((n, k), passes.dtype)
    counts = np.zeros(n, np.int64)
    passes.run(_decode_k, _checked(passes, w), passes.part_sizes, outputs, values, counts)
    return [
        (outputs.values[outputs.start[i] : outputs.start[i + 1]].reshape(k, -1)[: counts[i]], values[i, : counts[i]])
        for i in range(n)
    ]


def best_through_parts(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """For every example the max-marginals of its parts."""
    passes = Passes(problem, n_jobs)
    best = new_blocks(passes.part_sizes, passes.dtype)
    passes.run(_best_through, _checked(passes, w), best)
    return best


def marginals(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> tuple[Blocks, np.ndarray]:
    """For every example the mean parts under p(y) ~ exp(score(y)), and the log-partition function."""
    passes = Passes(problem, n_jobs)
    means = new_blocks(passes.part_sizes, passes.dtype)
    log_partition = np.zeros(passes.n)
    passes.run(_marginals, _checked(passes, w), means, log_partition)
    return means, log_partition


def samples(problem: Any, w: np.ndarray, n_samples: int, rng: Any, n_jobs: int | None = None) -> list[np.ndarray]:
    """For every example outputs drawn from p(y) ~ exp(score(y)), as rows."""
    passes = Passes(problem, n_jobs)
    sizes = passes.output_sizes
    outputs = new_blocks(sizes * n_samples, np.int32)
    draws = rng.random(outputs.values.size)
    passes.run(_sample, _checked(passes, w), passes.part_sizes, sizes, n_samples, draws, outputs)
    return [block.reshape(n_samples, -1) for block in np.split(outputs.values, outputs.start[1:-1])]


def scores_of(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """The scores of the true outputs."""
    passes = Passes(problem, n_jobs)
    values = np.zeros(passes.n)
    passes.run(_score_gold, _checked(passes, w), passes.part_sizes, values)
    return values


def _checked(passes: Passes, w: np.ndarray) -> np.ndarray:
    """Weights in the dtype of the problem; raises if they are not as many as it has."""
    size = new_weights(passes.problem).size
    if np.shape(w) != (size,):
        raise ValueError(f"w must hold {size} weights, but has the shape {np.shape(w)}.")
    return np.ascontiguousarray(w, passes.dtype)


@kernel
def _decode(problem, w, n_parts, outputs, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        max_oracle(problem, i, theta, outputs.values[outputs.start[i] : outputs.start[i + 1]], scratch.work)


@kernel
def _decode_k(problem, w, n_parts, outputs, values, counts, lo, hi, scratch):
    k = values.shape[1]
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        size = (outputs.start[i + 1] - outputs.start[i]) // k
        scores(problem, w, i, theta)
        best = matrix(outputs.values, outputs.start[i], k, size)
        counts[i] = topk_oracle(problem, i, theta, best, values[i], EVERY, scratch.work)


@kernel
def _best_through(problem, w, best, lo, hi, scratch):
    for i in range(lo, hi):
        out = best.values[best.start[i] : best.start[i + 1]]
        theta = scratch.theta[: out.size]
        scores(problem, w, i, theta)
        max_marginals(problem, i, theta, out, scratch.work)


@kernel
def _marginals(problem, w, means, log_partition, lo, hi, scratch):
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        theta = scratch.theta[: mu.size]
        scores(problem, w, i, theta)
        log_partition[i] = exp_oracle(problem, i, theta, mu, scratch.work)


@kernel
def _sample(problem, w, n_parts, sizes, n_samples, draws, outputs, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        rows = matrix(outputs.values, outputs.start[i], n_samples, sizes[i])
        sample_oracle(problem, i, theta, matrix(draws, outputs.start[i], n_samples, sizes[i]), rows, scratch.work)


@kernel
def _score_gold(problem, w, n_parts, values, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        values[i] = score_output(problem, i, theta, gold(problem, i))
