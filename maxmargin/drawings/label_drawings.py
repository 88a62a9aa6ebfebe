"""Labels: of sequences in a row, of trees under arcs, of single rows; what is taken for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.markup import Markup, table, tag
from maxmargin.drawings.arc_drawings import Arc, Column, draw_diagram
from maxmargin.drawings.outcomes import (
    LONGEST,
    Drawing,
    Model,
    Outcome,
    colour_of,
    lead_to,
    shorten,
    show_input,
    words_of,
)
from maxmargin.metrics.calibration import reliability
from maxmargin.metrics.labels import confusion
from maxmargin.problem import exp_oracle, n_examples
from maxmargin.runtime.dispatch import supports

MOST_LABELS = 24  # of a confusion table as such; of more labels there is a list
N_CONFUSIONS = 30  # in that list
N_SHADES = 5


def ask_marginals(model: Model, problem: Any) -> Sequence[Any]:
    """The probabilities of labels of each example, of a model that was trained for them: a CRF."""
    if hasattr(model, "log_likelihood") and supports(exp_oracle, problem):
        return model._predict_marginals(problem)
    return [None] * n_examples(problem)


def draw_labels(example: Outcome) -> Markup:
    """Positions in a row: true labels above what is shown, predicted ones below, with bars of their probabilities."""
    true, found = (as_labels(output) for output in (example.true, example.found))
    cells = []
    for t, word in enumerate(words_of(example, len(found))[:LONGEST]):
        p = None
        if example.known is not None:
            p = float(example.known[t, example.model.classes_.tolist().index(found[t])])
        cells.append(draw_label(word, true[t], found[t], example.labels, p))
    return tag("div", *cells, class_="row")


def draw_label(word: str, true: object, found: object, labels: Sequence[object], p: float | None = None) -> Markup:
    """A word between its true label and the predicted one; the probability of that is told when it is pointed at."""
    told = shorten(found, 40) if true == found else f"true {shorten(true, 40)}, found {shorten(found, 40)}"
    return tag(
        "span",
        tag("span", shorten(true, 40), class_=f"tag {colour_of(true, labels)}"),
        tag("bdi", word, class_="text"),
        tag("span", shorten(found, 40), class_=f"tag {colour_of(found, labels)}"),
        "" if p is None else tag("progress", value=f"{p:.3f}", max=1, aria_label="probability"),
        class_="word" if true == found else "word wrong",
        title=told if p is None else f"{told}, {100 * p:.1f} %",
    )


def draw_labelled_tree(example: Outcome) -> Markup:
    """Nodes of a tree in a row, with arcs from parents above them, and labels, true ones first, below."""
    true, found = (as_labels(output) for output in (example.true, example.found))
    words = []
    for word, a, b in zip(words_of(example, len(found)), true, found, strict=True):
        style = "" if a == b else "missed"
        words.append(Column([(word, ""), (str(a), colour_of(a, example.labels)), (str(b) if a != b else "", style)]))
    edges = np.asarray(example.x[1]).reshape(-1, 2).tolist()
    return draw_diagram(words, [Arc(parent, child, "", "known") for parent, child in edges], [])


def draw_class(example: Outcome) -> Markup:
    """A row of a table: its class, and the predicted one."""
    label = draw_label("example", example.true, example.found, example.labels)
    return tag("div", show_input(example), label, class_="row")


def tell_confusions(examples: Sequence[Outcome]) -> list[Markup]:
    """Which labels are taken for which, as a table whose numbers lead to examples."""
    true, found = ([as_labels(getattr(example, name)) for example in examples] for name in ("true", "found"))
    if not any(true):
        return []
    counts = confusion(true, found)
    n_right, n_all = int(np.trace(counts.counts)), int(counts.counts.sum())
    said = tag("p", f"{n_right:,} of {n_all:,} labels are right: {100 * n_right / max(n_all, 1):.2f} %.")
    if len(counts.labels) > MOST_LABELS:
        return [said, list_confusions(counts.labels, counts.counts)]
    shares = counts.counts / np.maximum(counts.counts.sum(axis=1, keepdims=True), 1)
    rows = [
        [
            shorten(label, 40),
            *(_cell(counts.labels, a, b, counts.counts[a, b], shares[a, b]) for b in range(len(counts.labels))),
        ]
        for a, label in enumerate(counts.labels)
    ]
    titles = ["true, in rows", *(shorten(label, 40) for label in counts.labels)]
    return [said, table(titles, rows, class_="numbers confusion")]


def tell_labels(examples: Sequence[Outcome]) -> list[Markup]:
    """The same, and how far the probabilities of labels can be believed, where there are any."""
    sure = [one for one in examples if one.known is not None]
    true, marginals = [as_labels(one.true) for one in sure], [one.known for one in sure]
    classes = sure[0].model.classes_.tolist() if sure else []
    return [*tell_confusions(examples), *draw_calibration(true, marginals, classes)]


def draw_calibration(
    y: Sequence[Sequence[object]], marginals: Sequence[np.ndarray], classes: list[Any]
) -> list[Markup]:
    """The share of right labels by their probability, of examples with known labels; nothing, if there are none."""
    rows = [
        (labels, p) for labels, p in zip(y, marginals, strict=True) if len(labels) and {*classes}.issuperset(labels)
    ]
    if not rows:
        return []
    found = reliability([labels for labels, _ in rows], [p for _, p in rows], classes)
    curves = [
        Curve("as it should be", np.array([0, 1]), np.array([0, 1]), "c3"),
        Curve("share of right labels", found.confidence, found.accuracy, "c0"),
    ]
    return [draw_curves(curves, "probability of the predicted label", "share", name="Calibration of labels")]


def list_confusions(labels: Sequence[object], counts: np.ndarray) -> Markup:
    """The most frequent confusions, where there are too many labels for a table."""
    wrong = np.where(np.eye(len(labels), dtype=bool), 0, counts)
    order = np.argsort(-wrong, axis=None, kind="stable")[:N_CONFUSIONS]
    pairs = [(k // len(labels), k % len(labels)) for k in order.tolist()]
    rows = [
        (shorten(labels[a], 40), shorten(labels[b], 40), lead_to(confusion_name(labels[a], labels[b]), wrong[a, b]))
        for a, b in pairs
        if wrong[a, b]
    ]
    return table(("true", "found", "times"), rows, class_="numbers")


def _cell(labels: Sequence[object], a: int, b: int, n: int, share: float) -> Markup:
    shade = int(np.ceil(N_SHADES * share))
    if a == b or not n:
        return tag("span", f"{n:,}", class_=f"shade s{shade if a == b else 0}")
    return lead_to(confusion_name(labels[a], labels[b]), n)


def confusion_name(true: object, found: object) -> str:
    """What a confusion is called."""
    return f"{shorten(true, 40)} as {shorten(found, 40)}"


def confusions_of(example: Outcome) -> Counter[str]:
    """The confusions of an example, by name."""
    pairs = zip(as_labels(example.true), as_labels(example.found), strict=True)
    return Counter(confusion_name(a, b) for a, b in pairs if a != b)


def as_labels(output: object) -> list[Any]:
    """An output as a list of labels; that of a single class has one."""
    found = np.asarray(output).tolist() if isinstance(output, np.ndarray | np.generic) else output
    return [found] if isinstance(found, str) or not hasattr(found, "__iter__") else [*found]


ABOVE = "True labels stand above, predicted ones below."
BELOW = "Below each node is its true label, then a wrong one."
LABELS = Drawing(draw_labels, tell_labels, ask_marginals, as_labels, confusions_of, ABOVE)
TREES = Drawing(draw_labelled_tree, tell_confusions, None, as_labels, confusions_of, BELOW)
CLASSES = Drawing(draw_class, tell_confusions, None, as_labels, confusions_of, ABOVE)
