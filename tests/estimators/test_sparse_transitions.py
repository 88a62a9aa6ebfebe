"""Models of sequences with few transitions: results are those of models that look at all of them."""

import itertools

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, ChainSVM
from maxmargin.encode import chain_encoder
from maxmargin.structures.chains.sparse_chain_problem import SparseChainProblem
from maxmargin.structures.chains.sparse_transitions import FEWEST_LABELS

RNG = np.random.default_rng(0)
Y = [list("abca"), list("bcab"), list("ab"), list("ccab"), list("c")]
X = [[[f"{label}{RNG.integers(2)}", "seen"] for label in labels] for labels in Y]
NEW = [[["a0"], ["b1"], ["new"], ["c0"]], [["b0"]]]
OBSERVED = {pair for labels in Y for pair in itertools.pairwise(labels)}


def fit_both(monkeypatch, make, y=Y, **data):
    """The model as it goes along the transitions that are allowed, and along all."""
    found = []
    for are_few in (True, False):
        monkeypatch.setattr(chain_encoder, "are_few", lambda allowed, answer=are_few: answer)
        model = make().fit(X, y, **data)
        assert isinstance(model._encoder.problem(X), SparseChainProblem) == are_few
        found.append(model)
    return found


@pytest.mark.parametrize("only_observed", [False, True])
def test_random_fields(only_observed, monkeypatch, tmp_path, interpreted_loops):
    few, every = fit_both(
        monkeypatch, lambda: ChainCRF(allowed_transitions="observed", only_observed=only_observed, tol=1e-6, C=10.0)
    )
    assert np.isclose(few.certificate_.primal, every.certificate_.primal, rtol=1e-5)
    assert np.allclose(few.coef_.transitions, every.coef_.transitions, atol=1e-2)
    assert {pair for labels in few.predict(NEW) for pair in itertools.pairwise(labels.tolist())} <= OBSERVED
    every._w[:] = few._w  # what follows depends on weights alone
    for name in ("predict", "predict_marginals", "decision_function", "predict_transitions", "predict_posterior"):
        for one, other in zip(*(getattr(model, name)(NEW) for model in (few, every)), strict=True):
            assert np.array_equal(one, other) if one.dtype.kind == "U" else np.allclose(one, other, atol=1e-8)
    (labels, scores), (same, values) = (model.predict_topk(NEW, 4)[0] for model in (few, every))
    assert np.array_equal(labels, same)
    assert np.allclose(scores, values)
    assert np.array_equal(*(model.sample(NEW, 3, random_state=0)[0] for model in (few, every)))
    assert np.allclose(few.log_likelihood(X, Y), every.log_likelihood(X, Y))
    assert few.predict(NEW, allowed=[[None, {"c"}, None, None], [None]])[0][1] == "c"
    few.save(tmp_path / "a.model")
    monkeypatch.setattr(chain_encoder, "are_few", lambda allowed: True)
    assert np.array_equal(maxmargin.load(tmp_path / "a.model").predict(NEW)[0], few.predict(NEW)[0])


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_support_vector_machines(rescaling, monkeypatch, interpreted_loops):
    make = lambda: ChainSVM(allowed_transitions=OBSERVED, rescaling=rescaling, random_state=0, max_passes=20)  # noqa: E731
    few, every = fit_both(monkeypatch, make)
    assert np.isclose(few.certificate_.primal, every.certificate_.primal)
    assert np.allclose(few.coef_.emissions, every.coef_.emissions)


def test_costs_of_transitions_and_labels_known_in_part(monkeypatch, interpreted_loops):
    y = [["a", None, "c", "a"], [{"a": 0.5, "b": 0.5}, *Y[1][1:]], *Y[2:]]
    allowed = {*OBSERVED, ("a", "c"), ("b", "b")}
    few, every = fit_both(monkeypatch, lambda: ChainCRF(allowed_transitions=allowed, max_passes=30, tol=1e-6), y)
    assert np.isclose(few.certificate_.primal, every.certificate_.primal, rtol=1e-4)
    cost = np.array([[0.0, 2, 1], [1, 0, 1], [3, 1, 0]])
    make = lambda: ChainSVM(allowed_transitions=allowed, random_state=0, max_passes=20)  # noqa: E731
    few, every = fit_both(monkeypatch, make, transition_cost=cost)
    assert np.isclose(few.certificate_.primal, every.certificate_.primal)


def test_going_on_allows_what_was_observed_before(monkeypatch, interpreted_loops):
    monkeypatch.setattr(chain_encoder, "are_few", lambda allowed: True)
    model = ChainCRF(allowed_transitions="observed").fit(X[:2], Y[:2])
    model.partial_fit([[["a0"], ["c0"], ["a1"]]], [list("aca")])
    assert (model._encoder.penalty == 0).tolist() == [[False, True, True], [False, False, True], [True, False, False]]


def test_many_labels_choose_it_themselves(interpreted_loops):
    n = FEWEST_LABELS
    model = ChainCRF(allowed_transitions="observed", max_passes=1, only_observed=True)
    items = [[str(k)] for k in range(n)]
    assert isinstance(model._encode([items], [np.arange(n)]).problem, SparseChainProblem)
    assert not isinstance(model.set_params(order=2)._encode([items], [np.arange(n)]).problem.base, SparseChainProblem)


@pytest.mark.long
def test_single_sentences_are_labelled_as_several(monkeypatch):
    few, _ = fit_both(monkeypatch, lambda: ChainCRF(allowed_transitions="observed", only_observed=True))
    assert few.predict(NEW[:1])[0].tolist() == few.predict(NEW)[0].tolist()


def test_bad_input():
    with pytest.raises(ValueError, match=r"allowed_transitions must be one of observed, not 'seen'\."):
        ChainCRF(allowed_transitions="seen").fit(X, Y)
