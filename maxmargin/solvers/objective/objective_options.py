"""The keywords that objectives and their evaluations take, written once for all that hand them on."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.losses import BaseLoss
from maxmargin.solvers.objective.active_sets import ActiveSets, DualPoint


class ObjectiveOptions(TypedDict, total=False):
    """What `Objective` takes besides the problem and C."""

    sample_weight: np.ndarray | None
    n_jobs: int | None
    lower: ArrayLike | None
    upper: ArrayLike | None
    loss: BaseLoss
    l1_ratio: float
    linear: np.ndarray | None
    prior: np.ndarray | None


class PassOptions(TypedDict, total=False):
    """What `Objective.evaluate` takes besides the weights."""

    means: Blocks | None
    outputs: Blocks | None
    point: DualPoint | Blocks | None
    sets: ActiveSets | None
    loss: object
    with_gradient: bool
