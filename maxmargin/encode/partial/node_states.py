"""What is known of nodes of several types, which have a state for each label that their type has.

A table `state` (types, L) holds the state of a label, or -1: those of a type are in the order of its labels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks, starts_of
from maxmargin.encode.inputs.example_checks import find_labels, join_classes
from maxmargin.encode.partial.annotations import Annotations, price_annotations
from maxmargin.encode.partial.image_labels import ImageLabels
from maxmargin.structures.graphs.cliques import Cliques
from maxmargin.structures.graphs.graph_problem import LabelledGraphs, ends_in_all
from maxmargin.supervision.label_supervision import LabelSupervision, supervise, supervise_evenly, without_costs


def labels_of_types(images: ImageLabels, node_type: np.ndarray, n_types: int) -> np.ndarray:
    """(types, L) whether nodes of a type have a label, or may have it by what is known of some.

    Types of which nothing is known have all labels, and labels that are known of no type belong to all.
    """
    known = images.known
    is_seen = np.zeros((n_types, len(known.classes)), bool)
    if known.allowed is None:
        is_seen[node_type, known.labels] = True
    else:
        is_open, _ = known.open_and_soft()
        is_unknown = is_open & known.allowed.all(axis=1)
        np.logical_or.at(is_seen, node_type[~is_unknown], known.allowed[~is_unknown])
        for i, reading in images.readings.items():
            for group in reading.groups:
                is_seen[node_type[images.starts[i] + group.nodes], group.states] = True
        is_seen |= ~is_seen.any(axis=0) | ~is_seen.any(axis=1, keepdims=True)
    return is_seen


def number_states(is_seen: np.ndarray) -> np.ndarray:
    """(types, L) the state of a node of a type that has a label, or -1 where the type does not have it."""
    return np.where(is_seen, np.cumsum(is_seen, axis=1) - 1, -1)


class StatesOfTypes(NamedTuple):
    """What an encoder of graphs knows of types of nodes and edges, by the names of its fields."""

    classes: np.ndarray
    node_types: np.ndarray
    edge_types: np.ndarray
    state: np.ndarray
    kinds: np.ndarray


def join_types(former: StatesOfTypes, other: StatesOfTypes) -> StatesOfTypes:
    """What two encoders know together."""
    names = StatesOfTypes._fields[:3]
    classes, nodes, edges = map(join_classes, former[:3], other[:3], names)
    is_seen, kinds = np.zeros((len(nodes), len(classes)), bool), []
    for known in (former, other):
        types = find_labels(known.node_types, nodes)
        is_seen[np.ix_(types, find_labels(known.classes, classes))] |= known.state >= 0
        edge_type, first, second = known.kinds.T
        kinds.append(np.stack([find_labels(known.edge_types, edges)[edge_type], types[first], types[second]], axis=1))
    return StatesOfTypes(classes, nodes, edges, number_states(is_seen), np.unique(np.concatenate(kinds), axis=0))


def order_classes(state: np.ndarray) -> np.ndarray:
    """(types, L) the labels that a type has, in the order of its states, then the others."""
    return np.argsort(state < 0, axis=1, kind="stable")


def by_state_of_type(state: np.ndarray, node_type: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(N, S) what a table (N, L) has for the states of nodes of some types, and anything beyond these."""
    return np.take_along_axis(table, order_classes(state)[node_type], axis=1)[:, : int(state.max()) + 1]


def pairs_of_states(
    state: np.ndarray, joined: np.ndarray, is_turned: np.ndarray, tables: np.ndarray
) -> list[np.ndarray]:
    """Of each edge, what a table (L, L) has for the states of its ends, of these types; some edges are turned."""
    order, counts, found = order_classes(state), state.max(axis=1) + 1, []
    for (first, second), turned, table in zip(joined.tolist(), is_turned.tolist(), tables, strict=True):
        pairs = table[np.ix_(order[first][: counts[first]], order[second][: counts[second]])]
        found.append((pairs.T if turned else pairs).ravel())
    return found


def by_state(state: np.ndarray, nodes: Cliques, table: np.ndarray) -> Blocks:
    """What a table (N, L) has for the states of all nodes, graph by graph."""
    n_states = nodes.n_parts[nodes.type]
    ordered = by_state_of_type(state, nodes.type, table)
    has_state = np.arange(ordered.shape[1]) < n_states[:, np.newaxis]
    return Blocks(ordered[has_state], starts_of(n_states)[nodes.starts])


def mean_parts_of_states(graphs: LabelledGraphs, means: Blocks, dtype: DTypeLike) -> Blocks:
    """Those of graphs whose nodes are independent of each other, with these probabilities of their states."""
    of_nodes = np.split(means.values, starts_of(graphs.nodes.n_parts[graphs.nodes.type])[1:-1])
    of_edges = [np.outer(of_nodes[a], of_nodes[b]).ravel() for a, b in ends_in_all(graphs).tolist()]
    of_graphs = np.split(means.values, means.starts[1:-1])
    blocks = [
        np.concatenate([states, *of_edges[lo:hi]])
        for states, (lo, hi) in zip(of_graphs, pairwise(graphs.edges.starts), strict=True)
    ]
    return as_blocks(blocks, dtype)


def supervise_states(
    known: Annotations,
    state: np.ndarray,
    node_type: np.ndarray,
    costs: np.ndarray | None,
    weights: np.ndarray,
    dtype: DTypeLike,
) -> LabelSupervision:
    """What is known of the states of nodes, with their weights, and what others cost."""
    states, n_states = state[node_type, known.labels], int(state.max()) + 1
    if costs is None:
        return without_costs(states, n_states, dtype, weights)
    wrong = costs.max(axis=1)
    if known.allowed is None and (costs == wrong[:, np.newaxis] * ~np.eye(len(costs), dtype=bool)).all():
        return supervise_evenly(states, weights * wrong[known.labels], n_states, dtype)
    rows, annotation = price_annotations(known, costs)
    of_types = np.concatenate([rows[:, order[:n_states]] for order in order_classes(state)])
    return supervise(states, of_types, weights, dtype, node_type * len(rows) + annotation)
