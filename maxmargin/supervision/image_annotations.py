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
    >>> from maxmargin.supervision.image_annotations import Tags
    >>> Tags(["cow", "grass"]).labels
    ['cow', 'grass']
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
    >>> from maxmargin.supervision.image_annotations import Boxes
    >>> len(Boxes("horse", [[1], [2], [1, 2]]).lines)
    3
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
    >>> from maxmargin.supervision.image_annotations import Seeds
    >>> Seeds([0, 1], ["grass", "horse"]).nodes
    [0, 1]
    """

    nodes: ArrayLike
    labels: Any
