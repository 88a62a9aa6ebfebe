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


_COMPILED: dict[object, Callable[..., object]] = {}


def _calls(generic: object) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Let a `Caller` have a function, as a loop, in place of a generic; a decorator."""
    return lambda function: _COMPILED.setdefault(generic, loop(function))


@_calls(generics.scores)
def _scores(problem, w, i, theta):
    generics.scores(problem, w, i, theta)


@_calls(generics.spread)
def _spread(problem, w, i, delta, scale):
    generics.spread(problem, w, i, delta, scale)


@_calls(generics.accumulate)
def _accumulate(problem, w, i, delta, scale):
    generics.accumulate(problem, w, i, delta, scale)


@_calls(generics.squared_norm)
def _squared_norm(problem, i, delta, scratch):
    return generics.squared_norm(problem, i, delta, scratch.work)


@_calls(generics.augment)
def _augment(problem, i, theta):
    generics.augment(problem, i, theta)


@_calls(generics.add_output)
def _add_output(problem, i, y, scale, mu):
    generics.add_output(problem, i, y, scale, mu)


@_calls(generics.score_output)
def _score_output(problem, i, theta, y):
    return generics.score_output(problem, i, theta, y)


@_calls(generics.max_oracle)
def _max_oracle(problem, i, theta, y, scratch):
    return generics.max_oracle(problem, i, theta, y, scratch.work)


@_calls(generics.bound_oracle)
def _bound_oracle(problem, i, theta, y, scratch):
    return generics.bound_oracle(problem, i, theta, y, scratch.work)


@_calls(generics.topk_oracle)
def _topk_oracle(problem, i, theta, outputs, values, level, scratch):
    return generics.topk_oracle(problem, i, theta, outputs, values, level, scratch.work)


@_calls(generics.block_oracle)
def _block_oracle(problem, i, theta, curvature, mu, delta, scratch):
    return generics.block_oracle(problem, i, theta, curvature, mu, delta, scratch.work)


@_calls(generics.exp_oracle)
def _exp_oracle(problem, i, theta, mu, scratch):
    return generics.exp_oracle(problem, i, theta, mu, scratch.work)


@_calls(generics.mean_oracle)
def _mean_oracle(problem, i, theta, mu, scratch):
    return generics.mean_oracle(problem, i, theta, mu, scratch.work)


@_calls(generics.relax_oracle)
def _relax_oracle(problem, i, theta, mu, scratch):
    return generics.relax_oracle(problem, i, theta, mu, scratch.work)


@_calls(generics.sample_oracle)
def _sample_oracle(problem, i, theta, draws, outputs, scratch):
    generics.sample_oracle(problem, i, theta, draws, outputs, scratch.work)


@_calls(generics.max_marginals)
def _max_marginals(problem, i, theta, out, scratch):
    generics.max_marginals(problem, i, theta, out, scratch.work)


@_calls(generics.transition_marginals)
def _transition_marginals(problem, i, theta, pairs, out, scratch):
    generics.transition_marginals(problem, i, theta, pairs, out, scratch.work)
