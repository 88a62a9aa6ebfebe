"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from __future__ import annotations

from typing import Any

from maxmargin import public_names

__all__ = ["all_estimators"]


def all_estimators() -> dict[str, type]:
    """The classes of all estimators by name: those among the public names.

    Examples
    --------
    >>> from maxmargin.estimators import all_estimators
    >>> sorted(all_estimators())[:3]
    ['AlignmentCRF', 'AlignmentSVM', 'BoxSVM']
    """
    from maxmargin.estimators.foundation.structured_model import StructuredModel

    public = {name: public_names.find(name, __name__) for name in public_names.names_in(__name__)}
    return {
        name: value for name, value in public.items() if isinstance(value, type) and issubclass(value, StructuredModel)
    }


def __getattr__(name: str) -> Any:
    return public_names.find(name, __name__)
