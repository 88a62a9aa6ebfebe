"""Exact probabilities of entities and transitions, thresholds and posterior decoding, against enumeration."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest

from maxmargin import ChainCRF, ChainSVM, Tagger
from maxmargin.metrics import entity_curve, entity_precision
from maxmargin.runtime import interpreted
from maxmargin.text import Entity, ScoredEntity, check_tags, find_entities

X = [["Ann", "lives", "in", "Rome"], ["Bob", "Lee", "ran"], ["Rome", "fell"], ["Ann"]]
Y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["B-PER"]]
ODD = ["Bob", "Ann", "Rome"]


def fit(**options):
    return Tagger(model=ChainCRF(C=0.3), **options).fit(X, Y)


def every_tagging(tagger, sentence):
    """All taggings of a sentence, inside the tagger, with their probabilities."""
    model, rows = tagger.model_, [*tagger._rows([sentence])]
    taggings = [[*tags] for tags in itertools.product(model.classes_.tolist(), repeat=len(sentence))]
    return taggings, np.exp(model.log_likelihood(rows * len(taggings), taggings))


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "IOB1", "IOE1", "IOE2", "inside"])
def test_probabilities_of_entities_equal_enumeration(scheme, interpreted_loops):
    tagger = fit(inside="IOBES") if scheme == "inside" else fit(scheme=scheme)
    taggings, shares = every_tagging(tagger, ODD)
    wanted = {}
    for tags, share in zip(taggings, shares, strict=True):
        for entity in find_entities([tags])[0]:
            wanted[entity] = wanted.get(entity, 0) + share
    found = tagger.entity_probabilities([ODD], [[*wanted]])[0]
    np.testing.assert_allclose(found, [*wanted.values()], atol=1e-12)
    for *entity, p in tagger.predict_entities([ODD])[0]:
        assert p == pytest.approx(wanted[Entity(*entity)])


@pytest.mark.parametrize("options", [{}, {"inside": "IOBES"}, {"inside": "BILOU", "scheme": "IOE1"}])
def test_probabilities_of_taggings_equal_enumeration(options, interpreted_loops):
    """Those of the tags that users see are those of all taggings of the model that are shown as them."""
    tagger = fit(**options)
    taggings, shares = every_tagging(tagger, ODD)
    wanted = {}
    for tags, share in zip(tagger._show(taggings), shares, strict=True):
        wanted[*tags] = wanted.get((*tags,), 0) + share
    shown = [tags for tags, share in wanted.items() if share]
    found = np.exp(tagger.log_likelihood([ODD] * len(shown), shown))
    np.testing.assert_allclose(found, [wanted[tags] for tags in shown], atol=1e-12)
    np.testing.assert_allclose(found.sum(), 1.0)
    if tagger.scheme_ == "IOE1":
        with pytest.raises(
            ValueError, match=r"^y must not be known in part: such tags of IOE1 cannot be converted to "
        ):
            tagger.log_likelihood([ODD], [[None, "O", "O"]])
        with pytest.raises(ValueError, match=r"^y\[0\] goes from 'E-PER' to 'O' at position 2, which IOE1 forbids"):
            tagger.log_likelihood([ODD], [["O", "E-PER", "O"]])
        with pytest.raises(TypeError, match=r"^y\[0\] must be a sequence of tags, not 3"):
            tagger.log_likelihood([ODD], [3])
        with pytest.raises(ValueError, match="a tag depends on more than one neighbour"):
            tagger.predict_transitions([ODD])
        return
    known = ["O", {"B-PER", "B-LOC"}, None]
    agrees = [tags[0] == "O" and tags[1] in known[1] for tags in shown]
    np.testing.assert_allclose(
        tagger.log_likelihood([ODD, [], ODD], [known, [], None]), [np.log(found[agrees].sum()), 0, 0]
    )
    assert tagger.log_likelihood(iter([ODD]), iter([known])) == tagger.log_likelihood([ODD], [known])
    with pytest.raises(TypeError, match=r"^y\[0\] must"):
        tagger.log_likelihood([ODD], ["O"])
    (pairs,) = tagger.predict_transitions([ODD])
    of_pairs = np.zeros((2, len(tagger.classes_), len(tagger.classes_)))
    for tags, share in zip(shown, found, strict=True):
        numbers = np.searchsorted(tagger.classes_, tags)
        of_pairs[[0, 1], numbers[:-1], numbers[1:]] += share
    np.testing.assert_allclose(pairs, of_pairs, atol=1e-12)
    assert tagger.predict_transitions([["Ann"]])[0].shape == (0, *of_pairs.shape[1:])
    if tagger.inside_ is None:
        assert tagger.log_likelihood([ODD], [["O", "I-PER", "O"]])[0] == -np.inf
    else:
        with pytest.raises(ValueError, match=r"^y\[0\] leaves no labelling: no label at position 1"):
            tagger.log_likelihood([ODD], [["O", "I-PER", "O"]])


def test_probabilities_of_taggings_ask_what_else_the_tagger_knows(interpreted_loops):
    """Of two stages, and of SVMs."""
    for tagger in (fit(two_stages=True), Tagger(model=ChainSVM(max_passes=3, random_state=0)).fit(X, Y)):
        best = tagger.predict(X)
        np.testing.assert_allclose(np.exp(tagger.log_likelihood(X, best) / [*map(len, X)]), tagger.confidence(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_transitions_equal_enumeration(dtype):
    with interpreted() if dtype == "float32" else nullcontext():
        check_transitions(np.random.default_rng(0), dtype)


def check_transitions(rng, dtype):
    model = ChainCRF(dtype=dtype, constraints="bio").fit([rng.normal(size=(len(y), 3)) for y in Y], Y)
    rows = 20 * rng.normal(size=(3, 3))
    allowed = [[None, {"O", "B-LOC"}, None]]
    taggings = [[*tags] for tags in itertools.product(model.classes_.tolist(), repeat=3) if tags[1] in allowed[0][1]]
    shares = np.exp(model.log_likelihood([rows] * len(taggings), taggings))
    index = {tag: k for k, tag in enumerate(model.classes_.tolist())}
    wanted = np.zeros((2, 4, 4))
    for tags, share in zip(taggings, shares / shares.sum(), strict=True):
        for t in range(2):
            wanted[t, index[tags[t]], index[tags[t + 1]]] += share
    found = model.predict_transitions([rows, rows[:1]], allowed=[*allowed, [None]])
    np.testing.assert_allclose(found[0], wanted, atol=1e-5 if dtype == "float32" else 1e-12)
    assert found[1].shape == (0, 4, 4)


def test_posterior_decoding_has_the_most_tags_that_are_right_of_those_that_keep_to_the_scheme(interpreted_loops):
    tagger = fit()
    for sentence in (ODD, ["Rome", "Bob", "Lee"], ["Lee"]):
        taggings, shares = every_tagging(tagger, sentence)
        every = [*zip(taggings, shares, strict=True)]
        expected = [sum(p * sum(map(str.__eq__, y, z)) for z, p in every) for y in taggings]
        best = max(value for value, (_, p) in zip(expected, every, strict=True) if p > 0)
        found = tagger.predict_posterior([sentence])[0]
        check_tags([found], "IOB2")
        assert expected[taggings.index(found)] == pytest.approx(best)
    assert tagger.predict_posterior([["Rome"]], allowed=[[{"O", "B-PER"}]])[0][0] in ("O", "B-PER")
    assert tagger.predict_posterior([[]]) == [[]]


def test_how_sure_a_tagger_is(interpreted_loops):
    tagger = fit()
    _, shares = every_tagging(tagger, ODD)
    np.testing.assert_allclose(tagger.confidence([ODD, []]), [max(shares) ** (1 / 3), 1])


def test_a_threshold_leaves_improbable_entities_out(interpreted_loops):
    tagger = fit()
    (entities,) = tagger.predict_entities([ODD])
    assert entities
    least = max(entity.probability for entity in entities)
    kept = tagger.set_params(threshold=least).predict_entities([ODD, []])
    assert kept == [[entity for entity in entities if entity.probability >= least], []]
    assert find_entities(tagger.predict([ODD]))[0] == [Entity(*entity[:3]) for entity in kept[0]]
    assert tagger.set_params(threshold=1).predict([ODD]) == [["O"] * 3]
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1, not 2"):
        tagger.set_params(threshold=2).predict([ODD])


def test_thresholds_by_the_precision_wanted(interpreted_loops):
    tagger = fit()
    other = [["B-LOC", "O", "O", "B-LOC"], ["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["O"]]
    least = tagger.find_threshold(X, other, precision=0.75)
    tagger.set_params(threshold=least)
    assert entity_precision(other, tagger.predict(X)) >= 0.75
    curve = entity_curve([["B-A", "O", "B-B"]], [[ScoredEntity(0, 1, "A", 0.5), ScoredEntity(1, 2, "A", 0.5)]])
    assert (curve.thresholds.tolist(), curve.precision.tolist(), curve.recall.tolist()) == ([0.5], [0.5], [0.5])
    with pytest.raises(ValueError, match=r"0.9 is not: 0.5 is the most"):
        curve.threshold_for(0.9)
    with pytest.raises(ValueError, match="no entity was predicted"):
        entity_curve([["O"]], [[]]).threshold_for(0.5)


def test_what_has_no_probabilities_of_entities(interpreted_loops):
    tagger = Tagger(scheme=None, model=ChainSVM(max_passes=3, random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="spell no entities"):
        tagger.predict_entities(X)
    with pytest.raises(ValueError, match=r"entities\[0\] has 'PER' from 2 to 4, but X\[0\] has 3 tokens"):
        fit().entity_probabilities([ODD], [[(2, 4, "PER")]])
    with pytest.raises(ValueError, match="must hold 1 lists, one per sentence, but holds 0"):
        fit().entity_probabilities([ODD], [])
