"""What people say of an image without labelling each of its nodes: which labels occur, where about, and at a few nodes.

Elements of y of models of graphs, in place of an array of labels; a tuple of several says all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.wording import quote


@dataclass(frozen=True)
class Tags:
    """The labels that occur in an image: each at some node, and no others.

    `SuperpixelGraph.tags_of` makes them of a label map.

    Parameters
    ----------
    labels
        The labels, at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GraphSVM, Tags
    >>> edges = [(0, 1), (1, 2)]
    >>> X = [(np.eye(3)[nodes], edges) for nodes in ([0, 0, 1], [1, 2, 2], [0, 2, 2])]
    >>> y = [["cow", "cow", "grass"], Tags(["grass", "sky"]), Tags(["cow", "sky"])]
    >>> GraphSVM(C=10.0, random_state=0).fit(X, y).predict(X)[2].tolist()
    ['cow', 'sky', 'sky']
    """

    labels: Collection[Any]


@dataclass(frozen=True)
class Boxes:
    """Where a label occurs: at some node of each line of its boxes, and nowhere else.

    A line is a row or a column of pixels of a tight box. `SuperpixelGraph.boxes` finds the nodes on each, given boxes
    in pixels, and `SuperpixelGraph.boxes_of` makes boxes of a label map.

    Parameters
    ----------
    label
        The label.
    lines
        The nodes on each line of the boxes; none if the label occurs nowhere.

    Examples
    --------
    Of four nodes in a row, a box is around the two in the middle:

    >>> from maxmargin import Boxes, GraphCutSVM
    >>> edges = [(0, 1), (1, 2), (2, 3)]
    >>> X = [([[-1.0], [1.0], [1.2], [-0.8]], edges), ([[-1.0], [1.1], [0.9], [-1.0]], edges)]
    >>> y = [["grass", "horse", "horse", "grass"], Boxes("horse", [[1], [2], [1, 2]])]
    >>> GraphCutSVM(C=10.0, random_state=0).fit(X, y).predict(X)[1].tolist()
    ['grass', 'horse', 'horse', 'grass']
    """

    label: Any
    lines: Sequence[ArrayLike]


@dataclass(frozen=True)
class Seeds:
    """The labels of some nodes, as people mark them by a click or a stroke.

    `SuperpixelGraph.seeds_of` draws them from a label map; the node at a pixel is ``graph.segments[row, column]``.

    Parameters
    ----------
    nodes
        (S,) nodes.
    labels
        (S,) their labels, or one for all.

    Examples
    --------
    >>> from maxmargin import GraphCutSVM, Seeds
    >>> edges = [(0, 1), (1, 2), (2, 3)]
    >>> X = [([[-1.0], [1.0], [1.2], [-0.8]], edges), ([[-1.0], [1.1], [0.9], [-1.0]], edges)]
    >>> y = [["grass", "horse", "horse", "grass"], Seeds([0, 1], ["grass", "horse"])]
    >>> GraphCutSVM(C=10.0, random_state=0).fit(X, y).predict(X)[1].tolist()
    ['grass', 'horse', 'horse', 'grass']
    """

    nodes: ArrayLike
    labels: Any


ANNOTATIONS = Tags, Boxes, Seeds


class Group(NamedTuple):
    """Nodes of an example, the label that one of them should have, and what it costs if none has."""

    nodes: np.ndarray
    states: Any  # the number of the label, or one for each node
    cost: float


class Reading(NamedTuple):
    """What annotations say of an image."""

    allowed: np.ndarray  # (V, L) whether a node may have a label
    groups: list[Group]
    completion: np.ndarray  # (V,) numbers of labels that agree with it all


def is_annotation(known: object) -> bool:
    """Whether what is known of an image is one of those here, or a tuple of such."""
    parts = known if isinstance(known, tuple) and known else (known,)
    return all(isinstance(part, ANNOTATIONS) for part in parts)


def labels_in(known: object, name: str) -> list[object]:
    """The labels that annotations name; raises for what cannot be one, `name` in messages."""
    labels = [label for part in _parts(known) for label in _labels(part)]
    for label in labels:
        if not isinstance(label, (str, int, np.integer, np.bool_)):
            raise TypeError(f"{name} names {quote(label)}, but labels are integers or strings.")
    return labels


def _parts(known: object) -> tuple[Any, ...]:
    return known if isinstance(known, tuple) else (known,)


def _labels(part: Boxes | Tags) -> list[object]:
    given = [part.label] if isinstance(part, Boxes) else part.labels
    if hasattr(given, "tolist"):
        return np.ravel(np.asarray(given)).tolist()
    are_many = isinstance(given, (list, tuple)) or (isinstance(part, Tags) and isinstance(given, Set))
    return [*given] if are_many else [given]


def read_annotations(
    known: object, classes: np.ndarray, weight: np.ndarray, name: str, possible: np.ndarray | None = None
) -> Reading:
    """What the annotations `known` say of an image whose nodes have these weights in the cost; `name` is for messages.

    Labels of nodes may be impossible whatever is known, by flags (V, L) of those that are not.
    A tag that does not occur costs the weight of all nodes, divided by the number of tags; a line without the label of
    its box a tenth of the weight of the nodes in the boxes, divided by the number of lines: about what the nodes cost
    that are then wrong, as few nodes of a thing are on the outer lines, which are those that tend to be missed.
    """
    n_nodes, n_labels = len(weight), len(classes)
    number = {label: k for k, label in enumerate(classes.tolist())}
    allowed = np.ones((n_nodes, n_labels), bool) if possible is None else possible.copy()
    tags: dict[int, Group] = {}
    lines = []
    for part in _parts(known):
        codes = [number[label] for label in _labels(part)]
        if isinstance(part, Tags):
            if not codes:
                raise ValueError(f"The tags of {name} must be at least one label.")
            allowed &= np.isin(np.arange(n_labels), codes)
            some = sorted(set(codes))
            if len(some) > 1:
                tags |= {tag: Group(np.arange(n_nodes), tag, float(weight.sum()) / len(some)) for tag in some}
        elif isinstance(part, Boxes):
            what = f"The lines of the boxes of {name}"
            rows = [np.unique(_as_nodes(line, n_nodes, what)) for line in part.lines]
            inside = np.unique(np.concatenate([np.zeros(0, int), *rows]))
            allowed[np.setdiff1d(np.arange(n_nodes), inside), codes[0]] = False
            lines += [Group(row, codes[0], float(weight[inside].sum()) / 10 / len(rows)) for row in rows]
        else:
            nodes = _as_nodes(part.nodes, n_nodes, f"The seeds of {name}")
            if len(codes) not in (1, len(nodes)):
                raise ValueError(f"The seeds of {name} are {len(nodes)} nodes, but they have {len(codes)} labels.")
            np.logical_and.at(allowed, nodes, np.eye(n_labels, dtype=bool)[codes])  # nodes may come twice
    if not allowed.any(axis=1).all():
        raise ValueError(f"{name} leaves no label for node {int(np.argmin(allowed.any(axis=1)))}.")
    return _complete(allowed, [*tags.values()], lines, classes, name)


def _as_nodes(given: object, n_nodes: int, what: str) -> np.ndarray:
    nodes = np.asarray(given)
    if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
        raise TypeError(f"{what} must be nodes, in a list of integers, not {quote(given)}.")
    is_missing = (nodes < 0) | (nodes >= n_nodes)
    if is_missing.any():
        raise ValueError(f"{what} must be nodes, from 0 to {n_nodes - 1}, but {int(nodes[is_missing][0])} is none.")
    return nodes.astype(np.int64)


def _complete(allowed: np.ndarray, tags: list[Group], lines: list[Group], classes: np.ndarray, name: str) -> Reading:
    """Labels that agree with what is known: a node of each tag has its label, then one of each line, short ones first.

    Lines of which no node is left for that are dropped, as superpixels can be too coarse for them.
    """
    tags, lines = ([_only_allowed(group, allowed) for group in some] for some in (tags, lines))
    completion, is_free = np.argmax(allowed, axis=1), np.ones(len(allowed), bool)
    chosen = _nodes_of_tags(tags, lines, len(allowed))
    for tag, node in zip(tags, chosen, strict=True):
        if node not in tag.nodes:
            raise ValueError(f"{name} has the tag {classes[tag.states].item()!r}, but leaves no node for it.")
        completion[node], is_free[node] = tag.states, False
    groups = [*tags]
    for line in sorted(lines, key=lambda line: len(line.nodes)):
        if not (completion[line.nodes] == line.states)[~is_free[line.nodes]].any():
            left = line.nodes[is_free[line.nodes]]
            if not left.size:
                continue
            completion[left[0]], is_free[left[0]] = line.states, False
        groups.append(line)
    return Reading(allowed, groups, completion)


def _only_allowed(group: Group, allowed: np.ndarray) -> Group:
    return group._replace(nodes=group.nodes[allowed[group.nodes, group.states]])


def _nodes_of_tags(tags: list[Group], lines: list[Group], n_nodes: int) -> np.ndarray:
    """A node for each tag, none twice, where it is in the way of few lines; a node without the tag if there is none."""
    from scipy.optimize import linear_sum_assignment  # which takes a while to load

    loss = np.full((len(tags), max(n_nodes, len(tags))), n_nodes * (len(lines) + 1.0))
    for row, tag in zip(loss, tags, strict=True):
        row[tag.nodes] = 0
        for line in lines:
            row[np.intersect1d(line.nodes, tag.nodes)] += line.states != tag.states
    return linear_sum_assignment(loss)[1]
