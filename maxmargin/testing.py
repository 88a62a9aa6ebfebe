"""Checks for structures and solvers, the library's own and yours.

`check_structure` tests every generic that a problem implements against the others, against enumeration where you
provide it, and compiled against interpreted. `check_solver` tests a solver's certificates, limits and determinism.
Both raise `AssertionError` with a sentence that says what is wrong.

Examples
--------
>>> from maxmargin.solvers import BCFW
>>> from maxmargin.testing import check_solver, check_structure, toy_chains
>>> problem = toy_chains(n=4, n_labels=3, random_state=0)
>>> check_structure(problem)
>>> check_solver(BCFW(), problem)
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from maxmargin import problem as generics
from maxmargin.encode.chain import chain_problem
from maxmargin.encode.features import row_features
from maxmargin.encode.rows import Rows
from maxmargin.losses import find_loss
from maxmargin.runtime.dispatch import interpreted, kernel, runs_compiled, supports
from maxmargin.runtime.passes import Scratch, bind
from maxmargin.solvers import Solver
from maxmargin.solvers.objective import Objective
from maxmargin.structures.chain import ChainProblem
from maxmargin.trace import Status

__all__ = ["Caller", "check_solver", "check_structure", "toy_chains"]


def toy_chains(
    n: int = 6,
    n_labels: int = 3,
    n_features: int = 4,
    max_length: int = 4,
    dtype: Any = "float64",
    random_state: Any = 0,
) -> ChainProblem:
    """A small chain problem with Hamming costs and labels that follow the features, on which checks run fast."""
    rng = np.random.default_rng(random_state)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, max_length + 1, n))])
    n_tokens = int(offsets[-1])
    rows = Rows(rng.normal(size=(n_tokens, n_features)), offsets)
    features = row_features(rows, dtype, with_grams=True)
    costs, penalty = 1.0 - np.eye(n_labels), np.zeros((n_labels, n_labels), dtype)
    signal = rows.matrix @ rng.normal(size=(n_features, n_labels))
    labels = np.argmax(signal + rng.normal(size=signal.shape), axis=1)
    return chain_problem(features, rows, n_features, labels, costs, np.ones(n_tokens), penalty)


class Caller:
    """Calls generics on one problem as kernels do: compiled, if its type is.

    Parameters
    ----------
    problem : the problem

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.problem import max_oracle, part_sizes, workspace
    >>> from maxmargin.testing import Caller, toy_chains
    >>> problem = toy_chains(n=1, max_length=1)
    >>> y = np.zeros(1, np.int32)
    >>> Caller(problem)(max_oracle, 0, np.array([2.0, 3.0, 1.0, *np.zeros(9)]), y, workspace(problem, 1)), y.tolist()
    (3.0, [1])
    """

    def __init__(self, problem: Any) -> None:
        self.problem = bind(problem)
        self._dtype = generics.new_weights(problem).dtype
        self._packed: tuple[Any, Any] = None, None  # a workspace and the scratch space that it is in

    def __call__(self, generic: Any, *args: Any) -> Any:
        if self.problem.table is None:
            return generic(self.problem, *args)
        if list(inspect.signature(generic).parameters)[-1] == "work":
            args = *args[:-1], self._scratch(args[-1])
        return _COMPILED[generic](self.problem, *args)

    def _scratch(self, work: Any) -> Any:
        if self._packed[1] is None or self._packed[0] is not work:
            reals, integers = np.zeros(0, self._dtype), np.zeros(0, np.int32)
            scratch = Scratch(reals, reals, integers, integers, reals, np.zeros(0), work)
            self._packed = work, self.problem.pack(scratch)
        return self._packed[1]


@kernel
def _scores(problem, w, i, theta):
    generics.scores(problem, w, i, theta)


@kernel
def _spread(problem, w, i, delta, scale):
    generics.spread(problem, w, i, delta, scale)


@kernel
def _squared_norm(problem, i, delta, scratch):
    return generics.squared_norm(problem, i, delta, scratch.work)


@kernel
def _augment(problem, i, theta):
    generics.augment(problem, i, theta)


@kernel
def _add_output(problem, i, y, scale, mu):
    generics.add_output(problem, i, y, scale, mu)


@kernel
def _score_output(problem, i, theta, y):
    return generics.score_output(problem, i, theta, y)


@kernel
def _max_oracle(problem, i, theta, y, scratch):
    return generics.max_oracle(problem, i, theta, y, scratch.work)


@kernel
def _topk_oracle(problem, i, theta, outputs, values, scratch):
    return generics.topk_oracle(problem, i, theta, outputs, values, scratch.work)


@kernel
def _exp_oracle(problem, i, theta, mu, scratch):
    return generics.exp_oracle(problem, i, theta, mu, scratch.work)


@kernel
def _sample_oracle(problem, i, theta, draws, outputs, scratch):
    generics.sample_oracle(problem, i, theta, draws, outputs, scratch.work)


@kernel
def _max_marginals(problem, i, theta, out, scratch):
    generics.max_marginals(problem, i, theta, out, scratch.work)


_COMPILED: dict[Any, Any] = {
    generics.scores: _scores,
    generics.spread: _spread,
    generics.squared_norm: _squared_norm,
    generics.augment: _augment,
    generics.add_output: _add_output,
    generics.score_output: _score_output,
    generics.max_oracle: _max_oracle,
    generics.topk_oracle: _topk_oracle,
    generics.exp_oracle: _exp_oracle,
    generics.sample_oracle: _sample_oracle,
    generics.max_marginals: _max_marginals,
}


def check_structure(
    problem: Any,
    outputs: Callable[[int], Iterable[Any]] | None = None,
    random_state: Any = 0,
    k: int = 4,
    lower: Any = -np.inf,
) -> None:
    """Check every generic function that `problem` implements.

    Parameters
    ----------
    problem : a problem whose examples are small
    outputs : enumerates all outputs of example i; oracles are then compared with brute force
    random_state : seed of the random weights
    k : the number of outputs asked of the top-K oracle
    lower : lower bounds of the weights, a number or one per weight, for structures that need them
    """
    ways: list[Any] = [contextlib.nullcontext, interpreted] if runs_compiled(problem) else [interpreted]
    for way in ways:
        with way():
            call = Caller(problem)
        rng = np.random.default_rng(random_state)
        w = generics.new_weights(problem)
        assert not w.any(), "new_weights must return zeros"
        for scale in (0.0, 1.0, 10.0):  # all tied, ordinary, far apart
            w[:] = np.maximum(scale * rng.normal(size=w.size), lower)
            work = generics.workspace(problem, k)
            for i in range(generics.n_examples(problem)):
                _Example(call, i, w, work, rng, k).check(None if outputs is None else [*outputs(i)])


class _Example:
    """The checks of one example at given weights."""

    def __init__(self, call: Caller, i: int, w: np.ndarray, work: Any, rng: Any, k: int) -> None:
        self.call, self.i, self.w, self.work, self.rng, self.k = call, i, w, work, rng, k
        self.n_parts = int(generics.part_sizes(call.problem)[i])
        self.gold = generics.gold(call.problem, i)
        self.size = self.gold.size
        self.tol = 1e-4 if w.dtype == np.float32 else 1e-9
        self.theta = self.zeros()
        call(generics.scores, w, i, self.theta)

    def zeros(self) -> np.ndarray:
        return np.zeros(self.n_parts, self.w.dtype)

    def parts(self, y: Any) -> np.ndarray:
        mu = self.zeros()
        self.call(generics.add_output, self.i, y, 1.0, mu)
        return mu

    def close(self, a: Any, b: Any, message: str) -> None:
        scale = 1 + np.abs(self.theta[self.theta > generics.IMPOSSIBLE / 2]).sum()
        assert np.allclose(a, b, rtol=self.tol, atol=self.tol * scale), f"example {self.i}: {message}: {a} and {b}"

    def check(self, outputs: list[Any] | None) -> None:
        self.check_linear_map()
        outputs = None if outputs is None else [np.ascontiguousarray(y, np.int32) for y in outputs]
        self.check_costs(outputs)
        for augmented in (False, True):
            if augmented:
                self.call(generics.augment, self.i, self.theta)
            table = None if outputs is None else np.array([self.parts(y) for y in outputs], np.float64)
            self.check_max(table)
            if supports(generics.topk_oracle, self.call.problem):
                self.check_topk(table)
            if supports(generics.exp_oracle, self.call.problem):
                self.check_exp(table)
            if supports(generics.sample_oracle, self.call.problem) and not augmented:
                self.check_samples()

    def check_linear_map(self) -> None:
        is_possible = self.theta > generics.IMPOSSIBLE / 2
        delta = np.where(is_possible, self.rng.normal(size=self.n_parts), 0).astype(self.w.dtype)
        moved = np.zeros_like(self.w)
        self.call(generics.spread, moved, self.i, delta, 2.0)
        self.close(np.dot(self.w, moved), 2 * np.dot(self.theta, delta), "spread is not the adjoint of scores")
        squared = self.call(generics.squared_norm, self.i, delta, self.work)
        self.close(4 * squared, np.dot(moved, moved), "squared_norm is not that of spread")

    def check_costs(self, outputs: list[Any] | None) -> None:
        cost = self.zeros()
        self.call(generics.augment, self.i, cost)
        self.close(self.call(generics.score_output, self.i, cost, self.gold), 0.0, "the true output must cost nothing")
        for y in outputs or []:
            value = self.call(generics.score_output, self.i, cost, y)
            assert value >= -self.tol, f"example {self.i}: output {y} has the negative cost {value}"

    def check_max(self, table: np.ndarray | None) -> None:
        y, again = np.zeros(self.size, np.int32), np.zeros(self.size, np.int32)
        value = self.call(generics.max_oracle, self.i, self.theta, y, self.work)
        self.call(generics.max_oracle, self.i, self.theta, again, self.work)
        assert np.array_equal(y, again), f"example {self.i}: max_oracle broke a tie in two ways: {y} and {again}"
        self.close(value, self.call(generics.score_output, self.i, self.theta, y), "max_oracle returns a wrong score")
        self.close(value, np.dot(self.theta, self.parts(y)), "score_output differs from the parts of add_output")
        lowest = self.call(generics.score_output, self.i, self.theta, self.gold)
        assert value >= lowest - self.tol * (1 + abs(lowest)), f"example {self.i}: the true output beats max_oracle"
        if table is not None:
            self.close(value, (table @ self.theta).max(), "max_oracle differs from enumeration")

    def check_topk(self, table: np.ndarray | None) -> None:
        found, values = np.zeros((self.k, self.size), np.int32), np.zeros(self.k, self.w.dtype)
        count = self.call(generics.topk_oracle, self.i, self.theta, found, values, self.work)
        assert len({tuple(y) for y in found[:count]}) == count, f"example {self.i}: topk_oracle repeats an output"
        scores = [self.call(generics.score_output, self.i, self.theta, y) for y in found[:count]]
        self.close(values[:count], scores, "topk_oracle returns wrong scores")
        self.close(np.sort(scores)[::-1], scores, "topk_oracle is not sorted")
        if table is not None:
            assert count == min(self.k, len(table)), f"example {self.i}: topk_oracle found {count} of {len(table)}"
            self.close(np.sort(table @ self.theta)[::-1][:count], scores, "topk_oracle differs from enumeration")

    def check_exp(self, table: np.ndarray | None) -> None:
        mu = self.zeros()
        log_z = self.call(generics.exp_oracle, self.i, self.theta, mu, self.work)
        if table is not None:
            scores = table @ self.theta
            top = scores.max()
            p = np.exp(scores - top)
            self.close(log_z, top + np.log(p.sum()), "the log-partition function differs from enumeration")
            self.close(mu, (p / p.sum()) @ table, "the means of exp_oracle differ from enumeration")

    def check_samples(self) -> None:
        """Compare the mean parts of samples, which scatter, with those of the exp oracle."""
        n = 200
        draws, outputs, mu = self.rng.random((n, self.size)), np.zeros((n, self.size), np.int32), self.zeros()
        self.call(generics.sample_oracle, self.i, self.theta, draws, outputs, self.work)
        self.call(generics.exp_oracle, self.i, self.theta, mu, self.work)
        parts = np.array([self.parts(y) for y in outputs], np.float64)
        is_close = np.abs(parts.mean(axis=0) - mu) <= 6 * parts.std(axis=0) / np.sqrt(n) + 12 / n
        assert is_close.all(), f"example {self.i}: samples of sample_oracle have other means than exp_oracle"


def check_solver(
    solver: Solver, problem: Any, optimum: float | None = None, C: float = 1.0, tol: float = 1e-3, loss: Any = None
) -> None:
    """Check the certificates, limits and determinism of a solver on a problem it solves in seconds.

    Parameters
    ----------
    solver : the solver
    problem : a small problem
    optimum : the known minimum of the objective
    C : inverse strength of the regularization
    tol : the relative gap to solve to
    loss : the loss, by default that of the solver
    """

    def solve(**limits: Any) -> Any:
        return solver.solve(problem, C, loss=loss, random_state=0, **limits)

    result = solve(tol=tol, max_passes=2e4)
    trace, eps = result.trace, 1e-9 if result.w.dtype == np.float64 else 1e-5
    assert result.status is Status.OPTIMAL, f"stopped early: {result.status}"
    assert (trace.gap >= 0).all(), "a duality gap is negative"
    assert trace.gap[-1] <= tol * trace.primal[-1], "OPTIMAL, but the gap is above tol"
    assert (np.diff(trace.primal) <= 0).all(), "the best primal value rises"
    assert (np.diff(trace.dual) >= 0).all(), "the best dual value falls"
    assert (np.diff(trace.oracle_calls) > 0).all(), "certificates without oracle calls"

    primal = Objective(problem, C, loss=find_loss(loss or solver.default_loss)).evaluate(result.w).value
    assert np.isclose(primal, trace.primal[-1], rtol=eps), (
        f"the weights have the objective {primal}, not the traced one"
    )
    if optimum is not None:
        slack = eps * abs(optimum)
        assert (trace.primal >= optimum - slack).all(), f"a primal value is below the optimum {optimum}"
        assert (trace.dual <= optimum + slack).all(), f"a dual value is above the optimum {optimum}"

    again = solve(tol=tol, max_passes=2e4)
    assert np.array_equal(result.w, again.w), "the same seed gives other weights"
    if result.dual is not None:
        warm = solve(start=result.dual, tol=max(10 * tol, 1e-2))
        assert warm.trace.passes[-1] <= 1, "a warm start at a solution makes passes"
    else:
        warm = solve(start=result.w, tol=1e-12, max_passes=1)
        assert warm.trace.primal[-1] <= trace.primal[0], "a warm start at a solution is lost"
    short = solve(tol=1e-12, max_passes=1)
    assert short.status in (Status.MAX_PASSES, Status.OPTIMAL), f"max_passes ignored: {short.status}"
    assert short.trace.passes[-1] <= 1, "more passes than max_passes"
    began = time.perf_counter()
    solve(tol=1e-12, max_passes=1e9, time_limit=0.2)
    assert time.perf_counter() - began < 10, "time_limit ignored"
    stopped = solve(tol=1e-12, max_passes=1e5, callback=lambda trace: True)
    assert stopped.status is Status.INTERRUPTED, "a callback that returns True does not stop the solver"
    assert len(stopped.trace) == 1, "a callback that returns True does not stop the solver at once"
