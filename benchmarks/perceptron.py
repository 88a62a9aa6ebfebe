"""The averaged perceptron on Taskar's OCR (6,251 words) beside python-crfsuite's, 100 passes each, on one thread."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, in_fresh_process, load_ocr, parse_arguments, print_table, report

PASSES = 100
ERROR = 0.129  # of python-crfsuite after 100 passes
SHARE = 1 / 8


def fit_maxmargin() -> dict[str, Any]:
    from maxmargin import ChainSVM, Perceptron

    X, y, X_test, y_test = load_ocr("large")
    model = ChainSVM(fit_intercept=False, solver=Perceptron(gap_every=PASSES), random_state=0)
    model.set_params(max_passes=1).fit(X[:50], y[:50])  # loads the loops
    began = time.process_time()
    model.set_params(max_passes=PASSES).fit(X, y)
    return {"seconds": time.process_time() - began, "error": 1 - model.score(X_test, y_test)}


def fit_crfsuite() -> dict[str, Any]:
    import numpy as np
    import pycrfsuite  # type: ignore[import-untyped]

    X, y, X_test, y_test = load_ocr("large")
    names = [f"pixel{k}" for k in range(X[0].shape[1])]

    def items(x: Any) -> Any:
        return pycrfsuite.ItemSequence([{names[k]: float(row[k]) for k in np.flatnonzero(row)} for row in x])

    trainer = pycrfsuite.Trainer(algorithm="ap", verbose=False)
    trainer.set_params({"max_iterations": PASSES, "feature.possible_states": 1, "feature.possible_transitions": 1})
    for x, labels in zip(X, y, strict=True):
        trainer.append(items(x), [str(label) for label in labels])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        began = time.process_time()
        trainer.train(path)
        seconds = time.process_time() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        wrong = [a != str(b) for x, t in zip(X_test, y_test, strict=True) for a, b in zip(tagger.tag(items(x)), t)]  # noqa: B905
    return {"seconds": seconds, "error": float(np.mean(wrong))}


def main() -> None:
    arguments = parse_arguments(__doc__)
    ours, theirs = in_fresh_process(fit_maxmargin), in_fresh_process(fit_crfsuite)
    print_table(
        f"OCR-large, averaged perceptron, {PASSES} passes",
        ["", "CPU s", "test error"],
        [
            ["maxmargin", ours["seconds"], f"{ours['error']:.2%}"],
            ["python-crfsuite", theirs["seconds"], f"{theirs['error']:.2%}"],
        ],
    )
    share = ours["seconds"] / theirs["seconds"]
    bars = [
        Bar(f"at most {SHARE:.0%} of its CPU time", f"{share:.1%}", share <= SHARE),
        Bar(f"test error at most {ERROR:.1%}", f"{ours['error']:.2%}", ours["error"] <= ERROR + 5e-4),
    ]
    report({"maxmargin": ours, "python-crfsuite": theirs}, bars, arguments.json)


if __name__ == "__main__":
    main()
