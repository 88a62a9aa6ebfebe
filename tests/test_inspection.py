"""Explanations, against enumeration of all labellings."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainCRF, ChainSVM, MulticlassSVM, Tagger
from maxmargin.crfsuite import CRF
from maxmargin.inspection import explain, explain_all, strongest_features, strongest_transitions

X = [[["a", "b"], ["b"], ["c"]], [["c"], ["a"]], [["b"], ["a", "c"], ["a"], ["b"]]]
Y = [["B", "I", "O"], ["O", "B"], ["B", "I", "I", "O"]]
MODELS = {
    "crf": ChainCRF().fit(X, Y),
    "observed": ChainCRF(only_observed=True).fit(X, Y),
    "svm": ChainSVM(random_state=0, fit_intercept=False, dtype="float64").fit(X, Y),
    "rules": ChainCRF(constraints="bio").fit(X, Y),
    "hashed": ChainCRF(n_hashed=8).fit(X, Y),
}
items = st.lists(st.lists(st.sampled_from("abcd"), max_size=3, unique=True), min_size=1, max_size=4)


def scores_of(model, x):
    """The score of every labelling that is allowed, by the definition."""
    ends, penalty = model._encoder.end_penalty, model._encoder.penalty
    coef, classes = model.coef_, model.classes_.tolist()
    emissions = coef.emissions.toarray() if hasattr(coef.emissions, "toarray") else coef.emissions
    counts = model._encoder.vocabulary.rows([x]).matrix.toarray()
    found = {}
    for labels in product(range(len(classes)), repeat=len(x)):
        score = sum(counts[t] @ emissions[:, label] for t, label in enumerate(labels))
        if "bias" in coef:
            score += sum(coef.bias[label] for label in labels) + coef.first[labels[0]] + coef.last[labels[-1]]
        score += sum(coef.transitions[pair] + penalty[pair] for pair in pairwise(labels))
        score += ends[0][labels[0]] + ends[1][labels[-1]]
        if score > -1e20:
            found[tuple(classes[label] for label in labels)] = score
    return found


@pytest.mark.parametrize("name", MODELS)
@given(x=items, data=st.data())
def test_explanations_equal_enumeration(name, x, data):
    model, t = MODELS[name], data.draw(st.integers(0, len(x) - 1))
    scores = scores_of(model, x)
    best = tuple(model.predict([x])[0].tolist())
    others = {labels: score for labels, score in scores.items() if labels[t] != best[t]}
    if not others:
        assert explain(model, x, t)[2:4] == (None, np.inf)
        return
    found = explain(model, x, t)
    assert found.label == best[t]
    assert found.rival != found.label
    assert tuple(found.labelling) == best
    assert found.margin == pytest.approx(scores[best] - max(others.values()), abs=1e-6)
    assert found.margin == pytest.approx(scores[best] - scores[tuple(found.rival_labelling)], abs=1e-6)
    assert sum(c.value for c in found.contributions) == pytest.approx(found.margin, abs=1e-6)
    assert found.rival_labelling[t] == found.rival


@pytest.mark.parametrize("name", ["observed", "rules"])
def test_many_positions_are_explained_at_once(name):
    model, sequences = MODELS[name], [*X, [], *X] * 6
    places = [(i, t, None) for i, x in enumerate(sequences) for t in range(len(x))][::-1]
    places += [(0, 1, "O"), (0, 1, "B")] if model.predict([X[0]])[0][1] == "I" else []
    found = explain_all(model, sequences, places)
    alone = {}  # of each of the three sequences
    for (i, t, rival), one in zip(places, found, strict=True):
        x = sequences[i]
        key = str(x), t, rival
        wanted = alone[key] = alone.get(key) or explain(model, x, t, rival)
        assert one[:3] == wanted[:3]
        assert one.margin == pytest.approx(wanted.margin)
        assert one.labelling == wanted.labelling
        assert sum(c.value for c in one.contributions) == pytest.approx(wanted.margin if one.rival else 0.0)
    assert explain_all(model, [], []) == []
    with pytest.raises(ValueError, match="the sequence is empty"):
        explain_all(model, sequences, [(3, 0, None)])


def test_weights():
    model = MODELS["observed"]
    found = strongest_features(model, "B", 3)
    assert [abs(w.weight) for w in found] == sorted((abs(w.weight) for w in found), reverse=True)
    names = model.feature_names_in_.tolist()
    column = model.classes_.tolist().index("B")
    for weight in found:
        if not weight.of.startswith("("):
            assert weight.weight == model.coef_.emissions[names.index(weight.of), column]
    assert strongest_features(MODELS["hashed"], "B", 1)[0].of.startswith(("feature ", "("))
    transitions = strongest_transitions(model)
    assert len(transitions) == np.count_nonzero(model.coef_.transitions)
    assert len(strongest_transitions(model, 2)) == 2
    assert ("O", "I") not in [pair[:2] for pair in strongest_transitions(MODELS["rules"])]


def test_there_may_be_no_other_label():
    single = ChainCRF().fit([[["a"]], [["b"], ["a"]]], [["O"], ["O", "O"]])
    found = explain(single, [["a"], ["c"]], 1)
    assert (found.label, found.rival, found.margin) == ("O", None, np.inf)
    assert str(found) == "O: nothing else is allowed"
    assert explain(MODELS["rules"], X[0], 0, rival="I").rival is None


def test_bad_arguments():
    model = MODELS["crf"]
    for position in (-1, 3, "a"):
        with pytest.raises(ValueError, match="position must be one from 0 to 2"):
            explain(model, X[0], position)
    with pytest.raises(ValueError, match="'Z' is not a label of the model"):
        explain(model, X[0], 0, rival="Z")
    with pytest.raises(ValueError, match="rival must be another label than 'B'"):
        explain(model, X[0], 0, rival="B")
    with pytest.raises(TypeError, match="must be a ChainSVM or a ChainCRF"):
        strongest_features(MulticlassSVM().fit(np.eye(3), [0, 1, 2]), 0)
    with pytest.raises(ValueError, match="k must be an integer"):
        strongest_features(model, "B", 0)
    assert str(explain(model, X[0], 0, rival="O")).startswith("B and not O: by ")


def test_models_within_others_are_inspected():
    words = [["He", "ran"], ["She", "sat"]]
    tagger = Tagger().fit(words, [["P", "V"]] * 2)
    assert strongest_features(tagger, "V", 3) == strongest_features(tagger.model_, "V", 3)
    assert strongest_transitions(tagger, 1) == strongest_transitions(tagger.model_, 1)
    crf = CRF().fit(X, Y)
    assert explain(crf, X[0], 1) == explain(crf.model_, X[0], 1)
