"""Taggers whose tags are known in part, from Python and from the command line."""

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, ChainSVM, Status, Tagger
from maxmargin.text import WindowFeatures, tag_names
from tests.cli.conftest import input_error, run
from tests.sentences import column_text, tagged_sentences

SENTENCES = tagged_sentences()
X = [[token[:2] for token in sentence] for sentence in SENTENCES]
Y = [[token[2] for token in sentence] for sentence in SENTENCES]
SHARE = float(np.mean([tag != "O" for tags in Y for tag in tags]))


def small_tagger(**options):
    return Tagger(features=WindowFeatures(window=1, affixes=2, word_ngrams=1), **options)


def some_entities():
    """Half of the entities; nothing else is known."""
    return [[tag if tag != "O" and i % 2 else None for tag in tags] for i, tags in enumerate(Y)]


@pytest.fixture(scope="module")
def told():
    return small_tagger(entity_share=SHARE).fit(X, some_entities())


def test_unknown_tags():
    rng = np.random.default_rng(0)
    known = [[tag if rng.random() < 0.7 else None for tag in tags] for tags in Y]
    tagger = small_tagger().fit(X, known)
    assert (tagger.scheme_, tagger.status_) == ("IOB2", Status.STATIONARY)
    assert tagger.score(X, Y) > 0.9
    maxmargin.text.check_tags(tagger.predict(X), "IOB2")


@pytest.mark.parametrize(
    ("scheme", "known", "needed"),
    [("IOB2", "I-LOC", {"B-LOC"}), ("IOBES", "I-LOC", {"B-LOC", "E-LOC"}), ("IOB1", "B-LOC", {"I-LOC"})],
)
def test_entities_of_which_only_a_tag_is_known_have_the_others(scheme, known, needed):
    whole = maxmargin.text.convert_tags([["B-PER", "I-PER", "O"]] * 3, scheme)
    mended = maxmargin.text.mend_tags([[None, known, None], *whole], scheme)
    assert mended.y[0][0] == {*whole[0], known, *needed}


def test_some_of_the_entities_and_their_share_are_enough(told):
    assert told.classes_.tolist() == sorted({tag for tags in Y for tag in tags})
    as_outside = small_tagger().fit(X, [["O" if tag is None else tag for tag in tags] for tags in some_entities()])
    assert told.score(X, Y) > as_outside.score(X, Y) + 0.15


def test_predictions_have_the_share(told):
    (outside,) = np.flatnonzero(told.classes_ == "O")
    tables = told.predict_marginals(X, allowed=some_entities())
    share = np.concatenate([1 - table[:, outside] for table in tables]).mean()
    assert share == pytest.approx(SHARE, abs=0.05)  # of the model itself, which is near to outputs that have it


def test_what_is_known_is_kept_to(told):
    known = [["B-ORG"] + [None] * (len(X[0]) - 1)]
    assert told.predict(X[:1], allowed=known)[0][0] == "B-ORG"
    assert told.predict_topk(X[:1], 1, allowed=known)[0][0][0][0] == "B-ORG"


def test_a_dictionary_is_annotation():
    names = {"PER": ["Ann"], "LOC": ["Rome", "New York"]}
    words = [[word for word, _ in sentence] for sentence in X]
    tags = tag_names(words, names)
    tagger = small_tagger(entity_share=SHARE).fit(words, tags)
    assert {*tagger.classes_.tolist()} <= {"O", "B-PER", "B-LOC", "I-LOC"}


def test_a_dictionary_and_the_probability_of_all_else():
    """The tags that are likely include those that cannot follow each other."""
    words = [[word for word, _ in sentence] for sentence in X]
    tags = tag_names(words, {"PER": ["Ann"], "LOC": ["Rome", "New York"]}, outside=0.95)
    tagger = small_tagger(model=ChainCRF(C=100)).fit(words, tags)
    assert tagger.status_ is Status.OPTIMAL
    assert tagger.certificate_.primal > 0
    known = {(i, t): tag for i, row in enumerate(tags) for t, tag in enumerate(row) if isinstance(tag, str)}
    found = tagger.predict(words)
    assert all(found[i][t] == tag for (i, t), tag in known.items())
    assert (
        np.mean([tag == "O" for i, row in enumerate(found) for t, tag in enumerate(row) if (i, t) not in known]) > 0.9
    )


def test_the_share_is_saved(told, tmp_path):
    told.save(tmp_path / "a.model")
    loaded = maxmargin.load(tmp_path / "a.model")
    assert loaded.entity_share == SHARE
    assert loaded.predict(X) == told.predict(X)


@pytest.mark.parametrize(
    ("tagger", "y", "message"),
    [
        (Tagger(entity_share=1.5), Y, "entity_share must be a number from 0 to 1, not 1.5"),
        (Tagger(entity_share=0.1, model=ChainSVM()), Y, "entity_share needs tags that spell entities, and a ChainCRF"),
        (Tagger(entity_share=0.1), [["x"] * len(tags) for tags in Y], "entity_share needs tags that spell entities"),
        (Tagger(entity_share=0.6), Y, r"entity_share must be between 0.\d+ and 0.\d+, by what is known"),
        (
            Tagger(entity_share=0.01),
            some_entities(),
            r"entity_share must be between 0.\d+ and 1, by what is known of y,",
        ),
        (
            Tagger(model=ChainCRF(label_share={"O": 0.99})),
            some_entities(),
            r"label_share\['O'\] must be between 0 and 0.\d+, by what is known of y, not 0.99",
        ),
        (
            Tagger(entity_share=0.1),
            [["B-PER", *[{"O": 0.9, "B-PER": 0.1}] * (len(tags) - 1)] for tags in Y],
            "entity_share needs tags that are None, or in a set, but y has only known ones and probabilities, such as",
        ),
        (Tagger(model=ChainCRF(label_share=0.9)), Y, "label_share must be None or a dict of one label and its share"),
        (
            Tagger(model=ChainCRF(label_share={"X": 0.9})),
            some_entities(),
            "label_share names 'X', which is not a label",
        ),
    ],
)
def test_bad_input(tagger, y, message):
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)


def test_held_out_tags_are_known():
    with pytest.raises(ValueError, match=r"y_dev\[0\] has None at position 0, but tags to compare with must be known"):
        Tagger().fit(X, Y, X_dev=X, y_dev=some_entities())


def test_the_command_line(tmp_path):
    target = tmp_path / "a.model"
    known = [["UNK" if tag is None else tag for tag in tags] for tags in some_entities()]
    some = [[(*t[:2], tag) for t, tag in zip(s, tags, strict=True)] for s, tags in zip(SENTENCES, known, strict=True)]
    (tmp_path / "some.txt").write_text(column_text(some))
    code, _, err = run(
        "train", tmp_path / "some.txt", "-m", target, "--unknown", "UNK", "--entity-share", str(SHARE), "--window", "1"
    )
    assert code == 0, err
    n_unknown = sum(tag is None for tags in some_entities() for tag in tags)
    assert f"; of {n_unknown} tokens the tag is not known" in err
    assert "STATIONARY" in err
    tagger = maxmargin.load(target)
    assert "UNK" not in tagger.classes_
    assert "O" in tagger.classes_
    error = input_error("evaluate", target, tmp_path / "some.txt")
    assert "but tags to compare with must be known" in error
    assert "some.txt, line" in error


def test_json_lines(tmp_path):
    lines = ['{"tokens": ["Ann", "ran"], "tags": ["B-PER", null]}', '{"tokens": ["He"], "tags": [["O", "B-PER"]]}']
    (tmp_path / "some.jsonl").write_text("\n".join(lines) + "\n")
    code, _, err = run("train", tmp_path / "some.jsonl", "-m", tmp_path / "a.model")
    assert code == 0, err
    assert maxmargin.load(tmp_path / "a.model").classes_.tolist() == ["B-PER", "O"]
