"""Images that are labelled in full, by a box, by tags or by a few clicks: what each is worth to a model of superpixels.

Made images have a thing of one of two kinds on grass or sand, under changing light. Two of them have label maps; of the
others it is known which labels occur, where about things are, or the labels of a few superpixels. Reported is the share
of superpixels of other images that are right, by area.

Run without any data: python examples/weak_segmentation.py. Needs scikit-image.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from maxmargin import GraphSVM
from maxmargin.vision import SuperpixelGraph, superpixel_graph

LABELS = np.array(["grass", "sand", "cow", "car"])
COLORS = np.array([(0.30, 0.46, 0.24), (0.56, 0.48, 0.34), (0.40, 0.34, 0.26), (0.42, 0.42, 0.48)])
HEIGHT, WIDTH = 48, 64


def make_image(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An ellipse or a rectangle on the ground, (h, w, 3) colors and (h, w) labels."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    row, column = rng.uniform(14, HEIGHT - 14), rng.uniform(18, WIDTH - 18)
    across, down = (columns - column) / rng.uniform(9, 16), (rows - row) / rng.uniform(6, 12)
    ground, thing = rng.integers(2), rng.integers(2, 4)
    is_thing = across**2 + down**2 < 1 if thing == 2 else np.maximum(abs(across), abs(down)) < 0.9
    codes = np.where(is_thing, thing, ground)
    light = rng.uniform(0.6, 1.4) + 0.3 * (rows / HEIGHT - 0.5)
    texture = gaussian_filter(rng.normal(size=(HEIGHT, WIDTH, 3)), (2, 2, 0))
    return np.clip(COLORS[codes] * light[..., np.newaxis] + 0.5 * texture, 0, 1), LABELS[codes]


def annotate(graph: SuperpixelGraph, labels: np.ndarray, kind: str) -> Any:
    """What is known of an image."""
    if kind == "maps":
        return graph.labels_of(labels)
    if kind == "seeds":
        return graph.seeds_of(labels, 3, random_state=0)
    tags = graph.tags_of(labels)
    things = [label for label in tags.labels if label in ("cow", "car")]
    return tags if kind == "tags" else (tags, *(graph.boxes_of(labels, thing) for thing in things))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=24, help="training images, of which two have label maps")
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    made = [make_image(rng) for _ in range(arguments.images + 20)]
    graphs, maps = [superpixel_graph(image, 40, compactness=20) for image, _ in made], [labels for _, labels in made]
    X, areas = [graph.graph for graph in graphs], [graph.sizes / graph.sizes.mean() for graph in graphs]
    y = [annotate(graph, labels, "maps") for graph, labels in zip(graphs, maps, strict=True)]
    n = arguments.images
    firsts = [next(i for i in range(n) if thing in maps[i]) for thing in ("cow", "car")]

    def report(name: str, chosen: list[int], known: list[Any]) -> None:
        model = GraphSVM(C=0.1, interaction="potts", max_passes=30, random_state=0)
        model.fit([X[i] for i in chosen], known, node_weight=[areas[i] for i in chosen])
        right = model.score(X[n:], y[n:], node_weight=areas[n:])
        print(f"{name:36}{right:8.1%}", flush=True)

    print(f"{'known of the images':36}{'right':>8}")
    report("two label maps, nothing else", firsts, [y[i] for i in firsts])
    for kind in ("tags", "boxes", "seeds"):
        known = [y[i] if i in firsts else annotate(graphs[i], maps[i], kind) for i in range(n)]
        report(f"two label maps, {kind} of the others", [*range(n)], known)
    report("label maps of all", [*range(n)], y[:n])


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Not solved to tol")  # fits are short
    main()
