"""Potentials of labels, of the positions of sequences and of the nodes of trees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import places_in, starts_of
from maxmargin.encode.inputs.edges import children_first
from maxmargin.encode.inputs.example_checks import locate
from maxmargin.features import ConstantFeatures
from maxmargin.problem import AnyProblem
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.trees.tree_problem import TreeProblem
from maxmargin.supervision.costs import labelling_costs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise, without_costs
from maxmargin.torch import potentials
from maxmargin.torch.potentials import BatchRows, Costs, Numbers, RowPotentials, tensor_at


class LabelPotentials(RowPotentials):
    """What potentials of labels share: rows of nodes, then tables of pairs of labels.

    Tables are shared by the batch, (L, L), belong to an example each, (B, L, L), or to a row each.
    """

    tensors: tuple[Tensor, Tensor]

    def _lay_out(self, starts: np.ndarray, counts: npt.ArrayLike) -> None:
        """Find the segments, given where those of tables start among these, (n, S), and how many each has of them."""
        first, sizes = self.rows.segments(self.n_labels)
        size = self.n_labels**2
        self.starts = np.column_stack([first, self.tensors[0].numel() + size * starts])
        self.sizes = np.column_stack([sizes, np.broadcast_to(size * np.asarray(counts), starts.shape)])

    def _own_tables(self) -> np.ndarray:
        """Where the tables of examples start, if these share one, or have one each."""
        return self.rows.entries[:, np.newaxis] * (self.tensors[1].ndim > 2)

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.tensors[0].shape[-1]

    def _check_tables(self, name: str, tables: Tensor, n_rows: int | None) -> None:
        shapes = [(self.n_labels,) * 2, (self.rows.n_entries, *(self.n_labels,) * 2)]
        if n_rows is not None:
            shapes.append((self.rows.n_entries, n_rows, *(self.n_labels,) * 2))
        if tuple(tables.shape) not in shapes:
            raise ValueError(
                f"{name} must have one of the shapes {', '.join(map(str, shapes))}, not {tuple(tables.shape)}."
            )

    def _unshared_tables(self, tables: Tensor) -> Tensor:
        return tables.expand(self.n, *tables.shape) if tables.ndim == 2 else tables


def check_labels(labels: np.ndarray, n_labels: int, rows: BatchRows) -> None:
    """Raise unless the true labels of all rows are 0 to n_labels - 1."""
    is_missing = (labels < 0) | (labels >= n_labels)
    if is_missing.any():
        at = int(np.flatnonzero(is_missing)[0])
        i, place = rows.locate(at)
        raise ValueError(f"y holds {labels[at]} at position {place} of batch entry {i}, beyond 0 to {n_labels - 1}.")


def supervise_labels(
    rows: BatchRows, y: Numbers | None, cost: Costs | None, n_labels: int, dtype: npt.DTypeLike
) -> LabelSupervision:
    """The true labels of rows and costs, if there are any."""
    if y is None:
        return without_costs(np.full(rows.starts[-1], NO_LABEL), n_labels, dtype)
    labels = rows.pick("y", y)
    check_labels(labels, n_labels, rows)
    costs = cost.detach().cpu().numpy() if isinstance(cost, Tensor) else "hamming" if cost is None else cost
    of_labels = labelling_costs(costs, None, np.arange(n_labels), np.bincount(labels), rows.lengths)
    return supervise(labels, *of_labels, dtype)


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
        (B,) lengths of the sequences; of padded ones also a (B, T) mask, or None where all have T. A mask may
        leave out any positions, such as word pieces that are not the first of their word: sequences are made of the
        others, whose labels follow one another.
    start, end
        (L,) potentials of the first and of the last label, or None.

    ``-inf`` rules a label or a transition out. Losses leave out the positions of padded sequences whose true label is
    -100, too.

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

    emissions: Tensor = tensor_at(0, "Those of the labels at each position; `start` and `end` are added.")
    transitions: Tensor = tensor_at(1, "Those of pairs of labels.")

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        lengths: Numbers | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> None:
        potentials.check_tensors(emissions=emissions, transitions=transitions, start=start, end=end)
        self.rows = BatchRows("emissions", emissions, lengths, 1, may_skip=True)
        self.made_of = emissions, transitions, start, end
        self.tensors = _with_ends(emissions, self.rows, start, end), transitions
        n_steps = None if self.rows.width is None else self.rows.width - 1
        self._check_tables("transitions", transitions, n_steps)
        self.has_steps = transitions.ndim == 4
        if self.has_steps and self.rows.mask is not None:
            raise ValueError(
                "transitions must not differ from step to step, (B, T - 1, L, L), where positions are left out: "
                "which step is that over a gap?"
            )
        if self.has_steps:
            self._lay_out(transitions.shape[1] * self._own_tables(), self.rows.lengths[:, np.newaxis] - 1)
        else:
            self._lay_out(self._own_tables(), 1)

    def unshared(self) -> Chains:
        return self.replaced((self.emissions, self._unshared_tables(self.transitions)))

    def replaced(self, tensors: tuple[Tensor, ...]) -> Chains:
        emissions, transitions = tensors
        return Chains(emissions, transitions, self.rows.given)

    def ignoring(self, y: Numbers) -> Chains:
        mask = self.rows.without_ignored(y)
        emissions, transitions, start, end = self.made_of
        return self if mask is None else Chains(emissions, transitions, mask, start, end)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        supervision = supervise_labels(self.rows, y, cost, self.n_labels, dtype)
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
            edge_features=ConstantFeatures(),
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
        (B,) numbers of nodes; of padded trees also a (B, T) mask, or None where all have T. A mask may leave
        out any nodes, whose children go to their parents.

    ``-inf`` rules a label or a pair out. Losses leave out the nodes of padded trees whose true label is -100, too.

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

    nodes: Tensor = tensor_at(0, "Those of the labels of each node.")

    def __init__(self, nodes: Tensor, parents: Numbers, pairs: Tensor, lengths: Numbers | None = None) -> None:
        potentials.check_tensors(nodes=nodes, pairs=pairs)
        self.rows = BatchRows("nodes", nodes, lengths, 1, may_skip=True)
        self.parents = parents
        self.parent, has_gaps = find_parents(self.rows, parents)
        self.order = children_first(self.parent, self.rows.starts, "batch entry {}").astype(np.int32)
        self.tensors = nodes, pairs.transpose(-1, -2)  # the library's tables are those of child and parent
        self._check_tables("pairs", pairs, self.rows.width)
        has_tables = pairs.ndim == 4
        if has_tables and has_gaps:
            raise ValueError(
                "pairs must not differ from edge to edge, (B, T, L, L), where parents are left out: which edge is that "
                "over a gap?"
            )
        self.kind_starts = starts_of(self.rows.lengths) if has_tables else np.arange(self.n + 1)
        self.kind = np.where(self.parent < 0, -1, places_in(self.rows.lengths) if has_tables else 0)
        self._lay_out(*(self.rows.segments(1) if has_tables else (self._own_tables(), 1)))

    @property
    def pairs(self) -> Tensor:
        """Those of the labels of parents and children."""
        return self.tensors[1].transpose(-1, -2)

    def unshared(self) -> Trees:
        return Trees(self.nodes, self.parents, self._unshared_tables(self.pairs), self.rows.given)

    def replaced(self, tensors: tuple[Tensor, ...]) -> Trees:
        nodes, pairs = tensors
        return Trees(nodes, self.parents, pairs.transpose(-1, -2), self.rows.given)

    def ignoring(self, y: Numbers) -> Trees:
        mask = self.rows.without_ignored(y)
        return self if mask is None else Trees(self.nodes, self.parents, self.pairs, mask)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> TreeProblem:
        supervision = supervise_labels(self.rows, y, cost, self.n_labels, dtype)
        return make_trees(self.rows.starts, self.kind_starts, self.parent, self.kind, self.order, supervision)


def find_parents(rows: BatchRows, parents: Numbers) -> tuple[np.ndarray, bool]:
    """The parents of all nodes, (N,), and whether some are not those given: what is left out has no children."""
    if rows.mask is None:
        parent = rows.pick("parents", parents)
        check_parents(parent, np.repeat(rows.lengths, rows.lengths), rows.starts)
        return parent, False
    table = potentials.as_integers("parents", parents, rows.mask.shape)
    tree, node = np.nonzero(rows.mask)
    given = parent = table[tree, node]
    for _ in range(table.shape[1]):
        check_parents(parent, np.full(len(parent), table.shape[1]), rows.starts)
        is_left_out = (parent >= 0) & ~rows.mask[tree, parent]
        if not is_left_out.any():
            place = rows.mask.cumsum(axis=1) - 1
            return np.where(parent < 0, -1, place[tree, parent]), bool((parent != given).any())
        parent = np.where(is_left_out, table[tree, parent], parent)
    i = tree[np.argmax(is_left_out)]
    raise ValueError(f"The edges of batch entry {i} form a cycle, but must form a tree or a forest.")


def check_parents(parent: np.ndarray, limits: np.ndarray, starts: np.ndarray) -> None:
    """Raise unless the parents of all nodes are nodes, or -1."""
    is_wrong = (parent < -1) | (parent >= limits)
    if is_wrong.any():
        at = int(np.flatnonzero(is_wrong)[0])
        i, node = locate(at, starts)
        raise ValueError(f"parents names {parent[at]} at node {node} of batch entry {i}, which has {limits[at]} nodes.")


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
    for name, extra, at in (("start", start, rows.starts[:-1]), ("end", end, rows.starts[1:] - 1)):
        if extra is not None:
            if tuple(extra.shape) != (flat.shape[1],):
                raise ValueError(f"{name} must have the shape ({flat.shape[1]},), not {tuple(extra.shape)}.")
            places = torch.as_tensor(rows.all[at], device=flat.device)
            flat = flat.index_add(0, places, extra.to(flat.dtype).expand(rows.n, -1))
    return flat.view(emissions.shape)
