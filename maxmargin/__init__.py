"""Structured prediction: structural SVMs and conditional random fields with certified solvers."""

from __future__ import annotations

from typing import Any

from maxmargin import public_names
from maxmargin.version import __version__ as __version__

__all__ = public_names.names_in(__name__)  # noqa: PLE0605  (loaded on first use, see `__init__.pyi`)


def __getattr__(name: str) -> Any:
    return public_names.find(name, __name__)


def __dir__() -> list[str]:
    return [*public_names.homes()]
