"""Words in a row between brackets over and under them: constituents, one within another, and segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maxmargin.display.markup import Markup, tag
from maxmargin.drawings.label_drawings import ABOVE, LABELS, as_labels
from maxmargin.drawings.outcomes import LONGEST, Drawing, Outcome, colour_of, shorten, tell_counts, words_of
from maxmargin.structures.segments.segment_parts import SegmentProblem
from maxmargin.structures.spans.span_parts import SpanProblem

LINE, LEVEL, PER_LETTER, SMALLER, GAP, TICK, EDGE = 16, 20, 7.5, 6.5, 12, 4, 8  # pixels
MOST_LETTERS = 16  # of a label

Span = tuple[int, int, object]


def as_spans(output: Iterable[Span]) -> set[Span]:
    """Where spans start and end, and their labels."""
    return {(int(start), int(end), label) for start, end, label in output}


def find_levels(spans: Sequence[Span]) -> dict[Span, int]:
    """How many brackets lie between each span and the words: one more than those of the spans within it.

    Examples
    --------
    >>> from maxmargin.drawings.span_drawings import find_levels
    >>> find_levels([(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")])
    {(0, 1, 'NP'): 0, (2, 3, 'NP'): 0, (1, 3, 'VP'): 1, (0, 3, 'S'): 2}
    """
    levels: dict[Span, int] = {}
    for span in sorted(spans, key=lambda one: (one[1] - one[0], one[0], str(one[2]))):
        within = [level for inner, level in levels.items() if span[0] <= inner[0] and inner[1] <= span[1]]
        levels[span] = 1 + max(within, default=-1)
    return levels


def ask_lengths(model: object, problem: SpanProblem | SegmentProblem) -> list[int]:
    """How many words each sentence has, or rows each sequence."""
    return np.diff(problem.starts).tolist()


def draw_spans(example: Outcome) -> Markup:
    """Brackets: true ones above the words, predicted ones below."""
    true, found = (as_spans(output) for output in (example.true, example.found))
    words = words_of(example, example.known)[:LONGEST]
    sides = [find_levels([span for span in side if span[1] <= len(words)]) for side in (true, found)]
    edges = place_words(words, {*sides[0], *sides[1]})
    heights = [LEVEL * (1 + max(side.values(), default=-1)) + EDGE for side in sides]
    top, bottom = heights[0], heights[0] + LINE + EDGE
    marks = [
        tag("text", word, x=f"{(left + right) / 2:.1f}", y=top + LINE - 2, text_anchor="middle")
        for word, left, right in zip(words, edges, edges[1:], strict=False)
    ]
    for side, others, wrong, base, way in ((0, found, "missed", top, -1), (1, true, "spurious", bottom, 1)):
        for span, level in sides[side].items():
            style = "right" if span in others else wrong
            marks += draw_bracket(span, edges, base + way * (LEVEL * level + TICK), way, style, example.labels)
    size = {"viewBox": f"0 0 {edges[-1] + EDGE:.0f} {bottom + heights[1]:.0f}", "width": f"{edges[-1] + EDGE:.0f}"}
    drawn = tag("svg", *marks, **size, role="img", aria_label="spans", class_="arcs")
    return tag("div", drawn, class_="scroll", tabindex=0)


def place_words(words: Sequence[str], spans: set[Span]) -> list[float]:
    """Where words begin, and where the last one ends: each as wide as its text, and as labels over it alone."""
    edges = [float(EDGE)]
    for t, word in enumerate(words):
        labels = [
            SMALLER * min(len(str(label)), MOST_LETTERS) for start, end, label in spans if (start, end) == (t, t + 1)
        ]
        edges.append(edges[-1] + GAP + max(PER_LETTER * len(word), *labels, 0))
    return edges


def draw_bracket(
    span: Span, edges: Sequence[float], y: float, way: int, style: str, labels: Sequence[object]
) -> list[Markup]:
    """A bracket that is open towards the words, and its label."""
    start, end, label = span
    left, right = edges[start] + 2, edges[end] - 2
    path = f"M{left:.1f},{y - way * TICK:.1f} V{y:.1f} H{right:.1f} V{y - way * TICK:.1f}"
    at = {"x": f"{(left + right) / 2:.1f}", "y": f"{y + (10 if way > 0 else -3):.1f}", "text_anchor": "middle"}
    name = tag("text", shorten(label, MOST_LETTERS), class_=f"label {colour_of(label, labels)}", **at)
    return [tag("path", tag("title", f"{shorten(label, 40)}: {style}"), d=path, class_=f"arc {style}"), name]


def tell_spans(examples: Sequence[Outcome]) -> list[Markup]:
    """Precision, recall and F1 of spans, of all and by label; each is right if a true one has its ends and label."""
    counts = [Counter[Any]() for _ in range(3)]
    for example in examples:
        true, found = as_spans(example.true), as_spans(example.found)
        for count, spans in zip(counts, (true, found, true & found), strict=True):
            count.update(label for _, _, label in spans)
    n_true, n_found, n_right = counts
    rows = [("all", n_true.total(), n_found.total(), n_right.total())]
    rows += [(shorten(label, 40), n_true[label], n_found[label], n_right[label]) for label in examples[0].labels]
    return [tell_counts(rows, ("missed", "spurious"))]


def faults_of(example: Outcome) -> set[str]:
    """Spans that are missed or spurious, of all and by label."""
    true, found = as_spans(example.true), as_spans(example.found)
    wrong = [
        (label, fault) for spans, fault in ((true - found, "missed"), (found - true, "spurious")) for *_, label in spans
    ]
    return {f"{name} {fault}" for label, fault in wrong for name in ("all", shorten(label, 40))}


def labels_of(output: Iterable[Span]) -> list[object]:
    """The labels of spans."""
    return [label for _, _, label in output]


def are_tags(output: Sequence[object]) -> bool:
    """Whether segments are given as tags: B-PER, I-PER, O."""
    return len(output) > 0 and isinstance(output[0], str)


def draw_segments(example: Outcome) -> Markup:
    """Segments between brackets; tags in a row, where they are given as such."""
    return LABELS.draw(example._replace(known=None)) if are_tags(example.true) else draw_spans(example)


def tell_segments(examples: Sequence[Outcome]) -> Sequence[Markup]:
    """Scores of segments; what tags are taken for, where they are given as such."""
    return LABELS.tell(examples) if any(are_tags(one.true) for one in examples) else tell_spans(examples)


NOTE = "True brackets are above the words, predicted ones below; wrong ones are dashed above and red below."
CONSTITUENTS = Drawing(draw_spans, tell_spans, ask_lengths, labels_of, faults_of, NOTE)
SEGMENTS = Drawing(
    draw_segments,
    tell_segments,
    ask_lengths,
    lambda output: as_labels(output) if are_tags(output) else labels_of(output),
    lambda example: LABELS.faults(example) if are_tags(example.true) else faults_of(example),
    f"{ABOVE} Wrong brackets are dashed above and red below.",
)
