"""Checks of options, each with one sentence that names the option and what it must be."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np

from maxmargin.wording import quote

__all__ = [
    "LARGEST",
    "as_numbers",
    "as_sample_weight",
    "check_choice",
    "check_cost",
    "check_count",
    "check_flag",
    "check_number",
    "check_positive",
    "check_share",
    "check_unmasked",
]

LARGEST = 1e12  # of features, costs and weights of examples: sums of their squares are within float32


def check_positive(name: str, value: object, allow_infinite: bool = False) -> None:
    """Raise unless `value` is a positive number, finite unless said otherwise."""
    number = _as_float(value)
    if not (0 < number < np.inf or (allow_infinite and number == np.inf)):
        raise ValueError(f"{name} must be a positive number, not {quote(value)}.")


def check_cost(name: str, value: object) -> None:
    """Raise unless `value` is a finite number that is not negative."""
    if not 0 <= _as_float(value) < np.inf:
        raise ValueError(f"{name} must be a number, 0 or more, not {quote(value)}.")


def check_number(name: str, value: object) -> None:
    """Raise unless `value` is a number, which may be infinite."""
    if np.isnan(_as_float(value)):
        raise ValueError(f"{name} must be a number, not {quote(value)}.")


def check_share(name: str, value: object) -> None:
    """Raise unless `value` is a number from 0 to 1."""
    if not 0 <= _as_float(value) <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, not {quote(value)}.")


def _as_float(value: object) -> float:
    """A number, NaN for what is none that a float can hold."""
    if not isinstance(value, Real) or isinstance(value, (bool, np.timedelta64)):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.nan


def check_unmasked(name: str, values: object) -> None:
    """Raise where entries of a masked array are masked: nothing here leaves them out."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked entries: fill them, or leave their examples out.")


def as_numbers(name: str, values: object) -> np.ndarray:
    """Values in float64; raises if they are no numbers that it can hold, or not all in rows of the same length."""
    check_unmasked(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" and not all(isinstance(value, Real) for value in array.ravel().tolist()):
            raise TypeError(f"{name} must hold numbers, but its dtype is {array.dtype}.")
        return array.astype(np.float64)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} must hold numbers, in rows of the same length, that a float can hold.") from None


def as_sample_weight(values: object, n: int) -> np.ndarray:
    """Weights of the n examples, checked."""
    weights = as_numbers("sample_weight", values)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold {n} numbers, one per example, but has shape {weights.shape}.")
    if not ((weights >= 0).all() and (weights <= LARGEST).all() and weights.any()):
        raise ValueError(f"sample_weight must hold numbers from 0 to {LARGEST:g}, not all of them zero.")
    return weights


def check_count(name: str, value: object, least: int = 1, most: float = np.inf) -> None:
    """Raise unless `value` is an integer of at least `least`, and at most `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        limits = f"at least {least}" if most == np.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer, {limits}, not {quote(value)}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless `value` is True or False, or 1 or 0."""
    if not isinstance(value, (Integral, np.bool_)) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {quote(value)}.")


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise unless `value` is one of `choices`."""
    choices = [*choices]
    if value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, not {value!r}.")
