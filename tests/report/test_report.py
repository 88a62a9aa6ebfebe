"""The page of a tagger: its numbers are those of the metrics, its text only shows, and nothing else can run."""

import errno
import json
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin
from maxmargin import ChainCRF, SegmentCRF, Tagger
from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.markup import as_json, tag
from maxmargin.drawings import weight_drawings
from maxmargin.inspection import Contribution, Explanation, strongest_features
from maxmargin.metrics import bootstrap, compare_taggings, entity_curve, entity_report, reliability
from maxmargin.report import tagged_sentences
from maxmargin.report.entity_errors import ALL, RIGHT, count_errors, judge_entities
from maxmargin.report.tagged_sentences import choose_sentences, kinds_of_errors, reasons, tag_sentences
from maxmargin.runtime import interpreted
from maxmargin.text import Corpus, Layout, check_data, convert_tags
from maxmargin.text.schemes import Entity
from tests.cli.conftest import input_error, run
from tests.pages import Elements, check_page
from tests.sentences import column_text
from tests.sentences import tagged_sentences as made_sentences

SENTENCES = made_sentences()
X = [[token[0] for token in sentence] for sentence in SENTENCES]
Y = [[token[2] for token in sentence] for sentence in SENTENCES]
HOSTILE = [["</script><script>alert(1)</script>", "\u202egnp", "x" * 10_000, "<b>&amp;", "ok"]]

spans = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 3), st.sampled_from("AB")), max_size=5)


def entities(drawn):
    """Entities that do not overlap, of what was drawn."""
    found, end = [], 0
    for gap, length, kind in drawn:
        start = end + gap % 3
        end = start + length
        found.append(Entity(start, end, kind))
    return found


@pytest.fixture(scope="module")
def tagger():
    return Tagger().fit(X[:12], Y[:12])


@pytest.fixture(scope="module")
def other():
    return Tagger().fit(X[:4], Y[:4])


@pytest.fixture(scope="module")
def page(tagger, other, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "fit.html"
    hostile = [[*X, *HOSTILE], [*Y, ["O"] * 5]]
    tagger.report(path, *hostile, train=(X[:12], Y[:12]), others={"<small>": other}, command="maxmargin train <x>")
    return path


@given(spans, spans)
def test_each_entity_is_judged_once(true, found):
    true, found = entities(true), entities(found)
    judged = [*judge_entities(true, found)]
    assert sorted(one.true for one in judged if one.true) == sorted(true)
    assert sorted(one.found for one in judged if one.found) == sorted(found)
    counts = count_errors([judged])
    assert counts[ALL][RIGHT] == len({*true} & {*found})
    assert all((one.error == RIGHT) == (one.true == one.found) for one in judged)


def test_the_numbers_are_those_of_the_metrics(tagger, page):
    text = page.read_text()
    data = json.loads(Elements(text).scripts[0])
    test, tags = [*X, *HOSTILE], [*Y, ["O"] * 5]
    predicted = tagger.predict(test)
    report = entity_report(tags, predicted)
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>([\d.]+)</td><td>([\d.]+)</td><td>([\d.]+)</td>', text)
    found = {kind: numbers for kind, *numbers in rows}
    for kind, score in [(ALL, report.overall), *report.types.items()]:
        assert found[kind] == [f"{100 * share:.2f}" for share in (score.precision, score.recall, score.f1)]
    assert str(bootstrap(tags, predicted)) in text
    marginals, classes = tagger.predict_marginals(test), tagger.classes_.tolist()
    assert {sentence["i"] for sentence in data["sentences"]} == set(range(len(test)))
    for sentence in data["sentences"]:
        i = sentence["i"]
        assert sentence["z"] == predicted[i]
        p = [marginals[i][t, classes.index(one)] for t, one in enumerate(predicted[i])]
        assert np.allclose(sentence["p"], p, atol=6e-4)
        for t, why in sentence["why"].items():
            names = {name: number for number, name in enumerate(data["names"])}
            assert why == reasons(tagger.explain(test[i], int(t), rival_of(sentence, int(t))), names)
            assert len(names) == len(data["names"])
    entities = tagger.predict_entities(test)
    for step, shares in enumerate(data["curve"]):
        curve = entity_curve(tags, [[one for one in row if one.probability >= step / 100] for row in entities])
        assert (shares is None) == (not len(curve.thresholds))
        if shares is not None:
            assert shares == pytest.approx([curve.precision[-1], curve.recall[-1]], abs=1e-6)
    assert step == 100


def rival_of(sentence, t):
    """What a tag is compared with: the true one or, if it is right, the runner-up."""
    return None if sentence["y"][t] == sentence["z"][t] else sentence["y"][t]


def lines_of(text, name):
    """The points of the curves of the figure of this name."""
    (drawn,) = re.findall(rf'<svg[^>]*aria-label="{name}"[^>]*>(.*?)</svg>', text)
    return [
        np.array([point.split(",") for point in line.split()], float) for line in re.findall('points="(.*?)"', drawn)
    ]


def assert_drawn(lines, curves):
    """Assert that pixels are linear in numbers, the same way for all curves, but for rounding to tenths of a pixel."""
    for axis in (0, 1):
        pixels, numbers = np.concatenate(lines)[:, axis], np.concatenate([curve[axis] for curve in curves])
        slope, shift = np.polyfit(numbers, pixels, 1)
        np.testing.assert_allclose(slope * numbers + shift, pixels, atol=0.2)
        assert abs(slope) * np.ptp(numbers) > 100


def test_the_verdict_and_the_curve_are_those_of_the_fit(tagger, page):
    text, trace = page.read_text(), tagger.trace_
    assert f"{tagger.status_.name}</strong>: {tagger.status_.value}." in text
    assert f"What is proven of its weights: {tagger.certificate_}." in text
    found = Elements(text)
    assert found.row("weights") == [f"{tagger.model_._w.size:,}"]
    seed = tagger.model_.random_state
    assert found.row("training") == [f"{trace.seconds[-1]:.1f} s, {trace.passes[-1]:.4g} passes, seed {seed}"]
    assert found.row("command") == ["maxmargin train <x>"]
    drawn = lines_of(text, "Objective and its lower bound by passes")
    x = np.log10(trace.passes)
    assert_drawn(drawn, [(x, np.log10(trace.primal)), (x, np.log10(trace.dual))])


def test_the_numbers_of_sentences_and_weights_are_those_of_the_tagger(tagger, other, page):
    text = page.read_text()
    data, test = json.loads(Elements(text).scripts[0]), [*X, *HOSTILE]
    marginals, readings, beside = tagger.predict_marginals(test), tagger.predict_topk(test, 3), other.predict(test)
    classes = tagger.classes_.tolist()
    assert data["classes"] == classes
    assert [sentence["loss"] for sentence in data["sentences"]] == sorted(
        (sentence["loss"] for sentence in data["sentences"]), reverse=True
    )
    for sentence in data["sentences"]:
        table, (best, scores) = marginals[sentence["i"]], readings[sentence["i"]]
        for t, likely in enumerate(sentence["q"]):
            assert [p for _, p in likely] == pytest.approx(np.sort(table[t])[::-1][: len(likely)].tolist(), abs=6e-4)
            assert [p for _, p in likely] == pytest.approx([table[t, k] for k, _ in likely], abs=6e-4)
        p = [table[t, classes.index(true)] for t, true in enumerate(sentence["y"])]
        assert sentence["loss"] == pytest.approx(-np.log(p).sum(), abs=1e-3)
        assert sentence["k"] == best
        assert sentence["s"] == pytest.approx(scores - scores[0], abs=1e-3)
        assert sentence["o"] == [beside[sentence["i"]]]
        for t, why in sentence["why"].items():
            found = tagger.explain(test[sentence["i"]], int(t), rival_of(sentence, int(t)))
            label, rival, margin, n_others, others, *pairs = why
            assert (label, rival) == (found.label, found.rival)
            assert margin == pytest.approx(found.margin, abs=1e-4)
            assert sum(pairs[1::2]) + others == pytest.approx(found.margin, abs=1e-3)
            assert n_others + len(pairs) / 2 == len(found.contributions)
            assert [data["names"][k] for k in pairs[::2]] == [
                c.of[:100] for c in found.contributions[: len(pairs) // 2]
            ]
    assert all(len(sentence["why"]) == len(sentence["w"]) for sentence in data["sentences"])
    for name, _, features in data["features"]:
        wanted = strongest_features(tagger.model_, name, len(features))
        assert [of for of, _ in features] == [one.of[:100] for one in wanted]
        assert [weight for _, weight in features] == pytest.approx([one.weight for one in wanted], abs=1e-4)
    cells = {(a, b): told for a, b, told in re.findall(r"<title>(\S+) → (\S+): (.*?)</title>", text)}
    for a, row in zip(classes, tagger.model_.coef_.transitions, strict=True):
        for b, weight in zip(classes, row, strict=True):
            is_allowed = not (b.startswith("I-") and a[2:] != b[2:])
            assert cells[a, b] == (f"{weight:+.2f}" if is_allowed else "ruled out")


def test_the_numbers_of_errors_of_others_and_of_probabilities_are_those_of_the_metrics(tagger, other, page):
    text, test, tags = page.read_text(), [*X, *HOSTILE], [*Y, ["O"] * 5]
    predicted, beside, found = tagger.predict(test), other.predict(test), Elements(text)
    score = entity_report(tags, predicted).overall
    missed, spurious, boundary, kind = (int(n) for n in found.row("all")[-4:])
    assert found.row("all")[3:6] == [str(n) for n in score]
    assert (missed + boundary + kind, spurious + boundary + kind) == (
        score.n_true - score.n_right,
        score.n_predicted - score.n_right,
    )
    wanted = compare_taggings(tags, beside, predicted)
    scores = [str(wanted.second), str(wanted.first), str(wanted.difference), f"{wanted.p_value:.3f}"]
    assert found.row("<small>")[:4] == scores
    calibration = reliability(tags, tagger.predict_marginals(test), tagger.classes_)
    is_known = np.isfinite(calibration.accuracy)
    points = calibration.confidence[is_known], calibration.accuracy[is_known]
    assert_drawn(lines_of(text, "Calibration of labels"), [([0, 1], [0, 1]), points])
    health = check_data({"train": (X[:12], Y[:12]), "test": (test, tags)})
    rows = [row[1:4] for row in found.rows if row and row[0] in ("error", "warning", "note")]
    assert rows == [[one.part, f"{one.n:,}", one.what] for one in health.findings]


@pytest.mark.parametrize("options", [{"threshold": 0.99}, {"inside": "IOBES"}, {"two_stages": True}])
def test_taggers_of_all_kinds_have_a_page(options, tmp_path):
    tagger = Tagger(model=ChainCRF(), **options).fit(X[:6], Y[:6])
    odd = Corpus([*X[:8], ["Rome", "Ann", "Ann"]], [*range(3)] * 3)
    tags = [*Y[:8], ["B-LOC", "I-LOC", "B-NEW"]]
    tagger.report(tmp_path / "a.html", odd, convert_tags(tags, "BILOU"))
    text = (tmp_path / "a.html").read_text()
    assert str(bootstrap(tags, tagger.predict(odd))) in text
    data = json.loads(check_page(text).scripts[0])
    assert {sentence["i"]: sentence["y"] for sentence in data["sentences"]} == dict(enumerate(tags))
    assert all(sentence["z"] == tagger.predict(odd)[sentence["i"]] for sentence in data["sentences"])
    assert all(len(sentence["why"]) == len(sentence["w"]) for sentence in data["sentences"])


def test_contributions_add_up():
    found = [Contribution(0, f"f{k}", 1.0 + k) for k in range(12)]
    names = {"f11": 0}
    told = reasons(Explanation(0, "A", "B", 78.0, ["A"], ["B"], found), names)
    assert sum(told[6::2]) + told[4] == told[2]
    assert [[*names][k] for k in told[5::2]] == [one.of for one in found[:8]]
    long = Explanation(0, "A", "B", 1.0, ["A"], ["B"], [Contribution(0, "x" * 10_000, 1.0)])
    reasons(long, names)
    assert max(map(len, names)) == 100


def test_shown_sentences_have_each_kind_of_error(tagger):
    tagged = tag_sentences(tagger, X * 40, Y * 40)
    rare = {(tagged.losses.argmin() + k * len(X)).item() for k in range(40)}  # the least surprising ones
    assert len(X * 40) > 300 >= len(choose_sentences(tagged))
    assert not rare & {*choose_sentences(tagged)[:150]}
    shown = choose_sentences(tagged, [rare])
    assert len(rare & {*shown}) >= 5
    assert (np.diff(tagged.losses[shown]) <= 0).all()
    assert choose_sentences(tag_sentences(tagger, X, Y), [{0}, set()]) == choose_sentences(tag_sentences(tagger, X, Y))


def test_numbers_of_errors_say_how_many_are_shown(tagger, tmp_path, monkeypatch):
    for name, most in (("MOST_WORST", 2), ("MOST_OF_KINDS", 1), ("MOST_SHOWN", 4), ("MOST_EXPLAINED", 5)):
        monkeypatch.setattr(tagged_sentences, name, most)
    monkeypatch.setattr(weight_drawings, "MOST_LABELS", 2)
    wrong = [["B-LOC" if tag == "B-PER" else tag for tag in tags] for tags in Y]  # many errors of type
    tagger.report(tmp_path / "a.html", X, wrong, others={"same": tagger})
    text = (tmp_path / "a.html").read_text()
    data, judged = json.loads(Elements(text).scripts[0]), tag_sentences(tagger, X, wrong).judged
    shown = [sentence["i"] for sentence in data["sentences"]]
    assert len(shown) <= 4
    n_all, n_shown = (count_errors([judged[i] for i in which])[ALL]["type"] for which in (range(len(X)), shown))
    assert n_all > n_shown > 0
    assert Elements(text).row("all")[-1] == f"{n_all}{n_shown} shown"
    assert {*kinds_of_errors(judged)} >= {("type", "PER"), ("type", "LOC")}
    assert sum(len(sentence["why"]) for sentence in data["sentences"]) == 5
    assert data["unexplained"] == "Why is told of 5 words, the wrong ones first, not of this one."
    assert f"Of {len(tagger.classes_)} labels, the 2 whose" in text
    assert len(re.findall("<title>", text)) == 4 + 1  # one is that of the page


def test_segments_have_no_reasons_and_say_so(tmp_path):
    with interpreted():
        tagger = Tagger(model=SegmentCRF(max_length=2)).fit([["a", "b"]], [["B-X", "O"]])
        tagger.report(tmp_path / "a.html", [["a", "b"]], [["O", "B-X"]])
    text = (tmp_path / "a.html").read_text()
    data = json.loads(check_page(text).scripts[0])
    assert not any(sentence["why"] for sentence in data["sentences"])
    assert "this one is of segments" in data["unexplained"]
    assert "Weights are shown of models of chains" in text


def test_text_of_data_only_shows(page):
    text = page.read_text()
    elements = check_page(text)
    assert "alert(1)" not in elements.scripts[1]
    assert len(text) < 1e6


def test_markup():
    assert tag("a", "<", href='"', hidden=True, title=None) == '<a href="&quot;" hidden>&lt;</a>'
    assert json.loads(as_json("</script>&")) == "</script>&"
    assert "<" not in as_json("</script>")
    assert "nothing to draw" in draw_curves([Curve("a", [0], [np.nan], "c0")], "x", "y", name="none")


def test_without_held_out_sentences(tagger, tmp_path):
    tagger.report(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert "There are no held-out sentences" in text
    assert 'id="found"' not in text
    parts = Tagger(scheme=None).fit([["a", "b"]], [["X", "Y"]])
    parts.report(tmp_path / "b.html", [["a", "c"]], [["X", "Z"]])  # a label that it does not know
    assert "50.00 % of all tags are right" in (tmp_path / "b.html").read_text()


def test_what_cannot_be_reported(tagger, tmp_path):
    with pytest.raises(ValueError, match="X and y must be given together"):
        tagger.report(tmp_path / "a.html", X)
    with pytest.raises(ValueError, match=r"X\[0\] has 2 tokens, but y\[0\] has 1 tags"):
        tagger.report(tmp_path / "a.html", [["a", "b"]], [["O"]])
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        tagger.report(tmp_path / "no" / "a.html", X, Y)
    with pytest.raises(ValueError, match=r"y\[0\] has 'NOUN' at position 1, but tags are O, or one of B, I"):
        tagger.report(tmp_path / "a.html", [["a", "b"]], [["O", "NOUN"]])
    assert not [*tmp_path.iterdir()]


def test_taggers_of_other_schemes_are_compared_by_their_entities(tagger, tmp_path):
    bilou = Tagger(scheme="BILOU").fit(X[:12], Y[:12])
    tagger.report(tmp_path / "a.html", X[:12], Y[:12], others={"bilou": bilou})
    text = (tmp_path / "a.html").read_text()
    mine, its = tagger.predict(X[:12]), convert_tags(bilou.predict(X[:12]), "IOB2")
    pairs = [[(a == y, b == y) for y, a, b in zip(*rows, strict=True)] for rows in zip(Y[:12], mine, its, strict=True)]
    alone = [str(sum(row.count(pair) for row in pairs)) for pair in ((True, False), (False, True))]
    assert Elements(text).row("bilou")[-2:] == alone
    assert all(sentence["o"] == [its[sentence["i"]]] for sentence in json.loads(Elements(text).scripts[0])["sentences"])
    parts = Tagger().fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(ValueError, match=r"others\['parts'\] must find entities, but its tags spell none"):
        tagger.report(tmp_path / "b.html", X, Y, others={"parts": parts})
    with pytest.raises(ValueError, match=r"others\['names'\] must not find entities, as the tags of y spell none"):
        parts.report(tmp_path / "b.html", [["a", "b"]], [["X", "Y"]], others={"names": tagger})
    assert not (tmp_path / "b.html").exists()


def test_other_taggers_of_other_columns(tagger, tmp_path):
    tagger.set_params(layout=None).save(tmp_path / "a.model")
    Tagger(layout=Layout(x=(0, 1))).fit([[("a", "N")]], [["O"]]).save(tmp_path / "b.model")
    (tmp_path / "test.txt").write_text("Ann B-PER\nran O\n")
    command = "report", tmp_path / "a.model", tmp_path / "test.txt", tmp_path / "b.model", "-o", tmp_path / "c.html"
    assert "tokens have 1 column, but b.model was trained on 2" in input_error(*command)


def test_the_command(tagger, tmp_path):
    tagger.save(tmp_path / "a.model")
    Tagger().fit(X[:3], Y[:3]).save(tmp_path / "b.model")
    pairs = [[(token[0], token[2]) for token in sentence] for sentence in SENTENCES]
    (tmp_path / "test.txt").write_text(column_text(pairs))
    target = tmp_path / "fit.html"
    code, out, err = run("report", tmp_path / "a.model", tmp_path / "test.txt", tmp_path / "b.model", "-o", target)
    assert (code, out) == (0, "")
    assert "The page is" in err
    assert "b.model" in target.read_text()
    for name in ("test.txt", "a.model", "b.model"):  # none of which is written over
        files = tmp_path / "a.model", tmp_path / "test.txt", tmp_path / "b.model"
        error = input_error("report", *files, "-o", tmp_path / name)
        assert f"would take the place of {tmp_path / name}" in error


def test_the_command_that_trained_a_tagger_is_told(tmp_path):
    (tmp_path / "a b.txt").write_text("Ann B-PER\nran O\n")
    run("train", tmp_path / "a b.txt", "-o", tmp_path / "a.model", "--max-passes", 1)
    run("report", tmp_path / "a.model", "-o", tmp_path / "a.html")
    told = f"maxmargin train '{tmp_path}/a b.txt' -o {tmp_path}/a.model --max-passes 1"
    assert Elements((tmp_path / "a.html").read_text()).row("command") == [told]
    assert maxmargin.load(tmp_path / "a.model").model_.command_ == told
    assert Tagger().fit([["a"]], [["O"]]).model_.command_ is None


def test_files_of_other_tags(tagger, tmp_path, monkeypatch):
    tagger.save(tmp_path / "a.model")
    target, tags = tmp_path / "fit.html", tmp_path / "test.txt"
    command = "report", tmp_path / "a.model", tags, "-o", target
    tags.write_text("Ann S-PER\nran O\n\nthe O\nBig B-NEW\nNews I-LOC\n")  # NEW is not known, I-LOC breaks rules
    code, _, err = run(*command)
    assert (code, "line 6" in err) == (0, True), err
    data = json.loads(Elements(target.read_text()).scripts[0])
    assert sorted(sentence["y"] for sentence in data["sentences"]) == [["B-PER", "O"], ["O", "B-NEW", "B-LOC"]]
    assert "tags that break the rules" in target.read_text()
    tags.write_text("Ann NNP\nran VB\n")
    assert "line 1: the sentence has 'NNP'" in input_error(*command)

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = target.read_text()
    monkeypatch.setattr(os, "replace", refuse)
    assert "cannot be written: No space left on device." in input_error("report", tmp_path / "a.model", "-o", target)
    assert target.read_text() == before
