"""Potentials of matchings, and of monotone alignments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.links.link_paths import OPERATIONS, flag_links, match_of, path_costs, read_path
from maxmargin.features import ConstantFeatures
from maxmargin.structures.derived.selected import NOTHING
from maxmargin.structures.matchings.matching_problem import MatchingProblem, MatchingSupervision
from maxmargin.structures.monotone.alignment_problem import N_TURNS, AlignmentProblem, AlignmentSupervision
from maxmargin.structures.monotone.grid_paths import ENDED, N_MOVES
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.torch import potentials
from maxmargin.torch.potentials import BatchRows, Costs, Numbers, Potentials, RowPotentials, tensor_at


def read_sides(scores: Tensor, sizes: Numbers | None) -> np.ndarray:
    """The numbers of left and right nodes of each example, (B, 2), checked."""
    if scores.ndim != 3 or not scores.numel():
        raise ValueError(f"scores must have the shape (B, n, m), not {tuple(scores.shape)}.")
    n, n_left, n_right = scores.shape
    full = np.tile([n_left, n_right], (n, 1))
    sides = full if sizes is None else potentials.as_integers("sizes", sizes, (n, 2))
    is_wrong = ((sides < 1) | (sides > full)).any(axis=1)
    if is_wrong.any():
        i = int(np.flatnonzero(is_wrong)[0])
        raise ValueError(f"sizes[{i}] is {sides[i].tolist()}, but must be 1 to {n_left} and 1 to {n_right}.")
    return sides


def rows_of_links(scores: Tensor, sides: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Where the scores of the links of each left node lie, and how many there are."""
    n, n_left, n_right = scores.shape
    first = n_left * n_right * np.arange(n)
    return [(first + v * n_right, np.where(v < sides[:, 0], sides[:, 1], 0)) for v in range(n_left)]


class Matchings(RowPotentials):
    """Scores of links between left and right nodes, at most one for each node.

    Parameters
    ----------
    scores
        (B, n, m) scores of links.
    sizes
        (B, 2) numbers of left and right nodes of each example; None where all have n and m.
    unmatched
        (B, n) scores of left nodes without a link; None for zeros, minus infinity where they must have one.

    True outputs y are (B, n) right nodes, -1 for none. A wrong link costs 1, a missing one, too. Matchings have no sum
    over all outputs within reach, a permanent: `crf_loss` and `marginals` are not for them.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Matchings, decode
    >>> decode(Matchings(torch.tensor([[[5.0, 4.0], [4.5, 1.0], [-1.0, -1.0]]])))
    tensor([[ 1,  0, -1]])
    """

    scores: Tensor = tensor_at(0, "Those of links.")

    def __init__(self, scores: Tensor, sizes: Numbers | None = None, unmatched: Tensor | None = None) -> None:
        potentials.check_tensors(scores=scores, unmatched=unmatched)
        self.sides, n_left = read_sides(scores, sizes), scores.shape[1]
        self.rows = BatchRows("scores", scores[:, :, 0], self.sides[:, 0], 0)
        if unmatched is not None and tuple(unmatched.shape) != (self.n, n_left):
            raise ValueError(f"unmatched must have the shape {(self.n, n_left)}, not {tuple(unmatched.shape)}.")
        self.tensors = (scores,) if unmatched is None else (scores, unmatched)
        lefts = self.sides[:, 0]
        nobody = NOTHING if unmatched is None else scores.numel() + n_left * np.arange(self.n)
        self.starts, self.sizes = potentials.segments(*rows_of_links(scores, self.sides), (nobody, lefts))

    @property
    def alone(self) -> Tensor | None:
        """Those of left nodes without a link."""
        return self.tensors[1] if len(self.tensors) > 1 else None

    def scored(self, scores: Tensor, alone: Tensor) -> Matchings:
        """The same with other scores of links, and of left nodes without one."""
        return Matchings(scores, self.sides, alone)

    def replaced(self, tensors: tuple[Tensor, ...]) -> Matchings:
        scores, *unmatched = tensors
        return Matchings(scores, self.sides, *unmatched)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> MatchingProblem:
        if cost is not None:
            raise ValueError("cost must be None for matchings: a wrong link costs 1, a missing one, too.")
        lefts, rights = self.sides.T
        starts, pairs = self.rows.starts, lefts * rights
        matches = np.full(starts[-1], -1) if y is None else self.rows.pick("y", y)
        blocks = []
        for i in range(self.n):
            match, links = matches[starts[i] : starts[i + 1]], np.ones((lefts[i], rights[i]))
            linked = match[match >= 0]
            if (match < -1).any() or (match >= rights[i]).any() or len(set(linked.tolist())) < linked.size:
                raise ValueError(
                    f"y of batch entry {i} must link each left node to -1 or another one of {rights[i]} nodes."
                )
            links += (match >= 0)[:, np.newaxis]
            links[match >= 0, linked] = 0
            blocks += [links.ravel(), (match >= 0).astype(float)]
        costs = np.concatenate(blocks) if y is not None else np.zeros(int((pairs + lefts).sum()))
        return MatchingProblem(
            features=ConstantFeatures(),
            pair_starts=starts_of(pairs),
            left_starts=starts,
            n_right=np.ascontiguousarray(rights),
            supervision=MatchingSupervision(matches.astype(np.int32), costs.astype(dtype)),
            excluded=nothing_excluded(self.n),
            n_features=1,
        )


class Alignments(Potentials):
    """Scores of the monotone alignments of two sequences: of links, of items without one, of moves after each other.

    Parameters
    ----------
    scores
        (B, m, n) scores of links.
    moves
        (3, 3) scores of a move after another, shared by all, or (B, 3, 3); in the order of a link, a deleted and an
        inserted item, the first move as if after a link. None for zeros.
    deleted, inserted
        (B, m) and (B, n) scores of left and of right items without a link; None for zeros. Not of what is warped.
    sizes
        (B, 2) numbers of left and right items of each example; None where all have m and n.
    warp
        As of `maxmargin.AlignmentSVM`.

    True outputs y are (B, m) right items, -1 for none; where one side is warped, (B, m + n - 1) moves, 0 for a link
    that takes the next item of both sides, 1 of the left, 2 of the right, then -1. A wrong link costs 1, a missing one,
    too.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Alignments, decode
    >>> scores = torch.tensor([[[2.0, 0.0, -1.0], [3.0, -1.0, 1.0]]])
    >>> decode(Alignments(scores))
    tensor([[0, 2]])
    >>> decode(Alignments(scores, warp=True))
    tensor([[0, 1, 2, 2]])
    """

    scores: Tensor = tensor_at(0, "Those of links.")

    def __init__(
        self,
        scores: Tensor,
        moves: Tensor | None = None,
        deleted: Tensor | None = None,
        inserted: Tensor | None = None,
        sizes: Numbers | None = None,
        *,
        warp: bool = False,
    ) -> None:
        others = {"moves": moves, "deleted": deleted, "inserted": inserted}
        potentials.check_tensors(scores=scores, **others)
        self.sides, self.warp = read_sides(scores, sizes), warp
        self.n, n_left, n_right = scores.shape
        if warp and not (deleted is None and inserted is None):
            raise ValueError("deleted and inserted must be None with warp=True: every item has a link there.")
        shapes: dict[str, list[tuple[int, ...]]] = {
            "moves": [(N_MOVES, N_MOVES), (self.n, N_MOVES, N_MOVES)],
            "deleted": [(self.n, n_left)],
            "inserted": [(self.n, n_right)],
        }
        self.given = {name: tensor for name, tensor in others.items() if tensor is not None}
        at, starts = scores.numel(), dict.fromkeys(others, np.full(self.n, NOTHING))
        for name, tensor in self.given.items():
            if tuple(tensor.shape) not in shapes[name]:
                raise ValueError(
                    f"{name} must have the shape {' or '.join(map(str, shapes[name]))}, not {tuple(tensor.shape)}."
                )
            is_shared = tensor.ndim == 2 and name == "moves"
            starts[name] = at + (0 if is_shared else tensor[0].numel()) * np.arange(self.n)
            at += tensor.numel()
        self.tensors = (scores, *self.given.values())
        gaps = [] if warp else [(starts["deleted"], self.sides[:, 0]), (starts["inserted"], self.sides[:, 1])]
        self.starts, self.sizes = potentials.segments(
            *rows_of_links(scores, self.sides), *gaps, (starts["moves"], N_TURNS)
        )

    @property
    def moves(self) -> Tensor | None:
        """Those of moves after each other; of mean parts, expected counts of them."""
        return self.given.get("moves")

    @property
    def alone(self) -> Tensor | None:
        """Those of left items without a link."""
        return self.given.get("deleted")

    def scored(self, scores: Tensor, alone: Tensor) -> Alignments:
        """The same with other scores of links, and of left items without one."""
        return Alignments(scores, sizes=self.sides, warp=self.warp, **{**self.given, "deleted": alone})

    def unshared(self) -> Alignments:
        moves = self.moves
        if moves is None or moves.ndim == 3:
            return self
        scores, _, *gaps = self.tensors
        return self.replaced((scores, moves.expand(self.n, N_MOVES, N_MOVES), *gaps))

    def replaced(self, tensors: tuple[Tensor, ...]) -> Alignments:
        scores, *others = tensors
        given = dict(zip(self.given, others, strict=True))
        return Alignments(scores, sizes=self.sides, warp=self.warp, **given)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        _, n_left, n_right = self.scores.shape
        out = np.full((self.n, n_left + n_right - 1 if self.warp else n_left), -1)
        for place, row, sides in zip(out, rows, self.sides, strict=True):
            found = row[row != ENDED] % N_MOVES if self.warp else match_of(row, sides)
            place[: len(found)] = found
        return torch.as_tensor(out)

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AlignmentProblem:
        if cost is not None:
            raise ValueError("cost must be None for alignments: a wrong link costs 1, a missing one, too.")
        path_starts = starts_of(self.sides.sum(axis=1))
        paths, costs = [np.full(path_starts[-1], ENDED)], []
        if y is not None:
            paths = self._read(y)
            for path, sides in zip(paths, self.sides, strict=True):
                costs += path_costs(flag_links(path, sides, self.warp), 1.0, 1.0, self.warp)
        n_gaps = 0 if self.warp else self.sides.sum(axis=1)
        return AlignmentProblem(
            features=ConstantFeatures(),
            starts=starts_of(self.sides.prod(axis=1) + n_gaps),
            path_starts=path_starts,
            sides=self.sides,
            supervision=AlignmentSupervision(
                np.concatenate(paths).astype(np.int32), np.concatenate([np.zeros(0), *costs]).astype(dtype)
            ),
            excluded=nothing_excluded(self.n),
            n_features=1,
            warps=self.warp,
        )

    def _read(self, y: Numbers) -> list[np.ndarray]:
        """The paths of true outputs."""
        _, n_left, n_right = self.scores.shape
        array = potentials.as_integers("y", y, (self.n, n_left + n_right - 1 if self.warp else n_left))
        paths = []
        for i, (row, sides) in enumerate(zip(array, self.sides, strict=True)):
            name = f"y of batch entry {i}"
            if self.warp and not ((row >= -1) & (row < N_MOVES)).all():
                raise ValueError(f"{name} must hold moves, 0 to {N_MOVES - 1}, and -1 after the last one.")
            links = "".join(OPERATIONS[move] for move in row[row >= 0]) if self.warp else row[: sides[0]]
            paths.append(read_path(links, sides, self.warp, name))
        return paths
