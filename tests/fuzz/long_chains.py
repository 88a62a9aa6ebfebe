"""Long sequences of several kinds, on which sums in float32 lose their digits."""

import numpy as np

from maxmargin import ChainSVM

KINDS = ("normal", "positive", "repeated", "offset")


def long_chains(rng, lengths, n_labels, n_features, kind="normal", dtype="float32"):
    """A problem whose labels follow the features, in part.

    Features that are "positive" add up, "repeated" ones are rounded alike everywhere, those with an "offset" cancel.
    """
    few, weights = rng.normal(size=(5, n_features)), rng.normal(size=(n_features, n_labels))
    X, y = [], []
    for length in lengths:
        x = rng.normal(size=(length, n_features))
        if kind == "positive":
            x = np.abs(x)
        elif kind == "repeated":
            x = few[rng.integers(len(few), size=length)]
        X.append(x + 30 if kind == "offset" else x)
        y.append(np.argmax(x @ weights + rng.normal(size=(length, n_labels)), axis=1))
    y[0][:n_labels] = np.arange(n_labels)  # all of them are there
    return ChainSVM(dtype=dtype)._encode(X, y).problem
