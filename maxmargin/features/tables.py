"""Weights as a table: one row per feature, one column per label."""

from __future__ import annotations

import numpy as np

from maxmargin.features.base import n_weights, norm_buffer, weight_table
from maxmargin.features.dense import DenseFeatures
from maxmargin.features.sparse import BinaryFeatures, SparseFeatures
from maxmargin.runtime.dispatch import implements
from maxmargin.runtime.threads import aligned
from maxmargin.runtime.views import matrix


@implements(weight_table, DenseFeatures, SparseFeatures, BinaryFeatures)
def whole_table(features, w, start, n_features, n_labels):
    return matrix(w, start, n_features, n_labels)


@implements(n_weights, DenseFeatures, SparseFeatures, BinaryFeatures)
def all_weights(features, n_features, n_labels):
    return n_features * n_labels


@implements(norm_buffer, DenseFeatures, SparseFeatures, BinaryFeatures)
def table_buffer(features, n_features, n_labels, dtype):
    """Empty where every example has its Gram matrix."""
    return aligned((n_features if np.any(features.gram.start < 0) else 0, n_labels), dtype)
