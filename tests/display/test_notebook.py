"""What notebooks show of models, traces, paths, explanations and reports: their numbers, as text that only shows."""

import numpy as np
import pytest
from sklearn import config_context

from maxmargin import ChainSVM, Tagger, regularization_path
from maxmargin.inspection import explain
from maxmargin.metrics import (
    bracket_report,
    compare_taggings,
    confusion,
    entity_report,
    match_report,
    reliability,
)
from maxmargin.text import check_data
from maxmargin.trace import Trace
from tests.pages import Elements, check_page

EVIL = "<script>alert(1)</script>"
X, Y = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.2]]], [[EVIL, "b"], [EVIL]]
TRUE, FOUND = [["B-<i>", "O", "B-LOC"]], [["B-<i>", "O", "B-<i>"]]


@pytest.fixture(scope="module")
def model():
    return ChainSVM(C=1.0).fit(X, Y, X_dev=X, y_dev=Y)


@pytest.fixture(scope="module")
def path():
    return regularization_path(ChainSVM(), X, Y, X_dev=X, y_dev=Y, eps=0.5)


def shown(thing):
    """The elements of what a notebook shows, in which nothing runs that does not in scikit-learn's diagrams."""
    text = thing._repr_html_()
    assert "alert(1)</script>" not in text
    assert "<i>" not in text
    return Elements(text)


def words(elements):
    return {word for row in elements.rows for cell in row for word in cell.split()}


def test_a_fitted_model_is_shown_with_what_came_of_its_fit(model):
    text = model._repr_html_()
    assert model.status_.name in text
    assert str(model.certificate_) in text
    assert "maxmargin" not in ChainSVM()._repr_html_()  # a diagram, and nothing else
    assert str(model.certificate_) in model._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert [*model._repr_mimebundle_()] == ["text/plain"]


def test_a_tagger_is_shown_as_its_model():
    tagger = Tagger().fit([["a", "b"]], [["X", "Y"]])
    assert tagger.status_.name in tagger._repr_html_()


def test_a_trace_is_drawn(model):
    found = shown(model.trace_)
    assert {*model.trace_.line(-1).split()} <= words(found)
    assert sum(name == "svg" for name, _ in found.tags) == 2
    assert "held out" in found.rows[0]
    assert not shown(Trace()).rows[1:]


def test_a_long_trace_is_cut():
    trace = Trace()
    for k in range(1, 31):
        trace.append(passes=k, oracle_calls=k, seconds=0.0, primal=2.0 + 1 / k, dual=1.0)
    assert len(shown(trace).rows) == 11
    assert "The last 10 of 30 rows" in trace._repr_html_()


def test_an_explanation_adds_up(model):
    why = explain(model, X[0], 0)
    rows = shown(why).rows[1:]
    assert sum(float(row[0]) for row in rows) == pytest.approx(why.margin, abs=1e-4 * len(rows))
    assert f"by {why.margin:.4g}" in why._repr_html_()
    assert "nothing else is allowed" in why._replace(rival=None)._repr_html_()


def test_a_path_is_drawn(path, tmp_path):
    text = path._repr_html_()
    assert f"{path.best_C:.4g}" in text
    assert path.status.name in text
    path.report(tmp_path / "path.html")
    page = check_page((tmp_path / "path.html").read_text())
    assert [row[1:] for row in page.rows[-len(path) :]] == [path.line(k).split()[1:] for k in range(len(path))]
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        path.report(tmp_path / "none" / "path.html")


def test_reports_are_tables():
    report = entity_report(TRUE, FOUND)
    assert shown(report).row("all") == ["50.00", "50.00", "50.00", "2", "2", "1"]
    assert shown(report).row("<i>") == ["50.00", "100.00", "66.67", "1", "2", "1"]
    assert shown(match_report(TRUE, FOUND)).row("exact")[:3] == ["100.00", "100.00", "100.00"]
    found = check_data({EVIL: ([["a", "b", "c"]], [["O", "I-<i>", "O"]])})
    assert {row[3] for row in shown(found).rows[1:]} == {finding.what for finding in found.findings}
    assert "Nothing odd" in check_data({})._repr_html_()


def test_metrics_are_tables():
    counts = shown(confusion([["a", "a", "<i>"]], [["a", "<i>", "<i>"]]))
    assert counts.rows == [["true, in rows", "<i>", "a"], ["<i>", "1", "0"], ["a", "1", "1"]]
    many = [[str(k) for k in range(40)]]
    assert "Of 40 labels, the 30 most frequent ones." in confusion(many, many)._repr_html_()
    found = reliability([["a", "b"]], [np.array([[0.9, 0.1], [0.8, 0.2]])], ["a", "b"])
    assert shown(found).row("0.80 to 0.90") == ["0.8000", "0.0000", "1"]
    assert f"{found.ece:.4f}" in found._repr_html_()
    trees = bracket_report([[(0, 2, "<i>"), (0, 1, "N")]], [[(0, 2, "<i>"), (1, 2, "N")]])
    assert shown(trees).row("all") == ["50.00", "50.00", "50.00", "2", "2", "1"]
    pair = compare_taggings(TRUE, FOUND, TRUE)
    assert shown(pair).row("difference") == [str(pair.difference)]
    assert f"p = {pair.p_value:.4f}" in pair._repr_html_()
