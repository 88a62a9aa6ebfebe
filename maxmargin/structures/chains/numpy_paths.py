"""Best labellings of single chains by NumPy alone: where compiling takes longer, and the one with most right labels."""

from __future__ import annotations

import numpy as np


def best_path(nodes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The labels of the best score; of several, those that are lowest when read from the end."""
    forward, sources = nodes[0], np.zeros(nodes.shape, np.int64)
    for t in range(1, len(nodes)):
        scores = forward[:, np.newaxis] + pairs
        sources[t] = scores.argmax(axis=0)
        forward = scores.max(axis=0) + (nodes[t] - forward.max())
    y = np.empty(len(nodes), np.int64)
    y[-1] = forward.argmax()
    for t in range(len(nodes) - 1, 0, -1):
        y[t - 1] = sources[t, y[t]]
    return y


def best_expected(marginals: np.ndarray, allowed: np.ndarray, ends_allowed: np.ndarray) -> np.ndarray:
    """The labels whose marginals have the largest sum, of labellings that are possible.

    Parameters
    ----------
    marginals
        (T, L); labels of probability 0 are not taken.
    allowed
        (L, L) whether the second label may follow the first.
    ends_allowed
        (2, L) whether a label may be the first, and the last.
    """
    if not len(marginals):
        return np.zeros(0, np.int64)
    gains = np.where(marginals > 0, marginals, -np.inf)
    gains[0, ~ends_allowed[0]] = gains[-1, ~ends_allowed[1]] = -np.inf
    return best_path(gains, np.where(allowed, 0.0, -np.inf))
