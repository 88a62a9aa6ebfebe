"""The objective of examples in portions: sums of what each of them says, in their order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar, Unpack

import numpy as np

from maxmargin.features.layout import PartialLayout, WeightLayout
from maxmargin.solvers.objective.active_sets import DualPoint
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.loss_pass import LossSums
from maxmargin.solvers.objective.objective_options import ObjectiveOptions, PassOptions
from maxmargin.solvers.parted.portions import Kept, Portions, T, Terms, Thin

Average = TypeVar("Average", float, np.ndarray)

NO_GRADIENT = np.zeros(0)


class PartedObjective(Objective):
    """An objective whose examples are in portions, for solvers that ask for sums over all of them.

    Its weights are in the order of the model, or as the portions say, whatever the layout of each of them. What it
    hands out of examples is `Kept` by the portions.

    Parameters
    ----------
    portions
        The examples, with their weights.
    C, options
        As of `Objective`.
    """

    can_prepare = False

    def __init__(self, portions: Portions, C: float = 1.0, **options: Unpack[ObjectiveOptions]) -> None:
        self.portions = portions
        super().__init__(portions.like, C, **options)

    def _find_layout(self) -> WeightLayout:
        layout = super()._find_layout()
        if not layout.is_explicit:
            raise ValueError("Kernels need all examples in one place, not in portions.")
        return self.portions.layout or WeightLayout(layout.n_weights)

    def _count_examples(self) -> int:
        return int(self.portions.sizes.sum())

    def each(self, function: Callable[..., T], *args: object, fills: Sequence[Kept] = ()) -> Iterable[T]:
        """Call ``function(objective, *args)`` of the objective of every portion; the results in their order, once."""
        return self.portions.each(function, self._terms, *args, fills=fills, clock=self.runner.clock)

    def open(self, k: int) -> Objective:
        """That of portion k, if it is at hand."""
        return self.portions.open(k).objective(self._terms)  # type: ignore[attr-defined]

    def keep(self, function: Callable[..., object], *args: object) -> Kept:
        return self.portions.keep(function, self._terms, *args, clock=self.runner.clock)

    @property
    def _terms(self) -> Terms:
        return Terms(self.loss, self.regularization, self.n, self.n_jobs)

    def _average(self, values: Iterable[Average]) -> Average:
        """The average over all examples, of those of portions."""
        total: Any = None
        for share, value in zip(self.portions.sizes / self.n, values, strict=True):
            if isinstance(value, Thin):
                total = np.zeros(value.size) if total is None else total
                total[value.places] += share * value.values
            else:
                value *= share  # in place, where it is as long as the weights
                if total is None:
                    total = value
                else:
                    total += value
        return total

    def sum_losses(self, w: np.ndarray, **asked: Unpack[PassOptions]) -> LossSums:
        given = {name: value for name, value in asked.items() if value is not None}
        fills = [value for name, value in given.items() if name in ("means", "outputs") and isinstance(value, Kept)]
        args = self.layout.to_model(w), tuple(given), tuple(given.values())
        sums = self.add_up(self.each(sum_losses_of, *args, fills=fills))
        return sums._replace(gradient=self.layout.to_model(sums.gradient)) if sums.gradient.size else sums

    def add_up(self, found: Iterable[LossSums]) -> LossSums:
        """What all examples tell, of what those of each portion do, of which one gradient at a time is in memory."""
        each: list[LossSums] = []

        def gradients() -> Iterator[np.ndarray]:
            for sums in found:
                each.append(sums._replace(gradient=NO_GRADIENT))
                yield sums.gradient

        gradient = self._average(gradients())
        return LossSums(
            averages=self._average([sums.averages for sums in each]),
            gradient=gradient,
            norm_of_rounding=math.hypot(*(sums.norm_of_rounding for sums in each)),
            norm_of_sizes=math.hypot(*(sums.norm_of_sizes for sums in each)),
            weight=sum(sums.weight for sums in each),
            gaps=np.concatenate([sums.gaps for sums in each]) * (self.portions.sizes / self.n),
            n_inexact=sum(sums.n_inexact for sums in each),
            n_wrong=sum(sums.n_wrong for sums in each),
            n_beyond_reach=sum(sums.n_beyond_reach for sums in each),
        )

    def sums_of(self, point: object) -> tuple[np.ndarray, float]:
        v, costs = np.zeros(self.layout.n_weights), []
        for moved, cost in self.each(weights_of, point):
            v += moved
            costs.append(cost)
        return self.from_origin(self.layout.to_model(v)), self._average(costs)

    def true_means(self) -> Any:
        return self.keep(Objective.true_means)

    def new_outputs(self) -> Any:
        return self.keep(Objective.new_outputs)

    def means_of(self, point: DualPoint) -> Any:
        return self.keep(Objective.means_of, point)

    def mean_of(self, numbers: Callable[[object], np.ndarray]) -> float:
        return self._average(self.each(Objective.mean_of, numbers))

    @cached_property
    def mean_weight(self) -> float:
        return self._average(self.each(mean_weight_of))

    @property
    def n_threads(self) -> int:
        return self.portions.n_threads(self.n_jobs)


def sum_losses_of(objective: Objective, w: np.ndarray, names: tuple[str, ...], asked: tuple[Any, ...]) -> LossSums:
    """What a portion tells, with gradients in the order of the model, and its gaps in one sum."""
    layout = objective.layout
    sums = objective.sum_losses(layout.to_solver(w), **dict(zip(names, asked, strict=True)))
    return sums._replace(
        gradient=in_model(layout, sums.gradient) if sums.gradient.size else sums.gradient,
        gaps=np.array([sums.gaps.sum()]),
    )


def in_model(layout: WeightLayout, w: np.ndarray) -> Any:
    """The weights of a model, of those of a solver: only the coordinates that this has."""
    if isinstance(layout, PartialLayout):
        return Thin(layout.n_weights, layout.which, w[layout.place])
    return layout.to_model(w)


def weights_of(objective: Objective, point: Any) -> tuple[np.ndarray, float]:
    """What a portion adds to w(mu), and its mean of <cost, mu>."""
    v, cost = objective.sums_of(point)
    return objective.layout.to_model(v), cost


def mean_weight_of(objective: Objective) -> float:
    """That of a portion."""
    return objective.mean_weight
