"""Potentials of labels, of the positions of sequences and of the nodes of trees, and of the heads of words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import places_in, starts_of
from maxmargin.encode.inputs.edges import children_first
from maxmargin.encode.inputs.example_checks import locate
from maxmargin.encode.sentences.head_trees import make_projective, read_trees
from maxmargin.features import ConstantFeatures
from maxmargin.problem import AnyProblem
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.dependencies.arc_tables import DependencySupervision
from maxmargin.structures.dependencies.dependency_problem import NonprojectiveProblem, ProjectiveProblem
from maxmargin.structures.trees.tree_problem import TreeProblem
from maxmargin.supervision.costs import labelling_costs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise, without_costs
from maxmargin.torch.potentials import BatchRows, Costs, Numbers, Potentials, check_labels, check_tensors, segments


class LabelPotentials(Potentials):
    """What potentials of labels share: rows of nodes, then tables of pairs of labels.

    Tables are shared by the batch, (L, L), belong to an example each, (B, L, L), or to a row each.
    """

    rows: BatchRows
    tensors: tuple[Tensor, Tensor]

    def _lay_out(self, n_tables: np.ndarray, n_most: int) -> None:
        """Find the segments, given the numbers of tables of each example and those that are kept of each."""
        nodes, tables = self.tensors
        size = self.n_labels**2
        stride = 0 if tables.ndim == 2 else size * n_most
        at = nodes.numel() + stride * np.arange(self.n)
        self.starts, self.sizes = segments(
            (self.rows.first * self.n_labels, self.rows.lengths * self.n_labels), (at, size * n_tables)
        )

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of examples."""
        return self.rows.n

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.tensors[0].shape[-1]

    def _check_tables(self, name: str, tables: Tensor, n_rows: int | None) -> None:
        shapes = [(self.n_labels,) * 2, (self.n, *(self.n_labels,) * 2)]
        if n_rows is not None:
            shapes.append((self.n, n_rows, *(self.n_labels,) * 2))
        if tuple(tables.shape) not in shapes:
            raise ValueError(
                f"{name} must have one of the shapes {', '.join(map(str, shapes))}, not {tuple(tables.shape)}."
            )

    def _unshared_tables(self, tables: Tensor) -> Tensor:
        return tables.expand(self.n, *tables.shape) if tables.ndim == 2 else tables

    def _supervision(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> LabelSupervision:
        """True labels and costs, if there are any."""
        lengths, starts = self.rows.lengths, self.rows.starts
        if y is None:
            return without_costs(np.full(starts[-1], NO_LABEL), self.n_labels, dtype)
        labels = self.rows.pick("y", y)
        check_labels(labels, self.n_labels, starts)
        costs = cost.detach().cpu().numpy() if isinstance(cost, Tensor) else "hamming" if cost is None else cost
        of_labels = labelling_costs(costs, None, np.arange(self.n_labels), np.bincount(labels), lengths)
        return supervise(labels, *of_labels, dtype)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        return self.rows.arrange(rows)


class Chains(LabelPotentials):
    """Potentials of the labels of sequences.

    Parameters
    ----------
    emissions
        (B, T, L) padded, or (N, L) packed, the potentials of the labels at each position.
    transitions
        (L, L) potentials of going from one label (row) to the next (column), shared by all sequences; (B, L, L), those
        of each sequence; or (B, T - 1, L, L), those of each step of padded sequences.
    lengths
        (B,) lengths of the sequences; of padded ones also a (B, T) boolean mask, or None where all have T.
    start, end
        (L,) potentials of the first and of the last label, or None.

    ``-inf`` rules a label or a transition out.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, crf_loss, decode
    >>> emissions = torch.randn(2, 5, 3, requires_grad=True)
    >>> chains = Chains(emissions, torch.zeros(3, 3), lengths=[5, 2])
    >>> decode(chains).shape
    torch.Size([2, 5])
    >>> crf_loss(chains, torch.zeros(2, 5, dtype=int)).backward()
    >>> emissions.grad[1, 2:].any().item()  # beyond the length
    False
    """

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        lengths: Numbers | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> None:
        check_tensors(emissions=emissions, transitions=transitions, start=start, end=end)
        self.rows = BatchRows("emissions", emissions, lengths, 1)
        self.tensors = _with_ends(emissions, self.rows, start, end), transitions
        n_steps = None if self.rows.width is None else self.rows.width - 1
        self._check_tables("transitions", transitions, n_steps)
        self.has_steps = transitions.ndim == 4
        n_tables = self.rows.lengths - 1 if self.has_steps else np.ones(self.n, np.int64)
        self._lay_out(n_tables, (n_steps or 0) if self.has_steps else 1)

    @property
    def emissions(self) -> Tensor:
        """Those of the labels at each position; `start` and `end` are added."""
        return self.tensors[0]

    @property
    def transitions(self) -> Tensor:
        """Those of pairs of labels."""
        return self.tensors[1]

    def unshared(self) -> Chains:
        return self.replaced((self.emissions, self._unshared_tables(self.transitions)))

    def replaced(self, tensors: tuple[Tensor, ...]) -> Chains:
        emissions, transitions = tensors
        return Chains(emissions, transitions, self.rows.lengths)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        supervision = self._supervision(y, cost, dtype)
        if self.has_steps:
            starts, steps = self.rows.starts, self.rows.lengths - 1
            place = places_in(self.rows.lengths)
            is_last = np.zeros(len(place), bool)
            is_last[starts[1:] - 1] = True
            kind_starts = starts_of(steps)
            parent, kind = np.where(is_last, -1, place + 1), np.where(is_last, -1, place)
            return make_trees(starts, kind_starts, parent, kind, place, supervision)
        return ChainProblem(
            features=ConstantFeatures(),
            transitions=ConstantFeatures(),
            starts=self.rows.starts,
            supervision=supervision,
            transition_cost=np.zeros((0, self.n_labels**2), dtype),
            excluded=nothing_excluded(self.n),
            penalty=np.zeros((self.n_labels, self.n_labels), dtype),
            end_penalty=np.zeros((2, self.n_labels), dtype),
            n_features=1,
        )


class Trees(LabelPotentials):
    """Potentials of the labels of the nodes of rooted trees, or forests.

    Parameters
    ----------
    nodes
        (B, T, L) padded, or (N, L) packed, the potentials of the labels of each node.
    parents
        (B, T) or (N,) integers, the parent of each node, counted from 0 in each tree; -1 for roots.
    pairs
        (L, L) potentials of the labels of a parent (row) and its child (column), shared by all edges; (B, L, L), those
        of the edges of each tree; or (B, T, L, L), those of the edge from each node to its parent.
    lengths
        (B,) numbers of nodes; of padded trees also a (B, T) boolean mask, or None where all have T.

    ``-inf`` rules a label or a pair out.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Trees, decode, marginals
    >>> trees = Trees(torch.zeros(1, 3, 2), [[-1, 0, 0]], torch.tensor([[1.0, 0.0], [0.0, 1.1]]))
    >>> decode(trees)
    tensor([[1, 1, 1]])
    >>> marginals(trees).nodes.sum(dim=2)
    tensor([[1., 1., 1.]])
    """

    def __init__(self, nodes: Tensor, parents: Numbers, pairs: Tensor, lengths: Numbers | None = None) -> None:
        check_tensors(nodes=nodes, pairs=pairs)
        self.rows = BatchRows("nodes", nodes, lengths, 1)
        self.parents, starts = parents, self.rows.starts
        self.parent = self.rows.pick("parents", parents)
        limits = np.repeat(self.rows.lengths, self.rows.lengths)
        is_wrong = (self.parent < -1) | (self.parent >= limits)
        if is_wrong.any():
            at = int(np.flatnonzero(is_wrong)[0])
            i, node = locate(at, starts)
            raise ValueError(
                f"parents names {self.parent[at]} at node {node} of batch entry {i}, which has {limits[at]} nodes."
            )
        self.order = children_first(self.parent, starts, "batch entry {}").astype(np.int32)
        self.tensors = nodes, pairs.transpose(-1, -2)  # the library's tables are those of child and parent
        self._check_tables("pairs", pairs, self.rows.width)
        has_tables = pairs.ndim == 4
        n_tables = self.rows.lengths if has_tables else np.ones(self.n, np.int64)
        self.kind_starts = starts_of(n_tables)
        own = places_in(self.rows.lengths) if has_tables else 0
        self.kind = np.where(self.parent < 0, -1, own)
        self._lay_out(n_tables, (self.rows.width or 0) if has_tables else 1)

    @property
    def nodes(self) -> Tensor:
        """Those of the labels of each node."""
        return self.tensors[0]

    @property
    def pairs(self) -> Tensor:
        """Those of the labels of parents and children."""
        return self.tensors[1].transpose(-1, -2)

    def unshared(self) -> Trees:
        return Trees(self.nodes, self.parents, self._unshared_tables(self.pairs), self.rows.lengths)

    def replaced(self, tensors: tuple[Tensor, ...]) -> Trees:
        nodes, pairs = tensors
        return Trees(nodes, self.parents, pairs.transpose(-1, -2), self.rows.lengths)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> TreeProblem:
        supervision = self._supervision(y, cost, dtype)
        return make_trees(self.rows.starts, self.kind_starts, self.parent, self.kind, self.order, supervision)


def make_trees(
    starts: np.ndarray,
    kind_starts: np.ndarray,
    parent: np.ndarray,
    kind: np.ndarray,
    order: np.ndarray,
    supervision: LabelSupervision,
) -> TreeProblem:
    """A problem of trees whose potentials are given."""
    return TreeProblem(
        features=ConstantFeatures(),
        edge_features=ConstantFeatures(),
        starts=starts,
        kind_starts=kind_starts,
        parent=parent.astype(np.int32),
        kind=kind.astype(np.int32),
        order=order.astype(np.int32),
        supervision=supervision,
        kind_cost=np.zeros((0, supervision.cost.shape[1] ** 2), supervision.cost.dtype),
        excluded=nothing_excluded(len(starts) - 1),
        n_features=1,
        n_edge_features=1,
    )


def _with_ends(emissions: Tensor, rows: BatchRows, start: Tensor | None, end: Tensor | None) -> Tensor:
    """Emissions with the potentials of the first and of the last label added."""
    flat = emissions.reshape(-1, emissions.shape[-1])
    for name, extra, at in (("start", start, rows.first), ("end", end, rows.first + rows.lengths - 1)):
        if extra is not None:
            if tuple(extra.shape) != (flat.shape[1],):
                raise ValueError(f"{name} must have the shape ({flat.shape[1]},), not {tuple(extra.shape)}.")
            places = torch.as_tensor(at, device=flat.device)
            flat = flat.index_add(0, places, extra.to(flat.dtype).expand(rows.n, -1))
    return flat.view(emissions.shape)


class Dependencies(Potentials):
    """Scores of arcs between words, of which a dependency tree has one to each word.

    Parameters
    ----------
    scores
        (B, n, n + 1) scores of the arcs to each word from each head, the root first; what they are of arcs from a word
        to itself does not matter.
    lengths
        (B,) numbers of words, or a (B, n) mask of them; None where all sentences have n.
    projective, single_root
        As of `maxmargin.DependencySVM`.

    True outputs y are (B, n) heads of words, counted from 1, 0 for the root. A wrong head costs 1.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Dependencies, decode
    >>> decode(Dependencies(torch.tensor([[[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]]])))
    tensor([[2, 0]])
    """

    def __init__(
        self, scores: Tensor, lengths: Numbers | None = None, *, projective: bool = True, single_root: bool = True
    ) -> None:
        check_tensors(scores=scores)
        if scores.ndim != 3 or scores.shape[2] != scores.shape[1] + 1:
            raise ValueError(f"scores must have the shape (B, n, n + 1), not {tuple(scores.shape)}.")
        self.rows = BatchRows("scores", scores[:, :, 0], lengths, 0)
        self.projective, self.single_root = projective, single_root
        self.tensors, self.n, width = (scores,), self.rows.n, scores.shape[2]
        heads = self.rows.lengths + 1
        words = [width * (self.rows.first + m) for m in range(width - 1)]
        self.starts, self.sizes = segments(
            *((begin, np.where(m < self.rows.lengths, heads, 0)) for m, begin in enumerate(words))
        )

    @property
    def scores(self) -> Tensor:
        """Those of arcs."""
        return self.tensors[0]

    def replaced(self, tensors: tuple[Tensor, ...]) -> Dependencies:
        lengths = self.rows.lengths
        return Dependencies(tensors[0], lengths, projective=self.projective, single_root=self.single_root)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        return self.rows.arrange(rows)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        if cost is not None:
            raise ValueError("cost must be None for dependency trees: a wrong head costs 1.")
        lengths, starts = self.rows.lengths, self.rows.starts
        heads = np.zeros(starts[-1], np.int64) if y is None else self.rows.pick("y", y)
        if y is not None:
            trees, _ = read_trees(np.split(heads, starts[1:-1]), lengths, single_root=self.single_root)
            heads = np.concatenate(make_projective(trees, lift=False) if self.projective else trees)
        costs = np.full(len(heads), 0 if y is None else 1, dtype)
        return (ProjectiveProblem if self.projective else NonprojectiveProblem)(
            features=ConstantFeatures(),
            starts=starts,
            arc_starts=starts_of(lengths * (lengths + 1)),
            supervision=DependencySupervision(heads.astype(np.int32), costs, 0.0),
            excluded=nothing_excluded(self.n),
            n_features=1,
            n_labels=0,
            single_root=self.single_root,
        )
