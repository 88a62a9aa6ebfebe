"""Last layers of networks whose outputs are links between two sides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from maxmargin.arrays.blocks import starts_of
from maxmargin.structures.monotone.grid_paths import N_MOVES
from maxmargin.torch.heads import Device, ScoreHead, as_rows, feature_fields
from maxmargin.torch.linked.link_potentials import Alignments, Matchings
from maxmargin.torch.potentials import Numbers


def pairs_of(features: Tensor, sides: np.ndarray) -> list[Tensor]:
    """The features of the pairs of each example, without padding."""
    return [x[:n, :m].reshape(n * m, -1) for x, (n, m) in zip(features, sides.tolist(), strict=True)]


class MatchingHead(ScoreHead):
    """Linear scores of links: features of pairs of nodes to `Matchings`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import MatchingHead, decode
    >>> decode(MatchingHead(3)(torch.randn(2, 4, 5, 3))).shape
    torch.Size([2, 4])
    """

    def forward(self, features: Tensor, sizes: Numbers | None = None) -> Matchings:
        """The potentials of features, (B, n, m, F), of the pairs of left and right nodes."""
        return Matchings(self.scores(features).squeeze(-1), sizes)

    def _features(
        self, potentials: Matchings, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        starts = starts_of(potentials.sides.prod(axis=1))
        return feature_fields(as_rows(torch.cat(pairs_of(features, potentials.sides)), starts), dtype, with_grams=False)


class AlignmentHead(ScoreHead):
    """Linear scores of links, with those of moves after each other: features of pairs of items to `Alignments`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import AlignmentHead, decode
    >>> head = AlignmentHead(3)
    >>> decode(head(torch.randn(2, 4, 5, 3))).shape
    torch.Size([2, 4])
    >>> decode(head(torch.randn(2, 4, 5, 3), warp=True)).shape
    torch.Size([2, 8])
    """

    def __init__(self, n_features: int, device: Device = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(n_features, device, dtype)
        self.moves = nn.Parameter(self.scores.weight.new_zeros(N_MOVES, N_MOVES))

    def forward(self, features: Tensor, sizes: Numbers | None = None, warp: bool = False) -> Alignments:
        """The potentials of features, (B, m, n, F), of the pairs of left and right items."""
        return Alignments(self.scores(features).squeeze(-1), self.moves, sizes=sizes, warp=warp)

    def weights(self) -> list[Tensor]:
        return [self.scores.weight, self.moves]

    def _features(
        self, potentials: Alignments, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        sides, pieces = potentials.sides, []
        for pairs, n_items in zip(pairs_of(features, sides), sides.sum(axis=1).tolist(), strict=True):
            pieces += [pairs] if potentials.warp else [pairs, pairs.new_zeros(n_items, pairs.shape[1])]
        starts = starts_of(sides.prod(axis=1) + (0 if potentials.warp else sides.sum(axis=1)))
        return feature_fields(as_rows(torch.cat(pieces), starts), dtype, with_grams=False)
