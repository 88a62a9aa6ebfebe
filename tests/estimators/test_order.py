"""`order=2` of models of sequences: optima by brute force, first order within, predictions, files, and bad input."""

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, ChainSVM, Tagger
from maxmargin.crfsuite import CRF
from maxmargin.inspection import explain
from maxmargin.runtime import interpreted
from tests import naive

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(t, 2)) for t in (1, 4, 2, 4)]
Y = [RNG.integers(0, 2, len(x)) for x in X]
OBSERVED = sorted({tuple(y[t : t + 3].tolist()) for y in Y for t in range(len(y) - 2)})

# Which label comes next is told by the last two, and by nothing else.
WORDS = [["w"] * 6, ["w"] * 7, ["w"] * 8]
ITEMS = [[[word] for word in words] for words in WORDS]
TAGS = [list("aabbaa"), list("abbaabb"), list("bbaabbaa")]

# What is between two items, by names, and by numbers.
BETWEEN = [[["far" if t % 2 else "near"] for t in range(len(x) - 1)] for x in ITEMS]
Z = [RNG.normal(size=(len(x) - 1, 2)) for x in X]


def features_of(x, z, y):
    """As those of chains, with features of transitions, and the counts of trigrams after these."""
    found = [tuple(y[t : t + 3]) for t in range(len(y) - 2)]
    edges = naive.edge_chain_features(x, z, y, 2)
    return np.append(edges, [found.count(trigram) for trigram in OBSERVED])


def blocks(edges):
    found = []
    for x, z, y in zip(X, edges, Y, strict=True):
        outputs = [*naive.labellings(len(y), 2)]
        psi = np.array([features_of(x, z, tuple(y.tolist())) - features_of(x, z, other) for other in outputs])
        found.append((psi, np.array([naive.chain_cost(y, other) for other in outputs])))
    return found


@pytest.mark.parametrize("has_edges", [False, True])
def test_objectives_reach_the_optimum_of_brute_force(has_edges, interpreted_loops):
    options = {"order": 2, "fit_intercept": False, "tol": 1e-5, "max_passes": 1000, "C": 1.0}
    data = {"edge_features": Z} if has_edges else {}
    every = blocks(Z if has_edges else [z[:, :0] for z in Z])
    assert 1 < len(OBSERVED) < 8
    crf = ChainCRF(**options).fit(X, Y, **data)
    best = naive.log_primal(naive.solve_log(every, 1.0), every, 1.0)
    assert crf.certificate_.dual <= best + 1e-9
    assert np.isclose(crf.certificate_.primal, best, rtol=1e-4)
    svm = ChainSVM(random_state=0, **options).fit(X, Y, **data)
    assert np.isclose(svm.certificate_.primal, naive.primal(naive.solve(every, 1.0)[0], every, 1.0), rtol=1e-4)
    trigrams = crf.coef_.trigrams
    assert [*zip(*(k.tolist() for k in trigrams.nonzero()), strict=True)] == [(2 * a + b, c) for a, b, c in OBSERVED]
    names = ["emissions", "transitions", *["edges"] * has_edges]
    w = np.concatenate([np.ravel(crf.coef_[name]) for name in names] + [trigrams.data])
    assert np.isclose(naive.log_primal(w, every, 1.0), crf.certificate_.primal)
    psi, _ = every[3]
    chances = np.exp(-psi @ w - np.logaddexp.reduce(-psi @ w))
    outputs = np.array([*naive.labellings(4, 2)])
    assert np.allclose(crf.predict_marginals(X, **data)[3][:, 1], chances @ outputs, atol=1e-6)
    assert crf.predict(X, **data)[3].tolist() == outputs[np.argmax(chances)].tolist()
    assert np.isclose(crf.log_likelihood(X, Y, **data)[3], np.log(chances[(psi == 0).all(axis=1)][0]))


def test_where_no_three_labels_occur_it_is_of_first_order(interpreted_loops):
    short = [x[:2] for x in X], [y[:2] for y in Y]
    first, second = (ChainCRF(order=order, tol=1e-6).fit(*short) for order in (1, 2))
    assert np.allclose(first.coef_.transitions, second.coef_.transitions)
    assert all(map(np.allclose, first.predict_marginals(X), second.predict_marginals(X)))


@pytest.fixture(scope="module", params=[True, False], ids=["observed", "all"])
def model(request):
    with interpreted():
        return ChainCRF(order=2, only_observed=request.param, C=100.0).fit(ITEMS, TAGS)


def test_predictions_and_files(model, tmp_path, interpreted_loops):
    assert model.score(ITEMS, TAGS) > 0.8  # one label of the first two must be guessed
    new = [[["w"]] * 6]
    known = model.predict(new, allowed=[["b", "a", *[None] * 4]])[0]
    assert known.tolist() == list("baabba")
    model.save(tmp_path / "a.model")
    loaded = maxmargin.load(tmp_path / "a.model")
    assert np.array_equal(*(each.predict_marginals(new)[0] for each in (model, loaded)))
    labels, scores = model.predict_topk(new, 3)[0]
    assert len(labels) == len(scores) == 3
    assert np.allclose(model.decision_function(new)[0].max(axis=1), scores[0])
    assert model.sample(new, 5, random_state=0)[0].shape == (5, 6)
    pairs = model.predict_transitions(new)[0]
    assert np.allclose(pairs.sum(axis=2), model.predict_marginals(new)[0][:-1])
    assert len(model.predict_posterior(new)[0]) == 6
    assert 0 < model.confidence(new)[0] <= 1


@pytest.mark.parametrize("only_observed", [True, False])
def test_features_of_transitions(only_observed, tmp_path, interpreted_loops):
    model = ChainCRF(order=2, only_observed=only_observed, C=100.0).fit(ITEMS, TAGS, edge_features=BETWEEN)
    data = {"edge_features": BETWEEN}
    assert model.score(ITEMS, TAGS, **data) > 0.8
    assert model.coef_.edges.shape == ((2, 4) if only_observed else (2, 2, 2))
    assert model.coef_.trigrams.nnz == 4
    model.save(tmp_path / "a.model")
    loaded = maxmargin.load(tmp_path / "a.model")
    assert all(map(np.array_equal, *(each.predict_marginals(ITEMS, **data) for each in (model, loaded))))
    pairs = model.predict_transitions(ITEMS, **data)[0]
    assert np.allclose(pairs.sum(axis=2), model.predict_marginals(ITEMS, **data)[0][:-1])
    assert model.sample(ITEMS, 5, random_state=0, **data)[0].shape == (5, 6)
    known = model.predict(ITEMS[:1], allowed=[["b", "a", *[None] * 4]], edge_features=BETWEEN[:1])[0]
    assert known[:2].tolist() == ["b", "a"]
    found = explain(model, ITEMS[0], 3, edge_features=BETWEEN[0])
    best = model.decision_function(ITEMS, **data)[0][3]
    assert np.isclose(sum(part.value for part in found.contributions), found.margin)
    assert np.isclose(found.margin, best.max() - best.min(), atol=1e-4)
    assert any(part.of.startswith(("far, ", "near, ")) for part in found.contributions)
    assert any(part.of.count(" -> ") == 4 for part in found.contributions)
    with pytest.raises(ValueError, match="edge_features are missing, but the model was fitted with 2 features"):
        model.predict(ITEMS)


def test_going_on_with_features_of_transitions(interpreted_loops):
    model = ChainCRF(order=2, only_observed=True, C=10.0).fit(ITEMS[:1], TAGS[:1], edge_features=BETWEEN[:1])
    before = model.coef_.trigrams.nnz
    model.partial_fit([[["new"], ["w"], ["new"]]], [["c", "a", "c"]], edge_features=[[["near"], ["far"]]])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.coef_.trigrams.nnz == before + 1
    assert model.coef_.edges.shape == (2, 9)
    with pytest.raises(ValueError, match="edge_features must have the names that they had before"):
        model.partial_fit(ITEMS[:1], TAGS[:1], edge_features=[[["other"]] * 5])


def test_first_order_cannot_learn_that(interpreted_loops):
    assert ChainCRF(C=100.0).fit(ITEMS, TAGS).score(ITEMS, TAGS) < 0.8


def test_contributions_add_up(model, interpreted_loops):
    labelling = model.predict(ITEMS)[0].tolist()
    for rival in (None, "a" if labelling[3] == "b" else "b"):
        found = explain(model, ITEMS[0], 3, rival)
        assert np.isclose(sum(part.value for part in found.contributions), found.margin)
        best = model.decision_function(ITEMS)[0][3]
        assert np.isclose(found.margin, best.max() - best.min(), atol=1e-4)
        assert any(part.of.count(" -> ") == 4 for part in found.contributions)


def test_labels_that_are_known_in_part(interpreted_loops):
    options = {"order": 2, "max_passes": 50}
    tags = [["a", None, "b", "b", "a", {"a", "b"}], *TAGS[1:]]
    for data in ({}, {"edge_features": BETWEEN}):
        assert ChainCRF(**options).fit(ITEMS, tags, **data).coef_.trigrams.nnz == 4
    soft = [[{"a": 0.9, "b": 0.1}, *TAGS[0][1:]], *TAGS[1:]]
    sure = [[{"a": 1.0}, *TAGS[0][1:]], *TAGS[1:]]
    as_known = ChainCRF(tol=1e-5, **options).fit(ITEMS, TAGS)
    assert np.isclose(
        ChainCRF(tol=1e-5, **options).fit(ITEMS, sure).log_likelihood(ITEMS, TAGS).sum(),
        as_known.log_likelihood(ITEMS, TAGS).sum(),
        rtol=1e-3,
    )
    assert ChainCRF(**options).fit(ITEMS, soft).predict(ITEMS)[0].shape == (6,)
    with pytest.raises(ValueError, match=r"y\[0\] has probabilities of the labels at place 0, but .* at place 2"):
        ChainCRF(**options).fit(ITEMS, [[{"a": 0.9, "b": 0.1}, "a", None, "b", "a", "a"], *TAGS[1:]])


def test_going_on_with_new_labels(interpreted_loops):
    model = ChainCRF(order=2, only_observed=True, C=10.0).fit(ITEMS[:1], TAGS[:1])
    before = model.coef_.trigrams.nnz
    model.partial_fit([[["new"], ["w"], ["new"]]], [["c", "a", "c"]])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.coef_.trigrams.nnz == before + 1
    assert model.coef_.trigrams.shape == (9, 3)


def test_taggers_and_the_drop_in(interpreted_loops):
    tagger = Tagger(model=ChainCRF(order=2, only_observed=True, C=10.0)).fit(WORDS, TAGS)
    assert tagger.model_.coef_.trigrams.nnz == 4
    for data in ({}, {"edge_features": BETWEEN}):
        crf = CRF(order=2, c2=0.01).fit(ITEMS, TAGS, **data)
        assert crf.model_.coef_.trigrams.nnz == 4
        one = {name: given[1] for name, given in data.items()}
        assert crf.predict_single(ITEMS[1], **one)[2:] == TAGS[1][2:]


@pytest.mark.parametrize(
    ("arguments", "data", "error", "message"),
    [
        ({"order": 3}, {}, ValueError, "order must be"),
        (
            {"order": 2},
            {"edge_features": BETWEEN[:2]},
            ValueError,
            "edge_features has 2 entries, but X has 3",
        ),
        ({"order": 2, "rescaling": "slack"}, {}, TypeError, "Slack rescaling needs .* order 1"),
    ],
)
def test_bad_input(arguments, data, error, message):
    with pytest.raises(error, match=message):
        ChainSVM(**arguments).fit(ITEMS, TAGS, **data)
