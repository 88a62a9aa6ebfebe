"""Passes over all examples of a problem: scratch space, and the ranges of the threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import types

from maxmargin.arrays.prefetch import lines_of
from maxmargin.execution.clock import Clock
from maxmargin.execution.threads import Ranges, aligned, count_threads
from maxmargin.problem import AnyProblem, all_true_outputs, new_weights, part_sizes, stretches, workspace
from maxmargin.runtime.abi import OPAQUE, Stored
from maxmargin.runtime.dispatch import Bound, supports
from maxmargin.runtime.tables import SCRATCH

T = TypeVar("T")


class Scratch(NamedTuple):
    """The arrays a loop works in: one set per thread."""

    theta: np.ndarray  # potentials
    delta: np.ndarray  # a direction, or mean parts
    y: np.ndarray  # an output
    outputs: np.ndarray  # the K best outputs, flat
    values: np.ndarray  # (K,) their scores
    shares: np.ndarray  # (K,) their weights in a mixture
    work: Any  # the oracle's own


for _dtype in (types.float32, types.float64):
    _reals, _sums, _integers = (types.Array(kind, 1, "C") for kind in (_dtype, types.float64, types.int32))
    SCRATCH[_dtype] = Stored(Scratch, Scratch._fields, (_reals, _reals, _integers, _integers, _sums, _sums, OPAQUE))


def bind(problem: AnyProblem) -> Bound:
    """A problem made ready for loops."""
    return (
        problem if isinstance(problem, Bound) else Bound(problem, all_true_outputs(problem), new_weights(problem).dtype)
    )


class Runner:
    """Runs loops over all examples, each thread on its own range with its own scratch.

    Parameters
    ----------
    problem
        The examples.
    n_jobs
        The number of threads, as in scikit-learn.
    n_best
        The number of outputs the top-K oracle is asked for.
    clock
        What passes look at, and are broken off by; none by default.
    """

    def __init__(
        self, problem: AnyProblem, n_jobs: int | None = None, n_best: int = 1, clock: Clock | None = None
    ) -> None:
        self.clock = clock
        self.problem = bind(problem)
        self.n_best = n_best
        self.part_sizes = part_sizes(problem)
        self.output_sizes = np.diff(self.problem.truth.starts)
        self.n = len(self.output_sizes)
        weights = new_weights(problem)
        self.n_weights, self.dtype = weights.size, weights.dtype
        self.ranges = Ranges(self.part_sizes, count_threads(n_jobs))
        self.scratches = [self._scratch() for _ in range(len(self.ranges))]

    def _scratch(self) -> Scratch:
        n_parts, output_size = (int(self.part_sizes.max(initial=0)),), int(self.output_sizes.max(initial=0))
        scratch = Scratch(
            theta=aligned(n_parts, self.dtype),
            delta=aligned(n_parts, self.dtype),
            y=aligned((output_size,), np.int32),
            outputs=aligned((self.n_best * output_size,), np.int32),
            values=aligned((self.n_best,), np.float64),
            shares=aligned((self.n_best,), np.float64),
            work=workspace(self.problem, self.n_best),
        )
        return self.problem.pack(scratch)

    @cached_property
    def lines(self) -> np.ndarray:
        """Where in memory what steps read of each example lies (`maxmargin.arrays.prefetch`); empty if not known."""
        problem = self.problem
        can_tell = problem.is_compiled and supports(stretches, problem)
        return lines_of(stretches(problem) if can_tell else [])

    def run(self, function: Callable[..., T], *args: object) -> list[T]:
        """Call the loop ``function(problem, *args, lo, hi, scratch)`` on every range; return the results in order."""
        return [result for results in self.ranges.run(partial(self._call, function, args)) for result in results]

    def _call(self, function: Callable[..., T], args: tuple[object, ...], k: int, lo: int, hi: int) -> list[T]:
        """Call a loop on range k, lo:hi, in slices if there is a clock to look at."""
        kind = function, *map(type, args)  # which tells losses by their oracle apart
        slices = [(lo, hi)] if self.clock is None else self.clock.slices_of_pass(kind, lo, hi)
        return [function(self.problem, *args, *bounds, self.scratches[k]) for bounds in slices]

    def accumulate(self, function: Callable[..., object], *args: object, size: int | None = None) -> np.ndarray:
        """As `run`, for loops that add to a vector of weights, passed before `args`: return the sum, in float64.

        `size` is that of the vector, where it is not one entry per weight.
        """
        length = self.n_weights if size is None else size

        def part(k: int, lo: int, hi: int) -> np.ndarray:
            w = np.zeros(length)
            self._call(function, (w, *args), k, lo, hi)
            return w

        total, *others = self.ranges.run(part)
        for other in others:
            total += other
        return total
