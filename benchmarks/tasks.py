"""The tasks of *Minding the gaps*: letters (OCR), chunks (CoNLL-2000), horses (graph cuts) and poses (LSP)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.chunking import load_chunking
from benchmarks.common import load_ocr

TASKS = {
    "ocr-small": "OCR-small",
    "ocr-large": "OCR-large",
    "conll": "CoNLL-2000",
    "horses": "Horses",
    "poses": "Poses",
}
SEGMENTS = 150  # superpixels per image of a horse


class Examples(NamedTuple):
    """X, y and further arguments of an estimator's `fit`."""

    X: list
    y: list
    data: dict[str, Any]


class Task(NamedTuple):
    """An estimator and its data."""

    title: str
    model: Any
    train: Examples
    test: Examples

    def encode(self) -> Any:
        """The problem, with the bounds of its weights."""
        return self.model._encode(self.train.X, self.train.y, **self.train.data)


def load_task(name: str, n: int | None = None, cost: str = "hamming") -> Task:
    """A task by its name.

    Parameters
    ----------
    name : one of TASKS
    n : train on the first n examples only
    cost : of chains and graphs, "hamming" or "normalized_hamming"; poses have a cost of their own, at most 1
    """
    if name == "horses":
        return _horses(n, cost)
    if name == "poses":
        return _poses(n)
    from maxmargin import ChainSVM

    X, y, X_test, y_test = load_chunking() if name == "conll" else load_ocr(name.removeprefix("ocr-"))
    X, y = X[:n], y[:n]
    if name == "conll" and n is not None:
        seen = np.unique(np.concatenate([x.indices for x in X]))  # features of these sentences only
        X, X_test = [x[:, seen] for x in X], [x[:, seen] for x in X_test]
    return Task(TASKS[name], ChainSVM(cost=cost), Examples(X, y, {}), Examples(X_test, y_test, {}))


def _horses(n: int | None, cost: str) -> Task:
    from maxmargin import GraphCutSVM
    from maxmargin.datasets import load_horses
    from maxmargin.vision import superpixel_graph

    def described(images: list, masks: list) -> Examples:
        graphs = [superpixel_graph(image, SEGMENTS) for image in images]
        labels = [graph.labels_of(mask) for graph, mask in zip(graphs, masks, strict=True)]
        areas = [graph.sizes / graph.sizes.mean() for graph in graphs]
        return Examples([graph.graph for graph in graphs], labels, {"node_weight": areas})

    data = load_horses()
    train, test = described(data.X_train[:n], data.y_train[:n]), described(data.X_test[:n], data.y_test[:n])
    return Task(TASKS["horses"], GraphCutSVM(cost=cost, class_weight="balanced"), train, test)


def _poses(n: int | None) -> Task:
    from examples.pose import EDGES, TORSO, People, fill_in, read_people
    from maxmargin import DeformableSVM
    from maxmargin.datasets import load_lsp

    def described(people: People) -> Examples:
        visible = {"joint_weight": people.visible[:n]}
        return Examples(people.features[:n], list(fill_in(people)[:n]), visible)

    data = load_lsp()
    most = None if n is None else 3 * n  # some have too few visible joints
    train, test = (
        described(read_people(data.X_train[:most], data.y_train[:most])),
        described(read_people(data.X_test[:most], data.y_test[:most])),
    )
    return Task(TASKS["poses"], DeformableSVM(edges=EDGES, reference=TORSO), train, test)
