"""Several labels per row: which pairs to join, what they take and what they are worth.

Scene and emotions (Mulan), if MAXMARGIN_DATA has them, and made data of 14, 53 and 159 labels that depend on features
and on hidden causes which they share, as topics do. Beside logistic regressions of each label: conditional random
fields and SVMs without pairs, with a Chow-Liu tree, with the pairs of graph="auto" and, of few labels, with all pairs.
Times are those of `fit` once compiled, memory that of the whole process; subset accuracy is the share of test rows
whose labels are all right.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, peak_megabytes, print_table, report

MOST = 2.0  # times the CPU seconds of logistic regressions, without pairs
N_CAUSES = 6
MADE = {"made-14": (14, 1500, 100), "made-53": (53, 1200, 300), "made-159": (159, 3000, 1000)}
FULL = ("scene", "emotions", "made-14")  # data whose labels can be joined by all pairs


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """X and y to train on, and to test on."""
    if name in ("scene", "emotions"):
        from sklearn.preprocessing import StandardScaler

        from maxmargin import datasets

        data = getattr(datasets, f"load_{name}")()
        scale = StandardScaler().fit(data.X_train)
        return scale.transform(data.X_train), data.y_train, scale.transform(data.X_test), data.y_test
    import numpy as np
    import scipy.sparse as sp

    n_labels, n, width = MADE[name]
    rng = np.random.default_rng(0)
    X = (rng.random((2 * n, width)) < 0.05).astype(float)
    causes = X @ rng.normal(size=(width, N_CAUSES)) / np.sqrt(0.05 * width) + 1.5 * rng.normal(size=(2 * n, N_CAUSES))
    topics = rng.normal(size=(N_CAUSES, n_labels)) * (rng.random((N_CAUSES, n_labels)) < 0.4)
    scores = causes @ topics + 0.3 * rng.logistic(size=(2 * n, n_labels))
    y = (scores > np.quantile(scores, 1 - 3 / n_labels, axis=0)).astype(int)  # about three labels per row
    return sp.csr_matrix(X[:n]), y[:n], sp.csr_matrix(X[n:]), y[n:]


def measure(name: str, contender: str, C: float) -> dict[str, Any]:
    """CPU seconds, memory and test figures of one model."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    from maxmargin import MultiLabelCRF, MultiLabelSVM

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = load(name)
    kind, _, graph = contender.partition(" ")
    model: Any
    if kind == "logistic":
        model = OneVsRestClassifier(LogisticRegression(C=C, max_iter=200))
    else:
        make = MultiLabelCRF if kind == "CRF" else MultiLabelSVM
        model = make(C=C, graph=None if graph == "none" else graph, random_state=0)
        model.fit(X[:20], y[:20])  # compiles
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    predicted = model.predict(X_test)
    return {
        "data": name,
        "model": contender,
        "pairs": len(model.edges_) if kind != "logistic" else 0,
        "CPU s": seconds,
        "MB": peak_megabytes(),
        "subset accuracy": float((predicted == y_test).all(axis=1).mean()),
        "macro-F1": float(f1_score(y_test, predicted, average="macro", zero_division=0)),
        "status": model.status_.name if kind != "logistic" else "",
    }


def main() -> None:
    names = ("scene", "emotions", *MADE)
    arguments = parse_arguments(
        __doc__,
        ("--data", {"nargs": "+", "default": list(names), "choices": names}),
        ("--C", {"type": float, "default": 1.0}),
    )
    rows = []
    for name in arguments.data:
        graphs = ("none", "tree", "auto", *(("full",) if name in FULL else ()))
        contenders = ("logistic", *(f"CRF {graph}" for graph in graphs), *(f"SVM {graph}" for graph in graphs))
        rows += [in_fresh_process(measure, name, contender, arguments.C) for contender in contenders]
        print_table(name, rows[-1], (row.values() for row in rows if row["data"] == name))
    by_name = {(row["data"], row["model"]): row for row in rows}
    bars = [
        Bar(
            f"{name}: without pairs within {MOST:g} times of logistic regressions",
            f"{(ratio := by_name[name, 'CRF none']['CPU s'] / by_name[name, 'logistic']['CPU s']):.2f}",
            ratio <= MOST,
        )
        for name in arguments.data
    ]
    report(rows, bars, arguments.json)


if __name__ == "__main__":
    main()
