"""Potentials of batches, one class per structure: where they lie, what their outputs are, and what these cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.example_checks import locate
from maxmargin.problem import AnyProblem
from maxmargin.torch.untraced import untraced
from maxmargin.wording import name_type

FLOATS = (torch.float32, torch.float64)
IGNORED = -100  # as a label: that of PyTorch's losses, and of transformers

Numbers: TypeAlias = Tensor | np.ndarray | Sequence[Any]  # of users: lengths, labels, edges
Costs: TypeAlias = Tensor | np.ndarray | Sequence[Any] | str


class Potentials:
    """The potentials of a batch of examples of one structure.

    Subclasses hold the tensors that a network makes, `tensors`, and say where in these, flat and one after the other,
    the potentials of each example lie, `starts` and `sizes` (`SelectedProblem`).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains
    >>> chains = Chains(torch.zeros(2, 4, 3), torch.zeros(3, 3), lengths=[4, 2])
    >>> chains.n, chains.flat.shape, chains.sizes.sum(axis=1)  # transitions are shared, but each sentence has them
    (2, torch.Size([33]), array([21, 15]))
    """

    n: int  # of examples
    tensors: tuple[Tensor, ...]
    starts: np.ndarray
    sizes: np.ndarray

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            cls.__init__ = untraced(cls.__init__)  # type: ignore[method-assign]

    def problem(self, y: Numbers | None, cost: Costs | None, dtype: npt.DTypeLike) -> AnyProblem:
        """The problem of the library with these examples; true outputs and costs are left out where y is None."""
        raise NotImplementedError

    def replaced(self, tensors: tuple[Tensor, ...]) -> Self:
        """The same with other tensors of the same shapes, such as mean parts."""
        raise NotImplementedError

    def unshared(self) -> Self:
        """The same with potentials of its own for every example."""
        return self

    def ignoring(self, y: Numbers) -> Self:
        """Without the positions whose true label is -100, and the examples that have no others.

        Where outputs are labels of padded sequences, candidates, or heads of words; others are as they were.
        """
        return self

    @property
    def entries(self) -> np.ndarray:
        """Which entries of the batch the examples are."""
        return np.arange(self.n)

    def place(self, values: Tensor, n: int) -> Tensor:
        """Numbers of the examples among those of a batch of n, with zeros for the others."""
        at = torch.as_tensor(self.entries, device=values.device)
        return values if self.n == n else values.new_zeros(n).index_copy(0, at, values)

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        """One output per example, in the shape of true outputs."""
        raise NotImplementedError

    @property
    def flat(self) -> Tensor:
        """All tensors in one, of a dtype that loops know."""
        parts = [tensor.reshape(-1) for tensor in self.tensors]
        flat = parts[0] if len(parts) == 1 else torch.cat(parts)
        return flat if flat.dtype in FLOATS else flat.float()


def tensor_at(which: int, doc: str) -> Any:
    """One of the tensors of potentials, under a name of its own."""

    def find(potentials: Potentials) -> Tensor:
        return potentials.tensors[which]

    return property(find, doc=doc)


Some = TypeVar("Some", bound=Potentials)


def check_potentials(potentials: Some) -> Some:
    """The same; raises unless these are potentials."""
    if not isinstance(potentials, Potentials):
        kind = type(potentials).__name__
        raise TypeError(f"potentials must be Chains, or another class of maxmargin.torch, not a {kind}.")
    return potentials


def check_tensors(**tensors: Tensor | None) -> None:
    """Raise unless all are tensors of real numbers on one device; those that are None are left out."""
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    first, *_ = given
    for name, tensor in given.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {name_type(tensor)}.")
        if not tensor.dtype.is_floating_point:
            raise TypeError(f"{name} must hold real numbers, but its dtype is {tensor.dtype}.")
        if tensor.device != given[first].device:
            raise ValueError(f"{name} is on {tensor.device}, but {first} on {given[first].device}: use one device.")


def as_integers(name: str, values: Numbers, shape: tuple[int, ...]) -> np.ndarray:
    """Integers of a shape, from a tensor, an array or lists."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold integers, but its dtype is {array.dtype}.")
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {array.shape}.")
    return array.astype(np.int64)


def read_mask(mask: np.ndarray, shape: tuple[int, ...], may_skip: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """The lengths that a mask of padded rows stands for, and the mask, if it leaves out more than padding.

    Masks hold booleans, or integers 0 and 1, as the attention masks of transformers.
    """
    array = mask.astype(bool)
    if array.shape != shape:
        raise ValueError(f"lengths must have the shape {shape[:1]}, or as a mask {shape}, not {array.shape}.")
    if (array != mask).any():
        raise ValueError(
            f"lengths, as a mask {shape}, must hold booleans, or 0 and 1, but it has {mask[array != mask][0]}."
        )
    lengths = array.sum(axis=1)
    skips = (array != (np.arange(shape[1]) < lengths[:, np.newaxis])).any(axis=1)
    if not skips.any():
        return lengths, None
    if not may_skip:
        i = int(np.flatnonzero(skips)[0])
        raise ValueError(f"lengths, as a mask, must be True up to a length and False beyond, unlike batch entry {i}.")
    return lengths, array


class NothingKnown(ValueError):
    """Raised where no example of a batch has a true output."""


class Labelled(NamedTuple):
    """In place of lengths, (B, T) flags of the rows that have labels: examples without any are left out."""

    flags: np.ndarray


class BatchRows:
    """The rows of a batch: padded, (B, T, ...) with lengths, or packed one after the other, (N, ...) with lengths.

    Parameters
    ----------
    name
        Of the tensor.
    tensor
        The rows.
    lengths
        (B,) the numbers of rows of the examples; of a padded tensor also a (B, T) mask of them, or None where examples
        have all T; or `Labelled` ones.
    n_axes
        Of a row.
    may_skip
        Whether a mask may leave out rows that others come after.
    """

    def __init__(
        self, name: str, tensor: Tensor, lengths: Numbers | Labelled | None, n_axes: int, may_skip: bool = False
    ) -> None:
        shape = tuple(tensor.shape)
        self.is_padded = tensor.ndim == 2 + n_axes
        if not self.is_padded and tensor.ndim != 1 + n_axes:
            raise ValueError(
                f"{name} must have {1 + n_axes} axes (packed) or {2 + n_axes} (padded), but has the shape {shape}."
            )
        if not tensor.numel():
            raise ValueError(f"{name} must not be empty, but has the shape {shape}.")
        if lengths is None:
            if not self.is_padded:
                raise ValueError(f"lengths must say how many rows of {name} each example has, as they are packed.")
            lengths = np.full(shape[0], shape[1])
        self.mask: np.ndarray | None = None  # (B, T) flags of rows, where it leaves out more than padding
        self.name, self.width = name, shape[1] if self.is_padded else None
        self.n_entries = shape[0] if self.is_padded else len(lengths)
        self.entries = np.arange(self.n_entries)  # of the batch, which the examples are
        if isinstance(lengths, Labelled):
            counts, self.mask = read_mask(lengths.flags, shape[:2], may_skip)
            self.entries = np.flatnonzero(counts)
            given = counts[self.entries]
        else:
            given = lengths.detach().cpu().numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
            if self.is_padded and given.dtype.kind in "biu" and (given.ndim == 2 or given.dtype == bool):
                given, self.mask = read_mask(given, shape[:2], may_skip)
        self.lengths = as_integers("lengths", given, (len(self.entries),))
        most = shape[1] if self.is_padded else shape[0]
        is_wrong = (self.lengths < 1) | (self.lengths > most)
        if is_wrong.any():
            i = int(np.flatnonzero(is_wrong)[0])
            raise ValueError(f"lengths[{i}] is {self.lengths[i]}, but must be 1 to {most}, the rows of {name}.")
        self.starts = starts_of(self.lengths)
        if not self.is_padded and self.starts[-1] != most:
            raise ValueError(f"lengths add up to {self.starts[-1]}, but {name} has {most} rows.")
        self.first = shape[1] * self.entries if self.is_padded else self.starts[:-1]  # rows, in the flat tensor

    @property
    def n(self) -> int:
        """The number of examples."""
        return len(self.lengths)

    @property
    def all(self) -> np.ndarray:
        """All rows of all examples, in the flat tensor."""
        if self.mask is not None:
            return np.flatnonzero(self.mask)
        return np.arange(self.starts[-1]) + np.repeat(self.first - self.starts[:-1], self.lengths)

    @property
    def by_position(self) -> np.ndarray:
        """(n, T) the rows of each example, in the flat tensor; beyond its length its last one."""
        position = np.minimum(np.arange(self.lengths.max()), self.lengths[:, np.newaxis] - 1)
        return self.all[self.starts[:-1, np.newaxis] + position]

    def segments(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts and sizes of the segments, (n, S), that rows of so many numbers are: each, where some are left out."""
        if self.mask is None:
            return size * self.first[:, np.newaxis], size * self.lengths[:, np.newaxis]
        rows = self.by_position
        return size * rows, size * (np.arange(rows.shape[1]) < self.lengths[:, np.newaxis])

    @property
    def flags(self) -> np.ndarray:
        """(B, T) flags of the rows of all examples."""
        flags = np.zeros((self.n_entries, self.width), dtype=bool)  # type: ignore[type-var]
        flags.ravel()[self.all] = True
        return flags

    @property
    def given(self) -> Any:
        """The lengths or the mask that make these rows of a tensor of this shape."""
        if self.n < self.n_entries:
            return Labelled(self.flags)
        return self.lengths if self.mask is None else self.mask

    def locate(self, at: int) -> tuple[int, int]:
        """The entry of the batch that a row of all examples is of, and its place there."""
        return locate(at, self.starts) if self.width is None else divmod(int(self.all[at]), self.width)

    def pick(self, name: str, values: Numbers) -> np.ndarray:
        """Integers of all rows of all examples, one after the other; of padding they may be anything."""
        if not self.is_padded:
            return as_integers(name, values, (int(self.starts[-1]),))
        return as_integers(name, values, (self.n_entries, self.width)).ravel()[self.all]  # type: ignore[arg-type]

    def without_ignored(self, y: Numbers) -> Labelled | None:
        """The rows whose true label is not -100, or None where these are all of them."""
        return None if self.width is None else self.keep(as_integers("y", y, (self.n_entries, self.width)) != IGNORED)

    def keep(self, is_known: np.ndarray) -> Labelled | None:
        """Those rows of which flags (B, T) say that something is known, or None where these are all of them."""
        flags = self.flags
        if not (flags & is_known).any():
            raise NothingKnown(
                f"y ignores all positions of all batch entries: each has {IGNORED}. PyTorch's mean is nan there; "
                'with reduction="sum" the loss is 0.'
            )
        return None if is_known[flags].all() else Labelled(flags & is_known)

    def pack(self, tensor: Tensor) -> Tensor:
        """The rows of a tensor, one after the other, without padding."""
        if not self.is_padded:
            return tensor
        return tensor.reshape(-1, *tensor.shape[2:])[torch.as_tensor(self.all, device=tensor.device)]

    def arrange(self, rows: list[np.ndarray]) -> Tensor:
        """Numbers of the rows of each example, as (B, T) with -1 for padding, or packed as (N,)."""
        if not self.is_padded:
            return torch.as_tensor(np.concatenate(rows).astype(np.int64))
        out = np.full((self.n_entries, self.width), -1)  # type: ignore[type-var]
        out.ravel()[self.all] = np.concatenate(rows)
        return torch.as_tensor(out)


def segments(*pairs: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """Starts and sizes of segments, (n, S), from one pair of them per segment."""
    starts, sizes = (np.stack(np.broadcast_arrays(*column), axis=1) for column in zip(*pairs, strict=True))
    return starts, sizes


class RowPotentials(Potentials):
    """Those of rows, of which batches may have more than the examples with labels."""

    rows: BatchRows

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of examples."""
        return self.rows.n

    @property
    def entries(self) -> np.ndarray:
        return self.rows.entries

    def arranged(self, rows: list[np.ndarray]) -> Tensor:
        return self.rows.arrange(rows)
