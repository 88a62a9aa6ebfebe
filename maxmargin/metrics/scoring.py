"""Metrics by name, for early stopping and for model selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxmargin import public_names
from maxmargin.wording import quote

Metric = Callable[[Any, Any], float]

# Those of true outputs and predictions, loaded on first use.
METRICS = (
    "bracket_f1",
    "entity_f1",
    "entity_precision",
    "entity_recall",
    "las",
    "sequence_accuracy",
    "token_accuracy",
    "uas",
)


def find_metric(scoring: object) -> Metric:
    """A metric, of true outputs and predictions, by its name or as it is."""
    if callable(scoring):
        return scoring
    if not isinstance(scoring, str) or scoring not in METRICS:
        names = ", ".join(METRICS)
        raise ValueError(f"scoring must be one of {names}, or a function of y_true and y_pred, not {quote(scoring)}.")
    return public_names.find(scoring, "maxmargin.metrics", listed_in="maxmargin.metrics")


def get_scorer(name: str) -> Any:
    """A metric as a scorer of scikit-learn, for `GridSearchCV`, `cross_val_score` and others.

    Parameters
    ----------
    name
        {"bracket_f1", "entity_f1", "entity_precision", "entity_recall", "las", "sequence_accuracy", "token_accuracy",
        "uas"}.

    Returns
    -------
    callable
        Of a fitted model, X and y.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.metrics import get_scorer
    >>> model = ChainCRF(C=10.0).fit([np.eye(2), np.eye(2)[::-1]], [["B-X", "O"], ["O", "B-X"]])
    >>> get_scorer("entity_f1")(model, [np.eye(2)], [["B-X", "O"]])
    1.0
    """
    from sklearn.metrics import make_scorer  # slow to import

    return make_scorer(find_metric(name))
