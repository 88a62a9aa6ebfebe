"""Costs of labels, and of labels of neighbours, in tables that users give: zero for what agrees with what is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from maxmargin.checks import LARGEST, as_numbers
from maxmargin.encode.inputs.example_checks import flatten_weights, locate
from maxmargin.encode.partial.annotations import Annotations


def labels_that_agree(known: Annotations) -> np.ndarray:
    """(N, L) flags of labels that agree with what is known."""
    return np.eye(len(known.classes), dtype=bool)[known.labels] if known.allowed is None else known.allowed


def check_one_cost(class_weight: object) -> None:
    """Raise where costs of nodes are given, and weights of the costs of labels, too."""
    if class_weight is not None:
        raise ValueError("class_weight weighs the costs of labels, which node_cost replaces: give only one of them.")


def read_node_costs(tables: object, known: Annotations, starts: np.ndarray, noun: str) -> np.ndarray:
    """(N, L) costs of the labels of nodes, from a table for each example, `noun` in messages."""
    shapes = np.column_stack([np.diff(starts), np.full(len(starts) - 1, len(known.classes))])
    costs = flatten_weights(tables, shapes, "node_cost", noun).reshape(-1, len(known.classes))
    is_wrong = labels_that_agree(known) & (costs != 0)
    if is_wrong.any():
        node, label = np.argwhere(is_wrong)[0]
        i, place = locate(node, starts)
        raise ValueError(
            f"node_cost[{i}] must be zero for labels that agree with y, but is {costs[node, label]:g} for "
            f"{known.classes[label].item()!r} at node {place}."
        )
    return costs


def read_edge_costs(tables: object, known: Annotations, ends: np.ndarray, starts: np.ndarray, noun: str) -> np.ndarray:
    """(M, L, L) costs of the labels of the ends of edges, whose nodes are counted over all examples."""
    n_labels, n_edges = len(known.classes), np.diff(starts)
    shapes = np.column_stack([n_edges, *np.full((2, len(n_edges)), n_labels)])
    costs = flatten_weights(tables, shapes, "edge_cost", noun).reshape(-1, n_labels, n_labels)
    agree = labels_that_agree(known)
    is_wrong = agree[ends[:, 0]][:, :, np.newaxis] & agree[ends[:, 1]][:, np.newaxis] & (costs != 0)
    if is_wrong.any():
        edge, *labels = np.argwhere(is_wrong)[0]
        i, place = locate(edge, starts)
        first, second = known.classes[labels].tolist()
        raise ValueError(
            f"edge_cost[{i}] must be zero for labels that agree with y, but is {costs[edge, labels[0], labels[1]]:g} "
            f"for {first!r} and {second!r} at edge {place}."
        )
    return costs


def read_transition_costs(costs: object, known: Annotations, starts: np.ndarray) -> np.ndarray:
    """(n, L^2) costs of transitions that a sequence cannot have, by what is known of it; none of its others."""
    n_labels = len(known.classes)
    matrix = as_numbers("transition_cost", costs)
    if matrix.shape != (n_labels, n_labels) or not ((matrix >= 0).all() and (matrix <= LARGEST).all()):
        raise ValueError(f"transition_cost must hold ({n_labels}, {n_labels}) numbers from 0 to {LARGEST:g}.")
    agree = labels_that_agree(known).astype(np.float32)
    may_occur = [agree[lo : max(hi - 1, lo)].T @ agree[lo + 1 : hi] > 0 for lo, hi in pairwise(starts.tolist())]
    return np.where(np.reshape(may_occur, (-1, n_labels**2)), 0.0, matrix.ravel())
