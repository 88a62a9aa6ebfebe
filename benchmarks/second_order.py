"""Chains of second order beside those of first order on CoNLL-2000: F1 of chunks, and what they cost.

The features are those of `benchmarks.chunking`; weights are those of pairs, and of three labels in a row, that occur.
"""

from __future__ import annotations

import time

from benchmarks.chunking import load_chunking
from benchmarks.common import Bar, parse_arguments, print_table, report

MOST = 3.0  # times the CPU time of first order


def main() -> None:
    from maxmargin import ChainCRF, ChainSVM
    from maxmargin.metrics import entity_report

    arguments = parse_arguments(__doc__, ("--models", {"nargs": "+", "default": ["svm", "crf"]}))
    X, y, X_test, y_test = load_chunking()
    rows, bars, figures = [], [], []
    for name in arguments.models:
        seconds = {}
        for order in (1, 2):
            make = {"svm": ChainSVM(C=0.1), "crf": ChainCRF()}[name].set_params
            model = make(order=order, only_observed=True, random_state=0)
            model.fit(X[:500], y[:500]).predict(X_test[:1])  # compiles
            began = time.process_time()
            model.fit(X, y)
            seconds[order] = time.process_time() - began
            began = time.process_time()
            predicted = model.predict(X_test)
            tagging = time.process_time() - began
            found = entity_report(y_test, [labels.tolist() for labels in predicted])
            f1 = {"all": found.overall.f1, "NP": found.types["NP"].f1}
            n_trigrams = model.coef_.trigrams.nnz if order == 2 else 0
            cells = [f"{seconds[order]:.1f}", f"{tagging:.2f}", *(f"{100 * f1[of]:.2f}" for of in f1), n_trigrams]
            rows.append([name, order, *cells])
            figures.append({"model": name, "order": order, "seconds": seconds[order], "f1": f1})
        ratio = seconds[2] / seconds[1]
        bars.append(Bar(f"{name}: at most {MOST:g} times the CPU time of first order", f"{ratio:.2f}", ratio <= MOST))
    print_table("CoNLL-2000", ["model", "order", "fit, s", "predict, s", "F1", "F1 of NP", "trigrams"], rows)
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
