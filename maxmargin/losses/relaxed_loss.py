"""The loss of a graph over its local polytope, where the maximum over outputs is out of reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin.checks import check_choice, check_share
from maxmargin.losses.base_loss import BaseLoss, check_level, check_margin

ENTROPIES = ("gini", "oriented_trees")


@dataclass(frozen=True)
class RelaxedLoss(BaseLoss):
    """The loss of a graph over its local polytope, with an entropy that is a sum over nodes and edges (`IDAL`).

    Parameters
    ----------
    level
        The weight of the entropy: as it tends to 0, the loss tends to the relaxed hinge loss.
    margin
        Whether outputs must win by their cost.
    entropy
        "gini", or "oriented_trees" for the mean of Gini's entropy over oriented spanning trees, which is nearer to that
        of the graph.
    trees
        (M, 2) how often these trees have the first, or the second, end of each edge of all graphs, in the order of the
        problem's `ends`, as the child of the other; by default as often as all trees do, drawn alike.
    epsilon
        Of "oriented_trees", the share of a parent's entropy that is taken from that of a pair: with less than 1 the
        entropy is strongly concave in the table of every edge.

    Examples
    --------
    >>> from maxmargin import RelaxedLoss
    >>> RelaxedLoss(level=0.1).name
    'relaxed'
    """

    level: float = 1.0
    margin: bool = True
    entropy: str = "gini"
    trees: np.ndarray | None = field(default=None, compare=False, repr=False)
    epsilon: float = 1.0

    name = "relaxed"
    oracle = ""  # the maximum over the local polytope is never asked for
    is_smooth = True  # as the entropy is strongly concave
    renamed: ClassVar[Mapping[str, str | None]] = {"mu": "level", "smoothing": None, "max_k": None}

    def __post_init__(self) -> None:
        check_margin(self.margin)
        object.__setattr__(self, "level", check_level(self.level))
        check_choice("entropy", self.entropy, ENTROPIES)
        check_share("epsilon", self.epsilon)
