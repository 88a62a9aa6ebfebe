"""Predictions for all examples of a problem, on several threads: best, with what is known of them, K best, best
through each part, marginals, samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision, new_blocks
from maxmargin.execution import prediction_loops
from maxmargin.execution.prediction_loops import NONE
from maxmargin.execution.runner import Runner
from maxmargin.problem import IMPOSSIBLE, METHODS, REACH, AnyProblem
from maxmargin.runtime.dispatch import Bound, supports


class BeyondReach(ValueError):
    """Raised where the scores of an example are too large, or not numbers; `example` is its index."""

    def __init__(self, example: int) -> None:
        self.example = example
        super().__init__(
            f"Scores of X[{example}] are beyond {REACH:g}, or not numbers: its features, or the weights of the model, "
            "are too large."
        )


class Prediction(NamedTuple):
    """An output and what is known of it.

    Attributes
    ----------
    output
        A row of integers.
    score
        Its score.
    bound
        No output has a higher score; equal to the score where that is known to be the highest.
    is_exact
        Whether that is known, but for rounding.
    method
        How it was found: by an "oracle" that is exact for all examples; among graphs that have none by "elimination",
        "cut", "relaxation" (labels read off the dual of the relaxation) or "expansion" (the same, improved by moves).
    integrality
        The share of the nodes of a graph whose mean parts in the relaxation are integral; 1 where it is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.inference import certified_outputs
    >>> from maxmargin.testing import toy_chains
    >>> found = certified_outputs(toy_chains(), np.ones(21))[0]
    >>> found.is_exact, found.bound == found.score, found.method
    (True, True, 'oracle')
    """

    output: np.ndarray
    score: float
    bound: float
    is_exact: bool
    method: str
    integrality: float


def certified_outputs(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> list[Prediction]:
    """As `best_outputs`, with what is known of each.

    Where an oracle does not find the best output, as on graphs with cycles, a relaxation is solved for the bound. Sums
    are taken in float64, whatever the precision of the model: rounding must not decide which output is the best.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.inference import certified_outputs
    >>> from maxmargin.testing import toy_chains
    >>> best = certified_outputs(toy_chains(n_labels=2), np.ones(12))[0]
    >>> best.score == best.bound
    True
    """
    runner = Runner(in_precision(problem, np.float64), n_jobs)
    outputs = new_blocks(runner.output_sizes, np.int32)
    reached, bounds = np.zeros((2, runner.n))
    is_bounded = supports(generics.bound_oracle, problem)
    find = prediction_loops.bound_outputs if is_bounded else prediction_loops.attain_outputs
    run(runner, find, w, runner.part_sizes, outputs, reached, bounds)
    methods, integrality = ["oracle"] * runner.n, np.ones(runner.n)
    if supports(generics.relax_oracle, problem):
        run(runner, prediction_loops.tighten_bounds, w, runner.part_sizes, reached, bounds)
        for (lo, hi), scratch in zip(runner.ranges.bounds, runner.scratches, strict=True):
            methods[lo:hi] = [METHODS[k] for k in scratch.work.method[lo:hi]]
            integrality[lo:hi] = scratch.work.integrality[lo:hi]
    is_exact = generics.is_tight(bounds, reached)
    known = reached, bounds, is_exact, methods, np.where(is_exact, 1.0, integrality)
    rows = np.split(outputs.values, outputs.starts[1:])[:-1]
    return [Prediction(*row) for row in zip(rows, *(np.asarray(column).tolist() for column in known), strict=True)]


def best_outputs(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """The output of the highest score of every example."""
    runner = Runner(problem, n_jobs)
    outputs = new_blocks(runner.output_sizes, np.int32)
    run(runner, prediction_loops.decode, w, runner.part_sizes, outputs)
    return outputs


def possible_outputs(problem: AnyProblem, name: str) -> Blocks:
    """Some output of every example of a problem that is restricted by what `name` holds; raises if none is left."""
    outputs, scores = scored_outputs(problem, generics.new_weights(problem))
    for i in np.flatnonzero(scores < IMPOSSIBLE / 2):
        raise ValueError(f"{name}[{i}] leaves no output of X[{i}]: what it says of its parts cannot all be true.")
    return outputs


def scored_outputs(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> tuple[Blocks, np.ndarray]:
    """As `best_outputs`, with their scores."""
    runner = Runner(problem, n_jobs)
    outputs = new_blocks(runner.output_sizes, np.int32)
    reached, bounds = np.zeros((2, runner.n))
    run(runner, prediction_loops.attain_outputs, w, runner.part_sizes, outputs, reached, bounds)
    return outputs, reached


def best_k_outputs(
    problem: AnyProblem, w: np.ndarray, k: int, n_jobs: int | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For every example the K best outputs, as rows, and their scores: fewer where there are fewer outputs."""
    outputs, values, counts = best_k_tables(problem, w, k, n_jobs)
    rows = [block.reshape(k, -1) for block in np.split(outputs.values, outputs.starts[1:])[:-1]]
    return [(table[:count], scores[:count]) for table, scores, count in zip(rows, values, counts, strict=True)]


def best_k_tables(
    problem: AnyProblem, w: np.ndarray, k: int, n_jobs: int | None = None
) -> tuple[Blocks, np.ndarray, np.ndarray]:
    """The K best outputs of every example, one after the other in its block, their scores, and how many there are."""
    runner = Runner(problem, n_jobs, n_best=k)
    outputs, values = new_blocks(runner.output_sizes * k, np.int32), np.zeros((runner.n, k))
    counts = np.ones(runner.n, np.int64)
    run(runner, prediction_loops.decode_k, w, runner.part_sizes, outputs, values, counts)
    return outputs, values, counts


def best_through_parts(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """For every example the max-marginals of its parts, minus infinity for those that no output has."""
    runner = Runner(problem, n_jobs)
    best = new_blocks(runner.part_sizes, np.float64)
    run(runner, prediction_loops.find_best_through, w, best)
    best.values[best.values < IMPOSSIBLE / 2] = -np.inf
    return best


def marginals(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> tuple[Blocks, np.ndarray]:
    """For every example the mean parts under p(y) ~ exp(score(y)), and the log-partition function."""
    runner = Runner(problem, n_jobs)
    means = new_blocks(runner.part_sizes, runner.dtype)
    log_partition = np.zeros(runner.n)
    run(runner, prediction_loops.find_marginals, w, means, log_partition)
    return means, log_partition


def expected_outputs(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> Blocks:
    """For every example the output that shares the most parts, on average, with those of p(y) ~ exp(score(y))."""
    runner = Runner(problem, n_jobs)
    outputs = new_blocks(runner.output_sizes, np.int32)
    run(runner, prediction_loops.decode_expected, w, runner.part_sizes, outputs)
    return outputs


def transitions(problem: AnyProblem, w: np.ndarray, pairs: np.ndarray, n_jobs: int | None = None) -> list[np.ndarray]:
    """For every sequence the probabilities of the transitions a L + b in `pairs`: a row for each of its places."""
    runner = Runner(problem, n_jobs)
    n_places = np.maximum(runner.output_sizes - 1, 0)
    found = new_blocks(n_places * len(pairs), np.float64)
    run(runner, prediction_loops.find_transitions, w, runner.part_sizes, np.ascontiguousarray(pairs, np.int32), found)
    return np.split(found.values.reshape(int(n_places.sum()), len(pairs)), np.cumsum(n_places)[:-1])


def known_marginals(problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None) -> tuple[Blocks, np.ndarray]:
    """For every example the mean parts under p(y) ~ exp(score(y)), and whether they are exact.

    Where sums over all outputs are out of reach, as on graphs of large treewidth, they are the mean parts of the local
    polytope of the highest score plus Gini's entropy of nodes and edges, as `RelaxedLoss` has it.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.inference import known_marginals
    >>> from maxmargin.testing import toy_chains
    >>> means, is_exact = known_marginals(toy_chains(n_labels=2), np.zeros(12))
    >>> means.values[:2], is_exact.tolist()[:1]
    (array([0.5, 0.5]), [True])
    """
    if supports(generics.exp_oracle, problem):
        means, log_partition = marginals(problem, w, n_jobs)
        return means, np.ones(len(log_partition), bool)
    runner = Runner(problem, n_jobs)
    means, is_exact = new_blocks(runner.part_sizes, runner.dtype), np.zeros(runner.n, bool)
    run(runner, prediction_loops.find_means, w, means, is_exact)
    return means, is_exact


def samples(
    problem: AnyProblem, w: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None = None
) -> list[np.ndarray]:
    """For every example outputs drawn from p(y) ~ exp(score(y)), as rows."""
    runner = Runner(problem, n_jobs)
    sizes = runner.output_sizes
    outputs = new_blocks(sizes * n_samples, np.int32)
    draws = rng.random(outputs.values.size)
    run(runner, prediction_loops.draw_samples, w, runner.part_sizes, sizes, n_samples, draws, outputs)
    return [block.reshape(n_samples, -1) for block in np.split(outputs.values, outputs.starts[1:])[:-1]]


def scores_of(
    problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None, outputs: Blocks | None = None
) -> np.ndarray:
    """The scores of the true outputs, or of others."""
    runner = Runner(
        problem if outputs is None else Bound(problem, outputs, generics.new_weights(problem).dtype), n_jobs
    )
    values = np.zeros(runner.n)
    run(runner, prediction_loops.score_true_outputs, w, runner.part_sizes, values)
    return values


def log_likelihoods(
    problem: AnyProblem, w: np.ndarray, n_jobs: int | None = None, outputs: Blocks | None = None
) -> np.ndarray:
    """The logarithms of the probabilities of the true outputs, or of others, under p(y) ~ exp(score(y))."""
    _, log_partition = marginals(problem, w, n_jobs)
    values = scores_of(problem, w, n_jobs, outputs)
    return np.where(values < IMPOSSIBLE / 2, -np.inf, values - log_partition)


def costs_of(problem: AnyProblem, outputs: Blocks) -> np.ndarray:
    """What it costs to predict these outputs, one per example, in place of the true ones."""
    runner = Runner(problem)
    values = np.zeros(runner.n)
    runner.run(prediction_loops.find_costs, runner.part_sizes, outputs, values)
    return values


def run(runner: Runner, function: Callable[..., int], w: np.ndarray, *args: object) -> None:
    """Call a loop on all examples; raises if weights are not as many as they have, or scores are too large."""
    if np.shape(w) != (runner.n_weights,):
        raise ValueError(f"w must hold {runner.n_weights} weights, but has the shape {np.shape(w)}.")
    if not runner.output_sizes.all():
        function = _where_there_are_outputs(function, runner.output_sizes > 0)
    too_large = [i for i in runner.run(function, np.ascontiguousarray(w, runner.dtype), *args) if i != NONE]
    if too_large:
        raise BeyondReach(too_large[0])


def _where_there_are_outputs(function: Callable[..., int], is_filled: np.ndarray) -> Callable[..., int]:
    """A loop that leaves out examples whose outputs are empty: there is but one, and its score is zero."""

    def run_on_filled(problem: AnyProblem, *args: Any) -> int:
        *others, lo, hi, scratch = args
        edges = np.flatnonzero(np.diff(is_filled[lo:hi], prepend=False, append=False)) + lo
        for begin, end in edges.reshape(-1, 2).tolist():
            found = function(problem, *others, begin, end, scratch)
            if found != NONE:
                return found
        return NONE

    return run_on_filled
