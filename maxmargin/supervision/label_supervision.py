"""What is known of labels: the true ones, and what it costs to predict others.

Each row of a table of costs is an *annotation*, something that can be known of a node: first the single labels, then
what else occurs, such as sets of labels. The cost of a labelling is sum_t weight[t] * cost[annotation[t], y_t].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.runtime.dispatch import helper

NO_LABEL = -1  # in place of a true label that nobody has told


class LabelSupervision(NamedTuple):
    """The true labels of all nodes, of one example after the other, and their costs."""

    labels: np.ndarray  # (N,) int32, the true labels, or NO_LABEL
    annotation: np.ndarray  # (N,) int32, a row of `cost`; (0,) where there are no costs
    weight: np.ndarray  # (N,) weight of each node
    cost: np.ndarray  # (A, L) cost of predicting the column where the row is known; (0, L) where there are none


def supervise(
    labels: np.ndarray, cost: np.ndarray, weight: np.ndarray, dtype: DTypeLike, annotation: np.ndarray | None = None
) -> LabelSupervision:
    """Put labels, costs and weights of nodes together; annotations are the labels, unless said otherwise."""
    labels = np.ascontiguousarray(labels, np.int32)
    return LabelSupervision(
        labels,
        labels if annotation is None else np.ascontiguousarray(annotation, np.int32),
        np.ascontiguousarray(weight, dtype),
        np.ascontiguousarray(cost, dtype),
    )


def supervise_evenly(labels: np.ndarray, cost: np.ndarray, n_labels: int, dtype: DTypeLike) -> LabelSupervision:
    """True labels, and what it costs to predict any other one at each node."""
    return supervise(labels, 1.0 - np.eye(n_labels), cost, dtype)


def without_costs(
    labels: np.ndarray, n_labels: int, dtype: DTypeLike, weight: np.ndarray | None = None
) -> LabelSupervision:
    """Labels to compare predictions with, if there are any, and no costs."""
    weight = np.ones(len(labels)) if weight is None else weight
    return supervise(labels, np.zeros((0, n_labels)), weight, dtype, np.zeros(0, np.int32))


@helper
def add_costs(supervision, first, nodes):
    """Add the costs of labels to the potentials (T, L) of nodes, the first of which is node `first` of all."""
    if supervision.cost.shape[0] > 0:
        for t in range(nodes.shape[0]):
            known = supervision.annotation[first + t]
            weight = supervision.weight[first + t]
            for label in range(nodes.shape[1]):
                nodes[t, label] += weight * supervision.cost[known, label]


@helper
def add_costs_by_label(supervision, first, theta):
    """As `add_costs` of two labels, to the potentials (2 T,) of label 0 of all nodes, then of label 1."""
    if supervision.cost.shape[0] > 0:
        n_nodes = theta.size // 2
        for t in range(n_nodes):
            known = supervision.annotation[first + t]
            weight = supervision.weight[first + t]
            theta[t] += weight * supervision.cost[known, 0]
            theta[n_nodes + t] += weight * supervision.cost[known, 1]
