"""Checks of options, each with one sentence that names the option and what it must be."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_cost", "check_count", "check_positive", "check_share"]


def check_positive(name: str, value: Any, allow_infinite: bool = False) -> None:
    """Raise unless `value` is a positive number, finite unless said otherwise."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and value > 0 and (value < np.inf or (allow_infinite and value == np.inf))):
        raise ValueError(f"{name} must be a positive number, not {value!r}.")


def check_cost(name: str, value: Any) -> None:
    """Raise unless `value` is a finite number that is not negative."""
    if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be a number, 0 or more, not {value!r}.")


def check_share(name: str, value: Any) -> None:
    """Raise unless `value` is a number from 0 to 1."""
    if not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ValueError(f"{name} must be a number from 0 to 1, not {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise unless `value` is an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer, at least {least}, not {value!r}.")


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless `value` is one of `choices`."""
    choices = [*choices]
    if value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, not {value!r}.")
