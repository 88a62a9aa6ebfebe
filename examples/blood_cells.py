"""Find the white blood cell in an image: `BoxSVM` on a bag of visual words.

Images are cut into cells of 16 x 16 pixels. A cell is described by its colours and by those of its surroundings at
three scales, quantised to visual words by k-means; a box is scored by the words inside. Two baselines: the best
constant box, and the same words with weights from a logistic regression that tells cells inside from cells outside.

Run with the folder of the data in MAXMARGIN_DATA:

    python examples/blood_cells.py
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import numpy as np
from scipy.ndimage import uniform_filter
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from maxmargin import BoxSVM
from maxmargin.datasets import load_blood_cells
from maxmargin.metrics import corloc, iou, mean_iou
from maxmargin.vision import to_cells, to_pixels


def describe(image, cell):
    """(H, W, F) descriptors of the cells: mean and spread of colours, and means of three surroundings."""
    height, width = (side // cell for side in image.shape[:2])
    pixels = image[: height * cell, : width * cell].reshape(height, cell, width, cell, 3) / 255
    mean, spread = pixels.mean(axis=(1, 3)), pixels.std(axis=(1, 3))
    around = [uniform_filter(mean, (size, size, 1), mode="nearest") for size in (3, 7, 13)]
    return np.concatenate([mean, spread, *around], axis=2)


def to_words(descriptors, scaler, centres):
    """The map of visual words of an image."""
    rows = descriptors.reshape(-1, descriptors.shape[2])
    return centres.predict(scaler.transform(rows)).reshape(descriptors.shape[:2])


def best_constant(y):
    """The training box that overlaps the others most."""
    boxes = np.array(y)
    return boxes[np.argmax(iou(boxes[:, None], boxes).mean(axis=1))]


def cell_classifier(X, y, n_words):
    """The score of each word by a logistic regression on single cells, inside or outside."""
    counts = np.zeros((2, n_words))
    for words, (top, left, bottom, right) in zip(X, y, strict=True):
        inside = np.zeros(words.shape, int)
        inside[top:bottom, left:right] = 1
        np.add.at(counts, (inside, words), 1)
    rows, labels = np.tile(np.eye(n_words), (2, 1)), np.repeat([0, 1], n_words)
    model = LogisticRegression(C=10, max_iter=1000).fit(rows, labels, sample_weight=counts.ravel())
    return model.decision_function(np.eye(n_words))


def best_box(cells):
    """The box of the highest sum of cells: for all pairs of rows, the best run of columns."""
    best, box = -np.inf, None
    sums = np.pad(cells.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    for top, bottom in itertools.combinations(range(len(sums)), 2):
        run = sums[bottom] - sums[top]
        gains = run[1:] - np.minimum.accumulate(run[:-1])
        right = int(np.argmax(gains)) + 1
        if gains[right - 1] > best:
            best, box = gains[right - 1], (top, int(np.argmin(run[:right])), bottom, right)
    return box


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", type=int, default=16, help="side of a cell in pixels")
    parser.add_argument("--words", type=int, default=200, help="number of visual words")
    args = parser.parse_args()

    data = load_blood_cells()
    print(f"{len(data.X_train)} training, {len(data.X_dev)} development and {len(data.X_test)} test images")
    began = time.perf_counter()
    train, dev, test = ([describe(x, args.cell) for x in X] for X in (data.X_train, data.X_dev, data.X_test))
    rows = np.concatenate([x.reshape(-1, x.shape[2]) for x in train])
    scaler = StandardScaler().fit(rows)
    centres = MiniBatchKMeans(args.words, n_init=1, batch_size=4096, random_state=0).fit(scaler.transform(rows))
    X_train, X_dev, X_test = ([to_words(x, scaler, centres) for x in part] for part in (train, dev, test))
    shape = X_train[0].shape
    y_train, y_dev, y_test = (to_cells(part, args.cell, shape) for part in (data.y_train, data.y_dev, data.y_test))
    print(f"{shape[0]} x {shape[1]} cells, {args.words} words: {time.perf_counter() - began:.1f} s")

    def report(name, boxes):
        print(f"{name:28} CorLoc {corloc(data.y_test, boxes):.3f}   mean IoU {mean_iou(data.y_test, boxes):.3f}")

    models = {}
    for C in (1e-4, 1e-3, 1e-2):
        began = time.perf_counter()
        model = BoxSVM(C=C, tol=0.02, max_passes=200, random_state=0).fit(X_train, y_train)
        models[C] = model
        print(
            f"C = {C:g}: {model.status_.name} after {model.n_iter_} passes, {time.perf_counter() - began:.1f} s; "
            f"mean IoU on the development images {model.score(X_dev, y_dev):.3f}"
        )
    best = max(models.values(), key=lambda model: model.score(X_dev, y_dev))

    word_scores = cell_classifier(X_train, y_train, args.words)
    print("\nOn the test images")
    report("constant box", [best_constant(data.y_train)] * len(y_test))
    report("cell classifier", to_pixels([best_box(word_scores[x]) for x in X_test], args.cell))
    report(f"BoxSVM, C = {best.C:g}", to_pixels(best.predict(X_test), args.cell))
    report("(true boxes, in whole cells)", to_pixels(y_test, args.cell))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Not solved to tol")  # the gaps are printed
    main()
