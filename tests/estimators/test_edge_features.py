"""Features of transitions in `ChainSVM` and `ChainCRF`: optima by brute force, names, files, and bad input."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin import ChainCRF, ChainSVM, KernelChainSVM
from maxmargin.inspection import explain
from maxmargin.runtime import interpreted
from tests import naive

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(t, 2)) for t in (1, 3, 2, 4)]
Z = [RNG.normal(size=(len(x) - 1, 2)) for x in X]
Y = [RNG.integers(0, 2, len(x)) for x in X]

# Whether a label changes is told by what is between two positions, and by nothing else.
WORDS = [[["a"], ["b"], ["a"]], [["b"], ["b"]], [["a"], ["a"], ["b"], ["b"]]]
BETWEEN = [[["same"], ["other", "far"]], [["other"]], [["same"], ["same"], ["other"]]]
TAGS = [["x", "x", "y"], ["x", "y"], ["x", "x", "x", "y"]]


def blocks():
    found = []
    for x, z, y in zip(X, Z, Y, strict=True):
        outputs = [*naive.labellings(len(y), 2)]
        true = naive.edge_chain_features(x, z, y, 2)
        psi = np.array([true - naive.edge_chain_features(x, z, other, 2) for other in outputs])
        found.append((psi, np.array([naive.chain_cost(y, other) for other in outputs])))
    return found


@pytest.mark.parametrize(
    ("form", "way"),
    [
        pytest.param(np.asarray, nullcontext, marks=pytest.mark.long, id="dense, compiled"),
        pytest.param(sp.csr_array, interpreted, id="sparse"),
    ],
)
def test_objectives_reach_the_optimum_of_brute_force(form, way):
    with way():
        check_objectives([form(z) for z in Z])


def check_objectives(edges):
    options = {"fit_intercept": False, "tol": 1e-5, "max_passes": 1000, "C": 1.0}
    crf = ChainCRF(**options).fit(X, Y, edge_features=edges)
    best = naive.log_primal(naive.solve_log(blocks(), 1.0), blocks(), 1.0)
    assert crf.certificate_.dual <= best + 1e-9
    assert np.isclose(crf.certificate_.primal, best, rtol=1e-4)
    svm = ChainSVM(random_state=0, **options).fit(X, Y, edge_features=edges)
    assert np.isclose(svm.certificate_.primal, naive.primal(naive.solve(blocks(), 1.0)[0], blocks(), 1.0), rtol=1e-4)
    w = np.concatenate([np.ravel(crf.coef_[name]) for name in ("emissions", "transitions", "edges")])
    assert np.isclose(naive.log_primal(w, blocks(), 1.0), crf.certificate_.primal)
    psi, _ = blocks()[3]
    chances = np.exp(-psi @ w - np.logaddexp.reduce(-psi @ w))
    outputs = np.array([*naive.labellings(4, 2)])
    marginals = crf.predict_marginals(X, edge_features=edges)[3]
    assert np.allclose(marginals[:, 1], chances @ outputs, atol=1e-6)
    assert crf.predict(X, edge_features=edges)[3].tolist() == outputs[np.argmax(chances)].tolist()
    assert np.isclose(crf.log_likelihood(X, Y, edge_features=edges)[3], np.log(chances[(psi == 0).all(axis=1)][0]))


@pytest.fixture(scope="module", params=[True, False], ids=["observed", "all"])
def model(request):
    with interpreted():
        return ChainCRF(only_observed=request.param, C=10.0).fit(WORDS, TAGS, edge_features=BETWEEN)


def test_names(model, tmp_path, interpreted_loops):
    assert model.edge_feature_names_in_.tolist() == ["same", "other", "far"]
    new, between = [[["b"], ["b"], ["b"]]], [[["other"], ["nobody knows"]]]
    assert model.predict(new, edge_features=between)[0].tolist()[:2] == ["x", "y"]
    assert model.predict(new[0:1], edge_features=[[["same"], ["same"]]])[0].tolist()[:2] == ["x", "x"]
    model.save(tmp_path / "a.model")
    loaded = maxmargin.load(tmp_path / "a.model")
    both = [each.predict_marginals(new, edge_features=between)[0] for each in (model, loaded)]
    assert np.array_equal(*both)
    labels, scores = model.predict_topk(new, 3, edge_features=between)[0]
    assert len(labels) == len(scores) == 3
    best = model.decision_function(new, edge_features=between)[0]
    assert np.allclose(best.max(axis=1), scores[0])
    assert model.sample(new, 5, random_state=0, edge_features=between)[0].shape == (5, 3)
    known = model.predict(new, edge_features=between, allowed=[["y", None, "y"]])[0]
    assert known[[0, 2]].tolist() == ["y", "y"]
    pairs = model.predict_transitions(new, edge_features=between)[0]
    assert np.allclose(pairs.sum(axis=2), model.predict_marginals(new, edge_features=between)[0][:-1])
    assert len(model.predict_posterior(new, edge_features=between)[0]) == 3
    assert 0 < model.confidence(new, edge_features=between)[0] <= 1
    assert model.score(WORDS, TAGS, edge_features=BETWEEN) == 1


def test_weights_of_observed_transitions_only(interpreted_loops):
    model = ChainCRF(only_observed=True).fit(WORDS, TAGS, edge_features=BETWEEN)
    table = model.coef_.edges
    assert table.shape == (3, 4)
    assert [*zip(*(k.tolist() for k in table.nonzero()), strict=True)] == [(0, 0), (1, 1), (2, 1)]


def test_contributions_add_up(model, interpreted_loops):
    found = explain(model, WORDS[0], 2, edge_features=BETWEEN[0])
    assert (found.label, found.rival) == ("y", "x")
    assert np.isclose(sum(part.value for part in found.contributions), found.margin)
    assert any(part.of.startswith("other, x -> y") for part in found.contributions)


def test_partial_labels_and_held_out_data(interpreted_loops):
    options = {"edge_features": BETWEEN, "X_dev": WORDS, "y_dev": TAGS, "edge_features_dev": BETWEEN}
    tags = [["x", None, "y"], *TAGS[1:]]
    model = ChainCRF(only_observed=True, max_passes=50).fit(WORDS, tags, **options)
    assert model.score(WORDS, TAGS, edge_features=BETWEEN) > 0.5


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (BETWEEN[:2], "edge_features has 2 entries, but X has 3 sequences"),
        ([*BETWEEN[:2], BETWEEN[0]], r"edge_features\[2\] must have 3 rows, one for each transition of X\[2\], but"),
        ([np.ones((2, 1)), np.ones((1, 1)), np.ones((3, 2))], "In edge_features: X"),
        ([np.ones((2, 1)), np.ones((1, 1)), np.full((3, 1), np.nan)], r"In edge_features: X\[2\] contains NaN"),
        ([[["a"], [3]], *BETWEEN[1:]], "In edge_features: .* at position 1"),
        ([[], [], []], "In edge_features: X must have a row for at least one transition"),
        (3, "In edge_features"),
    ],
)
def test_bad_features_of_transitions(edges, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ChainCRF().fit(WORDS, TAGS, edge_features=edges)


def test_what_training_had_is_asked_for(model, interpreted_loops):
    with pytest.raises(ValueError, match="edge_features are missing, but the model was fitted with 3 features"):
        model.predict(WORDS)
    with pytest.raises(ValueError, match="edge_features are there, but the model was fitted without"):
        ChainCRF(max_passes=1).fit(WORDS, TAGS).predict(WORDS, edge_features=BETWEEN)
    with pytest.raises(TypeError, match="only ChainSVM and ChainCRF have features of transitions"):
        KernelChainSVM().fit(X, Y, edge_features=Z)
