"""Weights of observed pairs only: those of chains and trees with all weights, of which the others are zero."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import BCFW, ChainCRF, ChainSVM, Tree, TreeCRF, TreeSVM
from maxmargin.problem import add_output, new_weights, part_sizes, scores, spread, true_output
from maxmargin.solvers import find_solver
from maxmargin.testing import check_structure
from tests import naive

LENGTHS, NAMES = [1, 3, 4, 2], np.array(["a", "b", "c"])


def make_data(structure, seed=0, binary=False):
    """Sparse examples of which some features and pairs of labels do not occur with some labels."""
    rng = np.random.default_rng(seed)
    X, y = [], [rng.integers(0, 3, length) for length in LENGTHS]
    for length in LENGTHS:
        kept = rng.random((length, 5)) < 0.4
        rows = sp.csr_array(kept * (1.0 if binary else rng.normal(size=kept.shape)))
        edges = [(int(rng.integers(child)), child) for child in range(1, length)]
        X.append(Tree(rows, edges, rng.integers(0, 2, (len(edges), 2))) if structure == "tree" else rows)
    return X, [NAMES[labels] for labels in y]


def problems(structure, **options):
    """The same examples with all weights and with those of observed pairs, and the places of these among all."""
    X, y = make_data(structure, **options)
    make = {"chain": ChainSVM, "tree": TreeSVM}[structure]
    full, observed = (make(dtype="float64", only_observed=only)._encode(X, y) for only in (False, True))
    numbers = observed.encoder.names(np.arange(1, new_weights(observed.problem).size + 1))
    everything = full.encoder.names(np.arange(new_weights(full.problem).size))
    places = np.zeros(new_weights(observed.problem).size, int)
    for name, part in numbers.items():
        part = part.toarray() if sp.issparse(part) else part
        places[part[part > 0] - 1] = everything[name][part > 0]
    return full.problem, observed.problem, places


def weights_seen(problem):
    """The weights that the parts of the true outputs meet, one example at a time: nothing can cancel."""
    seen = np.zeros(new_weights(problem).size, bool)
    for i, size in enumerate(part_sizes(problem)):
        parts = np.zeros(size)
        add_output(problem, i, true_output(problem, i), 1.0, parts)
        for p in np.flatnonzero(parts):
            w = np.zeros(seen.size)
            spread(problem, w, i, np.eye(size)[p], 1.0)
            seen |= w != 0
    return seen


@pytest.mark.parametrize(("structure", "binary"), [("chain", True), ("tree", False)])
def test_oracles_equal_enumeration(structure, binary):
    _, problem, _ = problems(structure, binary=binary)
    check_structure(problem, lambda i: naive.labellings(LENGTHS[i], 3), k=5)


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_the_weights_are_those_of_what_occurs(structure, interpreted_loops):
    full, observed, places = problems(structure)
    seen = weights_seen(full)
    assert 0 < seen.sum() < seen.size
    assert np.array_equal(np.sort(places), np.flatnonzero(seen))
    w = np.random.default_rng(1).normal(size=places.size)
    expanded = np.zeros(seen.size)
    expanded[places] = w
    for i, size in enumerate(part_sizes(full)):
        here, there = np.zeros(size), np.zeros(size)
        scores(observed, w, i, here)
        scores(full, expanded, i, there)
        assert np.allclose(here, there)


@pytest.mark.parametrize("make", [ChainSVM, ChainCRF, TreeSVM, TreeCRF])
def test_models_reach_the_optimum_of_the_observed_weights(make, interpreted_loops):
    """The same as bounds of 0 for all others."""
    structure = "chain" if "Chain" in make.__name__ else "tree"
    X, y = make_data(structure)
    full, _, places = problems(structure)
    model = make(only_observed=True, dtype="float64", tol=1e-6, random_state=0).fit(X, y)
    bound = np.zeros(new_weights(full).size)
    bound[places] = np.inf
    task = make(dtype="float64")._encode(X, y)
    solver = BCFW(steps="pairwise") if "SVM" in make.__name__ else "lbfgs"
    loss = model._trainer.find_loss(model)
    reference = find_solver(solver, loss).solve(
        task.problem, model.C, loss=loss, lower=-bound, upper=bound, tol=1e-6, random_state=0
    )
    assert np.isclose(model.certificate_.primal, reference.certificate.primal, rtol=1e-5)
    assert model.coef_.emissions.shape == (5, 3)


@pytest.mark.parametrize("make", [ChainSVM, TreeCRF])
def test_changed_weights_change_predictions(make, interpreted_loops):
    X, y = make_data("chain" if make is ChainSVM else "tree")
    fitted = make(only_observed=True, random_state=0, tol=0.1).fit(X, y)
    for model in (fitted, pickle.loads(pickle.dumps(fitted))):
        before = model.decision_function(X)
        model.coef_.emissions.data[:] = 0
        assert not all(map(np.allclose, before, model.decision_function(X)))
        with pytest.raises(ValueError, match="read-only"):
            model.coef_.transitions[0, 0] = 1.0


def test_bounds_of_observed_weights(interpreted_loops):
    X, y = make_data("chain")
    bounds = {"emissions": (-0.1, None), "transitions": (np.zeros((3, 3)), np.full((3, 3), 0.05))}
    fitted = ChainSVM(only_observed=True, bounds=bounds, random_state=0).fit(X, y)
    assert fitted.coef_.emissions.data.min() >= -0.1
    assert 0 <= fitted.coef_.transitions.min() <= fitted.coef_.transitions.max() <= 0.05


@pytest.mark.parametrize("make", [ChainSVM, ChainCRF])
def test_only_the_ones_may_be_those_observed(make):
    X, y = [[["a"], ["b"]], [["a"], ["c"]]], [["x", "y"], ["x", "z"]]
    encoders = [
        make(only_observed=kind, fit_intercept=False)._encode(X, y).encoder for kind in ("features", "transitions")
    ]
    sizes = [(encoder.node_pairs.labels.size, encoder.edge_pairs.labels.size) for encoder in encoders]
    assert sizes == [(3, 9), (9, 2)]
    with pytest.raises(ValueError, match="only_observed must be one of True, features, transitions"):
        make(only_observed="states").fit(X, y)
