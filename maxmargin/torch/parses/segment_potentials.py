"""Potentials of sequences that are cut into segments with labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor

from maxmargin.arrays.blocks import starts_of
from maxmargin.features import ConstantFeatures
from maxmargin.structures.segments.segment_parts import list_segments
from maxmargin.structures.segments.segment_problem import SegmentProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.torch.label_potentials import supervise_labels
from maxmargin.torch.potentials import BatchRows, Costs, Labelled, Numbers, RowPotentials, check_tensors, tensor_at


class Segments(RowPotentials):
    """Potentials of the segments that sequences are cut into, each with a label (semi-Markov models).

    The score of a segment is that of its rows, of its length, of its label after that of the segment before and, with
    `segments`, its own.

    Parameters
    ----------
    emissions
        (B, T, 2, L) padded, or (N, 2, L) packed, the potentials of each label of rows that begin a segment, and of
        those that go on with it; or (B, T, 3, L), also of those that are its last one, which are among the former.
    transitions
        (L, L) potentials of the labels of segments that follow each other, shared by all sequences, or (B, L, L).
    durations
        (D, L) potentials of segments of 1 to D rows, shared by all sequences, or (B, D, L). There are no longer ones.
    lengths
        (B,) lengths of the sequences; of padded ones also a (B, T) mask, or None where all have T. A mask may
        leave out any rows: sequences are made of the others, one after the other, which alone count in lengths.
    segments
        (B, T, D, L), or (N, D, L) packed, potentials of whole segments, by their first row and their length, from 1 on;
        or None. What they are of segments beyond the last row does not matter.

    ``-inf`` rules out what it is the potential of: with `durations`, labels can have limits of their own. Losses leave
    out the rows of padded sequences whose true label is -100, too.

    True outputs y are (B, T) or (N,) integers: the label of a row where a segment begins, L plus it where one goes on.
    A wrong row costs 1; `cost` may be "normalized_hamming" or a matrix (2 L, 2 L).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Segments, decode
    >>> emissions = torch.zeros(1, 4, 2, 2)
    >>> emissions[0, :2, :, 1] = emissions[0, 2:, :, 0] = 1.0  # two rows of label 1, then two of label 0
    >>> decode(Segments(emissions, torch.zeros(2, 2), torch.tensor([[0.0, 0.0], [0.5, 0.5]])))
    tensor([[1, 3, 0, 2]])
    """

    emissions: Tensor = tensor_at(0, "Those of rows, by their roles.")
    transitions: Tensor = tensor_at(1, "Those of pairs of labels; of mean parts, expected counts of them.")
    durations: Tensor = tensor_at(2, "Those of lengths of segments; of mean parts, expected counts of them.")

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        durations: Tensor,
        lengths: Numbers | None = None,
        segments: Tensor | None = None,
    ) -> None:
        check_tensors(emissions=emissions, transitions=transitions, durations=durations, segments=segments)
        self.rows = BatchRows("emissions", emissions, lengths, 2, may_skip=True)
        n_roles, self.n_labels = emissions.shape[-2:]
        if n_roles not in (2, 3):
            raise ValueError(f"emissions must have 2 or 3 roles of rows, but has the shape {tuple(emissions.shape)}.")
        self._check_table("transitions", transitions, self.n_labels)
        self._check_table("durations", durations, None)
        self.longest = durations.shape[-2]
        of_segments = (*emissions.shape[:-2], self.longest, self.n_labels)
        if segments is not None and tuple(segments.shape) != of_segments:
            raise ValueError(f"segments must have the shape {of_segments}, not {tuple(segments.shape)}.")
        self.tensors = emissions, transitions, durations, *([] if segments is None else [segments])
        self._lay_out()

    def _check_table(self, name: str, table: Tensor, n_rows: int | None) -> None:
        """Raise unless a table has so many rows, or any number of them, for each label; of all or of each example."""
        size = (table.shape[-2] if n_rows is None and table.ndim > 1 else n_rows, self.n_labels)
        n = self.rows.n_entries
        if tuple(table.shape) not in (size, (n, *size)) or not table.numel():
            expected = f"{n_rows or 'D'}, {self.n_labels}"
            shape = tuple(table.shape)
            raise ValueError(f"{name} must have the shape ({expected}) or ({n}, {expected}), not {shape}.")

    def _lay_out(self) -> None:
        """Find the potentials of each example: of its rows, its segments by their ends, durations and transitions."""
        n_labels, lengths = self.n_labels, self.rows.lengths
        begin, more = np.divmod(np.arange(0 if self.segments is None else lengths.max() * self.longest), self.longest)
        by_end = np.lexsort((begin, begin + more))
        begin, end = begin[by_end], (begin + more + 1)[by_end]
        place = self.rows.by_position[:, begin] * self.longest + end - begin - 1
        is_there = end <= lengths[:, np.newaxis]
        self.places = place[is_there]  # of all segments, in a flat tensor of them
        ends = (np.broadcast_to(values, is_there.shape)[is_there] for values in (begin, end))
        self.listed, _ = list_segments(starts_of(is_there.sum(axis=1)), *ends)
        at = np.cumsum([tensor.numel() for tensor in self.tensors])
        pairs, durations = (
            start + (tensor[0].numel() if tensor.ndim == 3 else 0) * self.rows.entries
            for start, tensor in zip(at, self.tensors[1:3], strict=False)
        )
        (rows, sizes), counts = (
            self.rows.segments(self.emissions.shape[-2] * n_labels),
            [self.longest * n_labels, n_labels**2],
        )
        self.starts = np.column_stack([rows, at[2] + place * n_labels, durations, pairs])
        self.sizes = np.column_stack([sizes, is_there * n_labels, np.tile(counts, (self.n, 1))])

    @property
    def segments(self) -> Tensor | None:
        """Those of whole segments."""
        return self.tensors[3] if len(self.tensors) > 3 else None

    def unshared(self) -> Segments:
        emissions, *tables = self.tensors
        own = (table.expand(self.n, *table.shape) if table.ndim == 2 else table for table in tables[:2])
        return self.replaced((emissions, *own, *tables[2:]))

    def replaced(self, tensors: tuple[Tensor, ...]) -> Segments:
        return self._of_rows(self.rows.given, *tensors)

    def ignoring(self, y: Numbers) -> Segments:
        mask = self.rows.without_ignored(y)
        return self if mask is None else self._of_rows(mask, *self.tensors)

    def _of_rows(
        self, lengths: Numbers | Labelled, emissions: Tensor, transitions: Tensor, durations: Tensor, *segments: Tensor
    ) -> Segments:
        return Segments(emissions, transitions, durations, lengths, *segments)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> SegmentProblem:
        n_labels, n_columns = self.n_labels, self.emissions.shape[-2] * self.n_labels
        supervision = supervise_labels(self.rows, y, cost, 2 * n_labels, dtype)
        if y is not None:
            self._check_states(supervision.labels)
        costs = np.zeros((len(supervision.cost), n_columns), dtype)  # that a row is the last one costs nothing
        costs[:, : 2 * n_labels] = supervision.cost
        return SegmentProblem(
            features=ConstantFeatures(),
            segment_features=ConstantFeatures(),
            starts=self.rows.starts,
            listed=self.listed,
            supervision=supervision._replace(cost=costs),
            excluded=nothing_excluded(self.n),
            penalty=np.zeros((n_labels, n_labels), dtype),
            limits=np.full(n_labels, self.longest),
            n_features=1,
            n_segment_features=1,
            n_columns=n_columns,
        )

    def _check_states(self, states: np.ndarray) -> None:
        """Raise unless segments begin before they go on, and are not too long."""
        starts, begins = self.rows.starts, states < self.n_labels
        is_first = np.zeros(len(states), bool)
        is_first[starts[:-1]] = True
        is_wrong = ~begins & (is_first | (np.roll(states, 1) % self.n_labels != states % self.n_labels))
        if is_wrong.any():
            i, place = self.rows.locate(int(np.flatnonzero(is_wrong)[0]))
            raise ValueError(
                f"y holds {states[is_wrong][0]} at position {place} of batch entry {i}, but no segment of label "
                f"{states[is_wrong][0] - self.n_labels} goes on there."
            )
        sizes = np.diff(np.append(np.flatnonzero(begins), len(states)))
        if sizes.max() > self.longest:
            i, place = self.rows.locate(int(np.flatnonzero(begins)[sizes > self.longest][0]))
            raise ValueError(
                f"y has a segment of {sizes[sizes > self.longest][0]} rows at position {place} of batch entry {i}, "
                f"but durations allow {self.longest}."
            )
