"""Structures of one's own, in Python: which share of the CPU time of a fit is spent in the user's own methods.

The segmentation of `examples/word_segmentation.py`, whose argmax is a dynamic program in Python, with larger and larger
vocabularies, and a tagger by NumPy, whose argmax is short; joint features are dense vectors or sparse ones. What else a
step takes, the library's, is a few operations on vectors as long as the weights.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

WIDTHS = (1024, 8192, 65_536)
N_EXAMPLES, LENGTH, N_TAGS, N_WORDS = 60, 20, 6, 5000
LEAST = 0.5


class Watch:
    """Counts the CPU time of calls."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def __call__(self, function: Any) -> Any:
        def timed(*args: Any) -> Any:
            began = time.process_time()
            result = function(*args)
            self.seconds += time.process_time() - began
            self.calls += 1
            return result

        return timed


def make_task(kind: str, n_features: int, is_sparse: bool) -> tuple[Any, list, list]:
    """A model with inputs and outputs: the segmentation of texts of the examples, or a tagger."""
    import numpy as np
    import scipy.sparse as sp

    from examples.word_segmentation import LONGEST, Segmentation

    rng = np.random.default_rng(0)

    def as_counts(indices: Any) -> Any:
        if is_sparse:
            return sp.coo_array((np.ones(len(indices)), (np.zeros_like(indices), indices)), (1, n_features))
        return np.bincount(indices, minlength=n_features)

    class LargeSegmentation(Segmentation):
        def features(self, text: Any, words: Any) -> Any:
            return as_counts(np.array([self.feature_of(word) for word in words]))

    class Tagger:
        """Weights of hashed pairs of a word and a tag, and of two tags that follow each other."""

        def features(self, x: Any, y: Any) -> Any:
            y = np.asarray(y)
            words = (x * N_TAGS + y + N_TAGS**2) * 7919 % n_features
            return as_counts(np.append(words, (y[:-1] * N_TAGS + y[1:]) * 7919 % n_features))

        def cost(self, true: Any, y: Any) -> float:
            return sum(a != b for a, b in zip(true, y, strict=True))

        def argmax(self, x: Any, w: Any, true: Any = None) -> Any:
            tags = np.arange(N_TAGS)
            scores = w[(x[:, np.newaxis] * N_TAGS + tags + N_TAGS**2) * 7919 % n_features]
            if true is not None:
                scores = scores + (np.asarray(true)[:, np.newaxis] != tags)
            pairs = w[(tags[:, np.newaxis] * N_TAGS + tags) * 7919 % n_features]
            best, origins = scores[0], []
            for row in scores[1:]:
                reached = best[:, np.newaxis] + pairs
                origins.append(reached.argmax(axis=0))
                best = reached.max(axis=0) + row
            y = [int(best.argmax())]
            for origin in reversed(origins):
                y.append(int(origin[y[-1]]))
            return tuple(reversed(y))

    if kind == "segmentation":
        letters = np.array([*"abcdefghij"])
        words = {"".join(rng.choice(letters, size=rng.integers(2, 9))) for _ in range(2 * n_features)}
        vocabulary = sorted(words)[: n_features - LONGEST]
        y = [tuple(rng.choice(vocabulary, size=LENGTH // 3)) for _ in range(N_EXAMPLES)]
        return LargeSegmentation(vocabulary), ["".join(words) for words in y], y
    tag_of = rng.integers(N_TAGS, size=N_WORDS)
    X = [rng.integers(N_WORDS, size=LENGTH) for _ in range(N_EXAMPLES)]
    y = [tuple(np.where(rng.random(LENGTH) < 0.9, tag_of[x], rng.integers(N_TAGS, size=LENGTH)).tolist()) for x in X]
    return Tagger(), X, y


def measure(kind: str, is_sparse: bool, n_features: int, solver: str) -> dict[str, Any]:
    """CPU seconds of a fit, and those of the methods of the model."""
    from maxmargin import StructuredSVM

    model, X, y = make_task(kind, n_features, is_sparse)
    argmax = Watch()
    model.argmax = argmax(model.argmax)
    svm = StructuredSVM(model, C=1.0, solver=solver, max_passes=20, tol=1e-9, random_state=0)
    svm.fit(X[:2], y[:2])  # loads what it takes to fit
    argmax.seconds, argmax.calls = 0.0, 0
    began = time.process_time()
    svm.fit(X, y)
    spent = time.process_time() - began
    return {
        "structure": kind,
        "joint features": "sparse" if is_sparse else "dense",
        "features": n_features,
        "solver": solver,
        "CPU s": spent,
        "argmax calls": argmax.calls,
        "ms a call": 1e3 * argmax.seconds / argmax.calls,
        "share of argmax": argmax.seconds / spent,
    }


def main() -> None:
    arguments = parse_arguments(__doc__)
    runs = [("segmentation", is_sparse, width, "auto") for is_sparse in (True, False) for width in WIDTHS]
    runs += [("segmentation", True, WIDTHS[-1], solver) for solver in ("bcfw", "frank-wolfe", "sgd", "perceptron")]
    runs += [("tagger", True, width, "auto") for width in WIDTHS]
    rows = [in_fresh_process(measure, *run) for run in runs]
    print_table(f"20 passes over {N_EXAMPLES} examples", rows[0], (row.values() for row in rows))
    bars = [
        Bar(
            f"{row['structure']}, {row['features']:,} {row['joint features']} features: argmax at least {LEAST:.0%}",
            f"{row['share of argmax']:.0%}",
            row["share of argmax"] >= LEAST,
        )
        for row in rows
        if row["structure"] == "segmentation" and row["solver"] == "auto" and row["features"] == WIDTHS[-1]
    ]
    report(rows, bars, arguments.json)


if __name__ == "__main__":
    main()
