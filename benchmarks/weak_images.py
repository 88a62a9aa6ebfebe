"""Images of which few are labelled: horses with masks or boxes, photographs with label maps, tags, boxes or seeds.

Beside the images with full maps alone, and beside full maps of all: the intersection over union of the horses of test
images, and the share of test superpixels of photographs that are right, by area. Options are the same for all models,
but for the weight of images that are not labelled in full. Photographs have boxes around things, with tags of all
labels, and seeds at three superpixels of each; superpixels that are mostly void are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, print_table

QUICK = 3  # with --quick, every so many images
SEGMENTS = {"horses": 150, "photographs": 60}  # superpixels per image, about
MASKS, MAPS = 0.15, 0.2  # shares of images that are labelled in full
STUFF = "grass", "tree", "sky", "water", "road", "building"  # what nobody draws a box around
WIDTH = 50  # features of superpixels of photographs
HORSES = {"C": 0.3, "class_weight": "balanced", "tol": 0.03, "random_state": 0}
PHOTOGRAPHS = {"C": 0.1, "interaction": "potts", "bounds": {"edges": (0, None)}, "max_passes": 90, "random_state": 0}
WEAK = 0.2  # weight of horses in boxes


def load_graphs(name: str, quick: bool) -> tuple[list, list, list, list]:
    """Superpixels and label maps of training and of test images."""
    from maxmargin.datasets import load_horses, load_msrc
    from maxmargin.vision import superpixel_graph

    data = (load_horses if name == "horses" else load_msrc)()
    step = QUICK if quick else 1
    train, test = (
        [superpixel_graph(image, SEGMENTS[name]) for image in images[::step]] for images in (data.X_train, data.X_test)
    )
    if name == "photographs":
        train, test = reduce_features(train, test)
    return train, data.y_train[::step], test, data.y_test[::step]


def reduce_features(train: list, test: list) -> tuple[list, list]:
    """The same graphs with fewer, uncorrelated features."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    reduced = make_pipeline(StandardScaler(), PCA(WIDTH, whiten=True, random_state=0))
    reduced.fit(np.concatenate([graph.nodes for graph in train]))
    return tuple([graph._replace(nodes=reduced.transform(graph.nodes)) for graph in graphs] for graphs in (train, test))


def choose(n: int, share: float, seed: int) -> np.ndarray:
    """Which of n images are labelled in full."""
    return np.isin(np.arange(n), np.random.default_rng(seed).permutation(n)[: round(share * n)])


def measure_horses(way: str, seed: int, quick: bool) -> float:
    """The intersection over union of the horses of test images, in percent."""
    from maxmargin import GraphCutSVM

    warnings.simplefilter("ignore")
    graphs, masks, test, true = load_graphs("horses", quick)
    is_full = choose(len(graphs), MASKS, seed)
    kept = np.flatnonzero(is_full) if way == "masks alone" else np.arange(len(graphs))
    known = [
        graphs[i].labels_of(masks[i]) if is_full[i] or way == "all masks" else graphs[i].boxes_of(masks[i], 1)
        for i in kept
    ]
    model = GraphCutSVM(weak_weight=WEAK, **HORSES)
    areas = [graphs[i].sizes / graphs[i].sizes.mean() for i in kept]
    model.fit([graphs[i].graph for i in kept], known, node_weight=areas)
    labels = model.predict([graph.graph for graph in test])
    found = np.concatenate([y[graph.segments].ravel() for graph, y in zip(test, labels, strict=True)])
    horses = np.concatenate([mask.ravel() for mask in true])
    return float(100 * np.sum(found & horses) / np.sum(found | horses))


def annotate(graph: Any, labels: np.ndarray, way: str, seed: int) -> Any:
    """What is known of a photograph, of the superpixels that are not void."""
    from maxmargin import Boxes, Seeds
    from maxmargin.datasets import MSRC_CLASSES

    is_kept = graph.weights_of(labels, void=0) > 0
    number = np.cumsum(is_kept) - 1
    tags = graph.tags_of(labels, void=0)
    if way == "seeds":
        seeds = graph.seeds_of(labels, 3, void=0, random_state=seed)
        return Seeds(number[seeds.nodes], seeds.labels)
    stuff = {MSRC_CLASSES.index(name) for name in STUFF}
    things = {*tags.labels} - stuff
    if way == "tags" or len(things) == len(tags.labels):
        return tags
    known = [tags]
    for label in things:
        lines = [number[line[is_kept[line]]] for line in graph.boxes_of(labels, label).lines if is_kept[line].any()]
        known += [Boxes(label, lines)] if lines else []
    return tuple(known)


def measure_photographs(way: str, seed: int, quick: bool) -> float:
    """The share of test superpixels that are right, by area, in percent."""
    from maxmargin import GraphSVM

    warnings.simplefilter("ignore")
    graphs, maps, test, true = load_graphs("photographs", quick)
    is_full = choose(len(graphs), MAPS, seed)

    def read(some: list, all_labels: list, chosen: Any, are_full: Any) -> tuple[list, list, list]:
        X, y, areas = [], [], []
        for i in chosen:
            weights = some[i].weights_of(all_labels[i], void=0)
            if (weights > 0).sum() > 1:
                X.append(some[i].subgraph(weights > 0))
                areas.append(weights[weights > 0] / some[i].sizes.mean())
                y.append(
                    some[i].labels_of(all_labels[i], void=0)[weights > 0]
                    if are_full[i]
                    else annotate(some[i], all_labels[i], way, seed)
                )
        return X, y, areas

    kept = np.flatnonzero(is_full) if way == "maps alone" else np.arange(len(graphs))
    X, y, areas = read(graphs, maps, kept, np.full(len(graphs), True) if way == "all maps" else is_full)
    model = GraphSVM(**PHOTOGRAPHS).fit(X, y, node_weight=areas)
    X, y, areas = read(test, true, np.arange(len(test)), np.full(len(test), True))
    return 100 * model.score(X, y, node_weight=areas)


def average(measure: Callable[..., float], ways: tuple[str, ...], seeds: int, quick: bool) -> dict[str, float]:
    """The figures of each way, averaged over seeds; the last way labels all in full, whatever the seed."""
    *drawn, full = ways
    found = {way: [in_fresh_process(measure, way, seed, quick) for seed in range(seeds)] for way in drawn}
    return {way: float(np.mean(values)) for way, values in found.items()} | {
        full: in_fresh_process(measure, full, 0, quick)
    }


def run_horses(seeds: int, quick: bool) -> tuple[Any, list[Bar]]:
    """Horses with masks or boxes."""
    found = average(measure_horses, ("masks alone", "boxes of the others", "all masks"), seeds, quick)
    print_table("Horses, 15 % with masks: intersection over union in percent", ["known", "IoU"], found.items())
    gain = found["boxes of the others"] - found["masks alone"]
    less = found["all masks"] - found["boxes of the others"]
    return found, [
        Bar("horses: within 3 points of IoU of all masks", f"{less:.2f}", less <= 3),
        Bar("horses: above masks alone", f"{gain:+.2f}", gain > 0),
    ]


def run_photographs(seeds: int, quick: bool) -> tuple[Any, list[Bar]]:
    """Photographs with label maps, tags, boxes or seeds."""
    found = average(measure_photographs, ("maps alone", "tags", "boxes", "seeds", "all maps"), seeds, quick)
    print_table("Photographs, a fifth with label maps: superpixels right in percent", ["known", "right"], found.items())
    gains = {way: found[way] - found["maps alone"] for way in ("tags", "boxes", "seeds")}
    return found, [
        Bar(f"photographs: {way} at least 2 points above maps alone", f"{gain:+.2f}", gain >= 2)
        for way, gain in gains.items()
    ]
