"""Generics called one by one from Python, compiled as loops call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import problem as generics
from maxmargin.execution.runner import Scratch, bind
from maxmargin.problem import AnyProblem
from maxmargin.runtime.dispatch import loop


class Caller:
    """Calls generics on one problem as loops do: compiled, if its type is.

    Parameters
    ----------
    problem
        The problem.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.problem import max_oracle, part_sizes, workspace
    >>> from maxmargin.testing import Caller, toy_chains
    >>> problem = toy_chains(n=1, max_length=1)
    >>> y = np.zeros(1, np.int32)
    >>> float(Caller(problem)(max_oracle, 0, np.array([2.0, 3.0, 1.0, *np.zeros(9)]), y, workspace(problem, 1)))
    3.0
    >>> y
    array([1], dtype=int32)
    """

    def __init__(self, problem: AnyProblem) -> None:
        self.problem = bind(problem)
        self._dtype = generics.new_weights(problem).dtype
        self._packed: tuple[object, object] = None, None  # a workspace and the scratch space that it is in

    def __call__(self, generic: Callable[..., object], *args: object) -> Any:
        if not self.problem.is_compiled:
            return generic(self.problem, *args)
        if list(inspect.signature(generic).parameters)[-1] == "work":
            args = *args[:-1], self._scratch(args[-1])
        return _COMPILED[generic](self.problem, *args)

    def _scratch(self, work: object) -> object:
        if self._packed[1] is None or self._packed[0] is not work:
            reals, sums, integers = np.zeros(0, self._dtype), np.zeros(0), np.zeros(0, np.int32)
            scratch = Scratch(reals, reals, integers, integers, sums, sums, work)
            self._packed = work, self.problem.pack(scratch)
        return self._packed[1]


@loop
def _scores(problem, w, i, theta):
    generics.scores(problem, w, i, theta)


@loop
def _spread(problem, w, i, delta, scale):
    generics.spread(problem, w, i, delta, scale)


@loop
def _accumulate(problem, w, i, delta, scale):
    generics.accumulate(problem, w, i, delta, scale)


@loop
def _squared_norm(problem, i, delta, scratch):
    return generics.squared_norm(problem, i, delta, scratch.work)


@loop
def _augment(problem, i, theta):
    generics.augment(problem, i, theta)


@loop
def _add_output(problem, i, y, scale, mu):
    generics.add_output(problem, i, y, scale, mu)


@loop
def _score_output(problem, i, theta, y):
    return generics.score_output(problem, i, theta, y)


@loop
def _max_oracle(problem, i, theta, y, scratch):
    return generics.max_oracle(problem, i, theta, y, scratch.work)


@loop
def _bound_oracle(problem, i, theta, y, scratch):
    return generics.bound_oracle(problem, i, theta, y, scratch.work)


@loop
def _topk_oracle(problem, i, theta, outputs, values, level, scratch):
    return generics.topk_oracle(problem, i, theta, outputs, values, level, scratch.work)


@loop
def _block_oracle(problem, i, theta, curvature, mu, delta, scratch):
    return generics.block_oracle(problem, i, theta, curvature, mu, delta, scratch.work)


@loop
def _exp_oracle(problem, i, theta, mu, scratch):
    return generics.exp_oracle(problem, i, theta, mu, scratch.work)


@loop
def _mean_oracle(problem, i, theta, mu, scratch):
    return generics.mean_oracle(problem, i, theta, mu, scratch.work)


@loop
def _relax_oracle(problem, i, theta, mu, scratch):
    return generics.relax_oracle(problem, i, theta, mu, scratch.work)


@loop
def _sample_oracle(problem, i, theta, draws, outputs, scratch):
    generics.sample_oracle(problem, i, theta, draws, outputs, scratch.work)


@loop
def _max_marginals(problem, i, theta, out, scratch):
    generics.max_marginals(problem, i, theta, out, scratch.work)


@loop
def _transition_marginals(problem, i, theta, pairs, out, scratch):
    generics.transition_marginals(problem, i, theta, pairs, out, scratch.work)


_COMPILED: dict[object, Callable[..., object]] = {
    generics.scores: _scores,
    generics.spread: _spread,
    generics.accumulate: _accumulate,
    generics.squared_norm: _squared_norm,
    generics.augment: _augment,
    generics.add_output: _add_output,
    generics.score_output: _score_output,
    generics.max_oracle: _max_oracle,
    generics.bound_oracle: _bound_oracle,
    generics.topk_oracle: _topk_oracle,
    generics.block_oracle: _block_oracle,
    generics.exp_oracle: _exp_oracle,
    generics.mean_oracle: _mean_oracle,
    generics.relax_oracle: _relax_oracle,
    generics.sample_oracle: _sample_oracle,
    generics.max_marginals: _max_marginals,
    generics.transition_marginals: _transition_marginals,
}
