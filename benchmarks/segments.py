"""Segments beside chains: F1 of chunks and entities, CPU time by length and labels, and memory of a long sequence.

Both have the same features of words, `WindowFeatures`. Models of segments also have those of segments as wholes,
`SegmentFeatures`.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Bar, forget_peak, in_fresh_process, parse_arguments, peak_megabytes, print_table, report

MOST = 2.0  # times what theory says of their time, over that of chains
MOST_MEGABYTES = 200.0
PARTS = ["conll", "wnut", "speed", "memory"]
SHAPES = ((4, 10), (9, 50), (23, 30))  # labels, and rows of the longest segment


def measure_quality(dataset: str, n_sentences: int | None) -> dict[str, dict[str, float]]:
    """F1 on test data, and CPU seconds of the fits, of a chain and of segments with features as wholes."""
    from maxmargin import ChainCRF, SegmentCRF
    from maxmargin.datasets import load_conll2000, load_wnut17
    from maxmargin.metrics import entity_f1
    from maxmargin.text import SegmentFeatures, WindowFeatures

    data = {"conll": load_conll2000, "wnut": load_wnut17}[dataset]()
    X, y = data.X_train[:n_sentences], data.y_train[:n_sentences]
    found = {}
    for name in ("chains", "segments"):
        is_chain = name == "chains"
        features = WindowFeatures() if is_chain else SegmentFeatures()
        model = ChainCRF(constraints="bio") if is_chain else SegmentCRF()
        model.set_params(only_observed=True, C=3.0)
        rows = features.fit_transform(X, y)
        began = time.process_time()
        model.fit(rows, y)
        seconds = time.process_time() - began
        predicted = model.predict(features.transform(data.X_test))
        found[name] = {"F1": 100 * entity_f1(data.y_test, predicted), "CPU s": seconds}
    return found


def measure_speed(n_labels: int, longest: int) -> dict[str, float]:
    """CPU time of segments over that of chains, for the best outputs and for sums over all, and what theory says."""
    import numpy as np

    from maxmargin import ChainCRF, SegmentCRF, inference

    rng, n, n_rows = np.random.default_rng(0), 20, 400
    X = [rng.normal(size=(n_rows, 2)) for _ in range(n)]
    y = [np.repeat(rng.integers(n_labels, size=n_rows), longest)[:n_rows].tolist() for _ in range(n)]
    cut = [[(t, min(t + longest, n_rows), row[t]) for t in range(0, n_rows, longest)] for row in y]
    ratios = dict.fromkeys(("best", "sums"), 1.0)
    for model, is_segments in ((ChainCRF(), False), (SegmentCRF(), True)):
        model.set_params(max_passes=1, tol=0.9).fit(X, cut if is_segments else y)
        problem = model._encoder.problem(X)
        for name, infer in (("best", inference.best_outputs), ("sums", inference.marginals)):
            infer(problem, model._w, 1)  # compiles
            times = []
            for _ in range(5):
                began = time.process_time()
                infer(problem, model._w, 1)
                times.append(time.process_time() - began)
            ratios[name] *= min(times) if is_segments else 1 / min(times)
    return {"labels": n_labels, "longest": longest, **ratios, "theory": 1 + longest / n_labels}


def measure_memory() -> dict[str, float]:
    """Megabytes beyond the data, and CPU seconds, of a sequence of 100,000 rows with segments of up to 200."""
    import numpy as np

    from maxmargin import SegmentCRF

    n_rows, longest = 100_000, 200
    rng, labels = np.random.default_rng(0), np.arange(n_rows) // longest % 3
    X = rng.normal(size=(n_rows, 3)) + 2 * np.eye(3)[labels]
    cut = [(t, t + longest, int(labels[t])) for t in range(0, n_rows, longest)]
    few = 5 * longest
    model = SegmentCRF(max_passes=5, tol=0.1).fit([X[:few]], [cut[:5]])
    model.predict([X[:few]]), model.predict_marginals([X[:few]])  # compiles
    before, began = forget_peak(), time.process_time()
    model.predict([X])
    marginals = model.predict_marginals([X])[0]
    assert np.allclose(marginals.sum(axis=(1, 2)), 1.0, atol=1e-4)
    return {"MB": peak_megabytes() - before, "CPU s": time.process_time() - began}


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--part", {"nargs": "+", "choices": PARTS, "default": PARTS}),
        ("--sentences", {"type": int, "help": "train on the first so many, by default on all"}),
    )
    figures: dict[str, Any] = {}
    bars = []
    for dataset in (part for part in options.part if part in ("conll", "wnut")):
        found = figures[dataset] = in_fresh_process(measure_quality, dataset, options.sentences)
        print_table(dataset, ["", "F1", "CPU s of the fit"], ([name, *row.values()] for name, row in found.items()))
        gain = found["segments"]["F1"] - found["chains"]["F1"]
        bars.append(Bar(f"{dataset}: segments have at least the F1 of chains", f"{gain:+.2f}", gain >= 0))
    if "speed" in options.part:
        rows = figures["speed"] = [in_fresh_process(measure_speed, *shape) for shape in SHAPES]
        print_table("CPU time over that of chains", rows[0], (row.values() for row in rows))
        for row in rows:
            most, claim = MOST * row["theory"], f"{row['labels']} labels, {row['longest']} rows: at most"
            bars += [
                Bar(f"{claim} {most:.1f} times the time of chains, {name}", f"{row[name]:.1f}", row[name] <= most)
                for name in ("best", "sums")
            ]
    if "memory" in options.part:
        found = figures["memory"] = in_fresh_process(measure_memory)
        print_table("100,000 rows, segments of up to 200", found, [found.values()])
        bars.append(Bar(f"under {MOST_MEGABYTES:g} MB", f"{found['MB']:.0f}", found["MB"] < MOST_MEGABYTES))
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
