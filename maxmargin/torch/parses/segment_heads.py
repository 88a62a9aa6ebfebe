"""Last layers of networks that cut sequences into segments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from maxmargin.checks import check_count
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features
from maxmargin.torch.base_head import Head
from maxmargin.torch.heads import Device, as_rows, feature_fields
from maxmargin.torch.parses.segment_potentials import Segments
from maxmargin.torch.potentials import Numbers

N_ROLES = 3  # of rows: to begin a segment, to go on with it, to be its last one


class SegmentHead(Head):
    """A linear layer for the segments of sequences, with their lengths and transitions: features to `Segments`.

    Parameters
    ----------
    n_features
        Of each row.
    n_labels
        The number of labels.
    max_length
        The most rows of a segment, D.
    n_segment_features
        Of whole segments, beside those of rows; 0 if they have none.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import SegmentHead, crf_loss, decode
    >>> lstm, head = torch.nn.LSTM(8, 6, batch_first=True), SegmentHead(6, n_labels=3, max_length=4)
    >>> signal, lengths = torch.randn(2, 5, 8), [5, 3]
    >>> y = torch.tensor([[0, 3, 3, 1, 4], [2, 0, 3, -1, -1]])  # three rows of label 0, two of 1; one of 2, two of 0
    >>> crf_loss(head(lstm(signal)[0], lengths), y).backward()
    >>> decode(head(lstm(signal)[0], lengths)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        max_length: int,
        n_segment_features: int = 0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("n_labels", n_labels)
        check_count("max_length", max_length)
        check_count("n_segment_features", n_segment_features, least=0)
        self.emissions = nn.Linear(n_features, N_ROLES * n_labels, device=device, dtype=dtype)
        self.segments = None
        if n_segment_features:
            self.segments = nn.Linear(n_segment_features, n_labels, bias=False, device=device, dtype=dtype)
        self.durations = nn.Parameter(torch.zeros(max_length, n_labels, device=device, dtype=dtype))
        self.transitions = nn.Parameter(torch.zeros(n_labels, n_labels, device=device, dtype=dtype))

    def forward(
        self, features: Tensor, lengths: Numbers | None = None, segment_features: Tensor | None = None
    ) -> Segments:
        """The potentials of features, (B, T, F) padded or (N, F) packed, and of those of segments.

        Parameters
        ----------
        features
            Of rows.
        lengths
            Of the sequences, as in `Segments`.
        segment_features
            (B, T, D, F_segment), or (N, D, F_segment) packed, of segments by their first row and their length; None if
            they have none.
        """
        if (segment_features is None) != (self.segments is None):
            raise ValueError("segment_features must be there if n_segment_features is not 0, and only then.")
        emissions = self.emissions(features).unflatten(-1, (N_ROLES, -1))
        segments = None if self.segments is None else self.segments(segment_features)
        return Segments(emissions, self.transitions, self.durations, lengths, segments)

    def weights(self) -> list[Tensor]:
        of_segments = [] if self.segments is None else [self.segments.weight.T]
        return [self.emissions.weight.T, self.emissions.bias, *of_segments, self.durations, self.transitions]

    def _features(
        self,
        potentials: Segments,
        dtype: npt.DTypeLike,
        features: Tensor,
        lengths: object = None,
        segment_features: Tensor | None = None,
        *others: object,
    ) -> dict[str, object]:
        rows = append_constant(as_rows(potentials.rows.pack(features), potentials.rows.starts))
        listed = Rows(np.zeros((0, 0)), potentials.listed.starts)
        if segment_features is not None:
            listed = as_rows(segment_features.flatten(0, -2)[potentials.places], potentials.listed.starts)
        return feature_fields(rows, dtype) | {
            "segment_features": row_features(listed, dtype, with_grams=True),
            "n_segment_features": listed.matrix.shape[1],
        }
