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
