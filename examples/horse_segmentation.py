"""Horses and background: superpixels labelled alone, by a linear SVM, and together, by cuts of their graph.

Both models see the same features of the superpixels (colors, gradients and places, of each superpixel and of its
neighbourhood), weigh them by their area and are tuned on the same held-out training images. Reported are the share of
pixels that are right and the intersection over union of the horses, on the test images.

Usage: MAXMARGIN_DATA=... python examples/horse_segmentation.py [--segments N] [--images N]. Needs scikit-image.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from maxmargin import GraphCutSVM
from maxmargin.datasets import load_horses
from maxmargin.vision import SuperpixelGraph, superpixel_graph

LINEAR = [{"C": C, "class_weight": weight} for C in (0.01, 0.1, 1.0) for weight in (None, "balanced")]
CUTS = [{"C": C, "class_weight": weight} for C in (0.03, 0.1, 0.3) for weight in (None, "balanced")]

Images = tuple[list[SuperpixelGraph], list[np.ndarray]]  # graphs and masks


def fit_linear(graphs: list[SuperpixelGraph], labels: list[np.ndarray], options: dict[str, Any]) -> Any:
    areas = np.concatenate([graph.sizes / graph.sizes.mean() for graph in graphs])
    rows = np.concatenate([graph.nodes for graph in graphs])
    return LinearSVC(dual=False, **options).fit(rows, np.concatenate(labels), sample_weight=areas)


def predict_linear(model: Any, graphs: list[SuperpixelGraph]) -> list[np.ndarray]:
    return [model.predict(graph.nodes) for graph in graphs]


def fit_cuts(graphs: list[SuperpixelGraph], labels: list[np.ndarray], options: dict[str, Any]) -> Any:
    areas = [graph.sizes / graph.sizes.mean() for graph in graphs]
    model = GraphCutSVM(tol=0.03, random_state=0, **options)
    return model.fit([graph.graph for graph in graphs], labels, node_weight=areas)


def predict_cuts(model: Any, graphs: list[SuperpixelGraph]) -> list[np.ndarray]:
    return model.predict([graph.graph for graph in graphs])


def figures(images: Images, labels: list[np.ndarray]) -> tuple[float, float]:
    """Pixel accuracy and intersection over union of the horses, over all images."""
    predicted = np.concatenate([y[graph.segments].ravel() for graph, y in zip(images[0], labels, strict=True)])
    true = np.concatenate([mask.ravel() for mask in images[1]])
    return float(np.mean(predicted == true)), float(np.sum(predicted & true) / np.sum(predicted | true))


def tune(fit: Callable, predict: Callable, train: Images, dev: Images, grid: list[dict[str, Any]]) -> dict[str, Any]:
    """The options of the highest intersection over union on `dev`."""
    labels = [graph.labels_of(mask) for graph, mask in zip(*train, strict=True)]
    scores = [figures(dev, predict(fit(train[0], labels, options), dev[0]))[1] for options in grid]
    return grid[int(np.argmax(scores))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=300, help="superpixels per image")
    parser.add_argument("--images", type=int, default=None, help="use only so many training images")
    arguments = parser.parse_args()

    began = time.process_time()
    horses = load_horses()
    train, test = (
        ([superpixel_graph(image, arguments.segments) for image in images], masks)
        for images, masks in (
            (horses.X_train[: arguments.images], horses.y_train[: arguments.images]),
            (horses.X_test, horses.y_test),
        )
    )
    nodes, edges, edge_features = train[0][0].graph
    print(
        f"{len(train[0])} training and {len(test[0])} test images; the first has {len(nodes)} superpixels with "
        f"{nodes.shape[1]} features and {len(edges)} edges with {edge_features.shape[1]}: "
        f"{time.process_time() - began:.0f} s"
    )
    is_dev = np.arange(len(train[0])) % 5 == 0
    parts = [
        ([train[0][i] for i in np.flatnonzero(chosen)], [train[1][i] for i in np.flatnonzero(chosen)])
        for chosen in (~is_dev, is_dev)
    ]
    labels = [graph.labels_of(mask) for graph, mask in zip(*train, strict=True)]
    print(f"{'model':32}{'pixels':>8}{'IoU':>8}{'CPU s':>8}  chosen")
    for name, fit, predict, grid in (
        ("linear SVM on superpixels", fit_linear, predict_linear, LINEAR),
        ("graph cuts (GraphCutSVM)", fit_cuts, predict_cuts, CUTS),
    ):
        began = time.process_time()
        chosen = tune(fit, predict, parts[0], parts[1], grid)
        accuracy, overlap = figures(test, predict(fit(train[0], labels, chosen), test[0]))
        print(f"{name:32}{accuracy:8.1%}{overlap:8.1%}{time.process_time() - began:8.0f}  {chosen}", flush=True)
    accuracy, overlap = figures(test, [graph.labels_of(mask) for graph, mask in zip(*test, strict=True)])
    print(f"{'best labels of the superpixels':32}{accuracy:8.1%}{overlap:8.1%}")


if __name__ == "__main__":
    main()
