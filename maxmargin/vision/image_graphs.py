"""Images as graphs: pixels on a grid, and superpixels with features of nodes and edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_count
from maxmargin.encode.inputs.example_checks import check_array
from maxmargin.vision.superpixels import SuperpixelGraph, count_bins
from maxmargin.wording import quote

RADII = 0, 1, 2  # features of a superpixel alone, with its neighbours, and with theirs
COLOR_BINS, HUE_BINS, GRADIENT_BINS, PLACES = 4, 8, 8, 5
CONTRASTS = 0.5, 2.0, 8.0


def grid_edges(height: int, width: int) -> np.ndarray:
    """The edges between neighbours, across and down, of the pixels of an image counted row by row.

    Examples
    --------
    >>> from maxmargin.vision import grid_edges
    >>> grid_edges(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    pixels = np.arange(height * width).reshape(height, width)
    across, down = (pixels[:, :-1], pixels[:, 1:]), (pixels[:-1], pixels[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (across, down)])


def superpixel_graph(
    image: ArrayLike, n_segments: int = 150, compactness: float = 10.0, features: object = None
) -> SuperpixelGraph:
    """Cut an image into superpixels (SLIC) and describe them and their borders.

    Node features are histograms of color, of the directions of gradients and of places in the image, each for the
    superpixel alone, together with its neighbours, and with theirs; the means of your own features of pixels likewise,
    in the last columns. Edge features are a constant, the length of the
    common border in units of the square root of an average superpixel's size, and exp(-eta d) for several eta times the
    distance d of the mean colors and of the histograms.

    Needs scikit-image: ``pip install maxmargin[vision]``.

    Parameters
    ----------
    image
        (h, w, 3) RGB or (h, w) gray array, integers up to 255 or floats up to 1.
    n_segments
        About how many superpixels to make.
    compactness
        How much SLIC prefers compact superpixels to homogeneous ones.
    features
        (h, w) or (h, w, K) array of further features of pixels, such as the responses of filters, or indicators of
        visual words, whose means are histograms.

    Returns
    -------
    SuperpixelGraph

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.vision import superpixel_graph
    >>> graph = superpixel_graph(np.zeros((20, 30, 3), np.uint8), n_segments=6)
    >>> graph.segments.shape, int(graph.sizes.sum()), graph.edges.shape[1]
    ((20, 30), 600, 2)
    """
    try:
        from skimage import color, segmentation
        from skimage.util import img_as_float
    except ImportError as error:
        raise ImportError("superpixel_graph needs scikit-image: pip install maxmargin[vision].") from error

    check_count("n_segments", n_segments)
    if np.asarray(image).dtype.kind not in "biuf":
        raise TypeError(f"image must be an array of numbers, not {quote(image)}.")
    pixels = img_as_float(np.asarray(image))
    if pixels.ndim == 2:
        pixels = color.gray2rgb(pixels)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"image must have the shape (h, w, 3) or (h, w), not {np.shape(image)}.")
    layers = _layers(features, *pixels.shape[:2])
    segments = segmentation.slic(pixels, n_segments, compactness, start_label=0)
    n, flat = int(segments.max()) + 1, segments.ravel()
    totals = np.stack([np.bincount(flat, layer.ravel(), n) for layer in layers], axis=1)
    sizes = totals[:, -1]
    edges, border = _borders(segments)

    lab, hsv = color.rgb2lab(pixels), color.rgb2hsv(pixels)
    mean_color = np.stack([np.bincount(flat, lab[..., c].ravel(), n) / sizes for c in range(3)], axis=1) / 100
    counts = [
        count_bins(flat, n, _color_bins(pixels), COLOR_BINS**3),
        count_bins(flat, n, _bins(hsv[..., 0], HUE_BINS), HUE_BINS, hsv[..., 1]),
        count_bins(flat, n, *_gradients(lab[..., 0])),
        count_bins(flat, n, _place_bins(segments.shape), PLACES**2),
    ]
    blocks, distances = [mean_color], [np.linalg.norm(np.subtract(*mean_color[edges.T]), axis=1)]
    adjacency = _adjacency(edges, n)
    means = []
    for radius in RADII:
        for k, count in enumerate(counts):
            block = count / np.maximum(count.sum(axis=1, keepdims=True), 1e-9)
            blocks.append(np.sqrt(block))
            if radius == 0 and k < 3:
                distances.append(np.abs(np.subtract(*block[edges.T])).sum(axis=1))
        means.append(totals[:, :-1] / totals[:, -1:])
        counts, totals = [adjacency @ count for count in counts], adjacency @ totals
    similarity = [np.exp(-eta * d) for d in distances for eta in CONTRASTS]
    edge_features = np.stack([np.ones(len(edges)), border / np.sqrt(sizes.mean()), *similarity], axis=1)
    return SuperpixelGraph(segments, np.hstack([*blocks, *means]), edges, edge_features, sizes)


def _layers(features: object, height: int, width: int) -> np.ndarray:
    """The (K + 1, h, w) features of the pixels that users have, and ones, whose sums are areas."""
    ones = np.ones((1, height, width))
    if features is None:
        return ones
    kind = f"an array of numbers of shape ({height}, {width}) or ({height}, {width}, K), as the image"
    own = check_array(features, "features", kind, (height, width), (height, width, None))
    if not np.isfinite(own).all():
        raise ValueError("features must be finite numbers.")
    return np.concatenate([np.moveaxis(own.reshape(height, width, -1), 2, 0), ones])


def _borders(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of adjacent superpixels, and the length of their common border in pixels."""
    pairs = np.sort(segments.ravel()[grid_edges(*segments.shape)], axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0, return_counts=True)


def _adjacency(edges: np.ndarray, n: int) -> np.ndarray:
    """The matrix that adds the rows of all neighbours to a superpixel's own."""
    adjacency = np.eye(n)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
    return adjacency


def _bins(values: np.ndarray, n_bins: int) -> np.ndarray:
    return np.clip((values * n_bins).astype(int), 0, n_bins - 1)


def _color_bins(pixels: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(_bins(pixels, COLOR_BINS), 2, 0)
    return (red * COLOR_BINS + green) * COLOR_BINS + blue


def _gradients(lightness: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Bins of the directions of gradients, their number, and the gradients' lengths as weights."""
    down, across = (
        np.gradient(lightness, axis=axis) if lightness.shape[axis] > 1 else 0 * lightness for axis in (0, 1)
    )
    return _bins(np.arctan2(down, across) / (2 * np.pi) + 0.5, GRADIENT_BINS), GRADIENT_BINS, np.hypot(down, across)


def _place_bins(shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = (_bins((np.arange(size) + 0.5) / size, PLACES) for size in shape)
    return rows[:, np.newaxis] * PLACES + columns
