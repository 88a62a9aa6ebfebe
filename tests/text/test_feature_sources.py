"""Sources of features side by side: the names of all of them, in training and in predictions, and what is refused."""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.encode.names.name_columns import Columns
from maxmargin.encode.names.named_rows import Codes, read_codes
from maxmargin.text import (
    Corpus,
    FeatureSources,
    JoinedFeatures,
    NamedFeatures,
    OutsideFeatures,
    TemplateFeatures,
    WindowFeatures,
    WordVectors,
)
from maxmargin.text.composition.vote_features import VotedFeatures
from maxmargin.text.document_tags import split_votes, with_votes

SENTENCES = [["Ann", "ran"], ["in", "New", "York"], ["Rome", "fell"], ["She", "saw", "Rome"]]
TAGS = [["B-P", "O"], ["O", "B-L", "I-L"], ["B-L", "O"], ["O", "O", "B-L"]]
VECTORS = WordVectors(["ann", "rome", "ran"], [[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
TEMPLATE = TemplateFeatures(template="U0:%x[-1,0]\nU1:%x[0,0]\nB1:%x[0,0]")
WINDOWS = WindowFeatures(window=1, affixes=1, word_ngrams=1)
OUTSIDE = OutsideFeatures(window=1, classes={"kind": {"Rome": "01", "York": "00"}}, vectors=VECTORS)


@maxmargin.register
@dataclass
class Endings:
    """A function that can be saved."""

    length: int = 2

    def __call__(self, sentence):
        return [{"end": word[-self.length :], "is_title": word.istitle(), "small": word.islower()} for word in sentence]


def own_names(sentence):
    return [["own"] * (len(word) > 3) for word in sentence]


def make(*sources, **options):
    return Tagger(
        features=FeatureSources(sources=[*sources]),
        model=ChainCRF(only_observed=True, max_passes=20, tol=0.1),
        **options,
    )


def test_names_of_all_sources_one_after_the_other():
    features = FeatureSources(sources=[WINDOWS, TEMPLATE, OUTSIDE, own_names, Endings(3)])
    rows = features.fit(SENTENCES, TAGS).transform(SENTENCES)
    assert isinstance(rows, NamedFeatures)
    for i, sentence in enumerate(SENTENCES):
        for t, word in enumerate(sentence):
            own = [f"end:{word[-3:]}", *["is_title"] * word.istitle(), *["small"] * word.islower()]
            parts = [part.transform(SENTENCES)[i][t] for part in (WINDOWS, TEMPLATE, OUTSIDE)]
            assert rows[i][t] == [*parts[0], *parts[1], *parts[2], *own_names(sentence)[t], *own]
    assert OUTSIDE.transform(SENTENCES)[2] == [["kind=01"], ["kind[-1]=01"]]
    assert rows[1:3][1] == rows[2]
    assert [*rows.edge_features()] == [*TEMPLATE.transform(SENTENCES).edge_features()]
    assert rows.dense_columns().names == ["vector:0", "vector:1"]
    assert FeatureSources(sources=[WINDOWS]).transform(SENTENCES).edge_features() is None


def test_tables_hold_what_names_do():
    sentences = [*SENTENCES, [("Ann", "N"), ("ran", "V")], [("ran", "V")], SENTENCES[1]]
    rows = FeatureSources(sources=[WINDOWS, TEMPLATE, own_names]).transform(sentences)
    columns = Columns(grows=True)
    assert [[columns.find(item) for item in sentence] for sentence in rows] == [*rows.look_up(columns)]
    known = Columns([*columns][::2])
    entries, ends, starts = read_codes(rows, Codes(known))
    lists = [[sorted(column for column in known.find(item) if column >= 0) for item in s] for s in rows]
    assert starts == np.cumsum([0, *map(len, sentences)]).tolist()
    items = [item for sentence in lists for item in sentence]
    assert [entries[a:b].tolist() for a, b in pairwise(ends)] == items


def test_taggers_are_saved_without_functions(tmp_path, interpreted_loops):
    tagger = make(TEMPLATE, OUTSIDE, Endings(length=3)).fit(SENTENCES, TAGS)
    assert tagger.predict(SENTENCES) == TAGS
    tagger.save(tmp_path / "any.model")
    loaded = maxmargin.load(tmp_path / "any.model")
    assert loaded.features_.sources[2] == Endings(length=3)
    assert loaded.predict(SENTENCES) == TAGS
    assert loaded.predict(SENTENCES[:1]) == TAGS[:1]
    functions = make(WINDOWS, own_names).fit(SENTENCES, TAGS)
    assert functions.predict(iter(SENTENCES)) == TAGS
    with pytest.raises(TypeError, match=r"sources\[1\] cannot be saved: .*maxmargin.register"):
        functions.save(tmp_path / "other.model")


def test_lists_made_of_the_training_data_are_told_apart(interpreted_loops):
    sentences = [[f"n{k}", "ran"] for k in range(30)]
    features = FeatureSources(
        sources=[TEMPLATE, OutsideFeatures(gazetteers={"all": [words[0] for words in sentences]}, elsewhere=True)]
    )
    tagger = Tagger(features=features).set_params(model__max_passes=1).fit(sentences, [["B-P", "O"]] * 30)
    assert tagger.features_.cross_fit_ == ["all"]
    assert tagger.asks_documents
    assert [*tagger.features_.leaks(sentences, [["B-P", "O"]] * 30, sentences, [["B-P", "O"]] * 30)] == []


@pytest.mark.parametrize(
    ("features", "first"),
    [(TEMPLATE, ["U0:_B-1", "U1:Ann"]), (FeatureSources(sources=[own_names]), []), (WINDOWS, ["word=Ann"])],
    ids=["template", "function", "windows"],
)
def test_votes_are_features_whatever_the_transformer(features, first, tmp_path, interpreted_loops):
    corpus = Corpus(SENTENCES, ["a", "b", "c", "c"])
    tagger = Tagger(features=features, two_stages=True).set_params(model__max_passes=3).fit(corpus, TAGS)
    names = [*tagger.model_.feature_names_in_]
    assert any(re.match(r"Uvote\[\+0\]:L|tag1\[\+0\]=L", name) for name in names)
    rows = tagger.features_.transform(with_votes(corpus, TAGS))
    assert rows[0][0][: len(first)] == first
    assert {"Uvote[+1]:O", "tag1[+1]=O"} & {*rows[0][0]}
    if features is TEMPLATE:
        tagger.save(tmp_path / "any.model")
        assert maxmargin.load(tmp_path / "any.model").predict(corpus) == tagger.predict(corpus)


def test_transformers_below_votes_see_sentences_as_they_were():
    for X in (Corpus(SENTENCES, "abcc"), [[("Ann", "N"), ("ran", "V")]]):
        before, votes = split_votes(with_votes(X, [["B-P", *["O"] * (len(s) - 1)] for s in X]))
        assert before == X
        assert getattr(before, "documents", None) == getattr(X, "documents", None)
        assert votes[0] == [("Ann", "P"), ("ran", "O")]
    voted = VotedFeatures(features=FeatureSources(sources=[own_names]))
    assert voted.fit_transform(with_votes(SENTENCES, TAGS), TAGS)[1][1][0] == "Uvote[-2]:_x-1"


@pytest.mark.parametrize(
    ("sources", "error", "message"),
    [
        ([], TypeError, "sources must be a list of transformers or functions"),
        ([WindowFeatures], TypeError, r"sources\[0\] must be a transformer or a function"),
        ([WINDOWS, 3], TypeError, r"sources\[1\] must be a transformer or a function, not 3"),
        ([lambda sentence: [[]]], ValueError, r"what <lambda> returns for X\[0\] must be a list for 2 tokens"),
        ([lambda sentence: "ab"], TypeError, r"must be a list of the features of each token, not 'ab'"),
        ([lambda sentence: [[1], [2]]], TypeError, r"X\[0\] has \[1\] at position 0, but it must be a list of names"),
        ([lambda sentence: [{"n": 2.5}] * 2], TypeError, "numbers go into vectors"),
        ([OUTSIDE, OUTSIDE], ValueError, "dense columns, in one place, not in 2"),
    ],
)
def test_what_is_no_source(sources, error, message, interpreted_loops):
    with pytest.raises(error, match=message):
        make(*sources).fit(SENTENCES[:1], TAGS[:1])


def test_sources_that_disagree_on_tokens():
    class Short:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return JoinedFeatures([[["a"]] for _ in X], [np.ones((1, 1)) for _ in X])

    rows = FeatureSources(sources=[WINDOWS, Short()]).transform(SENTENCES)
    for read in (lambda: rows[0], lambda: [*rows.look_up(Columns())], lambda: [*rows.column_tables(Columns())]):
        with pytest.raises(ValueError, match=r"sources must have features for each token of X\[0\], but have \[2, 1\]"):
            read()
