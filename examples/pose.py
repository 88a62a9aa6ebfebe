"""Human pose: 14 joints in images of people in sports, held together by springs.

Run ``python examples/pose.py`` with MAXMARGIN_DATA set to a folder that contains ``lsp_extended_400``; needs Pillow.

Each image is cropped around its person, as is usual, and cut into cells. The features of a cell are histograms of
gradient orientations in the cells around it, and its coordinates. `DeformableSVM` without edges places each joint on
its own; with edges, springs between joints keep the body together; with several types, each limb may point in several
directions. The report is the share of visible joints of held-out images that are within 0.2 and 0.5 of the length of
the torso from the true pose; a fifth of the training images chooses C.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import DeformableSVM
from maxmargin.datasets import load_lsp

N_CELLS, CELL = 24, 8  # cells along a side of the crop, pixels along a side of a cell
N_BINS = 9  # orientations
CONTEXT = 2  # cells on either side whose histograms are features of a cell
EDGES = [(12, 13), (12, 8), (8, 7), (7, 6), (12, 9), (9, 10), (10, 11), (8, 2), (2, 1), (1, 0), (9, 3), (3, 4), (4, 5)]
TORSO = (9, 2)  # left shoulder and right hip
GRID = (0.01, 0.03, 0.1)  # of C


class People(NamedTuple):
    """Images with enough visible joints."""

    features: list[np.ndarray]  # (cells, cells, F) each
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
    return np.minimum(histogram / np.sqrt(around + 0.1)[:, :, np.newaxis], 0.4) / 0.4


def features_of(grey: np.ndarray) -> np.ndarray:
    """(cells, cells, F) histograms around each cell, its coordinates and their products."""
    r = CONTEXT
    padded = np.pad(gradient_histograms(grey), ((r, r), (r, r), (0, 0)))
    around = [padded[i : i + N_CELLS, j : j + N_CELLS] for i in range(2 * r + 1) for j in range(2 * r + 1)]
    y, x = (np.indices((N_CELLS, N_CELLS)) + 0.5) / N_CELLS * 2 - 1
    place = np.stack([x, y, x * x, y * y, x * y], axis=2)
    return np.concatenate([*around, place], axis=2).astype(np.float32)


def read_people(paths: list[Path], poses: list[np.ndarray]) -> People:
    """The images with at least 11 visible joints, those of the torso among them."""
    chosen = [(p, j) for p, j in zip(paths, poses, strict=True) if j[:, 2].sum() >= 11 and j[TORSO, 2].all()]
    crops = [crop(path, joints) for path, joints in chosen]
    features = [features_of(grey) for grey, _ in crops]
    return People(features, np.array([j for _, j in crops]), np.array([j[:, 2] > 0 for _, j in chosen]))


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
    """The share of visible joints within `threshold` torso lengths of the true one."""
    torso = np.linalg.norm(people.joints[:, TORSO[0]] - people.joints[:, TORSO[1]], axis=1)
    distance = np.linalg.norm(predicted - people.joints, axis=2)
    return float((distance <= threshold * torso[:, np.newaxis])[people.visible].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tol", type=float, default=0.05)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of each fit")
    arguments = parser.parse_args()
    began = time.perf_counter()
    data = load_lsp()
    train, test = read_people(data.X_train, data.y_train), read_people(data.X_test, data.y_test)
    y = fill_in(train)
    seconds = time.perf_counter() - began
    print(f"{len(train.joints)} training and {len(test.joints)} test images, features in {seconds:.0f} s")
    print(f"{'':28} {'within 0.2':>10} {'within 0.5':>10} {'seconds':>8} {'passes':>7} {'rel. gap':>9}  status")

    def show(name: str, predicted: np.ndarray, rest: str = "") -> None:
        shares = [share_correct(predicted, test, threshold) for threshold in (0.2, 0.5)]
        print(f"{name:28} {shares[0]:10.3f} {shares[1]:10.3f} {rest}", flush=True)

    show("mean pose", np.tile(y.mean(axis=0), (len(test.joints), 1, 1)))
    models = {
        "each joint on its own": {},
        "tree": {"edges": EDGES},
        "tree, 4 types of each edge": {"edges": EDGES, "n_types": 4},
    }
    n_fit = len(y) * 4 // 5  # the rest of the training images chooses C
    dev = People(train.features[n_fit:], train.joints[n_fit:], train.visible[n_fit:])

    def fit(C: float, n: int, limit: float, shape: dict[str, Any]) -> DeformableSVM:
        model = DeformableSVM(C=C, reference=TORSO, tol=arguments.tol, time_limit=limit, random_state=0, **shape)
        return model.fit(train.features[:n], y[:n], joint_weight=train.visible[:n])

    for name, shape in models.items():
        began = time.perf_counter()

        def dev_share(C: float, shape: dict[str, Any] = shape) -> float:
            model = fit(C, n_fit, arguments.time_limit / 3, shape)
            return share_correct(np.array(model.predict(dev.features)), dev, 0.5)

        C = max(GRID, key=dev_share)
        model = fit(C, len(y), arguments.time_limit, shape)
        trace, seconds = model.trace_, time.perf_counter() - began
        gap = trace.gap[-1] / trace.primal[-1]
        rest = f"{seconds:8.1f} {trace.passes[-1]:7.1f} {gap:9.3f}  {model.status_.name}, C = {C:g}"
        show(name, np.array(model.predict(test.features)), rest)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Not solved to tol")  # the gaps are printed
    main()
