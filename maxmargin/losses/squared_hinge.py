"""Half of the square of the hinge loss, that is, squared slacks.

As l^2 / 2 = max over a >= 0 of {a l - a^2 / 2}, it is attained at mean parts s_i(y_i) + l {s_i(y) - s_i(y_i)}, with the
"entropy" -l^2 / 2: its dual points are mixtures whose weights need not add up to one, and in its dual their sums a_i
cost a_i^2 / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from maxmargin.arrays.vectors import clear
from maxmargin.losses.base_loss import BaseLoss, check_margin
from maxmargin.problem import add_output, score_output, true_output


@dataclass(frozen=True)
class SquaredLoss(BaseLoss):
    """Half of the square of the hinge loss: squared slacks.

    Parameters
    ----------
    margin
        Whether outputs must win by their cost.

    Examples
    --------
    >>> from maxmargin import OneSlack, SquaredLoss
    >>> from maxmargin.testing import toy_chains
    >>> OneSlack().solve(toy_chains(), loss=SquaredLoss()).status.name
    'OPTIMAL'
    """

    margin: bool = True

    name = "squared_hinge"
    renamed: ClassVar[Mapping[str, str | None]] = {"smoothing": None, "mu": None, "max_k": None}

    def __post_init__(self) -> None:
        check_margin(self.margin)

    def attain_at(self, problem, i, theta, y, score, bound, means):
        y_true = true_output(problem, i)
        true_score = score_output(problem, i, theta, y_true)
        known = max(score - true_score, 0.0)  # that of the true output, where y is worse
        most = max(bound - true_score, 0.0)
        clear(means)
        add_output(problem, i, y, known, means)
        add_output(problem, i, y_true, 1 - known, means)
        h = true_score + most * most / 2
        top = h if bound >= true_score else bound
        return h, top, h + known * known / 2, (most - known) * (most + known) / 2
