"""Three tasks on graphs with cycles: Potts grids, superpixels of images, and the labels of multi-label data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.datasets import load_emotions, load_mulan, load_scene
from maxmargin.features import DenseFeatures
from maxmargin.features.linear_map import Gram
from maxmargin.structures.graphs.cliques import Cliques, EdgeType
from maxmargin.structures.graphs.graph_problem import GraphProblem, make_graph_problem
from maxmargin.supervision.label_supervision import supervise_evenly
from maxmargin.vision import grid_edges, superpixel_graph

N_STATES, SIDE = 5, 10
N_MSRC_STATES = 24
N_SEGMENTS = 60
SWEEPS = 30  # of the Gibbs sampler of labels
ROUNDS = 20  # of the messages of a prediction


class Task(NamedTuple):
    """Graphs to train and to test on, and the constants of the paper: lambda is 1 / C, gamma the temperature."""

    train: GraphProblem
    test: GraphProblem
    C: float
    rho: float
    temperature: float


def load_task(name: str, data: Path | None = None, n: int | None = None) -> Task:
    """A task by its name, with at most n graphs in each half; `data` is the folder of real data."""
    if name == "grids":
        return Task(potts_grids(n or 50, SIDE, seed=0), potts_grids(n or 50, SIDE, seed=1), 0.1, 1.0, 1.0)
    assert data is not None, "set MAXMARGIN_DATA to the folder of real data."
    if name == "segmentation":
        return Task(*(superpixels(data / "msrc_v2", half, n or 60) for half in (0, 1)), 0.1, 1.0, 10.0)
    sets = {"scene": load_scene, "emotions": load_emotions}[name](data) if name != "yeast" else load_mulan(name, data)
    halves = [(X[:n], Y[:n]) for X, Y in ((sets.X_train, sets.y_train), (sets.X_test, sets.y_test))]
    mean, deviation = halves[0][0].mean(axis=0), halves[0][0].std(axis=0) + 1e-9
    return Task(*(label_sets((X - mean) / deviation, Y) for X, Y in halves), 1.0, 0.1, 1.0)


def dense(rows: np.ndarray) -> DenseFeatures:
    return DenseFeatures(np.ascontiguousarray(rows, float), Gram(np.zeros(0), np.zeros(1, np.int64)))


def potts_grids(n: int, side: int, seed: int, ties: str = "full", n_states: int = N_STATES) -> GraphProblem:
    """Labels of a Potts model by Gibbs sampling, and for each x and x^2 of a Gaussian around its centre."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_states, size=(n, side, side))
    is_even = np.add.outer(np.arange(side), np.arange(side)) % 2 == 0
    for sweep in range(2 * SWEEPS):
        is_state = np.pad(np.eye(n_states)[labels], ((0, 0), (1, 1), (1, 1), (0, 0)))
        alike = is_state[:, 2:, 1:-1] + is_state[:, :-2, 1:-1] + is_state[:, 1:-1, 2:] + is_state[:, 1:-1, :-2]
        drawn = np.argmax(alike + rng.gumbel(size=alike.shape), axis=-1)
        labels = np.where(is_even == (sweep % 2 == 0), drawn, labels)
    x = (labels - n_states / 2 + rng.normal(size=labels.shape)).ravel()
    edges = grid_edges(side, side)
    return make_graph_problem(
        dense(np.stack([x, x**2], axis=1)),
        dense(np.ones((1, 1))),
        (2, 1),
        np.arange(n + 1) * side**2,
        np.arange(n + 1) * len(edges),
        np.tile(edges, (n, 1)),
        supervise_evenly(labels.ravel(), np.ones(labels.size), n_states, float),
        [n_states],
        [EdgeType(ties=ties)],
        edge_row=np.zeros(n * len(edges), int),
    )


def superpixels(folder: Path, half: int, n: int) -> GraphProblem:
    """Every second image of MSRC, from the first or the second: superpixels that are not all void."""
    from skimage.io import imread

    graphs = []
    for path in sorted((folder / "images").glob("*.jpg"))[half::2][:: max(1, 295 // n)][:n]:
        graph = superpixel_graph(imread(path), N_SEGMENTS)
        classes = imread(next((folder / "labels").glob(f"{path.stem}*")))
        counts = np.zeros((len(graph.sizes), N_MSRC_STATES))
        np.add.at(counts, (graph.segments.ravel(), classes.ravel()), 1)
        counts[:, 0] = 0
        kept = counts.any(axis=1)
        place = np.cumsum(kept) - 1
        inside = kept[graph.edges].all(axis=1)
        labels = counts[kept].argmax(axis=1)
        nodes = np.hstack([graph.nodes[kept], np.ones((len(labels), 1))])
        graphs.append((nodes, place[graph.edges[inside]], graph.edge_features[inside][:, :2], labels))
    rows, ends, edge_rows, labels = zip(*graphs, strict=True)
    return make_graph_problem(
        dense(np.concatenate(rows)),
        dense(np.concatenate(edge_rows)),
        (rows[0].shape[1], edge_rows[0].shape[1]),
        starts_of(labels),
        starts_of(ends),
        np.concatenate(ends),
        supervise_evenly(np.concatenate(labels), np.ones(sum(map(len, labels))), N_MSRC_STATES, float),
        [N_MSRC_STATES],
    )


def starts_of(blocks: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(block) for block in blocks])])


def label_sets(X: np.ndarray, Y: np.ndarray) -> GraphProblem:
    """A node of two states for each label and an edge for each pair, each with weights of its own."""
    n, size = Y.shape
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    return make_graph_problem(
        dense(np.hstack([X, np.ones((n, 1))])),
        dense(np.ones((1, 1))),
        (X.shape[1] + 1, 1),
        np.arange(n + 1) * size,
        np.arange(n + 1) * len(pairs),
        np.tile(pairs, (n, 1)),
        supervise_evenly(Y.ravel(), np.ones(Y.size), 2, float),
        [2] * size,
        [EdgeType(int(a), int(b)) for a, b in pairs],
        np.tile(np.arange(size), n),
        np.tile(np.arange(len(pairs)), n),
        np.repeat(np.arange(n), size),
        np.zeros(n * len(pairs), int),
    )


def accuracy(problem: GraphProblem, w: np.ndarray) -> float:
    """The share of right labels by messages of max-product, all nodes of which have as many states."""
    k = int(problem.graphs.nodes.n_parts[0])
    nodes, tables = scores_of(problem.graphs.nodes, w), scores_of(problem.graphs.edges, w).reshape(-1, k, k)
    graph = np.repeat(problem.graphs.nodes.starts[:-1], np.diff(problem.graphs.edges.starts))
    first, second = (problem.graphs.ends + graph[:, np.newaxis]).T
    to_first, to_second = np.zeros((2, len(first), k))
    for _ in range(ROUNDS):
        beliefs = nodes.copy()
        np.add.at(beliefs, first, to_first)
        np.add.at(beliefs, second, to_second)
        new = (
            (tables + (beliefs[second] - to_second)[:, np.newaxis]).max(axis=2),
            (tables + (beliefs[first] - to_first)[:, :, np.newaxis]).max(axis=1),
        )
        to_first, to_second = (
            0.5 * old + 0.5 * (found - found.max(axis=1, keepdims=True))
            for old, found in zip((to_first, to_second), new, strict=True)
        )
    return float(np.mean(beliefs.argmax(axis=1) == problem.graphs.supervision.labels))


def scores_of(cliques: Cliques, w: np.ndarray) -> np.ndarray:
    """The scores of the parts of all cliques, all of which have as many."""
    scores = np.zeros((len(cliques.type), int(cliques.n_parts[0])))
    width = cliques.n_features
    for kind, size in enumerate(cliques.n_parts):
        mine = cliques.type == kind
        column = cliques.column[cliques.first[kind] : cliques.first[kind] + size]
        weights = w[cliques.weight[kind] : cliques.weight[kind + 1]].reshape(-1, width)
        found = cliques.features.rows[cliques.row[mine]] @ weights.T
        scores[mine] = np.where(column >= 0, found[:, column], 0)
    return scores
