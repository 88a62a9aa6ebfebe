"""The objective of examples in portions whose outputs are known in part."""

from __future__ import annotations

from typing import Any, Unpack

from maxmargin.solvers.objective.latent_objective import LatentObjective
from maxmargin.solvers.objective.objective_options import ObjectiveOptions
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.solvers.parted.portions import Portions


class PartedLatentObjective(LatentObjective, PartedObjective):
    """A `LatentObjective` of portions, for solvers that take the difference of convex functions as it is.

    Parameters
    ----------
    consistent
        The portions with only those outputs that agree with what is known.
    portions, C, **options
        As of `PartedObjective`.
    """

    can_prepare = False

    def __init__(self, consistent: Portions, portions: Portions, C: float, **options: Unpack[ObjectiveOptions]) -> None:
        PartedObjective.__init__(self, portions, C, **options)
        if not self.loss.is_smooth:
            raise ValueError(
                f"Outputs that are known in part need all examples in one place for the {self.loss.name} loss: in "
                "portions, they go with smooth losses, as those of conditional random fields."
            )
        self.is_weak = None
        self.consistent: Any = PartedObjective(consistent, C, n_jobs=self.n_jobs, loss=self.loss.with_margin(False))
