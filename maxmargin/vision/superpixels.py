"""Superpixels: a graph, and what label maps and annotations of pixels say of its nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from maxmargin.checks import check_count
from maxmargin.encode.inputs.example_checks import check_array
from maxmargin.supervision.image_annotations import Boxes, Seeds, Tags


class SuperpixelGraph(NamedTuple):
    """An image as a graph. ``nodes``, ``edges`` and ``edge_features`` are what `GraphCutSVM` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import superpixel_graph
    >>> image = np.zeros((20, 30, 3), np.uint8)
    >>> image[:, 15:] = 255
    >>> graph = superpixel_graph(image, n_segments=6)
    >>> labels = np.where(graph.segments == 0, 0, 3)
    >>> graph.labels_of(labels)[:2].tolist(), graph.labels_of(labels, void=0)[:2].tolist()
    ([0, 3], [3, 3])
    >>> float(graph.weights_of(labels, void=0)[0])
    0.0

    Weak annotations of the same image:

    >>> graph.tags_of(np.where(image[..., 0] > 0, "sky", "sea"))
    Tags(labels=['sea', 'sky'])
    >>> [line.tolist() for line in graph.boxes("sky", [(0, 15, 20, 30)]).lines]
    [[1], [3], [1, 3]]
    >>> len(graph.boxes_of(image[..., 0], 255).lines), graph.boxes_of(image[..., 0], 7).lines
    (3, [])
    >>> graph.seeds_of(image[..., 0], 2, random_state=0).labels.tolist()
    [0, 255, 0, 255]
    """

    segments: np.ndarray  # (h, w) the superpixel of each pixel
    nodes: np.ndarray  # (V, F)
    edges: np.ndarray  # (E, 2)
    edge_features: np.ndarray  # (E, G), not negative
    sizes: np.ndarray  # (V,) numbers of pixels

    @property
    def graph(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The triple (nodes, edges, edge features)."""
        return self.nodes, self.edges, self.edge_features

    def subgraph(self, kept: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same of some of the superpixels, and of the edges between these.

        Models learn the labels of all nodes that they are given, whatever these weigh in the cost: to ignore void
        superpixels, keep those of which ``weights_of(labels, void) > 0``.

        Parameters
        ----------
        kept : (V,) booleans
        """
        is_kept = np.asarray(kept, bool)
        is_whole = is_kept[self.edges].all(axis=1)
        number = np.cumsum(is_kept) - 1
        return self.nodes[is_kept], number[self.edges[is_whole]], self.edge_features[is_whole]

    def labels_of(self, labels: ArrayLike, void: object = None) -> np.ndarray:
        """The most frequent label in each superpixel, the lowest of several.

        Parameters
        ----------
        labels : (h, w) array
        void
            The label of pixels that do not count; superpixels that are all void get the most frequent other label of
            the image, and should be left out in training: see `weights_of` and `subgraph`.

        Returns
        -------
        (V,) array
        """
        values, codes = np.unique(self._check_labels(labels), return_inverse=True)
        counts = count_bins(self.segments.ravel(), len(self.sizes), codes, len(values))
        counts[:, values == void] = 0
        if not counts.any():
            raise ValueError(f"labels must hold another label than {void!r}, which is void.")
        counts[~counts.any(axis=1)] = counts.sum(axis=0)
        return values[np.argmax(counts, axis=1)]

    def weights_of(self, labels: ArrayLike, void: object) -> np.ndarray:
        """The number of pixels of each superpixel that are not void, or 0 if they are less than half of it.

        The ``node_weight`` of models whose ``y`` is `labels_of` the same image.

        Parameters
        ----------
        labels : (h, w) array
        void
            The label of pixels that do not count.

        Returns
        -------
        (V,) array
        """
        counts = np.bincount(self.segments.ravel(), (self._check_labels(labels) != void).ravel(), len(self.sizes))
        return np.where(2 * counts < self.sizes, 0, counts)

    def tags_of(self, labels: ArrayLike, void: object = None) -> Tags:
        """Which labels occur in an image: those that some superpixel has, by `labels_of` and `weights_of`.

        Parameters
        ----------
        labels : (h, w) array
        void
            The label of pixels that do not count.
        """
        return Tags(np.unique(self.labels_of(labels, void)[self.weights_of(labels, void) > 0]).tolist())

    def boxes(self, label: object, boxes: object) -> Boxes:
        """What boxes around all things of a label say of superpixels.

        A superpixel is in a box if most of its pixels are; those that a row or a column of a box touches are on that
        line. Lines that hold the same superpixels count once.

        Parameters
        ----------
        label
            What is in the boxes.
        boxes
            (B, 4) boxes in pixels, each (top, left, bottom, right), half-open.
        """
        height, width = self.segments.shape
        found = check_array(boxes, "boxes", "a (B, 4) array of integers, boxes in pixels", (None, 4), (0,), dtypes="iu")
        lines: dict[tuple[int, ...], np.ndarray] = {}
        for k, (top, left, bottom, right) in enumerate(found.reshape(-1, 4).tolist()):
            if not (0 <= top < bottom <= height and 0 <= left < right <= width):
                box = (top, left, bottom, right)
                raise ValueError(
                    f"boxes[{k}] is {box}, but boxes are (top, left, bottom, right), not empty, and inside the image, "
                    f"which is {height} pixels high and {width} wide."
                )
            cut = self.segments[top:bottom, left:right]
            is_inside = 2 * np.bincount(cut.ravel(), minlength=len(self.sizes)) >= self.sizes
            for line in (*cut, *cut.T):
                nodes = np.unique(line)[is_inside[np.unique(line)]]
                if nodes.size:
                    lines[tuple(nodes.tolist())] = nodes
        return Boxes(label, [lines[line] for line in sorted(lines, key=lambda line: (len(line), line))])

    def boxes_of(self, labels: ArrayLike, label: object) -> Boxes:
        """Boxes around the things of a label: one around each of its connected regions.

        Parameters
        ----------
        labels : (h, w) array
        label
            What is to be in the boxes.
        """
        regions, _ = ndimage.label(self._check_labels(labels) == label, np.ones((3, 3)))
        return self.boxes(
            label, [[s.start for s in box] + [s.stop for s in box] for box in ndimage.find_objects(regions)]
        )

    def seeds_of(
        self,
        labels: ArrayLike,
        n_seeds: int = 1,
        void: object = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Seeds:
        """Some superpixels of each label, with their labels, drawn at random: marks that people might make.

        Parameters
        ----------
        labels : (h, w) array
        n_seeds
            The number of superpixels of each label; all where there are fewer.
        void
            The label of pixels that do not count.
        random_state
            Seed of the draws.
        """
        check_count("n_seeds", n_seeds)
        of_nodes, is_known = self.labels_of(labels, void), self.weights_of(labels, void) > 0
        nodes = np.random.default_rng(random_state).permutation(np.flatnonzero(is_known))
        chosen = [nodes[of_nodes[nodes] == label][:n_seeds] for label in np.unique(of_nodes[nodes])]
        seeds = np.sort(np.concatenate([np.zeros(0, int), *chosen]))
        return Seeds(seeds, of_nodes[seeds])

    def _check_labels(self, labels: ArrayLike) -> np.ndarray:
        array = np.asarray(labels)
        if array.shape != self.segments.shape:
            raise ValueError(f"labels must have the shape of the image, {self.segments.shape}, not {array.shape}.")
        return array


def count_bins(
    segments: np.ndarray, n: int, bins: np.ndarray, n_bins: int, weights: ArrayLike | None = None
) -> np.ndarray:
    """The (n, n_bins) histograms of the superpixels."""
    weights = None if weights is None else np.ravel(weights)
    return np.bincount(segments * n_bins + bins.ravel(), weights, n * n_bins).reshape(n, n_bins).astype(float)
