"""Choices: one of several candidates, and several labels of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.drawings.outcomes import Drawing, Outcome, shorten, show_input, tell_counts

MOST = 20  # candidates that are drawn
MISSED, SPURIOUS = "missed", "spurious"


def draw_candidates(example: Outcome) -> Markup:
    """The candidates, with the true one and the chosen one marked; by number, unless their texts are shown."""
    n, true, found = len(example.x), int(example.true), int(example.found)
    texts = [f"candidate {k}" for k in range(n)] if example.shown is None else [*example.shown]
    if len(texts) != n:
        raise ValueError(
            f"shown[{example.i}] must hold {n} texts, not {len(texts)}, as X[{example.i}] has {n} candidates."
        )
    which = sorted({*range(min(n, MOST)), true, found} & {*range(n)})
    items = []
    for k in which:
        style = ("right" if k == true else "spurious") if k == found else "missed" if k == true else ""
        said = {"right": "chosen, right", "spurious": "chosen, wrong", "missed": "true"}.get(style, "")
        items.append((shorten(texts[k]), tag("span", said, class_=style)))
    rest = tag("p", f"{n - len(which):,} others", class_="about") if len(which) < n else ""
    return join([table((), items), rest])


def tell_choices(examples: Sequence[Outcome]) -> list[Markup]:
    """How many choices are right."""
    n_right = sum(int(one.true) == int(one.found) for one in examples)
    return [tag("p", f"{n_right:,} of {len(examples):,} choices are right.")]


def draw_label_set(example: Outcome) -> Markup:
    """The labels of a row: right ones, missed ones and spurious ones."""
    true, found = (np.asarray(one).astype(bool) for one in (example.true, example.found))
    chips = []
    for k in np.flatnonzero(true | found).tolist():
        style = "right" if true[k] and found[k] else "missed" if true[k] else "spurious"
        chips.append(tag("span", f"label {k}", class_=f"chip {style}", title=style))
    return tag("div", show_input(example), join(chips or ["no label"]), class_="row")


def tell_label_sets(examples: Sequence[Outcome]) -> list[Markup]:
    """Precision, recall and F1 of each label, and of all."""
    true, found = (np.array([getattr(one, name) for one in examples]).astype(bool) for name in ("true", "found"))
    counts = np.stack([flags.sum(axis=0) for flags in (true, found, true & found)], axis=1)
    rows = [(f"label {k}", *row) for k, row in enumerate(counts.tolist())]
    return [tell_counts([("all", *counts.sum(axis=0).tolist()), *rows], (MISSED, SPURIOUS))]


def faults_of_set(example: Outcome) -> list[str]:
    """Labels that are missed or spurious, by name."""
    true, found = (np.asarray(one).astype(bool) for one in (example.true, example.found))
    of = [(MISSED, np.flatnonzero(true & ~found)), (SPURIOUS, np.flatnonzero(found & ~true))]
    return [f"{name} {fault}" for fault, which in of for name in _names_of(which)]


def _names_of(which: np.ndarray) -> list[str]:
    return ["all", *(f"label {k}" for k in which.tolist())] if which.size else []


CANDIDATES = Drawing(draw_candidates, tell_choices)
LABEL_SETS = Drawing(
    draw_label_set,
    tell_label_sets,
    faults=faults_of_set,
    note="Green labels are right, dashed ones are missed, red ones are spurious.",
)
