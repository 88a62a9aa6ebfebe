"""What problems made of another one, their `base`, leave to it.

Their workspace has that of the base in its field `base`; `excluded`, where they have it, are flags of parts that are
ruled out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, in_precision
from maxmargin.features.layout import layout_of
from maxmargin.runtime.dispatch import implements
from maxmargin.runtime.reach import Generic
from maxmargin.supervision.exclusions import exclude_more


class NoWork(NamedTuple):
    """The workspace of a base problem that needs none."""


def base_workspace(problem: Any, n_best: int) -> Any:
    """The workspace of the base, which is never None."""
    work = generics.workspace(problem.base, n_best)
    return NoWork() if work is None else work


def delegate(*classes: type, functions: tuple[Generic, ...]) -> None:
    """Let problems of these classes have functions of their base, where it has them."""
    for function in functions:
        implementation = _OF_BASE[function]
        implementation.asks_base = True  # type: ignore[attr-defined]  # so that `supports` does, too
        implements(function, *classes)(implementation)


def prepare_base(problem, dtype):
    return in_precision(problem, dtype)._replace(base=generics.prepare(problem.base, dtype))


def restrict_base(problem, excluded):
    """Where the features of the base are not asked, potentials of parts are ruled out here, too."""
    restricted = problem._replace(base=generics.restrict(problem.base, excluded))
    if not hasattr(problem, "excluded") or not isinstance(excluded, Blocks):
        return restricted
    return restricted._replace(excluded=exclude_more(problem.excluded, excluded))


# Compiled functions have names, by which they are kept on disk.


def augment_base(problem, i, theta):
    generics.augment(problem.base, i, theta)


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
    generics.true_outputs: lambda problem: generics.true_outputs(problem.base),
    generics.part_sizes: lambda problem: generics.part_sizes(problem.base),
    generics.restrict: restrict_base,
    generics.add_output: add_output_of_base,
    generics.score_output: score_output_of_base,
    generics.max_oracle: max_of_base,
    generics.bound_oracle: bound_of_base,
    generics.topk_oracle: topk_of_base,
    generics.exp_oracle: exp_of_base,
    generics.sample_oracle: draw_of_base,
}
OUTPUTS_AND_ORACLES = tuple(_OF_BASE)
_OF_BASE |= {
    generics.new_weights: lambda problem: generics.new_weights(problem.base),
    generics.layout: lambda problem: layout_of(problem.base),
    generics.squared_diameters: lambda problem: generics.squared_diameters(problem.base),
    generics.prepare: prepare_base,
    generics.augment: augment_base,
}
