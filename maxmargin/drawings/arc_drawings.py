"""Words in a row and arcs over and under them: dependency trees, and trees of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from maxmargin.display.markup import Markup, table, tag
from maxmargin.drawings.outcomes import LONGEST, Drawing, Outcome, shorten, words_of
from maxmargin.metrics.attachment import las, uas

LINE, PER_LETTER, SMALLER, GAP, LOWEST, PER_WORD, HIGHEST = 16, 7.5, 5.5, 14, 14, 14, 140  # pixels
MOST_LETTERS = 20  # of the label of an arc
ROOT = -1


class Arc(NamedTuple):
    """From the head, a word counted from 0 or the root, to a word; its label, and its class in the style sheet."""

    head: int
    word: int
    label: str
    style: str


class Column(NamedTuple):
    """Lines of text at a word, with their classes in the style sheet."""

    lines: list[tuple[str, str]]

    @property
    def width(self) -> float:
        """About how many pixels it takes."""
        return GAP + PER_LETTER * max((len(text) for text, _ in self.lines), default=0)


def draw_diagram(words: Sequence[Column], above: Sequence[Arc], below: Sequence[Arc]) -> Markup:
    """Words in a row with arcs above and below them."""
    words = words[:LONGEST]
    centers, right = [], 8.0
    for m, word in enumerate(words):
        labels = [len(arc.label[:MOST_LETTERS]) for arc in (*above, *below) if arc.word == m]
        width = max(word.width, GAP + SMALLER * max(labels, default=0))
        centers.append(right + width / 2)
        right += width
    n_lines = max((len(word.lines) for word in words), default=0)
    arcs = [[arc for arc in side if max(arc.head, arc.word) < len(words)] for side in (above, below)]
    heights = [max((_height(arc) for arc in side), default=0) + (14 if side else 4) for side in arcs]
    top, bottom = heights[0], heights[0] + LINE * n_lines + 6
    marks = [
        tag("text", shorten(text, 40), x=f"{x:.1f}", y=top + LINE * (k + 0.85), text_anchor="middle", class_=style)
        for x, word in zip(centers, words, strict=True)
        for k, (text, style) in enumerate(word.lines)
        if text
    ]
    for side, base, way in zip(arcs, (top, bottom), (-1, 1), strict=True):
        marks += [mark for arc in side for mark in _draw_arc(arc, centers, base, way)]
    size = f"0 0 {right + 8:.0f} {bottom + heights[1]:.0f}"
    drawn = tag("svg", *marks, viewBox=size, width=f"{right + 8:.0f}", role="img", aria_label="arcs", class_="arcs")
    return tag("div", drawn, class_="scroll", tabindex=0)


def _height(arc: Arc) -> float:
    return LOWEST if arc.head == ROOT else min(LOWEST + PER_WORD * abs(arc.head - arc.word), HIGHEST)


def _draw_arc(arc: Arc, centers: Sequence[float], base: float, way: int) -> list[Markup]:
    """An arc that ends at its word, and its label."""
    end, height = centers[arc.word], _height(arc)
    start = end if arc.head == ROOT else centers[arc.head] + (3 if arc.word > arc.head else -3)
    peak = base + way * height
    path = f"M{start:.1f},{base:.1f} C{start:.1f},{peak:.1f} {end:.1f},{peak:.1f} {end:.1f},{base:.1f}"
    if arc.head == ROOT:
        path = f"M{end:.1f},{peak:.1f} L{end:.1f},{base:.1f}"
    tip = f"M{end - 3:.1f},{base + way * 5:.1f} L{end:.1f},{base:.1f} L{end + 3:.1f},{base + way * 5:.1f}"
    marks = [tag("path", d=path, class_=f"arc {arc.style}"), tag("path", d=tip, class_=f"arc {arc.style}")]
    if arc.label:
        y = base + way * (height if arc.head == ROOT else 0.75 * height) + (-3 if way < 0 else 10)
        text = shorten(arc.label, MOST_LETTERS)
        marks.append(
            tag("text", text, x=f"{(start + end) / 2:.1f}", y=f"{y:.1f}", text_anchor="middle", class_="label")
        )
    return marks


def draw_dependencies(example: Outcome) -> Markup:
    """A dependency tree: true arcs above the words, predicted ones below."""
    true, found = (as_arcs(tree) for tree in (example.true, example.found))
    words = [Column([(word, "")]) for word in words_of(example, len(found))]
    above = [
        Arc(head, m, label, "right" if (head, label) == found[m] else "missed") for m, (head, label) in enumerate(true)
    ]
    below = [
        Arc(head, m, label, "right" if (head, label) == true[m] else "spurious")
        for m, (head, label) in enumerate(found)
    ]
    return draw_diagram(words, above, below)


def as_arcs(tree: Any) -> list[tuple[int, str]]:
    """The head of each word, from 0, and the label of its arc, if it has any."""
    pairs = [arc if isinstance(arc, (tuple, list)) else (arc, "") for arc in tree]
    return [(int(head) - 1, str(label)) for head, label in pairs]


def tell_attachment(examples: Sequence[Outcome]) -> list[Markup]:
    """The attachment scores, all words included."""
    true, found = [[*one.true] for one in examples], [[*one.found] for one in examples]
    rows = [("right heads", f"{100 * uas(true, found):.2f} %")]
    if len(examples[0].labels):
        rows.append(("right heads and labels", f"{100 * las(true, found):.2f} %"))
    return [table((), rows, class_="numbers")]


def labels_of_tree(tree: object) -> list[str]:
    """The labels of the arcs of a tree."""
    return sorted({label for _, label in as_arcs(tree)} - {""})


DEPENDENCIES = Drawing(
    draw_dependencies,
    tell_attachment,
    None,
    labels_of_tree,
    note="True arcs are above the words, predicted ones below; wrong ones are dashed above and red below.",
)
