"""What the defaults of models rest on: test scores, passes and CPU time over C, tol and passes of the perceptron.

The tasks: letters (OCR, share right), chunks and entities (CoNLL-2000 and WNUT-17, F1), horses (graph cuts, share of
the area that is right), links of words (alignment, 1 - error rate), and digits (words of them, share right).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.common import in_fresh_process, parse_arguments, print_table, report
from benchmarks.entities import load_hashed
from benchmarks.tasks import Examples, load_task

SIZES = {"ocr": 600, "conll": 200, "wnut": 500, "horses": 60, "alignment": 100, "digits": 500}  # training examples
SVM_TASKS = ("ocr", "conll", "wnut", "horses", "alignment")
CHAIN_TASKS = ("ocr", "conll", "wnut", "digits")  # of CRFs, perceptrons and patience
VALUES_OF_C = (0.01, 0.1, 1.0, 10.0, 100.0)
TOLERANCES = (0.1, 0.05, 0.02, 0.01, 1e-3)
PASSES = (5, 10, 20, 50, 100)
PATIENCE = (2, 3, 5, 10)


class Judged(NamedTuple):
    """An estimator, its training examples, and how good a fitted one is on test examples."""

    model: Any
    train: Examples
    score: Callable[[Any], float]

    def fit(self, **options: Any) -> dict[str, Any]:
        """Fit with these arguments of the constructor; report test score, passes, CPU time and the status."""
        model = clone(self.model).set_params(random_state=0, **options)
        began = time.process_time()
        model.fit(self.train.X, self.train.y, **self.train.data)
        seconds = time.process_time() - began
        passes, status = float(model.trace_.passes[-1]), model.status_.name
        return {"score": self.score(model), "passes": passes, "seconds": seconds, "status": status}

    def warm_up(self, **options: Any) -> None:
        """Load the loops."""
        few = Examples(*(part[:2] for part in self.train[:2]), {name: part[:2] for name, part in self.train[2].items()})
        self._replace(train=few).fit(max_passes=1, **options)


def judged(name: str, n: int) -> Judged:
    """A task, trained on n examples."""
    if name == "alignment":
        return _alignment(n)
    if name in ("ocr", "horses"):
        _, model, train, test = load_task({"ocr": "ocr-small"}.get(name, name), n)
        return Judged(model, train, lambda model: model.score(test.X, test.y, **test.data))
    from maxmargin import ChainSVM
    from maxmargin.datasets import digit_words
    from maxmargin.metrics import entity_f1

    if name == "digits":
        words = digit_words(n)
        digits = Examples(words.X_train, words.y_train, {})
        return Judged(ChainSVM(), digits, lambda model: model.score(words.X_test, words.y_test))
    X, y, X_test, y_test = load_hashed(name)
    return Judged(ChainSVM(), Examples(X[:n], y[:n], {}), lambda model: entity_f1(y_test, model.predict(X_test)))


def _alignment(n: int) -> Judged:
    from examples.word_alignment import N_TRAIN, align, error_rate, featurize, targets
    from maxmargin import MatchingSVM
    from maxmargin.datasets import load_word_alignment

    pairs = load_word_alignment("enfr")
    pairs = [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))]
    X = featurize(pairs)
    y, harm = targets(pairs[:n])
    return Judged(
        MatchingSVM(missed_cost=3.0),
        Examples(X[:n], y, {"link_weight": harm}),
        lambda model: 1 - error_rate(pairs[N_TRAIN:], align(model, X[N_TRAIN:])),
    )


def as_crf(task: Judged) -> Judged:
    """The same task for a CRF."""
    from maxmargin import ChainCRF

    return task._replace(model=ChainCRF(only_observed=True))


def by_C_and_tol(name: str, n: int, is_crf: bool) -> list[dict[str, Any]]:
    """Fits of an SVM or a CRF for every C and tol; one that max_passes ends stands for all smaller tol."""
    task = judged(name, n)
    if is_crf:
        task = as_crf(task)
    task.warm_up()
    fits: list[dict[str, Any]] = []
    for C, tol in product(VALUES_OF_C, TOLERANCES):
        goes_on = tol == TOLERANCES[0] or fits[-1]["status"] == "OPTIMAL"
        fits.append((task.fit(C=C, tol=tol) if goes_on else fits[-1]) | {"C": C, "tol": tol})
    return fits


def by_passes(name: str, n: int) -> list[dict[str, Any]]:
    """Averaged perceptrons of every number of passes."""
    from maxmargin import Perceptron

    task = judged(name, n)
    task.warm_up(solver="perceptron")
    return [task.fit(max_passes=passes, solver=Perceptron(gap_every=passes)) for passes in PASSES]


def by_patience(name: str, n: int, is_crf: bool) -> list[dict[str, Any]]:
    """What every patience leads to: passes until it ends, and points of the held-out score short of the best of all."""
    task = judged(name, n)
    model = as_crf(task).model if is_crf else task.model
    (X, y, _), n_train = task.train, 4 * len(task.train.X) // 5
    model.set_params(C=10.0, tol=1e-3, max_passes=300, patience=300, random_state=0)
    model.fit(X[:n_train], y[:n_train], X_dev=X[n_train:], y_dev=y[n_train:])
    scores, passes = model.trace_.dev_score, model.trace_.passes
    ends = []
    for patience in PATIENCE:
        best = [int(np.argmax(scores[: k + 1])) for k in range(len(scores))]
        end = next((k for k in range(len(scores)) if k - best[k] >= patience), len(scores) - 1)
        ends.append({"passes": float(passes[end]), "lost": float(100 * (scores.max() - scores[best[end]]))})
    return [*ends, {"passes": float(passes[-1]), "lost": 0.0}]


def show_fits(title: str, fits: list[dict[str, Any]]) -> None:
    """A row per C, a column per tol."""
    cells = [f"{fit['score']:.2%} {fit['passes']:5.0f} {fit['seconds']:6.2f}" for fit in fits]
    rows = [[f"{C:g}", *cells[k * len(TOLERANCES) :][: len(TOLERANCES)]] for k, C in enumerate(VALUES_OF_C)]
    print_table(f"{title}: test score, passes, CPU s", ["C", *(f"tol {tol:g}" for tol in TOLERANCES)], rows)


def show_summary(kind: str, fits: dict[str, list[dict[str, Any]]]) -> None:
    """What each tol loses against the smallest, and each C against the best, in points of the score."""
    shape = len(fits), len(VALUES_OF_C), len(TOLERANCES)
    score, seconds, status = (
        np.array([[fit[key] for fit in f] for f in fits.values()]).reshape(shape)
        for key in ("score", "seconds", "status")
    )
    is_reached = status == "OPTIMAL"  # else the fit is one that max_passes ended, whatever tol
    lost = 100 * (score[:, :, -1:] - score)
    best = 100 * (score.max(axis=(1, 2), keepdims=True) - score)
    share = seconds / seconds[:, :, -1:]
    rows = []
    for k, tol in enumerate(TOLERANCES):
        here = is_reached[:, :, k]
        points = lost[here, k]
        rows.append(
            [f"{tol:g}", len(points), float(points.mean()), float(points.max()), f"{share[here, k].mean():.0%}"]
        )
    print_table(
        f"{kind}: points lost by tol against {TOLERANCES[-1]:g}, over tasks and C where it was reached",
        ["tol", "fits", "mean", "most", "CPU time"],
        rows,
    )
    print_table(
        f"{kind}: points lost by C at tol {TOLERANCES[-2]:g} against the best of all, by task",
        ["C", *fits, "mean"],
        [[f"{C:g}", *map(float, best[:, k, -2]), float(best[:, k, -2].mean())] for k, C in enumerate(VALUES_OF_C)],
    )


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        (
            "--part",
            {"nargs": "+", "default": ["svm", "perceptron"], "choices": ["svm", "crf", "perceptron", "patience"]},
        ),
        ("--tasks", {"nargs": "+", "default": list(SIZES), "choices": list(SIZES)}),
        ("--n", {"type": int, "help": "training examples, by default few hundred"}),
    )
    figures: dict[str, Any] = {}
    sizes = {name: arguments.n or SIZES[name] for name in arguments.tasks}
    for kind, names in (("svm", SVM_TASKS), ("crf", CHAIN_TASKS)):
        if kind in arguments.part:
            figures[kind] = {}
            for name in filter(sizes.__contains__, names):
                fits = in_fresh_process(by_C_and_tol, name, sizes[name], kind == "crf")
                show_fits(f"{name}, {sizes[name]} examples, {kind}", fits)
                figures[kind][name] = fits
            show_summary(kind, figures[kind])
    if "perceptron" in arguments.part:
        names = list(filter(sizes.__contains__, CHAIN_TASKS))
        fits = {name: in_fresh_process(by_passes, name, sizes[name]) for name in names}
        print_table(
            "averaged perceptron: test score, CPU s",
            ["passes", *names],
            [
                [str(passes), *(f"{fits[name][k]['score']:.2%} {fits[name][k]['seconds']:6.2f}" for name in names)]
                for k, passes in enumerate(PASSES)
            ],
        )
        figures["perceptron"] = fits
    for kind in ("svm", "crf"):
        if "patience" in arguments.part:
            names = list(filter(sizes.__contains__, CHAIN_TASKS))
            ends = {name: in_fresh_process(by_patience, name, sizes[name], kind == "crf") for name in names}
            print_table(
                f"{kind}, C = 10: passes until patience ends, points of the held-out score lost",
                ["patience", *names],
                [
                    [str(patience), *(f"{ends[name][k]['passes']:.0f} {ends[name][k]['lost']:6.2f}" for name in names)]
                    for k, patience in enumerate([*PATIENCE, "endless"])
                ],
            )
            figures[f"patience, {kind}"] = ends
    report(figures, [], arguments.json)


if __name__ == "__main__":
    main()
