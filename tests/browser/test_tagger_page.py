"""The page of a tagger as people use it: with a mouse, with keys alone, on data that means no good."""

import pytest

from maxmargin import ChainCRF, ChainSVM, Tagger, regularization_path
from maxmargin.metrics import entity_curve, entity_report
from maxmargin.report import tagged_sentences
from maxmargin.text import AnnotatedText, TextEntity
from maxmargin.text.standoff.text_page import show_texts
from tests import sentences
from tests.browser.driving import assert_accessible, choose, find, text_of

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not there: pip install selenium")
Keys = webdriver.Keys

SENTENCES = sentences.tagged_sentences()
X = [[token[0] for token in sentence] for sentence in SENTENCES]
Y = [[token[2] for token in sentence] for sentence in SENTENCES]
HOSTILE = [["</script><script>document.title='x'</script>", "\u202egnp", "x" * 10_000, "<img src=x onerror=alert(1)>"]]
TEST, TAGS = [*X, *HOSTILE, []], [*Y, ["O"] * 4, []]


@pytest.fixture(scope="module")
def taggers():
    return Tagger().fit(X[:12], Y[:12]), Tagger().fit(X[:4], Y[:4])


@pytest.fixture(scope="module")
def page(taggers, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "fit.html"
    taggers[0].report(path, TEST, TAGS, train=(X[:12], Y[:12]), others={"<small>": taggers[1]}, command="a <b>")
    return path


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    return browser


def test_verdict(opened, taggers):
    told = text_of(opened, "#verdict")
    assert taggers[0].status_.name in told
    assert str(taggers[0].certificate_) in told
    assert "a <b>" in told
    assert opened.title == "Report: fit"


def test_filters(opened, taggers):
    report = entity_report(TAGS, taggers[0].predict(TEST))
    assert text_of(opened, "#count") == f"{len(TEST)} of {len(TEST)} sentences"
    choose(opened, "#words", "lima")
    assert text_of(opened, "#count") == f"{sum('Lima' in x for x in X)} of {len(TEST)} sentences"
    choose(opened, "#words", "")
    choose(opened, "#error", "*")
    assert len(find(opened, "#found li")) == sum(a != b for a, b in zip(TAGS, taggers[0].predict(TEST), strict=True))
    assert all(find(item, ".wrong") for item in find(opened, "#found li"))
    choose(opened, "#error", "")
    (lead,) = find(opened, "#scores button[data-error=spurious][data-type='']")
    assert int(lead.text) == report.overall.n_predicted - report.overall.n_right
    lead.click()
    assert find(opened, "#error")[0].get_attribute("value") == "spurious"
    assert all("spurious" in item.text for item in find(opened, "#found li"))
    choose(opened, "#words", "there is no such word")
    assert text_of(opened, "#count").startswith("0 of")


def test_a_word_shows_why(opened, taggers):
    word = find(opened, "#found .word.wrong")[0]
    word.click()
    assert word.get_attribute("aria-pressed") == "true"
    told = text_of(opened, "#why")
    predicted = taggers[0].predict(TEST)
    i = len(X)
    t = next(t for t, (a, b) in enumerate(zip(TAGS[i], predicted[i], strict=True)) if a != b)
    found = taggers[0].explain(TEST[i], t, TAGS[i][t])
    assert f"Why {found.label} and not {found.rival}" in told
    assert f"margin {found.margin:+.3f}" in told
    assert f"{found.contributions[0].of} {found.contributions[0].value:+.3f}" in told
    values = [float(cell.text) for cell in find(opened, "#why table:last-of-type .value")]
    assert abs(sum(values[:-1]) - values[-1]) < 1e-3 * len(values)


def test_the_slider(opened, taggers):
    curve = entity_curve(TAGS, taggers[0].predict_entities(TEST))
    (slider,) = find(opened, "#threshold")
    choose(opened, "#threshold", "0.59")
    slider.send_keys(Keys.ARROW_RIGHT)
    last = [k for k, least in enumerate(curve.thresholds) if least >= 0.6][-1]
    shares = f"precision {100 * curve.precision[last]:.1f} %, recall {100 * curve.recall[last]:.1f} %"
    assert text_of(opened, "#at") == f"0.60: {shares}"
    slider.send_keys(Keys.END)
    assert text_of(opened, "#at").startswith("1.00: ")


def test_features_are_searched(opened):
    choose(opened, "#feature", "WORD=ROME")
    assert {cell.text for cell in find(opened, "#features th")} == {"word=Rome"}
    choose(opened, "#feature", "b-per")
    assert [card.text for card in find(opened, "#features h4")] == ["B-PER"]
    choose(opened, "#feature", "no such feature")
    assert text_of(opened, "#features").startswith("No label, and no feature")


def test_words_without_reasons_say_so(browser, taggers, tmp_path, monkeypatch):
    monkeypatch.setattr(tagged_sentences, "MOST_EXPLAINED", 1)
    taggers[0].report(tmp_path / "a.html", X, Y)
    browser.get((tmp_path / "a.html").as_uri())
    find(browser, "#found .word:not(.wrong)")[-1].click()
    assert "Why is told of 1 word, the wrong ones first, not of this one." in text_of(browser, "#why")


def test_models_are_compared(opened, taggers):
    mine, its = (tagger.predict(TEST) for tagger in taggers)
    pairs = [[a == truth != b for truth, a, b in zip(*rows, strict=True)] for rows in zip(TAGS, mine, its, strict=True)]
    (lead,) = find(opened, "#comparison button[data-error='only this']")
    assert int(lead.text.replace(",", "")) == sum(map(sum, pairs))
    lead.click()
    assert len(find(opened, "#found li")) == sum(map(any, pairs))
    assert all("<small>: " in item.text for item in find(opened, "#found li"))


def test_keys_alone(opened):
    def press(*keys):
        webdriver.ActionChains(opened).send_keys(*keys).perform()
        return opened.switch_to.active_element

    for _ in range(60):
        if press(Keys.TAB).get_attribute("id") == "words":
            break
    press("Rome")
    first = press(Keys.TAB)
    assert "word" in first.get_attribute("class").split()
    second = press(Keys.ARROW_RIGHT)
    assert second.id != first.id
    press(Keys.ENTER)
    assert second.get_attribute("aria-pressed") == "true"
    assert find(second, ".text")[0].text in text_of(opened, "#why h3:first-child")
    for what in ("#scores button[data-error=spurious]", "#comparison button[data-error='only this']"):
        lead = find(opened, what)[0]
        opened.execute_script("arguments[0].focus()", lead)
        first = press(Keys.ENTER)  # the lead is gone to its sentences, and so is the focus
        assert "word" in first.get_attribute("class").split()
        assert int(text_of(opened, "#count").split()[0]) <= int(lead.text)


def test_hostile_text_only_shows(opened):
    choose(opened, "#words", "document.title")
    assert HOSTILE[0][0] in text_of(opened, "#found")
    assert opened.title == "Report: fit"
    assert not find(opened, "img")
    words = [word.get_property("innerText") for word in find(opened, "#found .text")]
    assert words == [word[:400] for word in HOSTILE[0]]
    assert opened.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_the_policy_holds(chromium, page):
    chromium.get(page.as_uri())
    chromium.execute_script(
        "const script = document.createElement('script'); script.textContent = \"document.title = 'run'\";"
        "document.body.append(script); const image = document.createElement('img');"
        "image.src = 'http://localhost:9/a.png'; document.body.append(image);"
    )
    assert chromium.title == "Report: fit"
    refused = [entry["message"] for entry in chromium.get_log("browser")]
    assert len(refused) == 2
    assert all("Content Security Policy" in message for message in refused)


def test_nothing_at_all(browser, tmp_path):
    tagger = Tagger().fit([["a"]], [["O"]])
    tagger.report(tmp_path / "a.html", [[], []], [[], []])
    tagger.report(tmp_path / "b.html")
    for name in ("a.html", "b.html"):
        browser.get((tmp_path / name).as_uri())
        assert "Verdict" in text_of(browser, "#verdict")


def test_entities_of_texts(browser, tmp_path):
    entities = [TextEntity(0, 3, "PER", "Ann", 0.9), TextEntity(13, 17, "LOC", "Rome", 0.4)]
    text = AnnotatedText("Ann lives in Rome <i>", entities, "<b>")
    (tmp_path / "a.html").write_text(show_texts([text]))
    browser.get((tmp_path / "a.html").as_uri())
    assert text_of(browser, ".prose").replace("\n", " ") == "Ann PER 90 % lives in Rome LOC 40 % <i>"
    choose(browser, "#least", "0.5")
    assert text_of(browser, "#left") == "0.50: 1 of 2 entities"
    assert "LOC" not in text_of(browser, ".prose")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_it_is_accessible(opened, axe, theme, width):
    find(opened, "#found .word.wrong")[0].click()
    assert_accessible(opened, axe, theme, width)


@pytest.mark.parametrize("width", [400, 1600])
def test_other_pages_are_accessible(browser, axe, width, tmp_path):
    rows, labels = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.2]]], [["a", "b"], ["a"]]
    ChainCRF().fit(rows, labels).report(tmp_path / "model.html", rows, labels)
    path = regularization_path(ChainSVM(), rows, labels, X_dev=rows, y_dev=labels, eps=0.5)
    path.report(tmp_path / "path.html")
    text = AnnotatedText("Ann ran", [TextEntity(0, 3, "PER", "Ann", 0.9)])
    (tmp_path / "texts.html").write_text(show_texts([text]))
    for page in sorted(tmp_path.iterdir()):
        for theme in ("light", "dark"):
            browser.get(page.as_uri())
            assert_accessible(browser, axe, theme, width)
