"""Single chains by NumPy alone: best labellings and sums where compiling takes longer, and the most right labels."""

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


def marginals(nodes: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of labels, (T, L), and of those of every two neighbours, (T - 1, L, L), in float64.

    As `chain_logs.transition_marginals`: what is multiplied, forwards, are probabilities all the way.
    """
    after = np.zeros(nodes.shape)  # the log of the sum over what comes after a label, up to a constant for each t
    for t in range(len(nodes) - 1, 0, -1):
        scores = pairs + (nodes[t] + after[t])
        tops = scores.max(axis=1)
        after[t - 1] = tops + np.log(np.exp(scores - tops[:, np.newaxis]).sum(axis=1))
        after[t - 1] -= after[t - 1].max()
    scores = nodes + after
    follow = share_out(pairs + scores[1:, np.newaxis])  # p(y_{t+1} = b | y_t = a)
    shares = share_out(scores)  # of which the first are right
    for t, steps in enumerate(follow):
        steps *= shares[t][:, np.newaxis]
        shares[t + 1] = steps.sum(axis=0)
    return shares, follow


def share_out(scores: np.ndarray) -> np.ndarray:
    """Probabilities in the place of their logarithms, in the last axis, which are up to a constant."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


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
