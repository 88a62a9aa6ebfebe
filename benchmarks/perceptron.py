"""The averaged perceptron on Taskar's OCR (6,251 words) beside python-crfsuite's, 100 passes each, on one thread."""

from __future__ import annotations

import time
from typing import Any

from benchmarks import crfsuite_peer
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
    data = load_ocr("large")
    items = crfsuite_peer.pixel_items(data[0][0].shape[1])
    figures, predicted = crfsuite_peer.train(data, items, {"max_iterations": PASSES}, algorithm="ap")
    return {"seconds": figures["seconds"], "error": crfsuite_peer.label_error(predicted, data[3])}


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
