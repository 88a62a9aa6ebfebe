"""Transformers of sentences, as taggers call them."""

from __future__ import annotations

import warnings
from typing import Any, Protocol, Self

from maxmargin.text.partial_tags import outside_where_partial
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.token_features.windows import Sentences


class Transformer(Protocol):
    """From sentences to the features of their tokens, by name; `fit_transform`, if there is one, is called to train."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from sentences and their tags."""

    def transform(self, X: Any) -> Any:
        """The features of sentences: a list of lists of items, or `maxmargin.text.NamedFeatures`."""


def fit_transform(features: Transformer, X: Sentences, y: LabelSequences) -> Any:
    """The features of the sentences to train on, which may differ from those of `transform`."""
    y = outside_where_partial(y)  # what transformers know of tags are strings
    if hasattr(features, "fit_transform"):
        return features.fit_transform(X, y)
    return features.fit(X, y).transform(X)


def warn_of_lists(
    features: Transformer, X: Sentences, y: object, X_dev: Sentences | None, y_dev: LabelSequences | None
) -> None:
    """Warn of gazetteers that seem to be made of the sentences to train on."""
    if hasattr(features, "leaks") and X_dev is not None and y_dev is not None:
        for message in features.leaks(X, y, X_dev, y_dev):
            warnings.warn(message, UserWarning, stacklevel=3)
