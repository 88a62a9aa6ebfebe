"""Potentials of candidate sets, of graphs that are cut in two, and of the parts of any problem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import as_numbers
from maxmargin.encode.inputs.edges import check_ends
from maxmargin.features import ConstantFeatures
from maxmargin.problem import AnyProblem, part_sizes
from maxmargin.structures.choices.candidate_problem import CandidateProblem, CandidateSupervision
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.cuts.max_flow import make_arcs
from maxmargin.structures.derived.selected import NOTHING
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import NO_LABEL, supervise_evenly, without_costs
from maxmargin.torch.label_potentials import check_labels
from maxmargin.torch.potentials import (
    IGNORED,
    BatchRows,
    Costs,
    Numbers,
    Potentials,
    RowPotentials,
    as_integers,
    check_tensors,
    segments,
    tensor_at,
)


class Candidates(RowPotentials):
    """Scores of the candidates of each example, of which one is chosen: proposals, readings, classes.

    Parameters
    ----------
    scores
        (B, K) padded, or (N,) packed.
    lengths
        (B,) numbers of candidates; of padded ones also a (B, K) mask, or None where all have K.

    True outputs y are (B,) indices, of padded scores also -100 where nothing is known; costs have the shape of `scores`
    and are 1 by default, of the true ones 0.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, hinge_loss
    >>> scores = torch.tensor([[3.0, 1.0, 2.5], [0.0, 1.0, 0.0]])
    >>> hinge_loss(Candidates(scores), torch.tensor([0, 0]), reduction="none")
    tensor([0.5000, 2.0000])
    """

    scores: Tensor = tensor_at(0, "Those of the candidates.")

    def __init__(self, scores: Tensor, lengths: Numbers | None = None) -> None:
        check_tensors(scores=scores)
        self.rows, self.tensors = BatchRows("scores", scores, lengths, 0), (scores,)
        self.starts, self.sizes = segments((self.rows.first, self.rows.lengths))

    def replaced(self, tensors: tuple[Tensor, ...]) -> Candidates:
        return Candidates(tensors[0], self.rows.given)

    def ignoring(self, y: Numbers) -> Candidates:
        if self.rows.width is None:
            return self
        is_known = as_integers("y", y, (self.rows.n_entries,)) != IGNORED
        kept = self.rows.keep(np.repeat(is_known[:, np.newaxis], self.rows.width, axis=1))
        return self if kept is None else Candidates(self.scores, kept)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        return torch.as_tensor(np.concatenate(rows).astype(np.int64))

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> CandidateProblem:
        starts, n = self.rows.starts, self.n
        entries = self.rows.entries
        labels = np.zeros(n, np.int64)
        if y is not None:
            labels = as_integers("y", y, (self.rows.n_entries,))[entries]
        is_missing = (labels < 0) | (labels >= self.rows.lengths)
        if is_missing.any():
            k = int(np.flatnonzero(is_missing)[0])
            i = entries[k]
            raise ValueError(f"y[{i}] is {labels[k]}, but batch entry {i} has {self.rows.lengths[k]} candidates.")
        truth = starts[:-1] + labels
        if y is None:
            costs = np.zeros(starts[-1])
        elif cost is None:
            costs = np.ones(starts[-1])
            costs[truth] = 0
        else:
            costs = _costs("cost", cost, self.rows, tuple(self.scores.shape))
            if costs[truth].any():
                i = int(np.flatnonzero(costs[truth])[0])
                raise ValueError(
                    f"cost must be zero for true candidates, but is {costs[truth[i]]:g} in batch entry {entries[i]}."
                )
        return CandidateProblem(
            features=ConstantFeatures(),
            starts=starts,
            supervision=CandidateSupervision(labels.astype(np.int32), costs.astype(dtype)),
            excluded=nothing_excluded(self.n),
            n_features=1,
        )


def _costs(name: str, values: Costs, rows: BatchRows, shape: tuple[int, ...]) -> np.ndarray:
    """Costs of all rows, one after the other, not negative."""
    array = as_numbers(name, values.detach().cpu().numpy() if isinstance(values, Tensor) else values)
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {array.shape}.")
    flat = array.ravel()[rows.all]
    if not (flat >= 0).all() or not np.isfinite(flat).all():
        raise ValueError(f"{name} must hold numbers that are not negative.")
    return flat


class GraphCuts(RowPotentials):
    """Potentials of graphs whose nodes have the labels 0 and 1, with edges that favour equal labels.

    Parameters
    ----------
    nodes
        (B, V), or (N,) packed with `lengths`, the potentials of label 1, against 0; ``-inf`` rules label 1 out.
    edges
        (E, 2) pairs of nodes, the same in all graphs of the batch; packed, (M, 2) those of one graph after the other,
        with nodes counted from 0 in each.
    penalties
        (E,), (B, E), or packed (M,), what it costs an edge that its ends have different labels; not negative, and
        ``inf`` where they must have the same.
    lengths, edge_lengths
        (B,) numbers of nodes and edges of packed graphs.

    True outputs y have the shape of `nodes`; wrong labels cost 1, or `cost` in that shape. Minimum cuts have no sum
    over all outputs: `crf_loss` and `marginals` are not for them.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import GraphCuts, decode
    >>> nodes = torch.tensor([[2.0, -0.5, 2.0]])
    >>> decode(GraphCuts(nodes, [(0, 1), (1, 2)], torch.tensor([1.0, 1.0])))
    tensor([[1, 1, 1]])
    """

    nodes: Tensor = tensor_at(0, "Those of label 1; of mean parts the probabilities of label 1.")

    def __init__(
        self,
        nodes: Tensor,
        edges: Numbers,
        penalties: Tensor,
        lengths: Numbers | None = None,
        edge_lengths: Numbers | None = None,
    ) -> None:
        check_tensors(nodes=nodes, penalties=penalties)
        self.rows, self.edges = BatchRows("nodes", nodes, lengths, 0), edges
        if self.rows.is_padded and lengths is not None:
            raise ValueError(
                "Graphs of different sizes must be packed: nodes in one axis, with lengths and edge_lengths."
            )
        self.tensors = nodes, -penalties
        edges = edges.detach().cpu().numpy() if isinstance(edges, Tensor) else edges
        if self.rows.is_padded:
            ends = check_ends(edges, "the batch", nodes.shape[1])
            shapes = [(len(ends),), (self.n, len(ends))]
            if tuple(penalties.shape) not in shapes:
                raise ValueError(
                    f"penalties must have the shape {shapes[0]} or {shapes[1]}, not {tuple(penalties.shape)}."
                )
            counts = np.full(self.n, len(ends))
            at = len(ends) * np.arange(self.n) if penalties.ndim == 2 else np.zeros(self.n, np.int64)
            self.ends = np.tile(ends, (self.n, 1))
        else:
            if edge_lengths is None:
                raise ValueError("edge_lengths must say how many edges each graph has, as they are packed.")
            counts = as_integers("edge_lengths", edge_lengths, (self.n,))
            array = np.asarray(edges).reshape(-1, 2)
            if (counts < 0).any() or counts.sum() != len(array) or tuple(penalties.shape) != (len(array),):
                raise ValueError(
                    f"edge_lengths, which add up to {counts.sum()}, edges, of which there are {len(array)}, and "
                    f"penalties, of shape {tuple(penalties.shape)}, must agree."
                )
            at = np.cumsum(counts) - counts
            pieces = zip(np.split(array, at[1:]), self.rows.lengths, strict=True)
            self.ends = np.concatenate(
                [check_ends(piece, f"batch entry {i}", size) for i, (piece, size) in enumerate(pieces)]
            )
        self.edge_starts = starts_of(counts)
        self.edge_lengths = None if self.rows.is_padded else counts
        if bool((penalties < 0).any()):
            raise ValueError("penalties must not be negative: with other edges, the best labels are no minimum cut.")
        sizes = self.rows.lengths
        self.starts, self.sizes = segments((NOTHING, sizes), (self.rows.first, sizes), (nodes.numel() + at, counts))

    @property
    def penalties(self) -> Tensor:
        """Those of cut edges."""
        return -self.tensors[1]

    def replaced(self, tensors: tuple[Tensor, ...]) -> GraphCuts:
        nodes, cuts = tensors
        return GraphCuts(nodes, self.edges, -cuts, self.lengths, self.edge_lengths)

    @property
    def lengths(self) -> np.ndarray | None:
        """The numbers of nodes of packed graphs."""
        return None if self.rows.is_padded else self.rows.lengths

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> GraphCutProblem:
        starts = self.rows.starts
        if y is None:
            supervision = without_costs(np.full(starts[-1], NO_LABEL), 2, dtype)
        else:
            labels = self.rows.pick("y", y)
            check_labels(labels, 2, self.rows)
            is_given = cost is not None
            costs = _costs("cost", cost, self.rows, tuple(self.nodes.shape)) if is_given else np.ones(starts[-1])
            supervision = supervise_evenly(labels, costs, 2, dtype)
        return GraphCutProblem(
            features=ConstantFeatures(),
            edge_features=ConstantFeatures(),
            starts=starts,
            edge_starts=self.edge_starts,
            ends=self.ends.astype(np.int32),
            supervision=supervision,
            excluded=nothing_excluded(len(starts) - 1),
            arcs=make_arcs(starts, self.edge_starts, self.ends),
            n_features=1,
            n_edge_features=1,
        )


class Parts(Potentials):
    """Potentials of the parts of any problem of the library, or of your own, one example after the other.

    True outputs and costs are those of the problem, so losses take no y. What the weights of the problem are does not
    matter: its features are not asked.

    Parameters
    ----------
    problem
        The examples.
    potentials
        (sum of the numbers of parts,) or a shape with as many entries.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.problem import AnyProblem, part_sizes
    >>> from maxmargin.testing import toy_chains
    >>> from maxmargin.torch import Parts, hinge_loss
    >>> problem = toy_chains()
    >>> theta = torch.zeros(int(part_sizes(problem).sum()), requires_grad=True)
    >>> n_labels = len(problem.supervision.labels)  # each of which could be wrong
    >>> hinge_loss(Parts(problem, theta), reduction="sum").item() == n_labels
    True
    """

    def __init__(self, problem: AnyProblem, potentials: Tensor) -> None:
        check_tensors(potentials=potentials)
        lengths = part_sizes(problem)
        if potentials.numel() != lengths.sum():
            raise ValueError(f"potentials must be {lengths.sum()}, one per part, but there are {potentials.numel()}.")
        self.given, self.tensors, self.n = problem, (potentials,), len(lengths)
        self.starts, self.sizes = segments((np.cumsum(lengths) - lengths, lengths))

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        if y is not None or cost is not None:
            raise ValueError("Parts take true outputs and costs from their problem: leave out y and cost.")
        return self.given

    def replaced(self, tensors: tuple[Tensor, ...]) -> Parts:
        return Parts(self.given, *tensors)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        return torch.as_tensor(np.concatenate(rows).astype(np.int64))
