"""What people say of an image without labelling each of its nodes: which labels occur, where about, and at a few nodes.

Elements of y of models of graphs, in place of an array of labels; a tuple of several says all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike


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

    labels: Sequence[Any]


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
