"""Links between two sides: as lines between two rows of nodes, or as a grid, as of word alignments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.display.markup import Markup, tag
from maxmargin.drawings.outcomes import Drawing, Model, Outcome, shorten, tell_counts
from maxmargin.problem import true_outputs
from maxmargin.structures.monotone.alignment_problem import AlignmentProblem

CELL, GAP, APART, PER_LETTER = 18, 12, 70, 7.5  # pixels
MOST = 60  # nodes of a side that are drawn

Link = tuple[int, int]


def as_links(output: object) -> set[Link]:
    """Links as pairs of a left and a right node, from these or from the right node of each left node, -1 for none."""
    array = np.asarray(sorted(output) if isinstance(output, (set, frozenset)) else output)
    if array.ndim == 2:
        return {(int(left), int(right)) for left, right in array}
    return {(left, int(right)) for left, right in enumerate(array.tolist()) if right >= 0}


class KnownLinks(NamedTuple):
    """The true links of two sequences, which may be given as operations, and how many items each has."""

    links: Any
    sides: tuple[int, int]


def ask_alignments(model: Model, problem: AlignmentProblem) -> list[KnownLinks]:
    """The true alignment of each example as it would be predicted."""
    found = model._encoder.decode_all(problem, true_outputs(problem))
    return [KnownLinks(links, tuple(sides)) for links, sides in zip(found, problem.sides.tolist(), strict=True)]


def links_in(example: Outcome) -> tuple[set[Link], set[Link]]:
    """The true links of an example, and the predicted ones."""
    return as_links(example.true if example.known is None else example.known.links), as_links(example.found)


def draw_alignment(example: Outcome) -> Markup:
    """Two sequences, one above the other, and lines between the items that are aligned."""
    sides = example.x if example.shown is None else example.shown
    if isinstance(sides, tuple) and all(len(side) and isinstance(side[0], str) for side in sides):
        left, right = ([shorten(item, 24) for item in side] for side in sides)
    else:
        left, right = ([str(k) for k in range(n)] for n in example.known.sides)
    return draw_links(left, right, *links_in(example))


def draw_matching(example: Outcome) -> Markup:
    """A matching: a grid where words of both sides are shown, else lines between nodes."""
    true, found = links_in(example)
    if example.shown is not None:
        left, right = ([shorten(word, 24) for word in side] for side in example.shown)
        return draw_grid(left, right, true, found)
    sides = np.shape(example.x)[:2] if np.ndim(example.x) == 3 else example.x[1]
    left, right = ([str(k) for k in range(int(n))] for n in sides)
    return draw_links(left, right, true, found)


def judge(link: Link, true: Collection[Link], found: Collection[Link]) -> str:
    """The class of a link in the style sheet."""
    return "right" if link in true and link in found else "missed" if link in true else "spurious"


def draw_links(left: Sequence[str], right: Sequence[str], true: Collection[Link], found: Collection[Link]) -> Markup:
    """Two rows of nodes, the left side above, with lines between those that are linked."""
    rows = [side[:MOST] for side in (left, right)]
    places = []
    for side in rows:
        ends = np.cumsum([GAP + PER_LETTER * len(text) for text in side])
        places.append(ends - np.diff(ends, prepend=0) / 2)
    width = max((float(place[-1]) for place in places if len(place)), default=0) + 40
    marks = []
    for link in sorted({*true, *found}):
        if link[0] < len(rows[0]) and link[1] < len(rows[1]):
            x = [f"{place[node]:.1f}" for place, node in zip(places, link, strict=True)]
            marks.append(tag("line", x1=x[0], y1=20, x2=x[1], y2=APART, class_=f"arc {judge(link, true, found)}"))
    for side, place, y in zip(rows, places, (14, APART + 14), strict=True):
        marks += [
            tag("text", text, x=f"{x:.1f}", y=y, text_anchor="middle") for text, x in zip(side, place, strict=True)
        ]
    drawn = tag("svg", *marks, viewBox=f"0 0 {width:.0f} {APART + 22}", width=f"{width:.0f}", **_named("links"))
    return tag("div", drawn, class_="scroll", tabindex=0)


def draw_grid(left: Sequence[str], right: Sequence[str], true: Collection[Link], found: Collection[Link]) -> Markup:
    """The left side in rows, the right one in columns, and a cell for each link: as word alignments are drawn."""
    left, right = left[:MOST], right[:MOST]
    across, down = (20 + PER_LETTER * max(map(len, side), default=0) for side in (left, right))
    width, height = across + CELL * len(right) + 8, down + CELL * len(left) + 8
    lines = [
        tag("line", x1=across, x2=width - 8, y1=down + CELL * k, y2=down + CELL * k, class_="grid")
        for k in range(len(left) + 1)
    ]
    lines += [
        tag("line", x1=across + CELL * k, x2=across + CELL * k, y1=down, y2=height - 8, class_="grid")
        for k in range(len(right) + 1)
    ]
    names = [
        tag("text", text, x=across - 6, y=down + CELL * (k + 0.7), text_anchor="end") for k, text in enumerate(left)
    ]
    names += [
        tag("text", text, transform=f"translate({across + CELL * (k + 0.7):g} {down - 6:g}) rotate(-90)")
        for k, text in enumerate(right)
    ]
    cells = []
    for a, b in sorted({*true, *found}):
        if a < len(left) and b < len(right):
            style = judge((a, b), true, found)
            place = {"x": across + CELL * b + 3, "y": down + CELL * a + 3, "width": CELL - 6, "height": CELL - 6}
            told = tag("title", f"{left[a]}, {right[b]}: {style}")
            cells.append(tag("rect", told, class_=f"link {style}", **place))
    drawn = tag(
        "svg", *lines, *names, *cells, viewBox=f"0 0 {width:g} {height:g}", width=f"{width:g}", **_named("alignment")
    )
    return tag("div", drawn, class_="scroll", tabindex=0)


def _named(name: str) -> dict[str, str]:
    return {"role": "img", "aria_label": name, "class_": "arcs"}


def tell_links(examples: Sequence[Outcome]) -> list[Markup]:
    """Precision, recall and F1 of links."""
    pairs = [links_in(one) for one in examples]
    n_true, n_found, n_right = (sum(map(len, sets)) for sets in (*zip(*pairs, strict=True), [a & b for a, b in pairs]))
    return [tell_counts([("links", n_true, n_found, n_right)])]


NOTE = "Green links are right, dashed ones are missed, red ones are spurious."
LINKS = Drawing(draw_matching, tell_links, note=NOTE)
ALIGNMENTS = Drawing(draw_alignment, tell_links, ask_alignments, note=NOTE)
