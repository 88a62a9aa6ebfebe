"""What problems made of another one, their `base`, leave to it: outputs, parts, and the oracles that it has.

Their workspace has that of the base in its field `base`; `excluded` are flags of parts that are ruled out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks
from maxmargin.runtime.dispatch import implements
from maxmargin.runtime.reach import Generic
from maxmargin.supervision.exclusions import exclude_more


class NoWork(NamedTuple):
    """The workspace of a base problem that needs none."""


def base_workspace(problem: Any, n_best: int) -> Any:
    """The workspace of the base, which is never None."""
    work = generics.workspace(problem.base, n_best)
    return NoWork() if work is None else work


def delegate(cls: type) -> None:
    """Let problems of a class have the outputs, the parts and the oracles of their base."""
    for function, implementation in _OF_BASE.items():
        implementation.asks_base = True  # type: ignore[attr-defined]  # so that `supports` does, too
        implements(function, cls)(implementation)


def true_outputs_of_base(problem):
    return generics.true_outputs(problem.base)


def restrict_base(problem, excluded):
    """The features of the base are not asked, so that potentials of parts are ruled out here, too."""
    more = exclude_more(problem.excluded, excluded) if isinstance(excluded, Blocks) else problem.excluded
    return problem._replace(base=generics.restrict(problem.base, excluded), excluded=more)


def part_sizes_of_base(problem):
    return generics.part_sizes(problem.base)


def add_output_of_base(problem, i, y, scale, mu):
    generics.add_output(problem.base, i, y, scale, mu)


def score_output_of_base(problem, i, theta, y):
    return generics.score_output(problem.base, i, theta, y)


def max_of_base(problem, i, theta, y, work):
    return generics.max_oracle(problem.base, i, theta, y, work.base)


def bound_of_base(problem, i, theta, y, work):
    return generics.bound_oracle(problem.base, i, theta, y, work.base)


def topk_of_base(problem, i, theta, outputs, values, level, work):
    return generics.topk_oracle(problem.base, i, theta, outputs, values, level, work.base)


def exp_of_base(problem, i, theta, mu, work):
    return generics.exp_oracle(problem.base, i, theta, mu, work.base)


def draw_of_base(problem, i, theta, draws, outputs, work):
    generics.sample_oracle(problem.base, i, theta, draws, outputs, work.base)


_OF_BASE: dict[Generic, Callable] = {
    generics.true_outputs: true_outputs_of_base,
    generics.part_sizes: part_sizes_of_base,
    generics.restrict: restrict_base,
    generics.add_output: add_output_of_base,
    generics.score_output: score_output_of_base,
    generics.max_oracle: max_of_base,
    generics.bound_oracle: bound_of_base,
    generics.topk_oracle: topk_of_base,
    generics.exp_oracle: exp_of_base,
    generics.sample_oracle: draw_of_base,
}
