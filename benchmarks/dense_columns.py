"""Dense columns beside sparse names in one model: CPU time on CoNLL-2000 with vectors of words, and without.

Vectors are those of 100 numbers that `learn_vectors` makes of the sentences, and random numbers; models scale both to
the length 1. All fits are warmed up on a part of the data, and run in turns; a pass looks at all sentences once.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common import Bar, parse_arguments, print_table, report

WIDTH = 100


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--repeats", {"type": int, "default": 2}),
        ("--C", {"type": float, "nargs": "+", "default": [0.3, 3.0, 30.0]}),
        ("--sentences", {"type": int, "default": 8936}),
    )
    from maxmargin import ChainCRF
    from maxmargin.datasets import load_conll2000
    from maxmargin.text import WindowFeatures, WordVectors, learn_vectors

    data = load_conll2000()
    X, y = data.X_train[: options.sentences], data.y_train[: options.sentences]
    vectors = learn_vectors([[word for word, _ in sentence] for sentence in X], size=WIDTH, min_count=1)
    numbers = np.random.default_rng(0).normal(size=vectors.vectors.shape)
    transformers = {
        "names": WindowFeatures(),
        "names and vectors": WindowFeatures(vectors=vectors),
        "names and random vectors": WindowFeatures(vectors=WordVectors(vectors.words, numbers)),
    }
    figures: dict[str, Any] = {}
    bars, table = [], []
    dense = transformers["names and vectors"].transform(X).dense_columns()
    held = dense.table.nbytes + dense.which.nbytes
    whole = len(dense.which) * WIDTH * dense.table.itemsize
    figures["megabytes"] = {"dense columns": held / 1e6, "a row for each token": whole / 1e6}
    bars.append(
        Bar(
            f"memory of dense columns: at most a fifth of that of a row for each token, {whole / 1e6:.1f} MB",
            f"{held / 1e6:.1f} MB",
            5 * held <= whole,
        )
    )
    for C in options.C:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in transformers}
        for repeat in range(options.repeats + 1):
            n = len(X) if repeat else 1_000  # at first, to compile
            for name, transformer in transformers.items():
                began = time.process_time()
                rows = transformer.fit_transform(X[:n], y[:n])
                model = ChainCRF(only_observed=True, C=C, random_state=0).fit(rows, y[:n])
                if repeat:
                    found[name].append((time.process_time() - began, model.trace_.last("passes")))
        for name, runs in found.items():
            seconds, passes = min(runs)
            table.append([f"{C:g}", name, seconds, passes, seconds / passes])
            if name != "names":
                ratio = seconds / min(found["names"])[0]
                claim = f"C = {C:g}, {name}: at most twice the time of names alone"
                bars.append(Bar(claim, f"{ratio:.2f}", ratio <= 2))
        figures[f"{C:g}"] = found
    print_table("CPU s", ["C", "features", "s", "passes", "s per pass"], table)
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
