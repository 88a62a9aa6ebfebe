"""Images of which few are labelled: horses with masks or boxes, photographs with label maps, tags, boxes or seeds.

Beside the images with full maps alone, horses also beside all others taken for background, and beside full maps of all:
the intersection over union of the horses of test images, and the share of test superpixels of photographs that are
right, by area. C, and the weight of images that are not labelled in full, are chosen on training images. Of horses a
fifth of these, held out, chooses for each way, by the mean over all draws of models of the others. Of photographs folds
of the images that are labelled in full choose, for each way and draw: each is looked at by models of all other training
images. Photographs have boxes around things, with tags of all labels, and seeds at three superpixels of each;
superpixels that are mostly void are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, print_table

DRAWS = {"horses": 5, "photographs": 3}  # of the images that are labelled in full, unless told otherwise
QUICK = 3  # with --quick, every so many images
SEGMENTS = {"horses": 150, "photographs": 60}  # superpixels per image, about
MASKS, MAPS = 0.15, 0.2  # shares of images that are labelled in full
STUFF = "grass", "tree", "sky", "water", "road", "building"  # what nobody draws a box around
WIDTH = 50  # features of superpixels of photographs
HELD_OUT = 5  # every so many training images of horses choose options
HORSES = {"class_weight": "balanced", "tol": 0.03, "random_state": 0}
PHOTOGRAPHS = {"interaction": "potts", "bounds": {"edges": (0, None)}, "max_passes": 90, "random_state": 0}
STRENGTHS = {"horses": (0.3, 1.0, 3.0), "photographs": (0.03, 0.1)}  # C to choose from
WEIGHTS = {"horses": (0.1, 0.3, 1.0), "photographs": (0.05, 0.3, 1.0)}  # of images that are not labelled in full

Images = tuple[list, list, list]  # graphs, what is known of them, weights of nodes


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


def options_of(name: str, has_weak: bool) -> list[dict[str, float]]:
    """What to choose from."""
    weights = WEIGHTS[name] if has_weak else (1.0,)
    return [{"C": C, "weak_weight": weight} for C in STRENGTHS[name] for weight in weights]


def fit(make: Callable[..., Any], options: dict[str, float], data: Images, some: np.ndarray) -> Any:
    """A model of some of the images."""
    X, y, areas = ([part[i] for i in some] for part in data)
    return make(**options).fit(X, y, node_weight=areas)


def select(make: Callable[..., Any], data: Images, is_full: np.ndarray, score: Callable[..., float]) -> Any:
    """The model, fitted to all, with the options that are best on a third of the images that are labelled in full."""
    fold, kept = np.flatnonzero(is_full)[::3], np.arange(len(is_full))

    def judge(options: dict[str, float]) -> float:
        return score(fit(make, options, data, np.setdiff1d(kept, fold)), fold)

    best = max(options_of("photographs", not is_full.all()), key=judge)
    return fit(make, best, data, kept), best


def overlap(model: Any, graphs: list, masks: list) -> float:
    """The intersection over union of the horses of images, in percent."""
    labels = model.predict([graph.graph for graph in graphs])
    found = np.concatenate([y[graph.segments].ravel() for graph, y in zip(graphs, labels, strict=True)])
    horses = np.concatenate([mask.ravel() for mask in masks])
    return float(100 * np.sum(found & horses) / np.sum(found | horses))


def measure_horses(way: str, seeds: int, quick: bool) -> list[tuple[float, dict[str, float]]]:
    """The intersection over union of the horses of test images, in percent, by draw, and the options chosen."""
    from maxmargin import GraphCutSVM

    warnings.simplefilter("ignore")
    graphs, masks, test, true = load_graphs("horses", quick)
    n, make = len(graphs), partial(GraphCutSVM, **HORSES)
    full = [graph.labels_of(mask) for graph, mask in zip(graphs, masks, strict=True)]
    if way == "others as background":
        others_known: list = [np.zeros_like(labels) for labels in full]
    else:
        others_known = [graph.boxes_of(mask, 1) for graph, mask in zip(graphs, masks, strict=True)]
    draws = [choose(n, MASKS if way != "all masks" else 1.0, seed) for seed in range(seeds)]
    X, areas = [graph.graph for graph in graphs], [graph.sizes / graph.sizes.mean() for graph in graphs]

    def train(options: dict[str, float], is_full: np.ndarray, some: np.ndarray) -> Any:
        kept = some[is_full[some]] if way == "masks alone" else some
        return fit(make, options, (X, [full[i] if is_full[i] else others_known[i] for i in range(n)], areas), kept)

    held_out = np.arange(n)[HELD_OUT - 1 :: HELD_OUT]
    others = np.setdiff1d(np.arange(n), held_out)
    seen = [graphs[i] for i in held_out], [masks[i] for i in held_out]

    def judge(options: dict[str, float]) -> float:
        return float(np.mean([overlap(train(options, is_full, others), *seen) for is_full in draws]))

    best = max(options_of("horses", way == "boxes of the others"), key=judge)
    return [(overlap(train(best, is_full, np.arange(n)), test, true), best) for is_full in draws]


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


def measure_photographs(way: str, seed: int, quick: bool) -> tuple[float, dict[str, float]]:
    """The share of test superpixels that are right, by area, in percent, and the options chosen."""
    from maxmargin import GraphSVM

    warnings.simplefilter("ignore")
    graphs, maps, test, true = load_graphs("photographs", quick)
    is_full = choose(len(graphs), MAPS if way != "all maps" else 1.0, seed)
    kept = np.flatnonzero(is_full) if way == "maps alone" else np.arange(len(graphs))

    def read(some: list, all_labels: list, chosen: Any, are_full: np.ndarray) -> tuple[Images, np.ndarray]:
        X, y, areas, full = [], [], [], []
        for i in chosen:
            weights = some[i].weights_of(all_labels[i], void=0)
            if (weights > 0).sum() > 1:
                X.append(some[i].subgraph(weights > 0))
                areas.append(weights[weights > 0] / some[i].sizes.mean())
                known = some[i].labels_of(all_labels[i], void=0)[weights > 0]
                y.append(known if are_full[i] else annotate(some[i], all_labels[i], way, seed))
                full.append(are_full[i])
        return (X, y, areas), np.array(full)

    data, are_full = read(graphs, maps, kept, is_full)

    def right(fitted: Any, fold: Any, some: Images = data) -> float:
        X, y, areas = ([part[i] for i in fold] for part in some)
        return 100 * fitted.score(X, y, node_weight=areas)

    model, chosen = select(partial(GraphSVM, **PHOTOGRAPHS), data, are_full, right)
    tested, _ = read(test, true, range(len(test)), np.full(len(test), True))
    return right(model, range(len(tested[0])), tested), chosen


def measure_draws(measure: Callable[..., Any], way: str, seeds: int, quick: bool) -> list[tuple[float, Any]]:
    """The figure and options of each seed."""
    return [in_fresh_process(measure, way, seed, quick) for seed in range(seeds)]


def average(measure: Callable[..., Any], ways: tuple[str, ...], seeds: int, quick: bool) -> dict[str, Any]:
    """The figures and options of each way and draw; the last way labels all in full, whatever is drawn."""
    found = {way: measure(way, 1 if way == ways[-1] else seeds, quick) for way in ways}
    return {
        way: {
            "mean": float(np.mean([score for score, _ in runs])),
            "scores": [score for score, _ in runs],
            "options": runs[0][1],
        }
        for way, runs in found.items()
    }


def tell(title: str, found: dict[str, Any]) -> dict[str, float]:
    """Print the figures of each way; return their means."""
    rows = [
        [way, f"{run['mean']:.2f}", ", ".join(f"{score:.1f}" for score in run["scores"]), str(run["options"])]
        for way, run in found.items()
    ]
    print_table(title, ["known", "mean", "by draw", "options of the first"], rows)
    return {way: run["mean"] for way, run in found.items()}


def run_horses(seeds: int | None, quick: bool) -> tuple[Any, list[Bar]]:
    """Horses with masks or boxes."""
    ways = "masks alone", "others as background", "boxes of the others", "all masks"
    found = average(partial(in_fresh_process, measure_horses), ways, seeds or DRAWS["horses"], quick)
    means = tell("Horses, 15 % with masks: intersection over union in percent", found)
    gain = means["boxes of the others"] - means["masks alone"]
    more = means["boxes of the others"] - means["others as background"]
    less = means["all masks"] - means["boxes of the others"]
    return found, [
        Bar("horses: within 3 points of IoU of all masks", f"{less:.2f}", less <= 3),
        Bar("horses: above masks alone", f"{gain:+.2f}", gain > 0),
        Bar("horses: above all else as background", f"{more:+.2f}", more > 0),
    ]


def run_photographs(seeds: int | None, quick: bool) -> tuple[Any, list[Bar]]:
    """Photographs with label maps, tags, boxes or seeds."""
    ways = "maps alone", "tags", "boxes", "seeds", "all maps"
    found = average(partial(measure_draws, measure_photographs), ways, seeds or DRAWS["photographs"], quick)
    means = tell("Photographs, a fifth with label maps: superpixels right in percent", found)
    gains = {way: means[way] - means["maps alone"] for way in ("tags", "boxes", "seeds")}
    return found, [
        Bar(f"photographs: {way} at least 2 points above maps alone", f"{gain:+.2f}", gain >= 2)
        for way, gain in gains.items()
    ]
