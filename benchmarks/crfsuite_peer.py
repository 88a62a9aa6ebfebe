"""python-crfsuite as benchmarks train it, in a process of its own, and comparisons with it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, peak_megabytes, report

Figures = dict[str, Any]


def pixel_items(n_pixels: int) -> Callable[[Any], Any]:
    """What makes images of letters items as python-crfsuite reads them."""
    import numpy as np
    import pycrfsuite  # type: ignore[import-untyped]

    names = [f"pixel{k}" for k in range(n_pixels)]
    return lambda x: pycrfsuite.ItemSequence([{names[k]: float(row[k]) for k in np.flatnonzero(row)} for row in x])


def train(
    data: tuple[list, list, list, list],
    items: Callable[[Any], Any],
    options: dict[str, Any],
    *,
    algorithm: str = "lbfgs",
    has_every_pair: bool = True,
) -> tuple[Figures, list[list[str]]]:
    """CPU seconds and memory of a training, and predictions.

    Parameters
    ----------
    data : X_train, y_train, X_test, y_test
    items : makes a sequence one of its own
    options : of the algorithm
    has_every_pair : whether pairs of features and labels that do not occur have weights, too
    """
    import pycrfsuite

    X_train, y_train, X_test, _ = data
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    every = int(has_every_pair)
    trainer.set_params({**options, "feature.possible_states": every, "feature.possible_transitions": every})
    began = time.process_time()
    for x, y in zip(X_train, y_train, strict=True):
        trainer.append(items(x), [str(label) for label in y])
    encoded = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        trained, peak = time.process_time(), peak_megabytes()
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [tagger.tag(items(x)) for x in X_test]
    figures = {"seconds": trained - encoded, "encoding": encoded - began, "megabytes": peak}
    if algorithm == "lbfgs":
        figures["iterations"] = len(trainer.logparser.iterations)
        figures["objective"] = trainer.logparser.last_iteration["loss"]
    return figures, predicted


def label_error(predicted: Iterable[Iterable[Any]], y: Iterable[Iterable[Any]]) -> float:
    """The share of wrong labels."""
    wrong = [str(a) != str(b) for p, t in zip(predicted, y, strict=True) for a, b in zip(p, t, strict=True)]
    return sum(wrong) / len(wrong)


def compare(
    description: str | None,
    option: str,
    names: list[str],
    warm_up: Callable[[str], None],
    run: Callable[[str], tuple[Figures, Figures]],
    show: Callable[[str, Figures, Figures], None],
    check: Callable[[str, Figures, Figures], list[Bar]],
) -> None:
    """A command that compares both contenders on data of these names, of which an option chooses some."""
    chosen = {"nargs": "+", "choices": names, "default": names, "dest": "names"}
    repeats = {"type": int, "default": 1, "help": "runs of each contender, of which the fastest counts"}
    arguments = parse_arguments(description, (option, chosen), ("--repeats", repeats))
    figures, bars = {}, []
    for name in arguments.names:
        in_fresh_process(warm_up, name)  # compiling takes memory
        runs = [run(name) for _ in range(arguments.repeats)]
        ours, peer = (min(each, key=lambda run: run["seconds"]) for each in zip(*runs, strict=True))
        show(name, ours, peer)
        figures[name] = {"maxmargin": ours, "python-crfsuite": peer}
        bars += check(name, ours, peer)
    report(figures, bars, arguments.json)
