"""What a model of sequences has learned: its strongest features and transitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_count
from maxmargin.inspection.chain_weights import feature_names, find_chain, node_weights, number_of
from maxmargin.sklearn_contract import Estimator


class Weight(NamedTuple):
    """The weight of a feature for a label, or of a transition from one label to another."""

    of: str
    label: Any
    weight: float


def strongest_features(model: Estimator, label: object, k: int = 10) -> list[Weight]:
    """The features that speak most for a label, or most against it.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    label
        One of its `classes_`.
    k
        The number of features.

    Returns
    -------
    list of `Weight`, the largest in absolute value first; those of weight 0 are left out

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import strongest_features
    >>> model = ChainCRF(fit_intercept=False).fit([[["the"], ["dog"]], [["dog"]]], [["DET", "NOUN"], ["NOUN"]])
    >>> [(found.of, found.weight > 0) for found in strongest_features(model, "NOUN")]
    [('dog', True), ('the', False)]
    """
    return strongest_by_label(model, [label], k)[0]


def strongest_by_label(model: Estimator, labels: Iterable[object], k: int) -> list[list[Weight]]:
    """What `strongest_features` says of several labels, in less time.

    Parameters
    ----------
    model, k
        As in `strongest_features`.
    labels
        Some of its `classes_`.

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import strongest_by_label
    >>> model = ChainCRF(fit_intercept=False).fit([[["the"], ["dog"]], [["dog"]]], [["DET", "NOUN"], ["NOUN"]])
    >>> [[(found.of, found.weight > 0) for found in row] for row in strongest_by_label(model, ["DET", "NOUN"], 1)]
    [[('dog', False)], [('dog', True)]]
    """
    check_count("k", k)
    model, encoder = find_chain(model)
    table, names = node_weights(model), feature_names(encoder)
    columns: Any = sp.csc_array(table) if sp.issparse(table) else np.asarray(table)
    found = []
    for label in labels:
        column = columns[:, [number_of(encoder.classes, label)]]
        values = np.ravel(column.toarray() if sp.issparse(column) else column)
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        found.append([Weight(names[f], label, float(values[f])) for f in order.tolist() if values[f]])
    return found


def strongest_transitions(model: Estimator, k: int | None = None) -> list[tuple[Any, Any, float]]:
    """The weights of transitions, the largest in absolute value first.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    k
        How many; all by default.

    Returns
    -------
    list of tuples of a label, the one that follows it, and the weight; those that are ruled out, or 0, are left out

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import strongest_transitions
    >>> model = ChainCRF().fit([[["the"], ["dog"]], [["a"], ["cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> strongest_transitions(model, 1)[0][:2]
    ('DET', 'NOUN')
    """
    model, encoder = find_chain(model)
    table = model.coef_.transitions
    rows, columns = np.nonzero((table != 0) & (encoder.penalty == 0))
    order = np.argsort(-np.abs(table[rows, columns]), kind="stable")[:k]
    classes = encoder.classes
    return [
        (classes[a].item(), classes[b].item(), float(table[a, b]))
        for a, b in zip(rows[order], columns[order], strict=True)
    ]
