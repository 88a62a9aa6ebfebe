"""The losses of an example: what smooths a maximum over all outputs, and whether outputs must win by their cost.

    loss_i(w) = h {score_i(y) + margin * cost_i(y) over all y} - score_i(y_i)

where h is the maximum, or the maximum smoothed at a level:

    hinge          h = max, with the margin                               structural SVMs
    smooth hinge   h smoothed by l2 or by entropy, with the margin        tends to the hinge loss as the level falls
    log            h smoothed by entropy at the level 1, without margin   conditional random fields
    squared hinge  half of the square of the hinge loss                   squared slacks
    relaxed        h over the local polytope, smoothed by an entropy      graphs

In all of them the gradient is B_i (mu_i - s_i(y_i)), with the mean parts mu_i at which h is attained, and so are duals
and certificates the same (`maxmargin.solvers.objective.evaluation`). Solvers ask a loss for its oracle, whether it is
smooth and whether it has a margin; loops ask where it is attained. A new loss is one class (`base_loss`), and stands in
`NAMED` if it is to have a name.
"""

from __future__ import annotations

from maxmargin.losses.base_loss import LEAST_LEVEL, BaseLoss, add_costs, attain, attain_at, combine, potentials
from maxmargin.losses.hinge import Loss
from maxmargin.losses.relaxed_loss import ENTROPIES, RelaxedLoss
from maxmargin.losses.squared_hinge import SquaredLoss

__all__ = [
    "ENTROPIES",
    "LEAST_LEVEL",
    "NAMED",
    "BaseLoss",
    "Loss",
    "RelaxedLoss",
    "SquaredLoss",
    "add_costs",
    "attain",
    "attain_at",
    "combine",
    "find_loss",
    "potentials",
]

NAMED: dict[str, BaseLoss] = {
    loss.name: loss for loss in (Loss(), SquaredLoss(), Loss("l2"), Loss("entropy", margin=False))
}


def find_loss(loss: object) -> BaseLoss:
    """The loss of the given name, "hinge", "squared_hinge", "smooth_hinge" or "log", or `loss` itself if it is one."""
    found = NAMED.get(loss) if isinstance(loss, str) else loss
    if not isinstance(found, BaseLoss):
        raise ValueError(f"loss must be a Loss or one of {', '.join(NAMED)}, not {loss!r}.")
    return found
