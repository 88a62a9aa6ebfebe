"""The linear map between weights and the scores of tokens: one file per storage."""

from maxmargin.features.constant import ConstantFeatures
from maxmargin.features.dense import DenseFeatures
from maxmargin.features.layout import WeightLayout, join_layouts, layout_of, layout_of_rows
from maxmargin.features.linear_map import (
    Gram,
    as_matrix,
    norm_buffer,
    row_stretches,
    rows_of,
    score_rows,
    spread_rows,
    squared_norm_rows,
    squared_sums,
    weight_shape,
    with_gram,
)
from maxmargin.features.parts import score_parts, spread_parts, squared_norm_parts, squared_spreads
from maxmargin.features.sparse import BinaryFeatures, SparseFeatures

__all__ = [
    "BinaryFeatures",
    "ConstantFeatures",
    "DenseFeatures",
    "Gram",
    "SparseFeatures",
    "WeightLayout",
    "as_matrix",
    "join_layouts",
    "layout_of",
    "layout_of_rows",
    "norm_buffer",
    "row_stretches",
    "rows_of",
    "score_parts",
    "score_rows",
    "spread_parts",
    "spread_rows",
    "squared_norm_parts",
    "squared_norm_rows",
    "squared_spreads",
    "squared_sums",
    "weight_shape",
    "with_gram",
]
