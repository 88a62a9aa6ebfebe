"""The warning of fits that have ended too far from the optimum."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.solvers.frame.run import Result
from maxmargin.trace import Status

if TYPE_CHECKING:
    from maxmargin.estimators.foundation.structured_model import StructuredModel

NOT_SOLVED = "Not solved to tol"  # how the warning begins
LARGE = 0.1  # a relative gap that is worth a warning, where more passes would not make it smaller
REMEDIES = {
    Status.MAX_PASSES: "raise max_passes, or take a smaller C or a larger tol",
    Status.TIMEOUT: "raise time_limit, or take a smaller C or a larger tol",
    Status.DIVERGED: "take a smaller C, or smaller features",
    Status.STALLED: 'take a smaller C, or dtype="float64" where it is float32',
    Status.INEXACT: "see `predict_certified` for what is known of predictions",
    Status.SURROGATE: "take another solver",
}
LIMITS = Status.MAX_PASSES, Status.TIMEOUT, Status.DIVERGED


def warn_unless_solved(model: StructuredModel, result: Result, stacklevel: int) -> None:
    """Warn where a limit has ended a fit above tol, or the gap is large: by scikit-learn's `ConvergenceWarning`, or by
    a `UserWarning`, which that is, where scikit-learn is not loaded.

    Not where nobody asked for tol: with held-out data, of the perceptron, without regularization, on an interrupt.
    """
    gap, status = result.certificate.relative_gap, result.status
    is_far = gap > (model.tol if status in LIMITS else max(model.tol, LARGE))
    if status not in REMEDIES or not is_far or np.isinf(model.C):
        return
    known = f"the duality gap is {100 * gap:.3g} % of the objective" if np.isfinite(gap) else "no certificate was made"
    if result.certificate.is_local and np.isfinite(gap):
        known = f"the weights are stationary only up to {100 * gap:.3g} % of the objective"
    message = f"{NOT_SOLVED}={model.tol:g}: {known}, as {status.value} ({status.name}): {REMEDIES[status]}."
    loaded = sys.modules.get("sklearn.exceptions")  # to load it takes longer than many fits
    warnings.warn(message, getattr(loaded, "ConvergenceWarning", UserWarning), stacklevel=stacklevel + 1)


@contextmanager
def without_warning() -> Iterator[None]:
    """Fits that tell in other words how far they got."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOT_SOLVED)
        yield
