"""Graphs with cycles where the oracle is not exact: what to do by default.

Superpixels of photographs (MSRC-21): features of each, reduced to 50 numbers, and of borders. Beside a logistic
regression of single superpixels: `GraphSVM` as it is, averaged and last Frank-Wolfe steps, pairwise steps, and IDAL,
after some numbers of passes. Shown are CPU seconds, the share of test superpixels that are right and the certified gap.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.common import Bar, parse_arguments, print_table, report

N_SEGMENTS, WIDTH = 60, 50


def load(step: int) -> tuple[list, list, list, list]:
    """Graphs and labels of every so many photographs, to train and to test on, without void superpixels."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    from maxmargin import Graph
    from maxmargin.datasets import load_msrc
    from maxmargin.vision import superpixel_graph

    data, halves = load_msrc(), []
    for images, true_labels in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        graphs, labels = [], []
        for image, true in zip(images[::step], true_labels[::step], strict=True):
            whole = superpixel_graph(image, N_SEGMENTS)
            is_known = whole.weights_of(true, void=0) > 0
            if is_known.sum() > 1:
                graphs.append(Graph(*whole.subgraph(is_known)[:3]))
                labels.append(whole.labels_of(true, void=0)[is_known])
        halves.append((graphs, labels))
    rows = np.concatenate([graph.features for graph in halves[0][0]])
    scale = StandardScaler().fit(rows)
    reduce = PCA(min(WIDTH, rows.shape[1]), whiten=True, random_state=0).fit(scale.transform(rows))
    for graphs, _ in halves:
        graphs[:] = [graph._replace(features=reduce.transform(scale.transform(graph.features))) for graph in graphs]
    return *halves[0], *halves[1]


def main() -> None:
    from sklearn.linear_model import LogisticRegression

    from maxmargin import BCFW, GraphSVM

    arguments = parse_arguments(
        __doc__,
        ("--step", {"type": int, "default": 4, "help": "take every so many photographs"}),
        ("--C", {"type": float, "nargs": "+", "default": [0.1, 0.01]}),
        ("--passes", {"type": int, "nargs": "+", "default": [10, 20, 40]}),
    )
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = load(arguments.step)
    rows: list[dict[str, Any]] = []

    def add(name: str, C: float, accuracy: float, seconds: float, passes: Any = "", gap: Any = "") -> None:
        rows.append({"model": name, "C": C, "passes": passes, "right": accuracy, "CPU s": seconds, "gap": gap})
        print(*rows[-1].values(), flush=True)

    nodes, labels = np.concatenate([graph.features for graph in X]), np.concatenate(y)
    began = time.process_time()
    single = LogisticRegression(C=0.01, max_iter=300).fit(nodes, labels)
    found = single.score(np.concatenate([graph.features for graph in X_test]), np.concatenate(y_test))
    add("logistic regression", 0.01, float(found), time.process_time() - began)
    GraphSVM(random_state=0, max_passes=1).fit(X[:4], y[:4])  # compiles
    roads = {
        "averaged": {"solver": BCFW(averaging=True)},
        "last": {"solver": BCFW()},
        "pairwise": {"solver": BCFW(steps="pairwise", sampling="gap")},
        "IDAL": {"loss": "relaxed"},
    }
    for C in arguments.C:
        tried = [(name, road, passes) for name, road in roads.items() for passes in arguments.passes]
        for name, road, passes in [("auto", {}, None), *tried]:
            model = GraphSVM(C=C, max_passes=passes, random_state=0, **road)
            began = time.process_time()
            model.fit(X, y)
            seconds, gap = time.process_time() - began, model.certificate_.relative_gap
            add(name, C, model.score(X_test, y_test), seconds, model.n_iter_, gap)
    print_table("Superpixels", rows[0], (row.values() for row in rows))
    auto = max(row["right"] for row in rows if row["model"] == "auto")
    bars = [Bar("auto labels better than single superpixels", f"{auto:.3f}", auto > rows[0]["right"])]
    report(rows, bars, arguments.json)


if __name__ == "__main__":
    main()
