"""What chains of second order remember of the past: the last label or, where it matters, the last two.

A *context* is two labels in a row that a trigram with a weight begins with. The *state* at a position is the context
that its label ends, or the label alone where there is no such context: what comes next then depends on that label only.
So labels say which states a path goes through, and the states which labels.

States below the width W of tables, the padded number of labels, are labels alone; state W + k is context k. Contexts
are sorted by their second label, that of the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.runtime.dispatch import helper

ALONE = -1  # of two labels that are no context, of three that are no trigram


class Contexts(NamedTuple):
    """The contexts of a model, and its trigrams: a context and the label that comes next."""

    before: np.ndarray  # (K,) int32, the first label
    label: np.ndarray  # (K,) int32, the second label, ascending
    starts: np.ndarray  # (L + 1,) int64, those of label b are starts[b]:starts[b + 1]
    number: np.ndarray  # (L, L) int32, the number of the context of two labels, or ALONE
    context: np.ndarray  # (Q,) int32, of each trigram
    after: np.ndarray  # (Q,) int32, the third label of each trigram
    place: np.ndarray  # (K, L) int32, the number of the trigram of a context and a label, or ALONE


def find_contexts(trigrams: np.ndarray, n_labels: int) -> Contexts:
    """The contexts of trigrams (a L + b) L + c of labels a, b and c, sorted by b, then by a."""
    pairs, after = np.divmod(trigrams, n_labels)
    before, label = np.divmod(np.unique(pairs), n_labels)
    order = np.lexsort((before, label))
    before, label = before[order].astype(np.int32), label[order].astype(np.int32)
    number = np.full((n_labels, n_labels), ALONE, np.int32)
    number[before, label] = np.arange(len(label))
    starts = np.searchsorted(label, np.arange(n_labels + 1)).astype(np.int64)
    context = number.ravel()[pairs]
    place = np.full((len(label), n_labels), ALONE, np.int32)
    place[context, after] = np.arange(len(after))
    return Contexts(before, label, starts, number, context, after.astype(np.int32), place)


@helper
def find_trigram(contexts, a, b, c):
    """The number of the trigram of three labels, or ALONE."""
    k = contexts.number[a, b]
    return ALONE if k < 0 else contexts.place[k, c]


@helper
def state_after(contexts, b, c, width):
    """The state at a position of label c whose neighbour before has label b."""
    k = contexts.number[b, c]
    return c if k < 0 else width + k


@helper
def label_of(contexts, state, width):
    """The label of a state."""
    return state if state < width else contexts.label[state - width]


@helper
def count_states(contexts, b):
    """The number of states of label b."""
    return 1 + contexts.starts[b + 1] - contexts.starts[b]


@helper
def find_state(contexts, b, j, width):
    """State j of label b: the label alone, then its contexts."""
    return b if j == 0 else width + contexts.starts[b] + j - 1
