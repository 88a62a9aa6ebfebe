"""Pages of models: their numbers are those of models and metrics, their text only shows."""

import base64
import errno
import json
import os
import re
import struct
import zlib

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from maxmargin import AlignmentSVM, ChainCRF, ChainSVM, GraphCutSVM, MatchingSVM
from maxmargin.display.pictures import as_link, as_pixels
from maxmargin.drawings import label_drawings, model_page
from maxmargin.drawings.model_page import MOST_OTHERS, MOST_WORST
from maxmargin.drawings.span_drawings import find_levels
from maxmargin.inspection import strongest_features
from maxmargin.metrics import compare_taggings, confusion, las, mean_iou, uas
from maxmargin.metrics.resampling import bootstrap_means, compare_means
from maxmargin.vision import grid_edges
from tests.pages import check_page
from tests.small import CASES, chains, make

HOSTILE = ["</script><script>alert(1)</script>", "\u202egnp", "x" * 10_000, "<b>&amp;"]

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def report(model, folder, *examples, **options):
    path = folder / "fit.html"
    model.report(path, *examples, **options)
    text = path.read_text()
    return text, check_page(text)


def scores_of(text):
    """The score of each example that is shown, by number."""
    return {int(i): float(score) for i, score in re.findall(r"X\[(\d+)\], score (-?[\d.]+)", text)}


@pytest.mark.parametrize("name", CASES)
def test_a_page_tells_what_models_tell(name, tmp_path):
    model, X, y, _ = make(name)
    text, elements = report(model.fit(X, y), tmp_path, X, y, command="a <b>", others={"<same>": model})
    assert f"<strong>{model.status_.name}</strong>: {model.status_.value}." in text
    assert f"What is proven of its weights: {model.certificate_}." in text
    assert f"<strong>{model.score(X, y):.4f} (" in text
    assert elements.row("command") == ["a <b>"]
    assert elements.row("training") == [
        f"{model.trace_.seconds[-1]:.1f} s, {model.trace_.passes[-1]:.4g} passes, seed 0"
    ]
    ours, theirs, difference, p, better, worse = elements.row("<same>")
    assert ours == theirs
    assert difference == "0.0000 (0.0000 to 0.0000)"
    assert (float(p), better, worse) == (1.0, "0", "0")
    found = scores_of(text)
    assert [*found] == sorted(found, key=lambda i: found[i])
    assert {*found} == {*range(len(X))}
    for i in (0, 3):
        assert abs(found[i] - model.score([X[i]], [y[i]] if not isinstance(y, np.ndarray) else y[[i]])) < 6e-4


def test_labels(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    y[0] = np.array(["new", *y[0][1:]], object)  # which it never predicts
    model = ChainCRF(random_state=0, C=0.01).fit(X[1:], y[1:])
    text, elements = report(model, tmp_path, X, y)
    predicted = model.predict(X)
    counts = confusion(y, predicted)
    for label, row in zip(counts.labels, counts.counts.tolist(), strict=True):
        assert elements.row(label) == [str(n) for n in row]
    faults = {
        (a, b): n
        for a, row in zip(counts.labels, counts.counts, strict=True)
        for b, n in zip(counts.labels, row, strict=True)
    }
    leads = {given["data-fault"] for _, given in elements.tags if "data-fault" in given}
    assert leads == {f"{a} as {b}" for (a, b), n in faults.items() if n and a != b}
    assert {"new as a", "new as b", "new as c"} & leads
    shown = [(i, t) for i in scores_of(text) for t in range(len(y[i]))]
    marginals, classes = model.predict_marginals(X), model.classes_.tolist()
    values = [float(given["value"]) for tag, given in elements.tags if tag == "progress"]
    expected = [marginals[i][t, classes.index(predicted[i][t])] for i, t in shown]
    assert np.allclose(values, expected, atol=6e-4)
    assert 'aria-label="Calibration of labels"' in text
    svm, _ = report(ChainSVM(random_state=0).fit(X, y), tmp_path, X, y)
    assert "Calibration" not in svm  # which has no probabilities


@pytest.mark.parametrize("estimator", [ChainSVM, ChainCRF])
def test_chains_of_second_order(estimator, tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    model = estimator(order=2, random_state=0).fit(X, y)
    text, _ = report(model, tmp_path, X, y)
    assert f"<strong>{model.score(X, y):.4f} (" in text


def test_weights_of_chains(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    model = ChainCRF(random_state=0, allowed_transitions="observed").fit(X, y)
    text, elements = report(model, tmp_path)
    table, ruled_out = model.coef_.transitions, model._encoder.penalty != 0
    told = re.findall(r"<title>(\w) → (\w): ([^<]*)</title>", text)
    assert len(told) == table.size
    for (a, b, weight), value, is_out in zip(told, table.ravel(), ruled_out.ravel(), strict=True):
        assert weight == ("ruled out" if is_out else f"{value:+.2f}"), (a, b)
    (width,) = [int(given["width"]) for _, given in elements.tags if given.get("class") == "figure heat"]
    assert width >= 8 * len("from (rows), to (columns)")  # of few labels, too
    (found,) = (json.loads(script) for script in elements.scripts if script.startswith("{"))
    for (label, _, features), expected in zip(found["features"], model.classes_.tolist(), strict=True):
        strongest = strongest_features(model, label, len(features))
        assert (label, features) == (expected, [[one.of, round(one.weight, 4)] for one in strongest])
    kernel = make("KernelChainSVM")[0].fit(X, y)
    assert "Strongest features" not in report(kernel, tmp_path)[0]


def test_trees_of_words(tmp_path):
    model, X, y, _ = make("DependencySVM")
    words = [[*HOSTILE, *"abcd"][: len(tree)] for tree in y]
    model.C = 1e-4
    text, elements = report(model.fit(X, y), tmp_path, X, y, shown=words)
    predicted = model.predict(X)
    assert elements.row("right heads") == [f"{100 * uas(y, predicted):.2f} %"]
    assert elements.row("right heads and labels") == [f"{100 * las(y, predicted):.2f} %"]
    styles = [given["class"] for tag, given in elements.tags if tag == "path"]
    n_right = sum(tuple(a) == tuple(b) for rows in zip(y, predicted, strict=True) for a, b in zip(*rows, strict=True))
    assert styles.count("arc right") == 4 * n_right  # the line and its tip, above and below
    assert styles.count("arc missed") == styles.count("arc spurious") == 2 * (sum(map(len, y)) - n_right)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize("is_shown", [True, False])
def test_matchings(is_shown, tmp_path):
    model, X, y, _ = make("MatchingSVM")
    sides = [([f"left {k}" for k in range(x.shape[0])], HOSTILE[: x.shape[1]]) for x in X]
    _, elements = report(model.fit(X, y), tmp_path, X, y, shown=sides if is_shown else None)
    true, found = (np.concatenate(rows) for rows in (y, model.predict(X)))
    n_right = int(((true == found) & (true >= 0)).sum())
    assert elements.row("links")[3:] == [str(int(n)) for n in ((true >= 0).sum(), (found >= 0).sum(), n_right)]
    drawn = [given.get("class") for tag, given in elements.tags if tag == ("rect" if is_shown else "line")]
    assert drawn.count("link right" if is_shown else "arc right") == n_right


@pytest.mark.parametrize("name", ["SpanSVM", "SegmentSVM"])
def test_spans(name, tmp_path):
    model, X, y, _ = make(name)
    model.fit(X, y)
    X = [-x for x in X]
    words = [(HOSTILE * 2)[: max(end for _, end, _ in spans)] for spans in y]
    y[0] = [span for span in y[0] if span[2] != "S"]  # whose last word is in no span
    predicted = model.predict(X)
    text, elements = report(model, tmp_path, X, y, shown=words)
    true, found = ([{*map(tuple, spans)} for spans in rows] for rows in (y, predicted))
    right = [a & b for a, b in zip(true, found, strict=True)]
    assert true != found
    n_true, n_found, n_right = (sum(map(len, rows)) for rows in (true, found, right))
    assert elements.row("all")[3:] == [str(n) for n in (n_true, n_found, n_right, n_true - n_right, n_found - n_right)]
    label = y[0][0][2]
    counts = [sum(span[2] == label for spans in rows for span in spans) for rows in (true, found, right)]
    assert elements.row(label)[3:6] == [str(n) for n in counts]
    styles = [given.get("class") for tag, given in elements.tags if tag == "path"]
    wrong = n_true - n_right, n_found - n_right
    assert [styles.count(f"arc {style}") for style in ("right", "missed", "spurious")] == [2 * n_right, *wrong]
    faults = [given["data-faults"].split("\n") for _, given in elements.tags if "data-faults" in given]
    assert sum("all missed" in names for names in faults) == sum(a > b for a, b in zip(true, right, strict=True))
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text


def test_brackets_lie_over_those_within_them():
    assert find_levels([]) == {}
    assert find_levels([(0, 1, "A"), (0, 1, "B"), (0, 2, "A")]) == {(0, 1, "A"): 0, (0, 1, "B"): 1, (0, 2, "A"): 2}


def test_alignments(tmp_path):
    X, y = [("colour", "color"), ("<b>", "<b")], ["MMMMDM", "MMD"]
    model = AlignmentSVM(C=1.0, random_state=0).fit(X, y)
    text, elements = report(model, tmp_path, X, y)
    true = [{(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)}, {(0, 0), (1, 1)}]
    found = [{(a, b) for a, b in enumerate(match.tolist()) if b >= 0} for match in model.predict(X)]
    n_right = sum(len(a & b) for a, b in zip(true, found, strict=True))
    assert elements.row("links")[3:] == ["7", str(sum(map(len, found))), str(n_right)]
    drawn = [given.get("class") for tag, given in elements.tags if tag == "line"]
    assert drawn.count("arc right") == n_right
    assert "colourcolor" in "".join(re.findall(r">([^<])</text>", text))


def test_sets_of_labels(tmp_path):
    model, X, y, _ = make("MultiLabelSVM")
    model.C = 1e-3
    _, elements = report(model.fit(X, y), tmp_path, X, y)
    found = model.predict(X)
    precision, recall, f1, n_true = precision_recall_fscore_support(y, found, zero_division=0)
    for k in range(3):
        right = int((y[:, k] & found[:, k]).sum())
        shares = [f"{100 * value:.2f}" for value in (precision[k], recall[k], f1[k])]
        counts = [n_true[k], found[:, k].sum(), right, n_true[k] - right, found[:, k].sum() - right]
        assert elements.row(f"label {k}") == [*shares, *(str(int(n)) for n in counts)]
    faults = "\n".join(given["data-faults"] or "" for _, given in elements.tags if "data-faults" in given).split("\n")
    assert faults.count("label 0 missed") == int((y[:, 0] & ~found[:, 0] & 1).sum())
    assert faults.count("all spurious") == int(((y == 0) & (found == 1)).any(axis=1).sum())


def test_boxes(tmp_path):
    model, X, y, _ = make("BoxSVM")
    model.fit(X, y)
    _, elements = report(model, tmp_path, X, y, shown=[x[:, :, 0] for x in X])
    assert elements.row("mean IoU") == [f"{100 * mean_iou(y, model.predict(X)):.2f}"]
    told = sum(len(scores) for _, scores in model.detect(X, max_boxes=5))
    styles = [given.get("class") for tag, given in elements.tags if tag == "rect"]
    assert styles.count("box missed") == len(X)
    assert styles.count("box right") + styles.count("box spurious") == len(X)
    assert styles.count("box other") == told - len(X)


def test_masks(tmp_path):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 2, 12) for _ in range(4)]
    X = [(labels[:, None] + 0.8 * rng.normal(size=(12, 1)), grid_edges(3, 4)) for labels in y]
    model = GraphCutSVM(random_state=0).fit(X, y)
    images = [rng.integers(0, 255, (3, 4, 3), np.uint8) for _ in X]
    text, elements = report(model, tmp_path, X, y, shown=images)
    assert f"{sum(one.is_exact for one in model.predict_certified(X))} of 4 predictions are proven" in text
    shares = [f"{100 * np.mean(a != b):.1f} % of pixels wrong" for a, b in zip(y, model.predict(X), strict=True)]
    assert sorted(re.findall(r"<figcaption>([^<]*wrong)", text)) == sorted(shares)
    links = [given["href"] for tag, given in elements.tags if tag == "image"]
    assert len(links) == 4 * (1 + 3)
    assert all(links.count(as_link(as_pixels(image))) == 1 for image in images)
    ids = [given["id"] for tag, given in elements.tags if tag == "g"]
    again = [given["href"] for tag, given in elements.tags if tag == "use"]
    assert sorted(again) == sorted(2 * [f"#{name}" for name in ids])
    assert len(ids) == 4
    segments = [(np.zeros((6, 8)), np.kron(np.arange(12).reshape(3, 4), np.ones((2, 2), int))) for _ in X]
    again, _ = report(model, tmp_path, X, y, shown=segments)
    assert sorted(re.findall(r"<figcaption>([^<]*wrong)", again)) == sorted(shares)
    for wrong, message in (
        (np.zeros((2, 4)), r"shown\[3\] must be an image of 12 pixels, the nodes, not 8"),
        ((np.zeros((3, 4)), np.full((3, 4), 12)), r"shown\[3\] must have a node, from 0 to 11"),
        ((np.zeros((3, 4)), np.zeros((4, 3), int)), r"shown\[3\] must have a node, from 0 to 11"),
    ):
        with pytest.raises(ValueError, match=message):
            report(model, tmp_path, X, y, shown=[*images[:3], wrong])


def test_pictures():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    file = base64.b64decode(as_link(pixels).partition(",")[2])
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, kind = struct.unpack(">IIBB", file[16:26])
    assert (width, height, depth, kind) == (3, 2, 8, 6)
    size = struct.unpack(">I", file[33:37])[0]
    rows = np.frombuffer(zlib.decompress(file[41 : 41 + size]), np.uint8).reshape(2, 13)
    assert not rows[:, 0].any()
    assert (rows[:, 1:].reshape(2, 3, 4) == pixels).all()
    gray = as_pixels(np.array([[0.0, 1.0], [np.nan, 0.5]]))
    assert gray[:, :, 0].tolist() == [[0, 255], [0, 128]]
    assert max(as_pixels(np.zeros((1000, 30))).shape) == 125
    with pytest.raises(ValueError, match=r"An image must be .* numbers, not array\('x'"):
        as_pixels(np.array("x"))


def test_the_worst_and_a_sample_are_shown(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (500, 1))
    X = [labels[:, None] + rng.normal(size=(1, 1)) for labels in y]
    model = ChainSVM(random_state=0).fit(X[:50], [*y[:50]])
    text, _ = report(model, tmp_path, X, [*y])
    n_others = 500 - MOST_WORST
    assert f"The {MOST_WORST} worst examples, and {MOST_OTHERS} of the other {n_others}." in text
    wrong = {i for i, labels in enumerate(model.predict(X)) if labels[0] != y[i, 0]}
    assert len(wrong) > MOST_WORST
    assert [*scores_of(text).values()][:MOST_WORST] == [0.0] * MOST_WORST
    assert len(scores_of(text)) == MOST_WORST + MOST_OTHERS
    assert len(text) < 1e5


def test_large_pages_are_cut(tmp_path, monkeypatch):
    model, X, y, _ = make("ChainSVM")
    model.fit(X, y)
    monkeypatch.setattr(model_page, "MOST_LETTERS", 1)
    text, _ = report(model, tmp_path, X, y)
    assert f"The 1 worst examples, and 0 of the other {len(X) - 1}. More would make the page too large." in text
    assert len(scores_of(text)) == 1


def test_lists_of_confusions_lead_to_examples(tmp_path, monkeypatch):
    monkeypatch.setattr(label_drawings, "MOST_LABELS", 1)
    X, y, _ = chains(np.random.default_rng(0))
    model = ChainSVM(random_state=0, C=1e-5).fit(X, y)
    _, elements = report(model, tmp_path, X, y)
    leads = {given["data-fault"] for tag, given in elements.tags if tag == "button" and "data-fault" in given}
    pairs = [zip(*pair, strict=True) for pair in zip(y, model.predict(X), strict=True)]
    assert leads == {f"{a} as {b}" for pair in pairs for a, b in pair if a != b}
    assert leads


def test_two_models(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    first, second = (ChainSVM(random_state=0, C=C).fit(X[:k], y[:k]) for C, k in ((1.0, 4), (1e-4, 2)))
    _, elements = report(first, tmp_path, X, y, others={"<other>": second})
    found = compare_taggings(y, second.predict(X), first.predict(X), entities=False)
    ours, theirs, difference, p, better, worse = elements.row("<other>")
    for told, interval in ((ours, found.second), (theirs, found.first), (difference, found.difference)):
        assert told == f"{interval.value:.4f} ({interval.low:.4f} to {interval.high:.4f})"
    assert p == f"{found.p_value:.3f}"
    right = [[int((a == b).sum()) for a, b in zip(y, model.predict(X), strict=True)] for model in (first, second)]
    assert (int(better), int(worse)) == (np.greater(*right).sum(), np.less(*right).sum())
    faults = [given["data-faults"] for _, given in elements.tags if "data-faults" in given]
    assert sum("better than <other>" in fault.split("\n") for fault in faults) == int(better)


def test_intervals_of_means():
    rng = np.random.default_rng(0)
    right, sizes = rng.integers(0, 2, 30).astype(float), rng.integers(1, 4, 30).astype(float)
    interval = bootstrap_means(-right * sizes, 100 * sizes, n_draws=300)
    means = [
        (-right * sizes)[drawn].sum() / (100 * sizes)[drawn].sum()
        for drawn in (
            np.repeat(np.arange(30), counts)
            for counts in np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30), 300)
        )
    ]
    assert np.allclose(interval, [-(right * sizes).sum() / (100 * sizes).sum(), *np.quantile(means, [0.025, 0.975])])
    same = compare_means(right, right, np.ones(30))
    assert same.difference == (0.0, 0.0, 0.0)


def test_without_examples(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    model = ChainSVM(random_state=0).fit(X, y)
    for examples in ((), ([], [])):
        text, _ = report(model, tmp_path, *examples)
        assert "There are no held-out examples" in text
        assert 'id="drawn"' not in text
    text, _ = report(model, tmp_path, [np.empty((0, 3))], [[]])
    assert "nothing to score" in text


def test_hostile_labels(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    y = [np.array([HOSTILE["abc".index(label)] for label in labels], object) for labels in y]
    words = [[*HOSTILE][: len(labels)] for labels in y]
    text, elements = report(ChainSVM(random_state=0, C=1e-5).fit(X, y), tmp_path, X, y, shown=words, title=HOSTILE[0])
    data, script = elements.scripts
    assert "<script>alert(1)" not in text
    assert "alert(1)" not in script
    assert [label for label, *_ in json.loads(data)["features"]] == sorted(label[:40] for label in HOSTILE[:3])
    assert "x" * 201 not in text


def test_what_cannot_be_reported(tmp_path, monkeypatch):
    X, y, other = chains(np.random.default_rng(0))
    model = ChainSVM(random_state=0).fit(X, y)
    path = tmp_path / "a.html"
    with pytest.raises(ValueError, match="not fitted yet"):
        ChainSVM().report(path)
    with pytest.raises(ValueError, match="X and y must be given together"):
        model.report(path, X)
    with pytest.raises(ValueError, match="shown must hold one item for each of 8 examples, not 3"):
        model.report(path, X, y, shown=[["a"]] * 3)
    with pytest.raises(ValueError, match=r"shown\[(\d)\] must hold (\d) words, not 1, as X\[\1\] has \2 positions"):
        model.report(path, X, y, shown=[["a"]] * 8)
    with pytest.raises(ValueError, match="features"):
        model.report(path, other, [["a", "b"]])
    links, sides = make("MatchingSVM")[1:3]
    with pytest.raises(ValueError, match=r"others\['links'\] cannot be compared: X\[0\] must be an \(n, m, F\) array"):
        model.report(path, X, y, others={"links": MatchingSVM(random_state=0).fit(links, sides)})
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        model.report(tmp_path / "no" / "a.html")
    path.write_text("before")

    def is_full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", is_full)
    with pytest.raises(OSError, match=r"a\.html' cannot be written: No space left on device\."):
        model.report(path, X, y)
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]
