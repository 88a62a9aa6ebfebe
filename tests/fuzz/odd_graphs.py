"""Hostile edges, types and graphs: changes of the inputs of `tests.fuzz.hostile`."""

from inspect import signature

import numpy as np
import scipy.sparse as sp

from maxmargin import Graph

ODD_EDGES = ["loop", "twice", "turned", "missing", "negative", "huge", "far", "float", "nan", "none", "text", "wide"]
ODD_EDGES += ["flat", "ragged", "empty", "cycle", "all", "bool", "sparse"]
LABEL_GRAPHS = ["tree", "full", None, [], [(0, 1)], [(0, 1), (1, 2), (2, 0)], [(0, 0)], [(0, 1), (1, 0)], [(0, 9)]]
LABEL_GRAPHS += [[(-1, 0)], [(0.5, 1)], [(0, 2**70)], "cycle", 3, np.zeros((2, 2, 2)), [[None, 1]], {}]
LARGE = [1e3, 1e6, 1e10, 2e11, 1e13, 1e300, np.nan, np.inf, 1e-30, 0.0]


def change_graphs(hostile, change):
    """Change some of the examples that are tuples of features and edges."""
    hostile.X = [change(x) if isinstance(x, tuple) and hostile.rng.random() < 0.6 else x for x in hostile.X]


def replaced(x, k, value):
    """A tuple, or a `NamedTuple`, with another entry."""
    entries = [*x, *[None] * (k + 1 - len(x))]
    entries[k] = value
    return type(x)(*entries) if hasattr(x, "_fields") else tuple(entries)


def with_odd_edges(hostile):
    how = hostile.pick(ODD_EDGES)

    def odd(x):
        edges, n = [*x[1]], len(x[0])
        others = {
            "loop": [*edges, (0, 0)],
            "twice": edges * 2,
            "turned": [*edges, *[(b, a) for a, b in edges]],
            "missing": [*edges, (0, n)],
            "negative": [*edges, (0, -1)],
            "huge": [*edges, (0, 2**63)],
            "far": [*edges, (0, 2**31)],
            "float": np.array(edges, float),
            "nan": [*edges, (0, np.nan)],
            "none": None,
            "text": "edges",
            "wide": np.zeros((2, 3), int),
            "flat": np.ravel(edges),
            "ragged": [*edges, (0,)],
            "empty": np.zeros((0, 2)),
            "cycle": [(v, (v + 1) % n) for v in range(n)],
            "all": [(a, b) for b in range(n) for a in range(b)],
            "bool": [(False, True)],
            "sparse": sp.csr_array(np.eye(n)),
        }
        return replaced(x, 1, others[how])

    change_graphs(hostile, odd)


def with_edge_features(hostile):
    scale, width = hostile.pick(LARGE), hostile.pick([1, 2])
    rng = hostile.rng
    hostile.X = [replaced(x, 2, scale * rng.normal(size=(len(x[1]), width))) for x in hostile.X]


def with_odd_edge_features(hostile):
    odd = hostile.pick([None, 3, "text", np.zeros(0), np.ones((9, 2)), np.ones((1, 0)), [[1j]], [["x"]], [[10**400]]])
    change_graphs(hostile, lambda x: replaced(x, 2, odd))


def with_types(hostile):
    """Types of nodes and edges; those of nodes follow from their labels, or not."""
    names = hostile.pick([["p", "q", "p"], [0, 1, 0], [0, 0, 0], [-1, 7, 2**40]])

    def typed(x, labels):
        nodes = [names["abc".index(str(label))] for label in labels]
        return Graph(x[0], x[1], None, nodes, [names[e % 3] for e in range(len(x[1]))])

    hostile.X = [typed(x, labels) for x, labels in zip(hostile.X, hostile.y, strict=True)]


def with_odd_types(hostile):
    odd = hostile.pick(["text", 3, [None], [1.5, 0.5], [[0]], np.zeros(9, int), ["p", 0], [], [10**400], [np.nan] * 3])
    k = hostile.pick([3, 4])
    change_graphs(hostile, lambda x: replaced(x, k, odd))


def with_an_interaction(hostile):
    hostile.model.set_params(interaction=hostile.pick(["symmetric", "full", "potts", "none", 3, None]))


def with_a_graph_of_labels(hostile):
    hostile.model.set_params(graph=hostile.pick(LABEL_GRAPHS))


def with_node_weights(hostile):
    values = [
        [0.0, 1.0, 3.0],
        [1e-12, 1e6, 0.0],
        [1e12, 1.0, 1.0],
        [1e300, 1.0, 1.0],
        [np.nan, 1.0, 1.0],
        [-1.0, 1.0, 1.0],
    ]
    chosen = hostile.pick(values)
    name = "node_weight" if isinstance(hostile.X[0], tuple) else "position_weight"
    if name in signature(hostile.model.fit).parameters:
        hostile.options[name] = [hostile.rng.choice(chosen, len(labels)) for labels in hostile.y]


OF_GRAPHS = [
    with_odd_edges,
    with_edge_features,
    with_odd_edge_features,
    with_types,
    with_odd_types,
    with_an_interaction,
    with_a_graph_of_labels,
    with_node_weights,
]
