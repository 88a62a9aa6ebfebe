"""Matches in part, as counted by hand and by nervaluate, and what resampling says."""

import numpy as np
import pytest

from maxmargin.metrics import MatchScore, bootstrap, compare_taggings, entity_f1, match_report, token_accuracy
from maxmargin.text import find_entities

TRUE = [["B-A", "I-A", "O", "B-B", "I-B", "O", "B-A"], ["O", "B-B"], ["B-A", "I-A", "I-A"]]
FOUND = [["B-A", "O", "O", "B-A", "I-A", "O", "B-A"], ["B-B", "O"], ["B-A", "B-B", "I-B"]]


def random_tags(rng, n):
    return [
        [str(tag) for tag in rng.choice(["O", "O", "B-A", "I-A", "B-B", "I-B"], size=rng.integers(1, 9))]
        for _ in range(n)
    ]


def test_by_hand():
    # 0: A overlaps A, A has the bounds of B, A is right; 1: B is spurious, B is missed; 2: A overlaps A, B is spurious
    report = match_report(TRUE, FOUND)
    assert report.strict == MatchScore(correct=1, incorrect=3, missed=1, spurious=2)
    assert report.exact == MatchScore(correct=2, incorrect=2, missed=1, spurious=2)
    assert report.partial == MatchScore(correct=2, partial=2, missed=1, spurious=2)
    assert report.type == MatchScore(correct=3, incorrect=1, missed=1, spurious=2)
    assert report.partial.precision == pytest.approx(3 / 6)
    assert report.partial.recall == pytest.approx(3 / 5)
    assert match_report([["O"]], [["O"]]).strict.f1 == 0


def test_as_nervaluate_has_it():
    nervaluate = pytest.importorskip("nervaluate", reason="nervaluate is not installed")
    rng = np.random.default_rng(0)
    true = random_tags(rng, 200)
    found = [[str(rng.choice(["O", "B-A", "I-B"])) if rng.random() < 0.3 else tag for tag in tags] for tags in true]
    as_dicts = [
        [[{"label": e.type, "start": e.start, "end": e.end - 1} for e in row] for row in find_entities(y)]
        for y in (true, found)
    ]
    wanted = nervaluate.Evaluator(*as_dicts, tags=["A", "B"], loader="dict").evaluate()["overall"]
    report = match_report(true, found)
    for name, key in (("strict", "strict"), ("exact", "exact"), ("partial", "partial"), ("type", "ent_type")):
        mine, theirs = getattr(report, name), wanted[key]
        counts = theirs.correct, theirs.incorrect, theirs.partial, theirs.missed, theirs.spurious
        assert tuple(mine) == counts, name
        assert mine.f1 == pytest.approx(theirs.f1)


def test_intervals_hold_the_score():
    rng = np.random.default_rng(1)
    true = random_tags(rng, 100)
    found = [["O" if rng.random() < 0.2 else tag for tag in tags] for tags in true]
    interval = bootstrap(true, found, n_draws=200)
    assert interval.value == pytest.approx(entity_f1(true, found))
    assert interval.low < interval.value < interval.high
    tags = bootstrap(true, found, entities=False, n_draws=200)
    assert tags.value == pytest.approx(token_accuracy(true, found))
    assert tags.high - tags.low < 0.15


def test_differences_of_taggers():
    rng = np.random.default_rng(2)
    true = random_tags(rng, 150)
    bad = [["O" if rng.random() < 0.3 else tag for tag in tags] for tags in true]
    alike = [["O" if rng.random() < 0.3 else tag for tag in tags] for tags in true]
    better = compare_taggings(true, bad, true, n_draws=200)
    assert better.p_value == pytest.approx(1 / 201)
    assert better.difference.value == pytest.approx(better.second.value - better.first.value)
    assert better.difference.low > 0
    assert str(better).splitlines()[0] == f"  first       {better.first}"
    same = compare_taggings(true, bad, bad, n_draws=200)
    assert (same.p_value, same.difference) == (1, (0, 0, 0))
    unsure = compare_taggings(true, bad, alike, n_draws=200)
    assert unsure.p_value > 0.01
    with pytest.raises(ValueError, match="n_draws must be an integer, at least 1"):
        bootstrap(true, bad, n_draws=0)
