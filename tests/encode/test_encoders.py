"""Encoders: the same from training and from prediction, comparable, and blind to how numbers are stored."""

import itertools
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from maxmargin import (
    ChainCRF,
    ChainSVM,
    DeformableSVM,
    GraphCRF,
    GraphCutSVM,
    GraphSVM,
    KernelChainSVM,
    MatchingSVM,
    Tree,
    TreeCRF,
    TreeSVM,
)
from maxmargin.encode.inputs.base_encoder import same
from maxmargin.problem import new_weights
from maxmargin.supervision.label_supervision import NO_LABEL


@pytest.fixture
def task(words):
    return ChainSVM()._encode(*words)


def test_training_and_prediction_encode_alike(words, task):
    X, y = words
    again = task.encoder.problem(X, y)
    for name in ("starts", "penalty"):
        assert np.array_equal(getattr(again, name), getattr(task.problem, name)), name
    assert np.array_equal(again.supervision.labels, task.problem.supervision.labels)
    assert np.array_equal(again.features[0], task.problem.features[0])
    assert task.problem.supervision.cost.any()
    assert not again.supervision.cost.size  # costs are for training only
    assert (task.encoder.problem(X).supervision.labels == NO_LABEL).all()  # and nobody makes them up


@pytest.mark.parametrize("other", [{"fit_intercept": False}, {"allowed_transitions": ~np.eye(3, k=2, dtype=bool)}])
def test_encoders_differ_where_weights_mean_something_else(words, task, other):
    X, y = words
    y = [["a"] * len(labels) if ("a", "c") in itertools.pairwise(labels) else labels for labels in y]
    assert ChainSVM(**other)._encode(X, y).encoder != ChainSVM()._encode(X, y).encoder
    assert replace(task.encoder, classes=np.array(["x", "y", "z"])) != task.encoder
    assert ChainCRF(only_observed=True)._encode(X, y).encoder != ChainCRF()._encode(X, y).encoder
    assert task.encoder != "an encoder"


def test_storage_and_precision_do_not_count(words, task):
    X, y = words
    assert ChainSVM(dtype="float64")._encode(X, y).encoder == task.encoder
    assert replace(task.encoder, stores_sparse=True) == task.encoder
    assert pickle.loads(pickle.dumps(task.encoder)) == task.encoder


def test_encoders_cannot_be_changed_or_hashed(task):
    with pytest.raises(FrozenInstanceError):
        task.encoder.has_bias = False
    with pytest.raises(TypeError, match="unhashable"):
        hash(task.encoder)


def test_names_are_views_of_the_weights():
    rng = np.random.default_rng(0)
    graphs = [(rng.normal(size=(3, 2)), [(0, 1)]), (rng.normal(size=(2, 2)), [(0, 1)])]
    trees = [Tree(nodes, edges, np.ones((1, 2))) for nodes, edges in graphs]
    grids, poses = [rng.normal(size=(3, 4, 2)) for _ in range(2)], [np.array([[0, 1], [2, 2]])] * 2
    tasks = [
        ChainSVM()._encode([nodes for nodes, _ in graphs], [[0, 1, 1], [1, 0]]),
        TreeSVM()._encode(trees, [[0, 1, 1], [1, 0]]),
        GraphCutSVM()._encode(graphs, [[0, 1, 1], [1, 0]]),
        DeformableSVM(edges=[(0, 1)])._encode(grids, poses),
    ]
    for encoder, problem, *_ in tasks:
        w = new_weights(problem)
        for part in encoder.names(w).values():
            part[...] = 1
        assert w.all(), type(encoder).__name__  # every weight has a name


def test_layouts_tell_polytopes_apart():
    rng = np.random.default_rng(0)
    wide, tall = (MatchingSVM()._encode([rng.normal(size=shape)], [[0, 1]]) for shape in ((2, 3, 1), (2, 2, 1)))
    assert wide.encoder == tall.encoder
    assert not same(wide.encoder.dual_shape(wide.problem), tall.encoder.dual_shape(tall.problem))
    assert same(wide.encoder.dual_shape(wide.problem), wide.encoder.dual_shape(wide.problem))


@pytest.mark.parametrize(
    "make", [ChainSVM, ChainCRF, KernelChainSVM, TreeSVM, TreeCRF, GraphSVM, GraphCRF, GraphCutSVM]
)
def test_minus_one_is_no_class_but_an_unknown_label(make, interpreted_loops):
    rows = np.eye(3)
    X = [rows, rows[:2]] if "Chain" in make.__name__ else [(rows, [(0, 1), (1, 2)]), (rows[:2], [(0, 1)])]
    message = r"y\[1\] has the label -1 at row 1, which is taken to be unknown.*if -1 is a class of its own"
    with pytest.raises(ValueError, match=message):
        make().fit(X, [[0, 1, 1], [0, -1]])
    two = make(random_state=0).fit(X, [[-1, 1, 1], [-1, 1]])  # as in binary problems
    assert two.classes_.tolist() == [-1, 1]
    many = [[-2, -1, 0], [-1, 0]]  # where other labels are negative, too
    if make is not GraphCutSVM:
        assert make(random_state=0).fit(X, many).classes_.tolist() == [-2, -1, 0]
    fitted = make(random_state=0).fit(X, [[0, 1, 1], [0, 1]])
    with pytest.raises(ValueError, match=message):
        fitted.score(X, [[0, 1, 1], [0, -1]])
    with pytest.raises(ValueError, match=f"In the held-out data, X_dev and y_dev: {message}"):
        make().fit(X, [[0, 1, 1], [0, 1]], X_dev=X, y_dev=[[0, 1, 1], [0, -1]])
