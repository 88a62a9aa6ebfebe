"""`maxmargin path`: the strength of the regularization that is best on held-out data."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File

from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.table import Table

from maxmargin.cli.common import Shield, locate_errors, print_json, tell_command, tell_size
from maxmargin.cli.options import Choices
from maxmargin.cli.progress import summary
from maxmargin.cli.tags import settle_scheme
from maxmargin.cli.terminal import Terminal
from maxmargin.cli.text_commands.clustering import learn_from_text
from maxmargin.cli.training import figures, find_target, make_tagger, read_documents, tell_of_lists
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.paths.solutions import Path
from maxmargin.runtime.cache import COMPILING, before_compiling
from maxmargin.text import Document
from maxmargin.text.corpus import choose
from maxmargin.trace import Status
from maxmargin.wording import count_of

BAR = 20  # characters of the longest bar, which fits in 80 columns
HELD_OUT = 5  # where there is no held-out file, one sentence of so many is held out


def run_path(choices: Choices, Cs: list[float] | None, plot: File | None) -> None:
    """Train for several C, draw the curve of held-out scores, and write the best tagger."""
    with Shield() as shield:
        _run_path(choices, Cs, plot, shield)


def _run_path(choices: Choices, Cs: list[float] | None, plot: File | None, shield: Shield) -> None:
    target = find_target(choices, plot)
    tagger = make_tagger(choices)
    train, dev = settle_scheme(tagger, *read_documents(choices), say=choices.say)
    learn_from_text(choices, tagger, train)
    X, y, X_dev, y_dev = _split(train, dev)
    score = "F1" if tagger.scheme is not None else "accuracy"
    console = Terminal(stderr=True)
    is_live = console.is_terminal and not choices.quiet
    live = Live(console=console, auto_refresh=False, transient=True)
    if is_live:
        live.start()

    def show(path: Path) -> None:
        shield.is_up = True
        if is_live:
            live.update(curve(path, score), refresh=True)
        else:
            choices.say(f"C {path.Cs[-1]:g}: held-out {score} {100 * path.scores[-1]:.2f}")

    try:
        with locate_errors(train if dev is None else dev), before_compiling(partial(choices.say, COMPILING)):
            path = tagger.tune(X, y, X_dev, y_dev, Cs=Cs, callback=show)
    finally:
        live.stop()
    if not choices.quiet:
        console.print(curve(path, score))
    tell_of_lists(tagger, choices.say)
    end = " of those that were tried, at their end: try others beyond it, --C" if path.is_best_at_end else ""
    choices.say(f"The best C is {path.best_C:g}{end}.")
    is_cut = path.interrupted
    if dev is None and not is_cut:
        choices.say("Training on all sentences with it ...")
        tagger.model.set_params(C=path.best_C)
        try:
            shield.is_up = False
            with without_warning():  # `summary` says it
                is_cut = tagger.fit(train.X, train.y or []).status_ is Status.INTERRUPTED
            choices.say(summary(tagger.model_))
        except KeyboardInterrupt:  # before training: the tagger of those that were not held out stays
            is_cut = True
        shield.is_up = True
    tagger.model_.command_ = tell_command()
    tagger.save(target)
    choices.say(f"The tagger is in {tell_size(target)}.")
    if plot is not None:
        draw(path, plot)
    if choices.json:
        columns = {"C": path.Cs, "objective": path.primal, "gap": path.gap, "passes": path.passes, "score": path.scores}
        rows = zip(*(column.tolist() for column in columns.values()), strict=False)
        print_json({**figures(tagger, target), "path": [dict(zip(columns, row, strict=True)) for row in rows]})
    shield.end(is_interrupted=is_cut)


def _split(train: Document, dev: Document | None) -> tuple[list, list, list, list]:
    """The sentences to train on, and those held out."""
    y = train.y or []
    if dev is not None:
        return train.X, y, dev.X, dev.y or []
    if len(train.X) < HELD_OUT:
        raise ValueError(
            f"{train.name} has {count_of(len(train.X), 'sentence')}, too few to hold some out: give --dev."
        )
    is_held = [i % HELD_OUT == HELD_OUT - 1 for i in range(len(y))]
    kept, held = ([i for i, is_out in enumerate(is_held) if is_out == wanted] for wanted in (False, True))
    return choose(train.X, kept), [y[i] for i in kept], choose(train.X, held), [y[i] for i in held]


def curve(path: Path, score: str) -> Table:
    """The scores so far as bars, the best one marked."""
    table = Table("C", "objective", "gap", "passes", f"held-out {score}", "", box=SIMPLE_HEAD)
    for column in table.columns[:5]:
        column.justify = "right"
    scores = [float(value) for value in path.scores]
    low, high = min(scores), max(scores)
    rows = zip(path.Cs, path.primal, path.gap, path.passes, scores, strict=False)
    for C, primal, gap, passes, value in sorted(rows):
        share = (value - low) / (high - low) if high > low else float(high > 0)
        is_best = value == high and path.best_C == C
        table.add_row(
            f"{C:g}",
            f"{primal:.4f}",
            f"{100 * gap / primal:.3g} %" if primal > 0 else "0 %",
            f"{passes:.0f}",
            f"{100 * value:.2f}",
            "█" * (1 + round(share * (BAR - 1))),
            style="bold green" if is_best else None,
        )
    return table


def draw(path: Path, target: File) -> None:
    """Draw the curve to a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    path.plot(figure.subplots())
    figure.savefig(target, format="png", dpi=150)
