"""Taggers with another scheme inside, and in two stages: users see their own tags, and documents are told."""

from itertools import product

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.tagger import entity_scores
from maxmargin.text import Corpus, WindowFeatures, check_tags, convert_tags
from maxmargin.text.document_tags import FOLDS, cross_tag, folds_of, with_votes
from maxmargin.text.inner_tags import keep_possible, known_inside, merge_columns, outer_classes, outer_tag
from maxmargin.text.schemes import SCHEMES, TagError, breaks, read_tags

X = [["Ann", "Lee", "ran"], ["Rome", "fell"], ["in", "New", "York", "City"], ["Bob", "ran"], ["Ann", "Lee"]]
Y = [["B-P", "I-P", "O"], ["B-L", "O"], ["O", "B-L", "I-L", "I-L"], ["B-P", "O"], ["B-P", "I-P"]]


def make(**options):
    return Tagger(model=ChainCRF(only_observed=True, tol=0.05), **options)


@pytest.mark.parametrize("inside", ["iobes", "BILOU"])
@pytest.mark.parametrize("scheme", ["auto", "IOE2", "IOB1"])
def test_another_scheme_inside(inside, scheme, interpreted_loops, tmp_path):
    tagger = make(inside=inside, scheme=scheme).fit(X, Y, X_dev=X, y_dev=Y)
    own = "IOB2" if scheme == "auto" else scheme
    assert tagger.scheme_ == own
    assert tagger.inside_ == inside.upper()
    assert {tag[0] for tag in tagger.model_.classes_} == {*SCHEMES[inside.upper()].prefixes}
    found = tagger.predict(X)
    check_tags(found, own)
    assert found == convert_tags(Y, own)
    assert {tag for tags in found for tag in tags} <= {*tagger.classes_}
    assert tagger.score(X, Y) == 1.0
    assert tagger.predict_topk(X[:1], 2)[0][0][0] == found[0]
    tagger.save(tmp_path / "any.model")
    assert maxmargin.load(tmp_path / "any.model").predict(X) == found
    for table, tags in zip(tagger.predict_marginals(X), found, strict=True):
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
        assert tagger.classes_[table.argmax(axis=1)].tolist() == tags


@pytest.mark.parametrize("scheme", ["IOB1", "IOE1", "IOB2"])
@pytest.mark.parametrize("inside", ["IOBES", "BILOU"])
def test_probabilities_of_tags_are_sums_over_all_taggings(inside, scheme, interpreted_loops):
    y = [*Y[:-1], ["B-P", "B-P"]]  # of which the second is told from the first by its tag, in all schemes
    tagger = make(inside=inside, scheme=scheme).fit(X, y)
    for tokens in (["Ann", "Lee", "fell"], ["Rome"]):
        table = np.zeros((len(tokens), len(tagger.classes_)))
        (taggings, scores), *_ = tagger.predict_topk([tokens], 10_000)
        for tags, share in zip(taggings, np.exp(scores - np.logaddexp.reduce(scores)), strict=True):
            table[np.arange(len(tags)), np.searchsorted(tagger.classes_, tags)] += share
        np.testing.assert_allclose(tagger.predict_marginals([tokens])[0], table, atol=1e-5)
        assert table.shape[0] == 1 or scheme == "IOB2" or table[:, tagger.classes_ == f"{scheme[2]}-P"].max() > 0.05


def test_tags_of_inner_ones():
    assert [outer_tag(tag, "IOB2") for tag in ("O", "B-P", "I-P", "E-P", "S-P", "L", "U")] == [
        *("O", "B-P", "I-P", "I-P", "B-P", "I", "B")
    ]
    assert [outer_tag(tag, "IOE2") for tag in ("B-P", "I-P", "E-P", "S-P")] == ["I-P", "I-P", "E-P", "E-P"]
    assert outer_classes(["O", "S-P"], "IOB1").tolist() == ["B-P", "I-P", "O"]
    merged = merge_columns(np.array([[0.1, 0.2, 0.3, 0.4]]), ["B-P", "I-P", "O", "S-P"], "IOB2")
    np.testing.assert_allclose(merged, [[0.5, 0.2, 0.3]])  # of B-P, I-P and O


def valid_taggings(sets, scheme):
    """All sequences of tags of these sets that keep to the rules of a scheme."""
    every = [*product(*map(sorted, sets))]
    return {*every} - {every[i] for i in breaks(read_tags(every), scheme)[0]}


def agrees(tags, known):
    return all(one is None or one == tag or tag in one for tag, one in zip(tags, known, strict=True))


@pytest.mark.parametrize("inside", ["IOBES", "BILOU"])
@pytest.mark.parametrize("scheme", ["IOB2", "IOE2", "IOBES"])
def test_what_is_known_of_tags_is_known_of_those_inside(scheme, inside):
    """The taggings that agree are the same, in both schemes, and no tag is left that none of them has."""
    (row,) = convert_tags([["B-P", "I-P", "I-P", "B-P", "O", "B-L", "I-L"]], scheme)
    tags = sorted({*row})
    every = valid_taggings([tags] * 3, scheme)
    for rng in map(np.random.default_rng, range(12)):
        known = [{*rng.choice(tags, rng.integers(1, 5)).tolist()} for _ in range(3)]
        expected = {tuple(convert_tags([row], inside)[0]) for row in every if agrees(row, known)}
        sets = known_inside([known], scheme, inside, None, "y")
        if not expected:
            with pytest.raises(TagError, match=r"^y\[0\] has .* at position \d, which nothing beside it allows"):
                keep_possible(sets, inside, "y")
            continue
        (left,) = keep_possible(sets, inside, "y")
        left = [{tag} if isinstance(tag, str) else tag for tag in left]
        assert valid_taggings(left, inside) == expected
        assert left == [{*column} for column in zip(*expected, strict=True)]


def test_tags_known_in_part_with_others_inside(interpreted_loops):
    known = [["B-P", None, "O"], Y[1], ["O", {"B-L", "B-P"}, "I-L", None], [None, "O"], Y[4]]
    tagger = make(inside="IOBES").fit(X, known)
    assert (tagger.scheme_, tagger.inside_, tagger.status_.name) == ("IOB2", "IOBES", "STATIONARY")
    assert {*tagger.classes_} == {"B-L", "B-P", "I-L", "I-P", "O"}
    asked = ["O", {"B-L", "B-P"}, None]
    taggings, scores = tagger.predict_topk([["in", "New", "York"]], 10_000)[0]
    left = [k for k, tags in enumerate(taggings) if agrees(tags, asked)]
    found, of_found = tagger.predict_topk([["in", "New", "York"]], 10_000, allowed=[asked])[0]
    assert found == [taggings[k] for k in left]
    np.testing.assert_allclose(of_found, scores[left], rtol=1e-5)
    assert tagger.predict([["in", "New", "York"]], allowed=[asked]) == found[:1]
    shares = np.exp(of_found - np.logaddexp.reduce(of_found))
    each = [tagger.classes_ == np.array(tags)[:, np.newaxis] for tags in found]
    table = np.tensordot(shares, each, 1)
    np.testing.assert_allclose(tagger.predict_marginals([["in", "New", "York"]], allowed=[asked])[0], table, atol=1e-5)
    assert tagger.predict(X[:2], allowed=[None, ["B-L", None]])[1][0] == "B-L"
    for wrong, message in (
        ([["X", None]], r"^allowed\[0\] names 'X', which is not one of the labels that were seen in fit, at"),
        (
            [[{"O": 1.0}, None]],
            r"^allowed\[0\] has probabilities at position 0, which tags of IOBES inside cannot have",
        ),
        ([["I-P", None]], r"^allowed\[0\] leaves no labelling: no label at position 0 keeps to what it says there"),
        ("O", "allowed must"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            tagger.predict(X[1:2], allowed=wrong)
    with pytest.raises(ValueError, match=r"^y\[0\] has probabilities at position 1, which tags of IOBES inside cannot"):
        make(inside="IOBES").fit(X, [["B-P", {"O": 0.5, "I-P": 0.5}, "O"], *known[1:]])


def test_ends_are_inside_where_entities_are_many(monkeypatch, interpreted_loops):
    known = [["B-P", None, "O"], *Y[1:]]
    several = make(scheme="IOBES"), make(inside=None), Tagger(model=ChainCRF(class_weight={"O": 2.0}))
    for tagger, y, limit, inside in (
        (make(), Y, 5, "IOBES"),
        (make(), Y, 6, None),  # which they are not
        (make(), convert_tags(Y, "IOB1"), 5, "IOBES"),
        (make(), known, 1, None),
        (make(), [["NOUN"] * len(x) for x in X], 0, None),
        *((tagger, Y, 1, None) for tagger in several),
    ):
        monkeypatch.setattr(entity_scores, "ENOUGH_ENTITIES", limit)
        chosen, tags = tagger.prepare(y)
        assert (chosen.inside, len(tags)) == (inside, len(y))
    monkeypatch.setattr(entity_scores, "ENOUGH_ENTITIES", 1)
    tagger = Tagger(model=ChainCRF(cost="hamming", tol=0.05)).fit(X, Y, transition_cost=np.zeros((5, 5)))
    assert tagger.inside_ is None
    tagger = make().fit(X, Y)
    assert tagger.inside_ == "IOBES"
    assert tagger.inside == "auto"
    assert tagger.predict(X) == Y


def test_what_cannot_be_inside(interpreted_loops):
    with pytest.raises(ValueError, match=r"inside must be auto, IOBES, BILOU or None, not 'IOB2'."):
        make(inside="IOB2").fit(X, Y)
    message = "inside must be None: tags of IOB1 that are known in part cannot be converted to IOBES"
    with pytest.raises(ValueError, match=message):
        make(inside="IOBES").fit(X, [[None, *tags[1:]] for tags in convert_tags(Y, "IOB1")])
    assert make(inside="IOBES").fit([["a"]], [["NOUN"]]).inside_ is None  # tags of no scheme have none inside
    with pytest.raises(ValueError, match=r"two_stages must be True or False, not 2."):
        make(two_stages=2).fit(X, Y)


def test_votes_of_documents():
    sentences = Corpus([[("Lee", "N"), ("ran", "V")], [("Lee", "N")], [("Lee", "N")], [("Lee", "N")]], [0, 0, 0, 1])
    tags = [["B-PER", "O"], ["I-PER"], ["B-LOC"], ["O"]]
    found = with_votes(sentences, tags)
    assert found.documents == sentences.documents
    assert found[0] == [("Lee", "N", "PER"), ("ran", "V", "O")]
    assert [sentence[0][-1] for sentence in found] == ["PER", "PER", "PER", "O"]
    assert with_votes([["run"], ["run"]], [["VERB"], ["NOUN"]]) == [[("run", "VERB")], [("run", "NOUN")]]


def test_nobody_is_tagged_by_who_has_seen_the_document():
    corpus = Corpus([[str(i)] for i in range(9)], [0, 0, 1, 2, 3, 4, 4, 5, 6])
    tagged = []
    for kept, held in folds_of(corpus):
        assert not {corpus.documents[i] for i in kept} & {corpus.documents[i] for i in held}
        tagged += held
    assert sorted(tagged) == [*range(9)]
    assert len(folds_of(corpus)) == FOLDS

    class Watched:
        def fit(self, X, y):
            self.seen = {sentence[0] for sentence in X}

        def predict(self, X):
            assert not self.seen & {sentence[0] for sentence in X}
            return [[sentence[0]] for sentence in X]

    assert cross_tag(Watched(), corpus, [["O"]] * 9) == [[str(i)] for i in range(9)]
    with pytest.raises(
        ValueError, match=r"two_stages needs two documents, or two sentences without, at least: X has one."
    ):
        folds_of(Corpus([["a"], ["b"]], [0, 0]))


@pytest.mark.parametrize("options", [{}, {"inside": "IOBES"}])
def test_two_stages(options, interpreted_loops, tmp_path):
    tagger = make(two_stages=True, **options).fit(X, Y, X_dev=X[:2], y_dev=Y[:2])
    assert tagger.asks_documents
    assert tagger.first_.first_ is None
    names = tagger.model_.feature_names_in_ if hasattr(tagger.model_, "feature_names_in_") else []
    assert any(str(name).startswith("tag1[+0]=") for name in names)
    found = tagger.predict(iter(X))
    assert found == Y
    tagger.save(tmp_path / "any.model")
    loaded = maxmargin.load(tmp_path / "any.model")
    assert loaded.predict(X) == found
    assert loaded.explain(["Rome", "fell"], 0).label == "B-L"
    path = make(two_stages=True, **options).tune(X, Y, X, Y, Cs=[1.0])
    assert path.scores[-1] > 0


@pytest.mark.parametrize("scheme", ["IOB2", "IOE2"])
def test_explanations_are_of_tags_that_users_see(scheme, interpreted_loops):
    tagger = make(inside="IOBES", scheme=scheme).fit(X, Y)
    for tokens in (X[0], X[2], ["York", "ran"]):
        taggings, scores = tagger.predict_topk([tokens], 10_000)[0]
        for t in range(len(tokens)):
            found = tagger.explain(tokens, t)
            assert (found.label, found.labelling) == (taggings[0][t], taggings[0])
            second = next(k for k, tags in enumerate(taggings) if tags[t] != found.label)
            assert (found.rival, found.rival_labelling) == (taggings[second][t], taggings[second])
            assert found.margin == pytest.approx(scores[0] - scores[second], abs=1e-4)
            if found.label != "O":
                assert tagger.explain(tokens, t, "O").rival == "O"
            with pytest.raises(ValueError, match=f"rival must be another label than {found.label!r}"):
                tagger.explain(tokens, t, found.label)
            with pytest.raises(ValueError, match="'S-P' is not a label of the model, which has"):
                tagger.explain(tokens, t, "S-P")


def test_explanations_look_at_documents(interpreted_loops):
    sentences = [["Ann", "ran"], ["then", "Ann", "fell"], ["Rome", "fell"], ["in", "Rome"]]
    corpus = Corpus(sentences, documents=["a", "a", "b", "b"])
    tags = [["B-P", "O"], ["O", "B-P", "O"], ["B-L", "O"], ["O", "B-L"]]
    tagger = make(two_stages=True, features=WindowFeatures(elsewhere=True)).fit(corpus, tags)
    words = [(i, t, None) for i, sentence in enumerate(corpus) for t in range(len(sentence))]
    found = tagger.explain_words(corpus, words)
    assert [one.label for one in found] == [tag for one in tagger.predict(corpus) for tag in one]
    assert "elsewhere=capital" in [contribution.of for contribution in found[0].contributions]
    assert tagger.explain(corpus[0], 0, document=corpus[1:2]) == found[0]
    alone = tagger.explain(corpus[0], 0)
    assert "elsewhere=capital" not in [contribution.of for contribution in alone.contributions]
