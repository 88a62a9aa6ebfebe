"""The demo: a chain that reads words of handwritten digits, beside a linear SVM that reads digit by digit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text
from sklearn.svm import LinearSVC

from maxmargin import ChainSVM
from maxmargin.cli.terminal import Terminal
from maxmargin.datasets import Dataset, digit_words
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.runtime.cache import COMPILING, before_compiling
from maxmargin.trace import Status

C = 0.1
SIDE = 8  # pixels of a digit
WIDEST = 6  # digits that fit beside each other in 80 columns
CHOICES = ("ChainSVM", "2nd choice", "3rd choice")


class Example(NamedTuple):
    """A test word and what the models make of it."""

    images: np.ndarray
    true: np.ndarray
    linear: np.ndarray
    readings: np.ndarray
    scores: np.ndarray

    def rows(self) -> list[tuple[str, np.ndarray, str]]:
        """Title, digits and score of the true word and of each reading."""
        chain = zip(CHOICES, self.readings, (f"{score:.2f}" for score in self.scores), strict=True)
        return [("truth", self.true, ""), ("linear SVM", self.linear, ""), *chain]


def run_demo(n_words: int, seed: int, plot: Path | None) -> None:
    """Train, compare, show an example and, on request, draw it all to a file."""
    console = Terminal()
    words = digit_words(n_train=n_words, random_state=seed)
    n_digits = sum(map(len, words.y_train))
    console.print(
        f"\nTraining a ChainSVM on {n_words} words of {n_digits} noisy handwritten digits. "
        "Which digit can follow which is a rule that it has to find out from the words.\n"
    )
    with before_compiling(partial(console.print, f"{COMPILING}\n")):
        _warm_up(words)
    model = _train(ChainSVM(C=C, tol=1e-3, random_state=seed, verbose=1), words)
    relative_gap = model.trace_.gap[-1] / model.trace_.primal[-1]
    console.print(
        f"\nCertified in {model.trace_.seconds[-1]:.1f} s: no other weights lower the objective by more than ",
        Text(f"{relative_gap:.2%}", "bold"),
        ".\n",
        sep="",
    )

    svm = LinearSVC(C=C, random_state=seed).fit(np.vstack(words.X_train), np.concatenate(words.y_train))
    linear = [svm.predict(images) for images in words.X_test]
    chain = model.predict(words.X_test)
    console.print(f"Errors on {len(linear)} test words, of images that do not occur in the training words:")
    console.print(_errors(words.y_test, {"linear SVM, digit by digit": linear, "ChainSVM, whole words": chain}))

    i = _most_telling(words.y_test, linear, chain)
    readings, scores = model.predict_topk(words.X_test[i : i + 1], len(CHOICES))[0]
    example = Example(words.X_test[i], words.y_test[i], linear[i], readings, scores)
    console.print("One of the test words and how it is read, wrong digits in brackets:\n")
    console.print(_drawing(example))
    if plot is not None:
        _write_plot(model, example, plot)
        console.print(f"\nThe plot is in {plot}.", soft_wrap=True)


def _warm_up(words: Dataset) -> None:
    """Compile, or load what an earlier run has compiled, so that the trace shows the time of training alone."""
    model = _train(ChainSVM(max_passes=1), words)
    model.predict(words.X_test)
    model.predict_topk(words.X_test[:1], len(CHOICES))


def _train(model: ChainSVM, words: Dataset) -> ChainSVM:
    """The model, trained; Ctrl-C ends the demo, not just the training."""
    with without_warning():  # a single pass is for compiling
        model.fit(words.X_train, words.y_train)
    if model.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def _n_wrong(true: list[np.ndarray], readings: list[np.ndarray]) -> np.ndarray:
    """The number of wrong digits of each word."""
    return np.array([np.count_nonzero(a != b) for a, b in zip(true, readings, strict=True)])


def _errors(true: list[np.ndarray], readings: dict[str, list[np.ndarray]]) -> Table:
    table = Table("", "wrong digits", "words with an error", box=SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for title, read in readings.items():
        wrong = _n_wrong(true, read)
        table.add_row(title, f"{wrong.sum() / sum(map(len, true)):.1%}", f"{np.mean(wrong > 0):.1%}")
    return table


def _most_telling(true: list[np.ndarray], linear: list[np.ndarray], chain: list[np.ndarray]) -> int:
    """A word that fits the screen, is right as a whole and wrong in as many digits as possible digit by digit."""
    lengths = np.array([len(word) for word in true])
    is_right = _n_wrong(true, chain) == 0
    return int(np.lexsort((lengths, _n_wrong(true, linear), is_right, lengths <= WIDEST))[-1])


def _drawing(example: Example) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    for _ in example.true:
        grid.add_column(justify="center", width=SIDE)
    grid.add_column(justify="right", vertical="bottom")
    grid.add_row("", *map(_block_characters, example.images), "score")
    for title, digits, score in example.rows():
        grid.add_row(title, *map(_digit, digits, example.true), score)
    return grid


def _block_characters(image: np.ndarray) -> Text:
    """Two rows of pixels per line of text."""
    is_ink = (image > 0.5).reshape(SIDE // 2, 2, SIDE)
    lines = ("".join(" ▀▄█"[top + 2 * bottom] for top, bottom in zip(*pair, strict=True)) for pair in is_ink)
    return Text("\n".join(lines), justify="left")


def _digit(digit: int, true: int) -> Text:
    return Text(str(digit)) if digit == true else Text(f"[{digit}]", "bold red")


def _write_plot(model: ChainSVM, example: Example, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, height_ratios=(3, 2))
    model.trace_.plot(above)
    above.set_title("Training: the optimum lies between the dual and the primal value", loc="left")

    pitch, line = SIDE + 2, 2.2
    right = pitch * len(example.true)
    for t, image in enumerate(example.images):
        below.imshow(image.reshape(SIDE, SIDE), "gray_r", extent=(pitch * t, pitch * t + SIDE, SIDE, 0), vmin=0, vmax=1)
    below.text(right + 4, SIDE, "score", ha="right", va="bottom")
    y = float(SIDE)
    for title, digits, score in example.rows():
        y += line
        below.text(-2, y, title, ha="right", va="center")
        below.text(right + 4, y, score, ha="right", va="center")
        for t, digit in enumerate(digits):
            is_wrong = digit != example.true[t]
            color, weight = ("C3", "bold") if is_wrong else ("black", "normal")
            below.text(pitch * t + SIDE / 2, y, digit, ha="center", va="center", color=color, weight=weight)
    below.set(xlim=(-14, right + 4), ylim=(y + line, -1))
    below.axis("off")
    below.set_title("A test word and its readings", loc="left")
    figure.savefig(path, format="png", dpi=150)
