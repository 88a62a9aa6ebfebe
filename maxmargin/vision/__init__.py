"""What images need: graphs of superpixels, proposals of boxes, their features, and detections."""

from maxmargin.vision.box_geometry import non_max_suppression, to_cells, to_pixels
from maxmargin.vision.cnn import cnn_features
from maxmargin.vision.image_graphs import grid_edges, superpixel_graph
from maxmargin.vision.proposals import (
    Candidates,
    box_candidates,
    box_features,
    nearest_candidates,
    selective_search,
    sliding_boxes,
)
from maxmargin.vision.regression import BoxRegressor
from maxmargin.vision.superpixels import SuperpixelGraph

__all__ = [
    "BoxRegressor",
    "Candidates",
    "SuperpixelGraph",
    "box_candidates",
    "box_features",
    "cnn_features",
    "grid_edges",
    "nearest_candidates",
    "non_max_suppression",
    "selective_search",
    "sliding_boxes",
    "superpixel_graph",
    "to_cells",
    "to_pixels",
]
