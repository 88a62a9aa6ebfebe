"""Weights by name."""

from __future__ import annotations

from typing import Any


class Bunch(dict):
    """A dictionary whose entries are attributes, too, like scikit-learn's."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]
