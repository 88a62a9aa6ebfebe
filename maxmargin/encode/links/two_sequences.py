"""What users align, two strings, two arrays or the features of all pairs of items, as features of parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.example_checks import check_array, check_examples, find_labels
from maxmargin.encode.inputs.rows import Rows, stack_rows
from maxmargin.encode.links.matching_encoder import as_pairs
from maxmargin.persist.registry import register
from maxmargin.wording import count_of

PAIRS, ROWS, STRINGS = "pairs", "rows", "strings"  # what sequences can be given as
SIDES = "left", "right"
KINDS = {PAIRS: "the features of all pairs", ROWS: "two arrays of rows", STRINGS: "two strings"}


@register
class Alphabet(NamedTuple):
    """The symbols of strings, sorted, and the pairs of them that have a weight, sorted: left times S + 1 plus right.

    A gap is the symbol S: a symbol and a gap are one that is deleted, a gap and a symbol one that is inserted.
    """

    symbols: np.ndarray  # (S,) strings
    pairs: np.ndarray  # (P,) int64

    @property
    def is_sound(self) -> bool:
        """Whether it is one: one that comes from a file need not be."""
        are_strings = self.symbols.ndim == 1 and self.symbols.dtype.kind == "U"
        are_pairs = self.pairs.ndim == 1 and self.pairs.dtype == np.int64 and bool((np.diff(self.pairs) > 0).all())
        most = (len(self.symbols) + 1) ** 2
        return are_strings and are_pairs and (not self.pairs.size or 0 <= self.pairs[0] <= self.pairs[-1] < most)

    @property
    def named_pairs(self) -> np.ndarray:
        """The pairs as strings, (P, 2), with nothing for a gap."""
        names = np.append(self.symbols, "")
        return np.column_stack([names[side] for side in np.divmod(self.pairs, len(names))])

    def joined(self, other: Alphabet) -> Alphabet:
        """The symbols and the pairs of both."""
        symbols = np.union1d(self.symbols, other.symbols)
        return Alphabet(symbols, np.union1d(self._numbered(symbols), other._numbered(symbols)))

    def find(self, other: Alphabet) -> np.ndarray:
        """Which of these pairs those of another alphabet are, -1 for none."""
        return find_labels(other._numbered(self.symbols), self.pairs)

    def _numbered(self, symbols: np.ndarray) -> np.ndarray:
        """The pairs as another alphabet, of these symbols, numbers them; -1 for those of others."""
        places = np.append(find_labels(self.symbols, symbols), len(symbols))
        left, right = (places[side] for side in np.divmod(self.pairs, len(places)))
        return np.where((left < 0) | (right < 0), -1, left * (len(symbols) + 1) + right)


def is_string(side: object) -> bool:
    """Whether a sequence is a string, or a list of strings."""
    return isinstance(side, str) or (isinstance(side, (list, tuple)) and all(isinstance(item, str) for item in side))


def kind_of(x: object) -> str:
    """What the sequences of an example are given as."""
    if isinstance(x, (tuple, list)) and len(x) == 2 and all(map(is_string, x)):
        return STRINGS
    return ROWS if isinstance(x, tuple) and len(x) == 2 and np.shape(x[1]) != (2,) else PAIRS


def read_kind(X: object, kind: str | None = None) -> str:
    """Check that all examples, and those of training, are given alike; return as what."""
    X = check_examples(X, "pairs of sequences", "pair of sequences")
    for i, x in enumerate(X):
        kind = kind_of(x) if kind is None else kind
        if kind_of(x) != kind:
            raise TypeError(f"X[{i}] must hold {KINDS[kind]}, as all others do, but holds {KINDS[kind_of(x)]}.")
    assert kind is not None
    return kind


def check_sides(sides: np.ndarray, warps: bool) -> None:
    """Raise where a side is empty that must not be."""
    if warps and not sides.all():
        i, side = np.argwhere(sides == 0)[0]
        raise ValueError(
            f"X[{i}] has nothing on the {SIDES[side]}: to warp one side onto the other, both need at least one item."
        )


def read_rows(X: Any, kind: str, warps: bool, n_features: int | None) -> tuple[Rows, np.ndarray]:
    """The features of links, then of deleted and inserted items, from those of pairs, or from two arrays.

    With the numbers of left and right items, (n, 2).
    """
    read = _read_pairs if kind == PAIRS else _read_arrays
    matrices, sides = zip(*(read(x, warps, n_features, f"X[{i}]") for i, x in enumerate(X)), strict=True)
    shapes = np.array(sides, np.int64)
    check_sides(shapes, warps)
    return stack_rows(matrices, noun="pair of sequences", may_be_empty=True), shapes


def _read_pairs(
    x: object, warps: bool, n_features: int | None, name: str
) -> tuple[np.ndarray | sp.csr_array, tuple[int, int]]:
    """Features of links; items without one have none."""
    links, sides = as_pairs(x, name)
    _check_width(links.shape[1], n_features, name)
    gaps = (0 if warps else sum(sides), links.shape[1])
    return (sp.vstack([links, sp.csr_array(gaps)]) if sp.issparse(links) else np.vstack([links, np.zeros(gaps)])), sides


def _read_arrays(x: Any, warps: bool, n_features: int | None, name: str) -> tuple[np.ndarray, tuple[int, int]]:
    """Squared differences of two items that are linked; the features of those that are not, on each side."""
    left, right = (
        check_array(rows, f"{name}, on the {side},", "a (T, F) matrix of numbers", (None, None))
        for side, rows in zip(SIDES, x, strict=True)
    )
    (m, width), (n, other) = left.shape, right.shape
    if width != other:
        raise ValueError(f"{name} has {count_of(width, 'feature')} on the left, but {other} on the right.")
    _check_width(width, n_features, name)
    links = np.square(left[:, np.newaxis].astype(float) - right).reshape(m * n, width)
    if warps:
        return links, (m, n)
    matrix = np.zeros((m * n + m + n, 3 * width))
    matrix[: m * n, :width] = links
    matrix[m * n : m * n + m, width : 2 * width] = left
    matrix[m * n + m :, 2 * width :] = right
    return matrix, (m, n)


def _check_width(width: int, n_features: int | None, name: str) -> None:
    if n_features not in (None, width):
        raise ValueError(f"{name} has {count_of(width, 'feature')}, but the model was fitted with {n_features}.")


def read_strings(
    X: Any, warps: bool, known: Alphabet | None, *, learns: bool = False
) -> tuple[Rows, np.ndarray, Alphabet]:
    """Whether two symbols are the same, then which they are; with the numbers of items, and the alphabet.

    What it `learns` beside the known one is that of these strings: all pairs that could be linked, and all symbols that
    could have no link.
    """
    sides = np.array([[len(left), len(right)] for left, right in X], np.int64)
    check_sides(sides, warps)
    symbols, codes = np.unique([symbol for x in X for side in x for symbol in side], return_inverse=True)
    gap = len(symbols)
    blocks, pairs = np.split(codes, np.cumsum(sides)[:-1]), []
    for left, right in zip(blocks[::2], blocks[1::2], strict=True):
        pairs.append((left[:, np.newaxis] * (gap + 1) + right).ravel())
        if not warps:
            pairs += [left * (gap + 1) + gap, gap * (gap + 1) + right]
    n_rows = sides.prod(axis=1) + (0 if warps else sides.sum(axis=1))
    here, which = np.unique(np.concatenate(pairs), return_inverse=True)
    own = Alphabet(symbols.astype(str), here)
    alphabet = own if known is None else known.joined(own) if learns else known
    columns = alphabet.find(own)
    is_same = np.equal(*np.divmod(here, gap + 1))
    entries = np.column_stack([np.where(is_same, 0, -1), np.where(columns < 0, -1, 1 + columns)])[which]
    is_there = entries >= 0
    indptr = starts_of(is_there.sum(axis=1))
    shape = len(which), 1 + len(alphabet.pairs)
    matrix = sp.csr_array((np.ones(indptr[-1], np.int8), entries[is_there], indptr), shape)
    return Rows(matrix, starts_of(n_rows)), sides, alphabet
