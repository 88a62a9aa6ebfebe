"""Segmentations of single sequences with the most rows that are right, as expected, by NumPy alone."""

from __future__ import annotations

import numpy as np


def best_expected_segments(marginals: np.ndarray, longest: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The states of rows whose marginals have the largest sum, of segmentations that are possible.

    Parameters
    ----------
    marginals
        (T, 2, L) probabilities that rows begin a segment of a label, or go on with it; those of 0 are not taken.
    longest
        (L,) the most rows of a segment.
    allowed
        (L, L) whether the second label may follow the first.
    """
    n_rows, _, n_labels = marginals.shape
    begin, inside = np.where(marginals > 0, marginals, -np.inf).transpose(1, 0, 2)
    fits = np.arange(longest.max())[:, np.newaxis] < longest
    before, sizes = np.zeros((2, n_rows, n_labels), np.int64)
    entered, opened = np.zeros(n_labels), np.full(fits.shape, -np.inf)  # opened[d, k]: d + 1 rows of label k so far
    for t in range(n_rows):
        if t:
            scores = np.where(allowed, opened.max(axis=0)[:, np.newaxis], -np.inf)
            before[t], entered = scores.argmax(axis=0), scores.max(axis=0)
        opened = np.where(fits, np.vstack([entered + begin[t], opened[:-1] + inside[t]]), -np.inf)
        sizes[t] = opened.argmax(axis=0) + 1
    states, end, label = np.empty(n_rows, np.int64), n_rows, opened.max(axis=0).argmax()
    while end:
        start = end - sizes[end - 1, label]
        states[start:end] = n_labels + label
        states[start] = label
        end, label = start, before[start, label]
    return states
