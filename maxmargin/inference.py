"""Predictions for all examples of a problem, on several threads: best, K best, best through each part,
marginals, samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import (
    REACH,
    exp_oracle,
    gold,
    is_beyond_reach,
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

NONE = -1  # what a kernel returns when it is through, in place of an example whose scores are beyond reach


def best_outputs(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """The output of the highest score of every example."""
    passes = Passes(problem, n_jobs)
    outputs = new_blocks(passes.output_sizes, np.int32)
    _run(passes, _decode, w, passes.part_sizes, outputs)
    return outputs


def best_k_outputs(problem: Any, w: np.ndarray, k: int, n_jobs: int | None = None) -> list[tuple[Any, Any]]:
    """For every example the K best outputs, as rows, and their scores: fewer where there are fewer outputs."""
    passes = Passes(problem, n_jobs, n_best=k)
    n = passes.n
    outputs = new_blocks(passes.output_sizes * k, np.int32)
    values = np.zeros((n, k), passes.dtype)
    counts = np.zeros(n, np.int64)
    _run(passes, _decode_k, w, passes.part_sizes, outputs, values, counts)
    return [
        (outputs.values[outputs.start[i] : outputs.start[i + 1]].reshape(k, -1)[: counts[i]], values[i, : counts[i]])
        for i in range(n)
    ]


def best_through_parts(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """For every example the max-marginals of its parts."""
    passes = Passes(problem, n_jobs)
    best = new_blocks(passes.part_sizes, passes.dtype)
    _run(passes, _best_through, w, best)
    return best


def marginals(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> tuple[Blocks, np.ndarray]:
    """For every example the mean parts under p(y) ~ exp(score(y)), and the log-partition function."""
    passes = Passes(problem, n_jobs)
    means = new_blocks(passes.part_sizes, passes.dtype)
    log_partition = np.zeros(passes.n)
    _run(passes, _marginals, w, means, log_partition)
    return means, log_partition


def samples(problem: Any, w: np.ndarray, n_samples: int, rng: Any, n_jobs: int | None = None) -> list[np.ndarray]:
    """For every example outputs drawn from p(y) ~ exp(score(y)), as rows."""
    passes = Passes(problem, n_jobs)
    sizes = passes.output_sizes
    outputs = new_blocks(sizes * n_samples, np.int32)
    draws = rng.random(outputs.values.size)
    _run(passes, _sample, w, passes.part_sizes, sizes, n_samples, draws, outputs)
    return [block.reshape(n_samples, -1) for block in np.split(outputs.values, outputs.start[1:-1])]


def scores_of(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """The scores of the true outputs."""
    passes = Passes(problem, n_jobs)
    values = np.zeros(passes.n)
    _run(passes, _score_gold, w, passes.part_sizes, values)
    return values


def _run(passes: Passes, function: Any, w: np.ndarray, *args: Any) -> None:
    """Call a kernel on all examples; raises if weights are not as many as they have, or scores are too large."""
    size = new_weights(passes.problem).size
    if np.shape(w) != (size,):
        raise ValueError(f"w must hold {size} weights, but has the shape {np.shape(w)}.")
    too_large = [i for i in passes.run(function, np.ascontiguousarray(w, passes.dtype), *args) if i != NONE]
    if too_large:
        raise ValueError(
            f"Scores of X[{too_large[0]}] are beyond {REACH:g}, or not numbers: its features, or the weights of the "
            "model, are too large."
        )


@kernel
def _decode(problem, w, n_parts, outputs, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        max_oracle(problem, i, theta, outputs.values[outputs.start[i] : outputs.start[i + 1]], scratch.work)
    return NONE


@kernel
def _decode_k(problem, w, n_parts, outputs, values, counts, lo, hi, scratch):
    k = values.shape[1]
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        size = (outputs.start[i + 1] - outputs.start[i]) // k
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        best = matrix(outputs.values, outputs.start[i], k, size)
        counts[i] = topk_oracle(problem, i, theta, best, values[i], EVERY, scratch.work)
    return NONE


@kernel
def _best_through(problem, w, best, lo, hi, scratch):
    for i in range(lo, hi):
        out = best.values[best.start[i] : best.start[i + 1]]
        theta = scratch.theta[: out.size]
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        max_marginals(problem, i, theta, out, scratch.work)
    return NONE


@kernel
def _marginals(problem, w, means, log_partition, lo, hi, scratch):
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        theta = scratch.theta[: mu.size]
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        log_partition[i] = exp_oracle(problem, i, theta, mu, scratch.work)
    return NONE


@kernel
def _sample(problem, w, n_parts, sizes, n_samples, draws, outputs, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        rows = matrix(outputs.values, outputs.start[i], n_samples, sizes[i])
        sample_oracle(problem, i, theta, matrix(draws, outputs.start[i], n_samples, sizes[i]), rows, scratch.work)
    return NONE


@kernel
def _score_gold(problem, w, n_parts, values, lo, hi, scratch):
    for i in range(lo, hi):
        theta = scratch.theta[: n_parts[i]]
        scores(problem, w, i, theta)
        if is_beyond_reach(theta):
            return i
        values[i] = score_output(problem, i, theta, gold(problem, i))
    return NONE
