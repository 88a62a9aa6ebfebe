"""Costs of predicting labels in place of the true ones, as terms that are added to the potentials of nodes.

The cost of a labelling is sum_t scale_t * matrix[true label, predicted label]: the matrix holds the costs of labels,
the scales those of positions.

>>> import numpy as np
>>> from maxmargin.supervision.costs import class_weights
>>> class_weights("balanced", np.array(["a", "b"]), np.array([1, 3])).round(3)
array([2.   , 0.667])
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from maxmargin.checks import LARGEST, as_numbers
from maxmargin.supervision.tallies import labels_in_all
from maxmargin.wording import quote

COSTS = ("hamming", "normalized_hamming")


def label_costs(cost: object, classes: np.ndarray, label_counts: np.ndarray, class_weight: object = None) -> np.ndarray:
    """The matrix of costs, rows for the true label, columns for the predicted one.

    Parameters
    ----------
    cost
        "hamming" or "normalized_hamming" (1 for each wrong label), or an (L, L) matrix with zero diagonal.
    classes
        The L labels.
    label_counts
        How often each label occurs.
    class_weight
        Weights of the true labels: None, a dict, or "balanced" (inversely to their frequency).

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.supervision.costs import label_costs
    >>> label_costs("hamming", np.array(["a", "b"]), np.array([5, 3]), class_weight={"b": 2.0})
    array([[0., 1.],
           [2., 0.]])
    """
    n_labels = len(classes)
    if isinstance(cost, str):
        if cost not in COSTS:
            raise ValueError(f"cost must be one of {', '.join(COSTS)} or a matrix, not {cost!r}.")
        matrix = 1.0 - np.eye(n_labels)
    else:
        matrix = as_numbers("cost", cost)
        if matrix.shape != (n_labels, n_labels):
            raise ValueError(
                f"cost must have shape ({n_labels}, {n_labels}), one row per class, but has shape {matrix.shape}."
            )
        if not ((matrix >= 0).all() and (matrix <= LARGEST).all() and (np.diag(matrix) == 0).all()):
            raise ValueError(f"cost must hold numbers from 0 to {LARGEST:g}, with zeros on its diagonal.")
    return matrix * class_weights(class_weight, classes, label_counts)[:, np.newaxis]


def class_weights(
    class_weight: object, classes: np.ndarray, label_counts: np.ndarray, least: float = 0.0
) -> np.ndarray:
    """The weights of classes: None, a dict, or "balanced" (inversely to their counts, or the `least` of these)."""
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        if not (isinstance(class_weight, str) and class_weight == "balanced"):
            raise ValueError(f'class_weight must be None, a dict or "balanced", not {quote(class_weight)}.')
        counts = {label: max(count, least) for label, count in labels_in_all(classes, label_counts).items()}
        never = [label for label, count in counts.items() if not count]
        if never:
            raise ValueError(
                f'class_weight="balanced" weighs labels by how often they occur, but {never[0]!r} never does.'
            )
        of_classes = np.array([counts[label] for label in classes.tolist()])
        return sum(counts.values()) / (len(counts) * of_classes)
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names {sorted(unknown, key=str)[0]!r}, which is not a label in y.")
    weights = as_numbers("class_weight", [class_weight.get(label, 1.0) for label in classes.tolist()])
    if not ((weights >= 0).all() and (weights <= LARGEST).all()):
        raise ValueError(f"class_weight must hold numbers from 0 to {LARGEST:g}.")
    return weights


def weigh_nodes(weights: np.ndarray, lengths: np.ndarray, cost: object) -> np.ndarray:
    """Weights of nodes in a cost: for "normalized_hamming", divided by those of all nodes of their graph."""
    if not (isinstance(cost, str) and cost == "normalized_hamming"):
        return weights
    totals = np.add.reduceat(weights, np.cumsum(lengths) - lengths)
    return weights / np.repeat(np.where(totals > 0, totals, 1), lengths)


def labelling_costs(
    cost: object,
    class_weight: object,
    classes: np.ndarray,
    label_counts: np.ndarray,
    lengths: np.ndarray,
    position_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of costs and the scales of the positions of all examples.

    Scales are the weights of positions, divided by the number of positions for "normalized_hamming".
    """
    matrix = label_costs(cost, classes, label_counts, class_weight)
    scales = np.ones(lengths.sum()) if position_weight is None else position_weight
    if isinstance(cost, str) and cost == "normalized_hamming":
        scales = scales / np.repeat(lengths, lengths)
    return matrix, scales
