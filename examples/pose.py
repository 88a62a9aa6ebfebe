"""Human pose: 14 joints in images of people in sports, held together by springs.

Run ``python examples/pose.py`` with MAXMARGIN_DATA set to a folder that contains ``lsp_extended_400``; needs Pillow.

Each image is cropped around its person, as is usual, and cut into cells. Histograms of gradient orientations around each
cell are turned into one score map per joint by linear discriminants. Score maps and coordinates are the features of
`DeformableSVM`: without edges it places each joint on its own, with edges springs between joints keep the body together,
with several types each limb may point in several directions. The report is the share of visible joints of held-out images
that are within 0.2 and 0.5 of the length of the torso from the truth.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin import DeformableSVM
from maxmargin.datasets import load_lsp

N_CELLS, CELL = 28, 7  # cells along a side of the crop, pixels along a side of a cell
N_BINS = 9  # orientations
CONTEXT = 3  # cells on either side that a discriminant sees
N_FOLDS = 5  # score maps of training images come from discriminants that have not seen them
EDGES = [(12, 13), (12, 8), (8, 7), (7, 6), (12, 9), (9, 10), (10, 11), (8, 2), (2, 1), (1, 0), (9, 3), (3, 4), (4, 5)]
TORSO = (9, 2)  # left shoulder and right hip


class People(NamedTuple):
    """Images with enough visible joints."""

    gradients: np.ndarray  # (n, cells, cells, bins)
    joints: np.ndarray  # (n, 14, 2) x and y, in cells
    visible: np.ndarray  # (n, 14)


def crop(path: Path, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The grey values around a person, and its joints in cells."""
    from PIL import Image

    seen = joints[joints[:, 2] > 0, :2]
    low, high = seen.min(axis=0), seen.max(axis=0)
    side = 1.35 * (high - low).max()
    corner = (low + high - side) / 2
    box = (*corner, *(corner + side))
    size = (N_CELLS * CELL, N_CELLS * CELL)
    image = Image.open(path).convert("L").transform(size, Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    return np.asarray(image, float) / 255, (joints[:, :2] - corner) / side * N_CELLS - 0.5


def gradient_histograms(grey: np.ndarray) -> np.ndarray:
    """Orientations of gradients in each cell, relative to the strength of all gradients around it."""
    dy, dx = np.gradient(grey)
    bins = (np.arctan2(dy, dx) % np.pi) * (N_BINS / np.pi) - 0.5
    low = np.floor(bins).astype(int)
    rows, columns = np.indices(grey.shape) // CELL
    histogram = np.zeros((N_CELLS, N_CELLS, N_BINS))
    for index, share in ((low, low + 1 - bins), (low + 1, bins - low)):
        np.add.at(histogram, (rows, columns, index % N_BINS), np.hypot(dx, dy) * share)
    energy = np.pad((histogram**2).sum(axis=2), 1, mode="edge")
    around = sum(energy[i : i + N_CELLS, j : j + N_CELLS] for i in range(3) for j in range(3))
    return np.minimum(histogram / np.sqrt(around + 0.1)[:, :, np.newaxis], 0.4)


def read_people(paths: list[Path], poses: list[np.ndarray]) -> People:
    """The images with at least 11 visible joints, those of the torso among them."""
    chosen = [(p, j) for p, j in zip(paths, poses, strict=True) if j[:, 2].sum() >= 11 and j[TORSO, 2].all()]
    crops = [crop(path, joints) for path, joints in chosen]
    gradients = np.array([gradient_histograms(grey) for grey, _ in crops])
    return People(gradients, np.array([j for _, j in crops]), np.array([j[:, 2] > 0 for _, j in chosen]))


def with_context(gradients: np.ndarray) -> np.ndarray:
    """(n, cells^2, features) histograms of each cell and those around it."""
    r = CONTEXT
    padded = np.pad(gradients, ((0, 0), (r, r), (r, r), (0, 0))).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * r + 1, 2 * r + 1), axis=(1, 2))
    return windows.reshape(len(gradients), N_CELLS**2, -1)


def fit_discriminants(people: People) -> np.ndarray:
    """(features, 14) the directions that tell each joint's cells from all others, by a shared covariance."""
    rows = with_context(people.gradients)
    sample = rows[:, ::7].reshape(-1, rows.shape[2])
    mean, covariance = sample.mean(axis=0), np.cov(sample.T)
    cells = np.clip(np.rint(people.joints), 0, N_CELLS - 1).astype(int)
    index = cells[:, :, 1] * N_CELLS + cells[:, :, 0]
    images = np.arange(len(rows))
    centres = [rows[images, index[:, j]][people.visible[:, j]].mean(axis=0) for j in range(14)]
    ridge = 0.1 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    directions = np.linalg.solve(covariance + ridge, np.array(centres).T - mean[:, np.newaxis])
    return directions / np.sqrt(np.einsum("fj,fg,gj->j", directions, covariance, directions))


def score_maps(people: People, directions: np.ndarray) -> list[np.ndarray]:
    """(cells, cells, 14 + 5) discriminants' scores, coordinates and their products."""
    y, x = (np.indices((N_CELLS, N_CELLS)) + 0.5) / N_CELLS * 2 - 1
    place = np.stack([x, y, x * x, y * y, x * y], axis=2)
    maps = (with_context(people.gradients) @ directions).reshape(-1, N_CELLS, N_CELLS, 14)
    return [np.concatenate([scores, place], axis=2).astype(np.float32) for scores in maps]


def subset(people: People, which: np.ndarray) -> People:
    return People(*(part[which] for part in people))


def cross_fitted_maps(people: People) -> list[np.ndarray]:
    """Score maps of training images, as they would be on new ones."""
    fold = np.arange(len(people.joints)) % N_FOLDS
    maps: dict[int, np.ndarray] = {}
    for k in range(N_FOLDS):
        directions = fit_discriminants(subset(people, fold != k))
        maps.update(zip(np.flatnonzero(fold == k), score_maps(subset(people, fold == k), directions), strict=True))
    return [maps[i] for i in range(len(fold))]


def fill_in(people: People) -> np.ndarray:
    """The joints, those that are not visible placed by the mean way from a neighbour, all inside the grid."""
    joints, known = people.joints.copy(), people.visible.copy()
    for _ in range(len(EDGES)):
        for parent, child in EDGES:
            both = people.visible[:, parent] & people.visible[:, child]
            way = (people.joints[both, child] - people.joints[both, parent]).mean(axis=0)
            for source, target, step in ((parent, child, way), (child, parent, -way)):
                new = known[:, source] & ~known[:, target]
                joints[new, target] = joints[new, source] + step
                known[new, target] = True
    return np.clip(joints, 0, N_CELLS - 1)


def share_correct(predicted: np.ndarray, people: People, threshold: float) -> float:
    """The share of visible joints within `threshold` torso lengths of the truth."""
    torso = np.linalg.norm(people.joints[:, TORSO[0]] - people.joints[:, TORSO[1]], axis=1)
    distance = np.linalg.norm(predicted - people.joints, axis=2)
    return float((distance <= threshold * torso[:, np.newaxis])[people.visible].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=0.02)
    parser.add_argument("--time-limit", type=float, default=90.0, help="seconds of each fit")
    arguments = parser.parse_args()
    began = time.perf_counter()
    data = load_lsp()
    train, test = read_people(data.X_train, data.y_train), read_people(data.X_test, data.y_test)
    X, y = cross_fitted_maps(train), fill_in(train)
    X_test = score_maps(test, fit_discriminants(train))
    print(f"{len(X)} training and {len(X_test)} test images, features in {time.perf_counter() - began:.0f} s")
    print(f"{'':28} {'within 0.2':>10} {'within 0.5':>10} {'seconds':>8} {'passes':>7} {'rel. gap':>9}  status")

    def show(name: str, predicted: np.ndarray, rest: str = "") -> None:
        shares = [share_correct(predicted, test, threshold) for threshold in (0.2, 0.5)]
        print(f"{name:28} {shares[0]:10.3f} {shares[1]:10.3f} {rest}", flush=True)

    show("mean pose", np.tile(y.mean(axis=0), (len(X_test), 1, 1)))
    models = {
        "each joint on its own": {},
        "tree": {"edges": EDGES},
        "tree, 4 types of each edge": {"edges": EDGES, "n_types": 4},
        "tree, 8 types of each edge": {"edges": EDGES, "n_types": 8},
    }
    options = {"C": arguments.C, "tol": arguments.tol, "time_limit": arguments.time_limit}
    for name, shape in models.items():
        began = time.perf_counter()
        model = DeformableSVM(reference=TORSO, random_state=0, **options, **shape)
        model.fit(X, y, joint_weight=train.visible)
        trace, seconds = model.trace_, time.perf_counter() - began
        gap = trace.gap[-1] / trace.primal[-1]
        rest = f"{seconds:8.1f} {trace.passes[-1]:7.1f} {gap:9.3f}  {model.status_.name}"
        show(name, np.array(model.predict(X_test)), rest)


if __name__ == "__main__":
    main()
