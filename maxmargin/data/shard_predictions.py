"""Predictions of shards: made of one after the other, and joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from maxmargin.data.sharding import Shards

Model = TypeVar("Model")


def predicts_shards(cls: type[Model]) -> type[Model]:
    """A class whose own predictions take `Shards` in place of X."""
    for name, method in [*vars(cls).items()]:
        if callable(method) and (f"{name}_".startswith("predict_") or name == "decision_function"):
            setattr(cls, name, predict_in_turn(method))
    return cls


def predict_in_turn(method: Callable[..., object]) -> Callable[..., Any]:
    """A prediction that is made of one shard after the other, where X is `Shards`."""

    @wraps(method)
    def predict(self: object, X: object, *args: object, **data: object) -> Any:
        if not isinstance(X, Shards):
            return method(self, X, *args, **data)
        for name, value in data.items():
            if value is not None and name != "k":
                raise ValueError(f"{name} must be None where X is Shards, which hold examples alone.")
        return join_found([method(self, shard.X, *args, **data) for shard in X])

    return predict


def join_found(found: list[Any]) -> Any:
    """Outputs of all portions, in one list or array."""
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if isinstance(found[0], np.ndarray) else [*chain.from_iterable(found)]
