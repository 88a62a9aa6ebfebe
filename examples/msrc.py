"""MSRC-21: the classes of superpixels, each by itself and together, by models of their graph.

Superpixels are described by histograms of colors, gradients, places and visual words of filter responses, each also of
the neighbourhood. A logistic regression and a forest of trees score their classes; models of graphs take these scores,
out of fold in training, as the features of nodes, and similarities and lengths of borders as those of edges. Bounds
leave a class the weight of its own score alone: a weight for each score and class would fit the few images too well.
Void superpixels are left out in training; C, and whether weights are averaged, are chosen on a fifth of the training
images. Reported are the share of pixels that are right, and its mean over the classes, on the test images, without void
pixels.

Usage: MAXMARGIN_DATA=... python examples/msrc.py [--segments N] [--quick]. Needs scikit-image.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage
from skimage.color import rgb2lab
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import BCFW, GraphSVM
from maxmargin.datasets import load_msrc
from maxmargin.losses import RelaxedLoss
from maxmargin.vision import SuperpixelGraph, superpixel_graph

VOID = 0
N_WORDS = 64
N_FOLDS = 5


class Photo(NamedTuple):
    """An image as a graph, its label map, and labels and weights of its superpixels."""

    graph: SuperpixelGraph
    true: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def responses(image: np.ndarray) -> np.ndarray:
    """(h, w, K) responses of each pixel to filters: colors at three scales, blobs and edges of lightness."""
    lab = rgb2lab(image) / 100
    lightness = lab[..., 0]
    smooth = [ndimage.gaussian_filter(lab, (size, size, 0)) for size in (1, 2, 4)]
    blobs = [size**2 * ndimage.gaussian_laplace(lightness, size) for size in (1, 2, 4)]
    edges = [
        size * ndimage.gaussian_filter(lightness, size, order=order) for size in (2, 4) for order in ((0, 1), (1, 0))
    ]
    return np.dstack([*smooth, *blobs, *edges])


def to_photos(images: list[np.ndarray], true_labels: list[np.ndarray], words: Any, n_segments: int) -> list[Photo]:
    photos = []
    for image, true in zip(images, true_labels, strict=True):
        found = responses(image)
        indicators = np.eye(N_WORDS)[words.predict(found.reshape(-1, found.shape[2]))]
        graph = superpixel_graph(image, n_segments, features=indicators.reshape(*found.shape[:2], -1))
        labels, weights = graph.labels_of(true, void=VOID), graph.weights_of(true, void=VOID)
        photos.append(Photo(graph, true, labels, weights / graph.sizes.mean()))
    return photos


def load_photos(n_segments: int, step: int) -> tuple[list[Photo], list[Photo]]:
    """Every so many training and test images; visual words are those of the former."""
    data, rng = load_msrc(), np.random.default_rng(0)
    filtered = (responses(image) for image in data.X_train[::step])
    sample = np.concatenate([rng.permutation(found.reshape(-1, found.shape[2]))[:200] for found in filtered])
    words = make_pipeline(StandardScaler(), MiniBatchKMeans(N_WORDS, n_init=1, batch_size=4096, random_state=0))
    words.fit(sample)
    return (
        to_photos(data.X_train[::step], data.y_train[::step], words, n_segments),
        to_photos(data.X_test[::step], data.y_test[::step], words, n_segments),
    )


def score_nodes(train: list[Photo], others: list[Photo]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The classes, and the scores of each for the superpixels of other images: mean log-probabilities of two models."""
    weights = np.concatenate([photo.weights for photo in train])
    rows = np.concatenate([photo.graph.nodes for photo in train])[weights > 0]
    y = np.concatenate([photo.labels for photo in train])[weights > 0]
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
    linear.fit(rows, y, logisticregression__sample_weight=weights[weights > 0])
    forest = ExtraTreesClassifier(100, min_samples_leaf=3, random_state=0).fit(rows, y, weights[weights > 0])
    nodes = np.concatenate([photo.graph.nodes for photo in others])
    scores = sum(np.log(model.predict_proba(nodes) + 1e-3) / 2 for model in (linear, forest))
    scores -= scores.mean(axis=1, keepdims=True)
    return forest.classes_, np.split(scores, np.cumsum([len(photo.graph.nodes) for photo in others])[:-1])


def score_out_of_fold(photos: list[Photo]) -> list[np.ndarray]:
    """The scores of superpixels by models of the images of other folds."""
    scores: list[Any] = [None] * len(photos)
    for fold in range(N_FOLDS):
        others = [photo for k, photo in enumerate(photos) if k % N_FOLDS != fold]
        _, scores[fold::N_FOLDS] = score_nodes(others, photos[fold::N_FOLDS])
    return scores


def with_scores(photos: list[Photo], scores: list[np.ndarray]) -> list[Photo]:
    return [p._replace(graph=p.graph._replace(nodes=nodes)) for p, nodes in zip(photos, scores, strict=True)]


def fit(model: GraphSVM, photos: list[Photo]) -> GraphSVM:
    """Train on the superpixels that are not void."""
    chosen = [(photo, photo.weights > 0) for photo in photos if photo.weights.any()]
    X = [photo.graph.subgraph(is_known) for photo, is_known in chosen]
    y = [photo.labels[is_known] for photo, is_known in chosen]
    weights = [photo.weights[is_known] for photo, is_known in chosen]
    return model.fit(X, y, node_weight=weights)


def figures(photos: list[Photo], labels: list[np.ndarray]) -> tuple[float, float]:
    """The share of pixels that are right, and its mean over the classes."""
    predicted = np.concatenate([y[photo.graph.segments].ravel() for photo, y in zip(photos, labels, strict=True)])
    true = np.concatenate([photo.true.ravel() for photo in photos])
    is_right, true = (predicted == true)[true != VOID], true[true != VOID]
    return float(is_right.mean()), float(np.mean([is_right[true == label].mean() for label in np.unique(true)]))


def predict(model: GraphSVM, photos: list[Photo]) -> list[np.ndarray]:
    return model.predict([photo.graph.graph for photo in photos])


def tune(model: GraphSVM, grid: list[dict[str, Any]], train: list[Photo], dev: list[Photo]) -> dict[str, Any]:
    """The parameters of the highest accuracy on `dev`."""
    return max(grid, key=lambda parameters: figures(dev, predict(fit(model.set_params(**parameters), train), dev)))


def without_edges(photos: list[Photo]) -> list[Photo]:
    return [
        p._replace(graph=p.graph._replace(edges=p.graph.edges[:0], edge_features=p.graph.edge_features[:0]))
        for p in photos
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=100, help="superpixels per image, about")
    parser.add_argument("--quick", action="store_true", help="a quarter of the images, a single C: shows little")
    arguments = parser.parse_args()

    began = time.process_time()
    train, test = load_photos(arguments.segments, step=4 if arguments.quick else 1)
    print(
        f"{len(train)} training and {len(test)} test images, "
        f"{np.mean([len(photo.labels) for photo in train]):.0f} superpixels and "
        f"{np.mean([len(photo.graph.edges) for photo in train]):.0f} edges each: {time.process_time() - began:.0f} s"
    )

    began = time.process_time()
    out_of_fold = score_out_of_fold(train)
    classes, scores = score_nodes(train, test)
    train, test = with_scores(train, out_of_fold), with_scores(test, scores)
    print(f"{'model':36}{'pixels':>8}{'classes':>9}{'CPU s':>7}")

    def report(name: str, labels: list[np.ndarray], note: str = "") -> None:
        pixels, mean = figures(test, labels)
        print(f"{name:36}{pixels:8.1%}{mean:9.1%}{time.process_time() - began:7.0f}  {note}", flush=True)

    report("classifiers of superpixels", [classes[np.argmax(nodes, axis=1)] for nodes in scores])
    dev, rest = train[::5], [photo for k, photo in enumerate(train) if k % 5]
    strengths = [0.01] if arguments.quick else [0.003, 0.01, 0.03]
    averagings = [True] if arguments.quick else [True, False]
    own_scores = {"nodes": (0, np.where(np.eye(len(classes)), np.inf, 0))}
    hinge = {"bounds": own_scores, "max_passes": 10, "random_state": 0}
    hinge_grid = [{"C": C, "solver": BCFW(averaging=averaging)} for C in strengths for averaging in averagings]
    relaxed = {"loss": RelaxedLoss(level=0.3), "max_passes": 40, "random_state": 0}
    relaxed_grid = [{"C": C} for C in strengths]
    for name, model, grid, change in (
        ("GraphSVM, no edges", GraphSVM(**hinge), hinge_grid, without_edges),
        ("GraphSVM, Potts", GraphSVM(interaction="potts", **hinge), hinge_grid, list),
        ("GraphSVM, pairs of classes", GraphSVM(**hinge), hinge_grid, list),
        ("the same by IDAL, all scores", GraphSVM(**relaxed), relaxed_grid, list),
    ):
        began = time.process_time()
        chosen = tune(model, grid, change(rest), change(dev)) if len(grid) > 1 else grid[0]
        fit(model.set_params(**chosen), change(train))
        gap = (model.trace_.gap / model.trace_.primal)[-1]
        shown = f"C = {model.C:g}{', averaged' if getattr(model.solver, 'averaging', False) else ''}"
        report(name, predict(model, change(test)), f"{shown}, {model.status_.name}, relative gap {gap:.2g}")
    report("best labels of the superpixels", [photo.labels for photo in test])


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Not solved to tol")  # fits are short
    main()
