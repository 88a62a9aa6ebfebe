"""Dense columns beside sparse names in one model: CPU time on CoNLL-2000 with vectors of words, and without.

Vectors are 100 singular vectors of how often words follow each other, scaled to a standard deviation of 0.1. Both fits
are warmed up on a part of the data, and run in turns; a pass looks at all sentences once.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from benchmarks.common import Bar, parse_arguments, print_table, report

WIDTH = 100


def learn_vectors(sentences: list[list[str]]) -> Any:
    """Vectors of words, of the words before and after them."""
    from maxmargin.text import WordVectors

    numbers: dict[str, int] = {}
    row = np.array([numbers.setdefault(word, len(numbers)) for words in sentences for word in words])
    shape = len(numbers), len(numbers)
    counts = sp.csr_array((np.ones(len(row) - 1), (row[:-1], row[1:])), shape)
    both = sp.hstack([counts, counts.T], format="csr")
    both.data = np.log1p(both.data)
    left, values, _ = svds(both, WIDTH, random_state=0)
    return WordVectors(numbers, left * np.sqrt(values))


def main() -> None:
    options = parse_arguments(__doc__, ("--repeats", {"type": int, "default": 2}))
    from maxmargin import ChainCRF
    from maxmargin.datasets import load_conll2000
    from maxmargin.text import WindowFeatures

    data = load_conll2000()
    X, y = data.X_train, data.y_train
    vectors = learn_vectors([[word for word, _ in sentence] for sentence in X])
    transformers = {
        "names": WindowFeatures(),
        "names and vectors": WindowFeatures(vectors=vectors, vector_scale=0.1),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in transformers}
    for repeat in range(options.repeats + 1):
        n = len(X) if repeat else 1_000  # at first, to compile
        for name, transformer in transformers.items():
            began = time.process_time()
            rows = transformer.fit_transform(X[:n], y[:n])
            model = ChainCRF(only_observed=True, C=3.0, random_state=0).fit(rows, y[:n])
            if repeat:
                found[name].append((time.process_time() - began, model.trace_.last("passes")))
    seconds = {name: min(runs)[0] for name, runs in found.items()}
    rows_of_table = [[name, seconds[name], min(runs)[1], seconds[name] / min(runs)[1]] for name, runs in found.items()]
    print_table("CPU s", ["features", "s", "passes", "s per pass"], rows_of_table)
    ratio = seconds["names and vectors"] / seconds["names"]
    bars = [Bar("100 dense columns beside names: at most twice the time of names alone", f"{ratio:.2f}", ratio <= 2)]
    report({"seconds": seconds, "runs": found}, bars, options.json)


if __name__ == "__main__":
    main()
