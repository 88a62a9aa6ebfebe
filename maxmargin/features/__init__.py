"""The linear map between weights and the scores of tokens: one file per storage."""

from maxmargin.features.base import gram_blocks, score_rows, spread_rows, squared_norm_rows
from maxmargin.features.dense import DenseFeatures
from maxmargin.features.parts import score_parts, spread_parts, squared_norm_parts
from maxmargin.features.sparse import BinaryFeatures, SparseFeatures

__all__ = [
    "BinaryFeatures",
    "DenseFeatures",
    "SparseFeatures",
    "gram_blocks",
    "score_parts",
    "score_rows",
    "spread_parts",
    "spread_rows",
    "squared_norm_parts",
    "squared_norm_rows",
]
