"""What a page asks of a kind of outputs: how one of them is drawn, what is told of all, and what else to ask a model.

Each estimator has a `Drawing`; a new structure needs one function that draws an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin.display.markup import Markup, escape, join, table, tag
from maxmargin.display.pictures import as_picture
from maxmargin.problem import AnyProblem

LONGEST = 200  # positions, nodes or characters of an example that are drawn
N_COLOURS = 8  # of labels, in the style sheet


class Model(Protocol):
    """A fitted model, as a drawing asks it."""

    _encoder: Any
    _w: np.ndarray
    n_jobs: int | None

    def _predict_marginals(self, problem: AnyProblem, /) -> Sequence[np.ndarray]: ...


class Outcome(NamedTuple):
    """An example to draw.

    Attributes
    ----------
    i
        Its number.
    x
        The input, as the model was given it.
    true, found
        Its output and the predicted one, as users know them.
    shown
        What it looks like, if that was told: words, an image, a text.
    labels
        All labels of the model, those of other outputs included; their order says their colours.
    known
        What else the model knows of it: see `Drawing.ask`.
    model
        The model.
    """

    i: int
    x: Any
    true: Any
    found: Any
    shown: Any
    labels: list[Any]
    known: Any
    model: Any


class Drawing(NamedTuple):
    """How outputs of a kind look.

    Attributes
    ----------
    draw
        The drawing of an example: plain markup, SVG mostly, made by `tag`, which escapes.
    tell
        Parts of the page on all examples, such as a confusion table; their numbers are those of `maxmargin.metrics`.
    ask
        From a model and the problem of all examples: what else it knows of each, such as probabilities.
    labels_of
        All labels of an output, to be given colours.
    faults
        The mistakes of an example, by name: buttons of the page lead to the examples that have one.
    note
        What a drawing means, in a sentence.
    """

    draw: Callable[[Outcome], Markup]
    tell: Callable[[Sequence[Outcome]], Sequence[Markup]] = lambda examples: ()
    ask: Callable[[Any, Any], Sequence[Any]] | None = None
    labels_of: Callable[[Any], Sequence[Any]] = lambda output: ()
    faults: Callable[[Outcome], Iterable[str]] = lambda example: ()
    note: str = ""


def words_of(example: Outcome, n: int) -> list[str]:
    """What is written at n positions: the words that are shown, or numbers; raises where there are not as many."""
    if example.shown is None:
        return [str(t) for t in range(n)]
    words = [*example.shown] if not isinstance(example.shown, str) else example.shown.split()
    if len(words) != n:
        raise ValueError(
            f"shown[{example.i}] must hold {n} words, not {len(words)}, as X[{example.i}] has {n} positions."
        )
    return [shorten(word if isinstance(word, str) or not isinstance(word, tuple) else word[0], 60) for word in words]


def shorten(value: object, n: int = LONGEST) -> str:
    """The text of anything, cut short."""
    text = str(value)
    return text if len(text) <= n else text[: n - 1] + "…"


def colour_of(label: object, labels: Sequence[object]) -> str:
    """The class of a label in the style sheet."""
    return f"t{labels.index(label) % N_COLOURS}" if label in labels else ""


def show_input(example: Outcome) -> Markup:
    """What an example looks like, if that was told: an image, or a text."""
    if example.shown is None:
        return Markup("")
    if isinstance(example.shown, np.ndarray) and example.shown.ndim in (2, 3):
        return as_picture(example.shown)
    return tag("p", tag("bdi", shorten(example.shown)))


def tell_counts(rows: Iterable[tuple[str, int, int, int]], faults: Sequence[str] = ()) -> Markup:
    """Precision, recall and F1 of what is found, from its name and how many there are truly, found and right.

    With `faults`, "missed" and "spurious", numbers of these lead to examples that have a fault of the name and theirs.
    """
    lines = []
    for name, n_true, n_found, n_right in rows:
        shares = n_right / max(n_found, 1), n_right / max(n_true, 1), 2 * n_right / max(n_true + n_found, 1)
        leads = [lead_to(f"{name} {fault}", n - n_right) for fault, n in zip(faults, (n_true, n_found), strict=False)]
        counts = (f"{n:,}" for n in (n_true, n_found, n_right))
        lines.append((name, *(f"{100 * share:.2f}" for share in shares), *counts, *leads))
    titles = ("", "precision", "recall", "F1", "true", "found", "right", *faults)
    return table(titles, lines, class_="numbers")


def lead_to(fault: str, n: int) -> Markup:
    """How often there is a fault; the number leads to the examples that have it."""
    if not n:
        return Markup("0")
    return tag("button", f"{n:,}", type="button", class_="leads", data_fault=fault, title=fault)


def draw_texts(example: Outcome) -> Markup:
    """Outputs of which nothing is known, as texts: the true one, and the predicted one if it is another."""
    true, found = (shorten(one) for one in (example.true, example.found))
    if true == found:
        return join([show_input(example), tag("p", tag("span", found, class_="right"))])
    wrong = table((), [("true", escape(true)), ("found", tag("span", found, class_="spurious"))])
    return join([show_input(example), wrong])


TEXTS = Drawing(draw_texts)
