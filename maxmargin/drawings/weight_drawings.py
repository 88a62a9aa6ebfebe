"""What models of chains have learned: weights of transitions, and the strongest features of each label."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.display.figures import draw_table
from maxmargin.display.markup import Markup, join, tag
from maxmargin.display.page import Section
from maxmargin.inspection import strongest_by_label

N_FEATURES = 15  # of each label, that are shown at first; the search looks at more
N_SEARCHED, MOST_SEARCHED = 200, 8000  # of each label, and of all labels that have more than the first
MOST_LABELS, LONGEST_LABEL = 40, 40  # whose transitions are drawn; characters of their names
LONGEST_NAME = 100  # of a feature


def show_weights(model: Any) -> Section:
    """Transitions as a heat map, and the strongest features of each label, which the script fills in."""
    names = [str(label) for label in model.classes_.tolist()]
    values = np.where(model._encoder.penalty == 0, np.asarray(model.coef_.transitions, float), np.nan)
    largest = np.nan_to_num(np.fmax(np.abs(values), np.abs(values).T)).max(axis=1, initial=0.0)
    which = np.sort(np.argsort(-largest, kind="stable")[:MOST_LABELS])
    said = f"Of {len(names):,} labels, the {MOST_LABELS} whose transitions have the largest weights."
    heat = draw_table(
        [names[k][:LONGEST_LABEL] for k in which],
        values[np.ix_(which, which)],
        name="Weights of transitions",
        row_title="from",
        column_title="to",
    )
    search = tag(
        "p",
        tag("label", "Features or label ", Markup('<input id="feature" type="search" autocomplete="off">')),
        tag("span", "", id="cards", role="status"),
        class_="choice",
    )
    parts = [
        tag("h3", "Transitions"),
        tag("p", said) if len(which) < len(names) else "",
        tag("div", heat, class_="scroll", tabindex=0),
        tag("h3", "Strongest features"),
        search,
        tag("div", "", id="features", class_="cards"),
    ]
    return Section("weights", "Weights", join(parts))


def list_features(model: Any) -> list[list[object]]:
    """The features of the largest weights of each label, for the script."""
    labels = model.classes_.tolist()
    most = min(N_SEARCHED, max(N_FEATURES, MOST_SEARCHED // len(labels)))
    found = strongest_by_label(model, labels, most)
    return [
        [str(label)[:LONGEST_LABEL], N_FEATURES, [[one.of[:LONGEST_NAME], round(one.weight, 4)] for one in row]]
        for label, row in zip(labels, found, strict=True)
    ]
