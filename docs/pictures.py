"""Pictures of the documentation, made from real fits while it is built; they suit light and dark pages."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, Markdown, display

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import papers
from maxmargin import ChainSVM, MulticlassSVM
from maxmargin.datasets import digit_words

plt.rcParams.update(
    {"figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none", "savefig.dpi": 130}
    | dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#808890")
)
BLUE, ORANGE, GREEN, RED = "#3b82f6", "#f59e0b", "#16a34a", "#dc2626"


def draw_word(axes: plt.Axes, pixels: np.ndarray, rows: list[tuple[str, np.ndarray]], truth: np.ndarray) -> None:
    """A word of digits, with readings of it below: green where they are right, red where not."""
    side = int(np.sqrt(pixels.shape[1]))
    image = np.hstack([row.reshape(side, side) for row in pixels])
    axes.imshow(image, cmap="gray_r", extent=(0, len(pixels), 0, 1))
    for line, (name, labels) in enumerate(rows):
        height = -0.45 - 0.6 * line
        axes.text(-0.15, height, name, ha="right", va="center")
        for place, (label, true) in enumerate(zip(labels, truth, strict=True)):
            color = GREEN if label == true else RED
            axes.text(
                place + 0.5, height, str(label), ha="center", va="center", color=color, weight="bold", fontsize=13
            )
    axes.set(xlim=(0, len(pixels)), ylim=(-0.5 - 0.6 * len(rows), 1.05))
    axes.axis("off")


def draw_landing() -> None:
    """What a structure is worth on one word, and the certificate of the fit."""
    words = digit_words()
    together = ChainSVM(C=0.1, tol=0.005, random_state=0).fit(words.X_train, words.y_train)
    alone = MulticlassSVM(C=0.01, random_state=0).fit(np.vstack(words.X_train), np.concatenate(words.y_train))
    read = together.predict(words.X_test)
    lone = [alone.predict(pixels) for pixels in words.X_test]
    wrong = [int(np.sum(a != y)) - 9 * int(np.any(b != y)) for a, b, y in zip(lone, read, words.y_test, strict=True)]
    best = int(np.argmax(wrong))
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3), width_ratios=(1.5, 1), layout="constrained")
    draw_word(left, words.X_test[best], [("alone", lone[best]), ("together", read[best])], words.y_test[best])
    trace = together.trace_
    right.plot(trace.passes, trace.primal, color=ORANGE, label="objective")
    right.plot(trace.passes, trace.dual, color=BLUE, label="lower bound")
    right.fill_between(trace.passes, trace.dual, trace.primal, color="#9ca3af", alpha=0.25)
    right.set(xlabel="passes over the examples", ylim=(0.9, 1.6))
    right.legend(frameon=False)
    plt.show()


def show_list() -> None:
    """A table of every figure and table of the papers, with what came of it."""
    rows = ["| paper | | shows | status | what differs |", "|---|---|---|---|---|"]
    rows += [
        f"| *{item.paper}* | {item.name} | {item.about} | {papers.status(item)} | {item.differs} |"
        for item in papers.ITEMS
    ]
    display(Markdown("\n".join(rows)))


def show_item(paper: str, name: str) -> None:
    """What came of a figure of a paper: how it was run, the picture, and what agrees, from its stored result."""
    item = next(item for item in papers.ITEMS if (item.paper, item.name) == (paper, name))
    stored, file = papers.load(item.result), io.BytesIO()
    about = f"**{papers.status(item).capitalize()}**" + (f" ({item.differs})" if item.differs else "")
    display(Markdown(f"{about}: `{stored.command}`, {stored.date}, {stored.machine}."))
    with plt.rc_context({"font.size": 15, "legend.fontsize": 12}):
        item.draw(stored.figures, file)
    plt.close("all")
    display(Image(file.getvalue()))
    signs = {True: "agrees", False: "**does not agree**", None: ""}
    rows = ["| claim | found here | |", "|---|---|---|"]
    rows += [f"| {claim} | {numbers} | {signs[agrees]} |" for claim, numbers, agrees in papers.findings(item)]
    display(Markdown("\n".join(rows).replace("||A mu||", "\\|\\|A mu\\|\\|")))
