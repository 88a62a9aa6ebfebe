"""The page of a tagger: its numbers are those of the metrics, its text only shows, and nothing else can run."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Tagger
from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.markup import as_json, tag
from maxmargin.inspection import Contribution, Explanation
from maxmargin.metrics import bootstrap, entity_curve, entity_report
from maxmargin.report.entity_errors import ALL, RIGHT, count_errors, judge_entities
from maxmargin.report.tagged_sentences import reasons
from maxmargin.text.schemes import Entity
from tests.cli.conftest import input_error, run
from tests.sentences import column_text, tagged_sentences

SENTENCES = tagged_sentences()
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


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.scripts, self.styles, self.at, self.tags = [], [], None, []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        self.at = {"script": self.scripts, "style": self.styles}.get(name)
        if self.at is not None:
            self.at.append("")

    def handle_endtag(self, name):
        self.at = None

    def handle_data(self, text):
        if self.at is not None:
            self.at[-1] += text


@pytest.fixture(scope="module")
def tagger():
    return Tagger().fit(X[:12], Y[:12])


@pytest.fixture(scope="module")
def page(tagger, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "fit.html"
    hostile = [[*X, *HOSTILE], [*Y, ["O"] * 5]]
    other = Tagger().fit(X[:4], Y[:4])
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
            assert why == json.loads(json.dumps(reasons(tagger.explain(test[i], int(t), tags[i][int(t)]))))
    curve = entity_curve(tags, tagger.predict_entities(test))
    assert np.allclose(data["curve"], np.stack(curve, axis=1), atol=1e-4)


def test_contributions_add_up():
    found = [Contribution(0, f"f{k}", 1.0 + k) for k in range(12)]
    told = reasons(Explanation(0, "A", "B", 78.0, ["A"], ["B"], found))
    assert sum(value for _, value in told["of"]) + told["rest"][1] == told["margin"]


def test_text_of_data_only_shows(page):
    text = page.read_text()
    elements = Elements(text)
    assert len(elements.scripts) == 2
    assert "alert(1)" not in elements.scripts[1]
    (policy,) = [given["content"] for name, given in elements.tags if given.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    for content in (elements.styles[0], elements.scripts[1]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not any(key.startswith("on") or key == "style" for _, given in elements.tags for key in given)
    assert not re.search(r"https?://", text)
    ids = [given["id"] for _, given in elements.tags if "id" in given]
    assert len(ids) == len({*ids})
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
    assert not [*tmp_path.iterdir()]


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
    error = input_error("report", tmp_path / "a.model", tmp_path / "test.txt", "-o", tmp_path / "test.txt")
    assert "test.txt" in error
