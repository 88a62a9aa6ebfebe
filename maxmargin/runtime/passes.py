"""Passes over all examples of a problem: blocks of arrays, scratch space, and the ranges of the threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.problem import n_examples, new_weights, output_sizes, part_sizes, workspace
from maxmargin.runtime.threads import Ranges, aligned, count_threads


class Blocks(NamedTuple):
    """One flat array with a block per example; that of example i is values[start[i]:start[i + 1]]."""

    values: np.ndarray
    start: np.ndarray


def new_blocks(sizes: np.ndarray, dtype: Any) -> Blocks:
    """Blocks of zeros of the given sizes."""
    start = np.concatenate([[0], np.cumsum(sizes)])
    return Blocks(np.zeros(start[-1], dtype), start)


class Scratch(NamedTuple):
    """The arrays a kernel works in: one set per thread."""

    theta: np.ndarray  # potentials
    delta: np.ndarray  # a direction, or mean parts
    y: np.ndarray  # an output
    outputs: np.ndarray  # the K best outputs, flat
    values: np.ndarray  # (K,) their scores
    shares: np.ndarray  # (K,) their weights in a mixture
    work: Any  # the oracle's own


class Passes:
    """Runs kernels over all examples, each thread on its own range with its own scratch.

    Parameters
    ----------
    problem : the examples
    n_jobs : the number of threads, as in scikit-learn
    n_best : the number of outputs the top-K oracle is asked for
    """

    def __init__(self, problem: Any, n_jobs: int | None = None, n_best: int = 1) -> None:
        self.problem = problem
        self.n_best = n_best
        self.n = n_examples(problem)
        self.part_sizes = part_sizes(problem)
        self.output_sizes = output_sizes(problem)
        self.dtype = new_weights(problem).dtype
        self.ranges = Ranges(self.part_sizes, count_threads(n_jobs))
        self.scratches = [self._scratch() for _ in range(len(self.ranges))]

    def _scratch(self) -> Scratch:
        n_parts, output_size = (int(self.part_sizes.max()),), int(self.output_sizes.max())
        return Scratch(
            theta=aligned(n_parts, self.dtype),
            delta=aligned(n_parts, self.dtype),
            y=aligned((output_size,), np.int32),
            outputs=aligned((self.n_best * output_size,), np.int32),
            values=aligned((self.n_best,), self.dtype),
            shares=aligned((self.n_best,), np.float64),
            work=workspace(self.problem, self.n_best),
        )

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call the kernel ``function(problem, *args, lo, hi, scratch)`` on every range; return the results in order."""
        return self.ranges.run(lambda k, lo, hi: function(self.problem, *args, lo, hi, self.scratches[k]))

    def accumulate(self, function: Callable[..., Any], *args: Any) -> np.ndarray:
        """As `run`, for kernels that add to a vector of weights, passed before `args`: return the sum, in float64."""

        def part(k: int, lo: int, hi: int) -> np.ndarray:
            w = np.zeros(new_weights(self.problem).size)
            function(self.problem, w, *args, lo, hi, self.scratches[k])
            return w

        total, *others = self.ranges.run(part)
        for other in others:
            total += other
        return total
