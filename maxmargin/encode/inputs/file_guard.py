"""Whether encoders and weights that come from a file can be those of a model, as loops take it for granted."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral
from typing import Any, get_type_hints

import numpy as np

from maxmargin.encode.inputs.base_encoder import Encoder


def check_encoder(encoder: Encoder, w: np.ndarray) -> None:
    """Raise unless fields are of their types, claims hold, and these can be the weights of a model."""
    hints = get_type_hints(type(encoder))
    typed = ((f.name, has_type(getattr(encoder, f.name), hints[f.name])) for f in fields(encoder))
    for claims in (typed, encoder.claims(w)):
        for name, is_true in claims:
            if not is_true:
                raise ValueError(f"{name} of {type(encoder).__name__} is not as it must be")
    n_weights = encoder.n_weights
    if not (isinstance(w, np.ndarray) and w.dtype in (np.float32, np.float64) and w.shape == (n_weights,)):
        raise ValueError(f"there are not {n_weights} weights")
    if not np.isfinite(w).all():
        raise ValueError("weights are not finite")


def has_type(value: object, hint: Any) -> bool:
    """Whether a field of an encoder is what it is declared to be; integers are counts."""
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    if hint is np.dtype:
        return value in (np.float32, np.float64)
    return hint is Any or isinstance(value, (bool, np.bool_) if hint is bool else hint)
