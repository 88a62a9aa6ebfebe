"""Last layers of networks that parse sentences."""

from __future__ import annotations

import numpy.typing as npt
import torch
from torch import Tensor, nn

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import check_count
from maxmargin.encode.inputs.rows import append_constant
from maxmargin.torch.base_head import Head
from maxmargin.torch.heads import Device, LabelHead, as_rows, feature_fields
from maxmargin.torch.parses.parse_potentials import Dependencies, SpanTrees
from maxmargin.torch.potentials import Numbers


class DependencyHead(Head):
    """Linear scores of arcs, and of their labels: features of arcs between words to `Dependencies`.

    Parameters
    ----------
    n_features
        Of each arc.
    n_labels
        The number of labels of arcs, or 0 where they have none.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import DependencyHead, decode
    >>> decode(DependencyHead(3)(torch.randn(2, 4, 5, 3))).shape
    torch.Size([2, 4])
    >>> decode(DependencyHead(3, n_labels=7)(torch.randn(2, 4, 5, 3))).shape  # heads and labels
    torch.Size([2, 4, 2])
    """

    def __init__(
        self, n_features: int, n_labels: int = 0, device: Device = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("n_labels", n_labels, least=0)
        self.scores = nn.Linear(n_features, 1 + n_labels, bias=False, device=device, dtype=dtype)

    def forward(
        self, features: Tensor, lengths: Numbers | None = None, projective: bool = True, single_root: bool = True
    ) -> Dependencies:
        """The potentials of features, (B, n, n + 1, F), of the arcs to each word from each head, the root first."""
        arcs, labels = self.scores(features).tensor_split([1], dim=-1)
        scores = arcs + labels if labels.shape[-1] else arcs.squeeze(-1)
        return Dependencies(scores, lengths, projective=projective, single_root=single_root)

    def weights(self) -> list[Tensor]:
        return [self.scores.weight.T]

    def _features(
        self, potentials: Dependencies, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        lengths = potentials.rows.lengths
        known = features[torch.as_tensor(potentials.entries)]
        pieces = [x[:n, : n + 1].reshape(n * (n + 1), -1) for x, n in zip(known, lengths.tolist(), strict=True)]
        return feature_fields(as_rows(torch.cat(pieces), starts_of(lengths * (lengths + 1))), dtype)


class SpanHead(LabelHead):
    """Linear scores of labelled spans: features of spans of words to `SpanTrees`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import SpanHead, decode
    >>> decode(SpanHead(3, n_labels=2)(torch.randn(2, 4, 5, 3))).shape
    torch.Size([2, 4, 5])
    """

    def _make(self, rows: nn.Linear) -> None:
        self.spans = rows

    def forward(self, features: Tensor, lengths: Numbers | None = None) -> SpanTrees:
        """The potentials of features, (B, n, n + 1, F), of the spans from each word to each end."""
        return SpanTrees(self.spans(features), lengths)

    def weights(self) -> list[Tensor]:
        return [self.spans.weight.T, self.spans.bias]

    def _features(
        self, potentials: SpanTrees, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        ends = [torch.triu_indices(n, n) for n in potentials.rows.lengths.tolist()]
        pieces = [x[lo, hi + 1] for x, (lo, hi) in zip(features, ends, strict=True)]
        return feature_fields(append_constant(as_rows(torch.cat(pieces), starts_of([*map(len, pieces)]))), dtype)
