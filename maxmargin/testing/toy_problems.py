"""Small problems on which checks and examples run fast."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.chain_encoder import ChainEncoder
from maxmargin.encode.inputs.rows import Rows
from maxmargin.features import DenseFeatures
from maxmargin.features.linear_map import Gram
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.graphs.graph_problem import GraphProblem, make_graph_problem
from maxmargin.supervision.label_supervision import supervise, supervise_evenly


def toy_chains(
    n: int = 6,
    n_labels: int = 3,
    n_features: int = 4,
    max_length: int = 4,
    dtype: DTypeLike = "float64",
    random_state: int | np.random.Generator = 0,
) -> ChainProblem:
    """A small chain problem with Hamming costs and labels that follow the features, on which checks run fast.

    Examples
    --------
    >>> from maxmargin.problem import part_sizes
    >>> from maxmargin.testing import toy_chains
    >>> len(part_sizes(toy_chains(n=6)))
    6
    """
    rng = np.random.default_rng(random_state)
    starts = starts_of(rng.integers(1, max_length + 1, n))
    n_tokens = int(starts[-1])
    rows = Rows(rng.normal(size=(n_tokens, n_features)), starts)
    signal = rows.matrix @ rng.normal(size=(n_features, n_labels))
    labels = np.argmax(signal + rng.normal(size=signal.shape), axis=1)
    encoder = ChainEncoder(
        n_features_in=n_features,
        dtype=np.dtype(dtype),
        stores_sparse=False,
        classes=np.arange(n_labels),
        penalty=np.zeros((n_labels, n_labels), dtype),
        end_penalty=np.zeros((2, n_labels), dtype),
    )
    supervision = supervise(labels, 1.0 - np.eye(n_labels), np.ones(n_tokens), dtype)
    problem = encoder.assemble(rows, supervision, with_grams=True)
    assert isinstance(problem, ChainProblem)
    return problem


def toy_triangle() -> GraphProblem:
    """One graph, a triangle, whose nodes have a feature and one of two labels each.

    Examples
    --------
    >>> from maxmargin.testing import toy_triangle
    >>> toy_triangle().graphs.ends.tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    without_grams = Gram(np.zeros(0), np.zeros(1, np.int64))
    nodes, edges = DenseFeatures(np.eye(3), without_grams), DenseFeatures(np.ones((3, 1)), without_grams)
    ends = np.array([(0, 1), (1, 2), (2, 0)])
    known = supervise_evenly(np.arange(3) % 2, np.ones(3), 2, float)
    starts = np.array([0, 3])
    return make_graph_problem(nodes, edges, (3, 1), starts, starts, ends, known, n_states=[2])
