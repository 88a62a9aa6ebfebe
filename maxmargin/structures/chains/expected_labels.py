"""The labelling of a chain with the most labels that are right, as expected: Viterbi on marginals."""

from __future__ import annotations

import numpy as np


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
    gains = np.where(marginals > 0, marginals, -np.inf)
    if not len(gains):
        return np.zeros(0, np.int64)
    gains[0, ~ends_allowed[0]] = gains[-1, ~ends_allowed[1]] = -np.inf
    steps = np.where(allowed, 0.0, -np.inf)
    best, sources = gains[0], np.zeros(gains.shape, np.int64)
    for t in range(1, len(gains)):
        arrivals = best[:, np.newaxis] + steps
        sources[t] = arrivals.argmax(axis=0)
        best = arrivals.max(axis=0) + gains[t]
    labels = [int(best.argmax())]
    for t in range(len(gains) - 1, 0, -1):
        labels.append(int(sources[t, labels[-1]]))
    return np.array(labels[::-1])
