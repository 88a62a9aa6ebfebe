"""Last layers of networks: linear scores of rows of features, as those of the library's own models.

With the layers below held fixed, the last one is a structural SVM or a conditional random field, a convex problem: its
optimum can be found, and how far any weights are from it can be proven.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from maxmargin.checks import check_count
from maxmargin.encode.chain_encoder import append_biases
from maxmargin.encode.inputs.rows import Rows, append_constant, row_features
from maxmargin.torch.base_head import Head
from maxmargin.torch.choice_potentials import Candidates, GraphCuts
from maxmargin.torch.label_potentials import Chains, LabelPotentials, Trees
from maxmargin.torch.potentials import Numbers

Device: TypeAlias = torch.device | str | int | None


def as_rows(tensor: Tensor, starts: np.ndarray) -> Rows:
    """Features, (rows, F), as the library's rows."""
    return Rows(tensor.detach().cpu().double().reshape(starts[-1], -1).numpy(), starts)


def _rows_of(potentials: LabelPotentials | Candidates | GraphCuts, features: Tensor) -> Rows:
    return as_rows(potentials.rows.pack(features), potentials.rows.starts)


def feature_fields(rows: Rows, dtype: npt.DTypeLike, with_grams: bool = True) -> dict[str, object]:
    """The fields of a problem that hold these features."""
    return {"features": row_features(rows, dtype, with_grams=with_grams), "n_features": rows.matrix.shape[1]}


class LabelHead(Head):
    """Base of heads that give each row a score of each label.

    Parameters
    ----------
    n_features
        Of each position or node.
    n_labels
        The number of labels.
    device, dtype
        Of the parameters.
    """

    def __init__(self, n_features: int, n_labels: int, device: Device = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("n_labels", n_labels)
        self._make(nn.Linear(n_features, n_labels, device=device, dtype=dtype))

    def _make(self, rows: nn.Linear) -> None:
        """Set the parameters, given those of rows."""
        raise NotImplementedError


def _zeros(rows: nn.Linear, n_axes: int) -> nn.Parameter:
    """Weights of as many labels in a row as there are axes."""
    return nn.Parameter(rows.weight.new_zeros((rows.out_features,) * n_axes))


class ScoreHead(Head):
    """Base of heads that give each row a score.

    Parameters
    ----------
    n_features
        Of each candidate, or pair of nodes.
    device, dtype
        Of the parameters.
    """

    def __init__(self, n_features: int, device: Device = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        check_count("n_features", n_features)
        self.scores = nn.Linear(n_features, 1, bias=False, device=device, dtype=dtype)

    def weights(self) -> list[Tensor]:
        return [self.scores.weight]


class ChainHead(LabelHead):
    """A linear layer for the labels of sequences, with transitions: features to `Chains`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import ChainHead, crf_loss, decode
    >>> lstm, head = torch.nn.LSTM(8, 6, batch_first=True), ChainHead(6, n_labels=3)
    >>> words, tags, lengths = torch.randn(2, 5, 8), torch.randint(0, 3, (2, 5)), [5, 3]
    >>> crf_loss(head(lstm(words)[0], lengths), tags).backward()
    >>> decode(head(lstm(words)[0], lengths)).shape
    torch.Size([2, 5])
    """

    def _make(self, rows: nn.Linear) -> None:
        self.emissions, self.transitions = rows, _zeros(rows, 2)
        self.start, self.end = _zeros(rows, 1), _zeros(rows, 1)

    def forward(self, features: Tensor, lengths: Numbers | None = None) -> Chains:
        """The potentials of features, (B, T, F) padded or (N, F) packed."""
        return Chains(self.emissions(features), self.transitions, lengths, self.start, self.end)

    def weights(self) -> list[Tensor]:
        return [self.emissions.weight.T, self.emissions.bias, self.start, self.end, self.transitions]

    def _features(
        self, potentials: Chains, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        return feature_fields(append_biases(_rows_of(potentials, features)), dtype)


class TreeHead(LabelHead):
    """A linear layer for the labels of the nodes of trees, with tables of parents and children: features to `Trees`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import TreeHead, hinge_loss
    >>> head = TreeHead(4, n_labels=2)
    >>> hinge_loss(head(torch.randn(1, 3, 4), [[-1, 0, 0]]), torch.tensor([[0, 1, 1]])).backward()
    >>> head.pairs.grad.shape
    torch.Size([2, 2])
    """

    def _make(self, rows: nn.Linear) -> None:
        self.nodes, self.pairs = rows, _zeros(rows, 2)

    def forward(self, features: Tensor, parents: Numbers, lengths: Numbers | None = None) -> Trees:
        """The potentials of features, (B, T, F) padded or (N, F) packed, of the nodes of trees."""
        return Trees(self.nodes(features), parents, self.pairs, lengths)

    def weights(self) -> list[Tensor]:
        return [self.nodes.weight.T, self.nodes.bias, self.pairs.T]

    def _features(
        self, potentials: Trees, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        return feature_fields(append_constant(_rows_of(potentials, features)), dtype)


class CandidateHead(ScoreHead):
    """Linear scores of candidates: features to `Candidates`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import CandidateHead, decode
    >>> decode(CandidateHead(4)(torch.randn(2, 10, 4))).shape
    torch.Size([2])
    """

    def forward(self, features: Tensor, lengths: Numbers | None = None) -> Candidates:
        """The potentials of features, (B, K, F) padded or (N, F) packed."""
        return Candidates(self.scores(features).squeeze(-1), lengths)

    def _features(
        self, potentials: Candidates, dtype: npt.DTypeLike, features: Tensor, *others: object
    ) -> dict[str, object]:
        return feature_fields(_rows_of(potentials, features), dtype, with_grams=False)


class GraphCutHead(Head):
    """Linear potentials of nodes of two labels, with penalties of cut edges: features to `GraphCuts`.

    The weights of edges count with their magnitudes, so that penalties are never negative.

    Parameters
    ----------
    n_features
        Of each node.
    n_edge_features
        Of each edge, which must not be negative; by default the constant 1.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import GraphCutHead, decode
    >>> decode(GraphCutHead(3)(torch.randn(2, 4, 3), [(0, 1), (1, 2), (2, 3)])).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, n_features: int, n_edge_features: int = 1, device: Device = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("n_edge_features", n_edge_features)
        self.nodes = nn.Linear(n_features, 1, device=device, dtype=dtype)
        self.edges = nn.Parameter(torch.full((n_edge_features,), 0.1, device=device, dtype=dtype))

    def forward(
        self,
        features: Tensor,
        edges: Numbers,
        edge_features: Tensor | None = None,
        lengths: Numbers | None = None,
        edge_lengths: Numbers | None = None,
    ) -> GraphCuts:
        """The potentials of features, (B, V, F) or packed (N, F), edges as in `GraphCuts`, and their features."""
        if edge_features is None:
            edge_features = features.new_ones(len(edges), 1)
        elif bool((edge_features < 0).any()):
            raise ValueError("edge_features must not be negative: penalties of cut edges are not.")
        penalties = edge_features @ self.edges.abs()
        return GraphCuts(self.nodes(features).squeeze(-1), edges, penalties, lengths, edge_lengths)

    def weights(self) -> list[Tensor]:
        return [self.nodes.weight, self.nodes.bias, self.edges]

    def _flat(self) -> np.ndarray:
        w = super()._flat()
        w[-len(self.edges) :] = np.abs(w[-len(self.edges) :])
        return w

    def bounds(self, size: int) -> np.ndarray:
        lower = np.full(size, -np.inf)
        lower[-len(self.edges) :] = 0
        return lower

    def _features(
        self, potentials: GraphCuts, dtype: npt.DTypeLike, features: Tensor, *others: Any
    ) -> dict[str, object]:
        edges, edge_features, *_ = *others, None
        if edge_features is None:
            edge_features = features.new_ones(len(edges), 1)
        of_edges = -edge_features
        if potentials.rows.is_padded and edge_features.ndim == 2:  # shared by all graphs
            of_edges = of_edges.repeat(potentials.n, 1)
        by_edge = row_features(as_rows(of_edges, potentials.edge_starts), dtype, with_grams=True)
        nodes = append_constant(_rows_of(potentials, features))
        return {**feature_fields(nodes, dtype), "edge_features": by_edge, "n_edge_features": len(self.edges)}
