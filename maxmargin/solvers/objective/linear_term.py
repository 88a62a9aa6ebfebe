"""The linear term of an objective: what takes the place of true outputs known softly or in part, or makes a prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays.vectors import copy_into
from maxmargin.checks import as_numbers
from maxmargin.features.layout import WeightLayout
from maxmargin.problem import accumulate, add_output, n_examples, true_output
from maxmargin.runtime.dispatch import loop


@loop
def add_pull(problem, w, weight, target, lo, hi, scratch):
    """W += (1/n) sum_i weight_i B_i (target_i - s_i(y_i)) over lo:hi."""
    for i in range(lo, hi):
        delta = scratch.delta[: target.starts[i + 1] - target.starts[i]]
        copy_into(delta, target.values[target.starts[i] : target.starts[i + 1]])
        add_output(problem, i, true_output(problem, i), -1.0, delta)
        accumulate(problem, w, i, delta, weight[i] / n_examples(problem))


def as_linear(linear: ArrayLike, n_weights: int, regularization: float) -> np.ndarray:
    """A linear term in float64; raises unless it is one of so many weights, with regularization to hold it."""
    q = as_numbers("linear", linear)
    if q.shape != (n_weights,) or not np.isfinite(q).all():
        raise ValueError(f"linear must hold {n_weights} finite numbers, one of each weight of the solver.")
    if regularization == 0:
        raise ValueError("Soft labels, as every linear term, need L2 regularization: a finite C, an l1_ratio below 1.")
    return q


def read_terms(
    linear: ArrayLike | None, prior: ArrayLike | None, regularization: float, layout: WeightLayout
) -> tuple[np.ndarray | None, float]:
    """The linear term q of an objective, if it has one, and its constant, with those of a prior m.

    (lambda/2) ||w - m||^2 is (lambda/2) ||w||^2 - <lambda m, w> + (lambda/2) ||m||^2.
    """
    q = None if linear is None else as_linear(linear, layout.n_solved, regularization)
    if prior is None:
        return q, 0.0
    m = as_numbers("prior", prior)
    pull = as_linear(regularization * m, layout.n_solved, regularization)
    return pull if q is None else q + pull, 0.5 * regularization * layout.squared_length(m)
