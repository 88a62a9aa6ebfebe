"""Quality of predictions: of boxes, labels, entities and trees, and of probabilities."""

from __future__ import annotations

from typing import Any

from maxmargin import public_names

__all__ = public_names.names_in(__name__, listed_in=__name__)  # noqa: PLE0605  (see `__init__.pyi`)


def __getattr__(name: str) -> Any:
    return public_names.find(name, __name__, listed_in=__name__)


def __dir__() -> list[str]:
    return __all__
