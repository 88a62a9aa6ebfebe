"""Pages of models of all kinds: what their script does, by mouse and by keys, and that everybody can read them."""

import numpy as np
import pytest

from maxmargin import GraphCutSVM
from maxmargin.runtime import interpreted
from maxmargin.vision import grid_edges
from tests.browser.driving import assert_accessible, choose, find, text_of
from tests.small import make

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not there: pip install selenium")


def sides_of(X):
    return [([f"left {k}" for k in range(x.shape[0])], [f"right {k}" for k in range(x.shape[1])]) for x in X]


SHOWN = {
    "BoxSVM": lambda X, y: [x[:, :, 0] for x in X],
    "MatchingSVM": lambda X, y: sides_of(X),
    "DependencySVM": lambda X, y: [[f"word{k}" for k in range(len(tree))] for tree in y],
    "SpanSVM": lambda X, y: [[f"word{k}" for k in range(max(end for _, end, _ in spans))] for spans in y],
}


def write_masks(path):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 2, 12) for _ in range(4)]
    X = [(labels[:, None] + 0.8 * rng.normal(size=(12, 1)), grid_edges(3, 4)) for labels in y]
    images = [rng.integers(0, 255, (3, 4, 3), np.uint8) for _ in X]
    GraphCutSVM(random_state=0).fit(X, y).report(path, X, y, shown=images)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page for each kind of drawing, of models that are wrong at times."""
    folder = tmp_path_factory.mktemp("models")
    with interpreted():
        write_masks(folder / "masks.html")
        for name, look in SHOWN.items():
            model, X, y, _ = make(name)
            model.C = 1e-4
            model.fit(X, y)
            X = [-x for x in X] if name == "SpanSVM" else X  # which it gets wrong
            model.report(folder / f"{name}.html", X, y, shown=look(X, y))
    return folder


def test_examples_are_chosen(browser, pages):
    browser.get((pages / "DependencySVM.html").as_uri())
    examples = find(browser, "#drawn > li")
    wrong = [one for one in examples if one.get_attribute("data-wrong")]
    assert len(wrong) > 0
    (show_all,), (box,) = find(browser, "#all"), find(browser, "#wrong")
    assert not show_all.is_displayed()
    box.send_keys(webdriver.Keys.SPACE)
    assert [one for one in examples if one.is_displayed()] == wrong
    assert text_of(browser, "#count") == f"{len(wrong)} of {len(examples)} examples"
    show_all.send_keys(webdriver.Keys.ENTER)
    assert all(one.is_displayed() for one in examples)
    assert browser.switch_to.active_element == find(browser, "#text")[0]
    longest = max(examples, key=lambda one: len(one.text))
    sought = max((word for word in longest.text.split() if word.startswith("word")), key=lambda word: int(word[4:]))
    choose(browser, "#text", sought.upper())
    assert {one.is_displayed() for one in examples if sought in one.get_property("textContent")} == {True}
    assert {one.is_displayed() for one in examples if sought not in one.get_property("textContent")} <= {False}
    choose(browser, "#text", "no example has that")
    assert text_of(browser, "#count") == f"0 of {len(examples)} examples"


@pytest.mark.parametrize("name", ["SpanSVM", "masks"])
def test_numbers_lead_to_examples(browser, pages, name):
    browser.get((pages / f"{name}.html").as_uri())
    examples = find(browser, "#drawn > li")
    lead = find(browser, "[data-fault]")[0]
    fault = lead.get_attribute("data-fault")
    lead.send_keys(webdriver.Keys.ENTER)
    having = [one for one in examples if fault in (one.get_attribute("data-faults") or "").split("\n")]
    assert having
    assert [one for one in examples if one.is_displayed()] == having
    assert text_of(browser, "#count") == f"{len(having)} of {len(examples)} examples: {fault}"
    assert browser.switch_to.active_element == find(browser, "#all")[0]


def test_images_are_seen_again(browser, pages):
    """The same photograph, which is in the page once, lies under all masks."""
    browser.get((pages / "masks.html").as_uri())
    again = find(browser, "#drawn use")
    assert len(again) == 2 * len(find(browser, "#drawn > li"))
    sizes = "const box = arguments[0].getBoundingClientRect(); return [box.width, box.height]"
    assert all(min(browser.execute_script(sizes, one)) > 50 for one in again)


@pytest.mark.parametrize(("theme", "width"), [("light", 1600), ("dark", 400)])
@pytest.mark.parametrize("name", ["masks", *SHOWN])
def test_they_are_accessible(browser, axe, pages, name, theme, width):
    browser.get((pages / f"{name}.html").as_uri())
    assert_accessible(browser, axe, theme, width)
