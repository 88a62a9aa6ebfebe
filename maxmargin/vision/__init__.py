"""What images need: graphs of superpixels and proposals of boxes."""

from maxmargin.vision.graphs import SuperpixelGraph, grid_edges, superpixel_graph
from maxmargin.vision.proposals import Candidates, box_candidates, box_features, selective_search, sliding_boxes

__all__ = [
    "Candidates",
    "SuperpixelGraph",
    "box_candidates",
    "box_features",
    "grid_edges",
    "selective_search",
    "sliding_boxes",
    "superpixel_graph",
]
