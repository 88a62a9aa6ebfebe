"""Checks of structures: every generic against the others, against enumeration, and compiled against interpreted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.features.layout import layout_of
from maxmargin.problem import AnyProblem
from maxmargin.runtime.dispatch import runs_compiled, supports
from maxmargin.runtime.modes import bounds_checked, interpreted
from maxmargin.supervision.exclusions import NoFlags
from maxmargin.testing.caller import Caller
from maxmargin.testing.oracle_checks import CheckedExample


def check_structure(
    problem: AnyProblem,
    outputs: Callable[[int], Iterable[np.ndarray]] | None = None,
    random_state: int | np.random.Generator = 0,
    k: int = 4,
    lower: ArrayLike = -np.inf,
    check_bounds: bool = False,
) -> None:
    """Check every generic function that `problem` implements.

    Parameters
    ----------
    problem
        A problem whose examples are small.
    outputs
        Enumerates all outputs of example i; oracles are then compared with brute force.
    random_state
        Seed of the random weights.
    k
        The number of outputs asked of the top-K oracle.
    lower
        Lower bounds of the weights, a number or one per weight, for structures that need them.
    check_bounds
        Whether compiled code is to check all its indices, and raise an IndexError where one is out of bounds, which
        else may end the process.

    Examples
    --------
    >>> from itertools import product
    >>> import numpy as np
    >>> from maxmargin.testing import check_structure, toy_chains
    >>> problem = toy_chains(n=2, n_labels=2, max_length=2)
    >>> lengths = np.diff(problem.starts)
    >>> check_structure(problem, lambda i: map(np.array, product(range(2), repeat=lengths[i])))  # nothing to say
    """
    ways: list[Any] = [interpreted]  # first, as Python says which line has an index out of bounds
    if runs_compiled(problem):
        ways.append(bounds_checked if check_bounds else contextlib.nullcontext)
    for way in ways:
        with way():
            call = Caller(problem)
        rng = np.random.default_rng(random_state)
        w, layout = generics.new_weights(problem), layout_of(problem)
        assert not w.any(), "new_weights must return zeros"
        assert layout.n_solved == w.size, f"layout has {layout.n_solved} weights, but new_weights {w.size}"
        seen: list[dict[tuple[int, ...], np.ndarray]] = [{} for _ in range(generics.n_examples(problem))]
        for scale in (1.0, 10.0, 0.0):  # ordinary, far apart, all tied: costs alone decide
            w[:] = layout.to_solver(np.maximum(scale * rng.normal(size=layout.n_weights), lower))
            work = generics.workspace(problem, k)
            for i, known in enumerate(seen):
                CheckedExample(call, i, w, work, rng, k, known).check(None if outputs is None else [*outputs(i)])
        can_restrict = supports(generics.restrict, problem) and supports(generics.max_marginals, problem)
        if outputs is not None and can_restrict and way is ways[-1]:
            apart = layout.to_solver(np.maximum(rng.normal(size=layout.n_weights), lower)).astype(w.dtype)
            with contextlib.suppress(NoFlags):
                _check_restrict(_Rules(problem, way, outputs), (apart, w), rng, k)
        if outputs is not None and supports(generics.transition_marginals, problem):
            _check_transitions(call, [[*outputs(i)] for i in range(len(seen))], w, work, rng)
    if supports(generics.prepare, problem):
        _check_prepare(problem, w + 1)


def _check_transitions(
    call: Caller, outputs: list[list[np.ndarray]], w: np.ndarray, work: object, rng: np.random.Generator
) -> None:
    for weights in (w, rng.normal(size=w.size).astype(w.dtype)):
        for i, known in enumerate(outputs):
            CheckedExample(call, i, weights, work, rng, 1, {}).check_transitions(known)


def _check_prepare(problem: AnyProblem, w: np.ndarray) -> None:
    """The problem in another precision must have the same examples, scores and norms."""
    for dtype in (np.float32, np.float64):
        other = generics.prepare(problem, dtype)
        is_same = generics.new_weights(other).dtype == dtype and generics.new_weights(other).shape == w.shape
        assert is_same, f"prepare for {dtype.__name__} has other weights"
        pairs = zip(generics.all_true_outputs(problem), generics.all_true_outputs(other), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs), "prepare has other true outputs"
        for i, size in enumerate(generics.part_sizes(problem)):
            found = []
            for each, kind in ((problem, w.dtype), (other, dtype)):
                with interpreted():
                    call = Caller(each)
                theta, delta = np.zeros(size, kind), np.sin(np.arange(size)).astype(kind)
                call(generics.scores, w.astype(kind), i, theta)
                norm = call(generics.squared_norm, i, delta, generics.workspace(each, 1))
                found.append(np.append(theta, norm).astype(np.float64))
            is_close = np.allclose(found[0], found[1], rtol=1e-4, atol=1e-4 * (1 + np.abs(w).sum()))
            assert is_close, f"example {i}: prepare has other scores or norms"


def _check_restrict(rules: _Rules, weights: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, k: int) -> None:
    """With parts ruled out, all oracles must be those of the outputs left: some, or only one, in one call or in two."""
    problem = rules.problem
    for is_alone in (False, True):
        w = weights[rng.integers(2)]
        excluded = rules.draw(rng, is_alone)
        is_first = rng.random(excluded.values.size) < (0.5 if is_alone else 1.0)
        restricted = generics.restrict(problem, excluded._replace(values=excluded.values & is_first))
        if is_alone:
            restricted = generics.restrict(restricted, excluded._replace(values=excluded.values & ~is_first))
        assert type(restricted) is type(problem), "restrict must return a problem of the same type"
        for generic in (generics.part_sizes, generics.new_weights):
            assert np.array_equal(generic(restricted), generic(problem)), f"restrict changes {generic.__name__}"
        with rules.way():
            call = Caller(restricted)
        work = generics.workspace(restricted, k)
        for i, (known, parts) in enumerate(zip(rules.outputs, rules.parts, strict=True)):
            flags = excluded.values[excluded.starts[i] : excluded.starts[i + 1]]
            left = [y for y, row in zip(known, parts, strict=True) if not row[: flags.size][flags].any()]
            try:
                CheckedExample(call, i, w, work, rng, k, {}).check(left)
            except AssertionError as error:
                raise AssertionError(f"with {len(left)} outputs left by restrict, {error}") from error
    restricted = generics.restrict(problem, rules.draw_all(rng))
    with rules.way():
        call = Caller(restricted)
    work = generics.workspace(restricted, k)
    for i, (parts, size) in enumerate(zip(rules.parts, rules.n_flags, strict=True)):
        if parts[:, :size].any(axis=1).all():
            CheckedExample(call, i, weights[0], work, rng, k, {}).check_nothing_left()


class _Rules:
    """The outputs of all examples with their parts, of which the first, those of max-marginals, can be ruled out."""

    def __init__(
        self,
        problem: AnyProblem,
        way: Callable[[], contextlib.AbstractContextManager[object]],
        outputs: Callable[[int], Iterable[np.ndarray]],
    ) -> None:
        self.problem, self.way = problem, way
        self.outputs: list[list[np.ndarray]] = []
        self.parts: list[np.ndarray] = []
        self.n_flags: list[int] = []
        with way():
            call = Caller(problem)
        work, dtype = generics.workspace(problem, 1), generics.new_weights(problem).dtype
        for i, size in enumerate(generics.part_sizes(problem)):
            best = np.full(size, np.nan)
            call(generics.max_marginals, i, np.zeros(size, dtype), best, work)
            every = [np.ascontiguousarray(y, np.int32) for y in outputs(i)]
            parts = np.zeros((len(every), size), dtype)
            for y, row in zip(every, parts, strict=True):
                call(generics.add_output, i, y, 1.0, row)
            self.outputs.append(every)
            self.parts.append(parts > 0.5)
            self.n_flags.append(int((~np.isnan(best)).sum()))

    def draw(self, rng: np.random.Generator, is_alone: bool) -> Blocks:
        """Flags that leave an output of each example: many, or as far as flags can tell, no other."""
        flags = []
        for parts, size in zip(self.parts, self.n_flags, strict=True):
            kept = parts[rng.integers(len(parts)), :size]
            flags.append(~kept & (is_alone | (rng.random(size) < 0.4)))
        return as_blocks(flags, bool)

    def draw_all(self, rng: np.random.Generator) -> Blocks:
        """Flags that leave no output, where flags can: in random order, only as many as that takes."""
        flags = []
        for parts, size in zip(self.parts, self.n_flags, strict=True):
            order = rng.permutation(size)
            last = parts[:, order].argmax(axis=1).max(initial=-1) if size else -1  # that rules out the last output
            flags.append(np.isin(np.arange(size), order[: last + 1]))
        return as_blocks(flags, bool)
