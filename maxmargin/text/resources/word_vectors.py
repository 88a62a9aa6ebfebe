"""Vectors of words: in memory, or in a file that is mapped, not read."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.checks import as_numbers
from maxmargin.persist.registry import register
from maxmargin.wording import count_of

CHUNK = 1 << 20  # bytes
BINARY, TEXT, ROWS = "binary", "text", "npy"  # what follows a word in a file, or where the rows are


@register
class WordVectors:
    """Vectors of words, which are part of the models that use them.

    Parameters
    ----------
    words
        The words, which differ from each other.
    vectors : (V, D) array
        Their vectors, a row each.

    Examples
    --------
    >>> from maxmargin.text import WordVectors
    >>> vectors = WordVectors(["the", "dog"], [[0.1, 0.2, 0.3], [1.0, 0.0, 2.0]])
    >>> vectors.width, vectors.find(["Dog", "cat"])
    (3, (array([[1., 0., 2.]], dtype=float32), [0, -1]))
    """

    def __init__(self, words: Iterable[str], vectors: object) -> None:
        self.words = [*words]
        self.vectors = as_numbers("vectors", vectors).astype(np.float32)
        self.rows = {word: k for k, word in enumerate(self.words)}
        if self.vectors.ndim != 2 or not self.vectors.size or len(self.vectors) != len(self.words):
            expected = f"a row for each of {count_of(len(self.words), 'word')}"
            raise ValueError(f"vectors must be a matrix with {expected}, not of shape {self.vectors.shape}.")
        if len(self.rows) != len(self.words) or not all(type(word) is str for word in self.words):
            raise ValueError("words must be strings that differ from each other.")
        is_bad = ~np.isfinite(self.vectors).all(axis=1)
        if is_bad.any():
            raise ValueError(f"vectors must be finite, but that of {self.words[int(np.argmax(is_bad))]!r} is not.")

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.vectors.shape[1]

    def find(self, words: Sequence[str]) -> tuple[np.ndarray, list[int]]:
        """The vectors of words, or of their lower case, and which of them each word has; -1 for none."""
        found = [self.rows.get(word, self.rows.get(word.lower(), -1)) for word in words]
        used = sorted({row for row in found if row >= 0})
        number = {row: k for k, row in enumerate(used)}
        return self.vectors[used], [number.get(row, -1) for row in found]


@register
class VectorFile:
    r"""Vectors of words in a file that is mapped, not read: models that use them need it where it is.

    `maxmargin.text.read_vectors` makes one of a large file.

    Parameters
    ----------
    path
        The file.
    size
        Its number of bytes.
    format
        {"text", "binary", "npy"}.
    width
        The number of columns.
    hashes
        Hashes of the words, ascending.
    places
        Where each of their lines, or vectors, begins: a byte, or the row of an .npy file.

    Examples
    --------
    >>> from maxmargin.text import read_vectors
    >>> with open("tiny.txt", "w") as file:
    ...     _ = file.write("the 0.1 0.2\ndog 1 2\n")
    >>> mapped = read_vectors("tiny.txt", most_read=0)
    >>> mapped.find(["dog", "cat"])
    (array([[1., 2.]], dtype=float32), [0, -1])
    """

    def __init__(self, path: str, size: int, format: str, width: int, hashes: np.ndarray, places: np.ndarray) -> None:
        self.path, self.size, self.format, self.width = path, size, format, width
        self.hashes, self.places = hashes, places
        self._open: Any = None

    def __reduce__(self) -> tuple[object, ...]:
        return VectorFile, (self.path, self.size, self.format, self.width, self.hashes, self.places)

    def find(self, words: Sequence[str]) -> tuple[np.ndarray, list[int]]:
        """As that of `WordVectors`."""
        vectors, number, found = list[np.ndarray](), dict[int, int](), list[int]()
        for word in words:
            row = next((row for row in map(self._find, (word, word.lower())) if row >= 0), -1)
            if row >= 0 and row not in number:
                number[row] = len(vectors)
                vectors.append(self._read(row, word))
            found.append(number.get(row, -1))
        return np.array(vectors, np.float32).reshape(-1, self.width), found

    def _find(self, word: str) -> int:
        """The number of a word among the hashes, or -1."""
        code = hash_word(word.encode())
        row = int(np.searchsorted(self.hashes, code))
        return row if row < len(self.hashes) and self.hashes[row] == code else -1

    def _read(self, row: int, word: str) -> np.ndarray:
        data, place = self._map(), int(self.places[row])
        try:
            if self.format == ROWS:
                vector = np.asarray(data[place], np.float32)
            elif self.format == BINARY:
                vector = np.frombuffer(data, "<f4", self.width, place).astype(np.float32)
            else:
                line = data[place : (data.find(b"\n", place) + 1 or len(data)) - 1 or None]
                vector = np.array(line.split(), np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if vector.shape != (self.width,) or not np.isfinite(vector).all():
            where = self._where(data, place)
            raise ValueError(f"{self.path}, {where}: the vector of {word!r} must hold {self.width} finite numbers.")
        return vector

    def _where(self, data: Any, place: int) -> str:
        """What messages call a place: a row, a byte, or a line, up to which not all is read at once."""
        if self.format != TEXT:
            return f"{'row' if self.format == ROWS else 'byte'} {place}"
        ends = (data[k : min(k + CHUNK, place)].count(b"\n") for k in range(0, place, CHUNK))
        return f"line {1 + sum(ends)}"

    def _map(self) -> Any:
        if self._open is None:
            path = Path(self.path)
            if not path.is_file() or path.stat().st_size != self.size:
                raise ValueError(
                    f"The vectors of words are in the file {self.path!r} of {self.size:,} bytes, which is not "
                    "there, or another one by now."
                )
            if self.format == ROWS:
                self._open = np.load(path, mmap_mode="r")
            else:
                with path.open("rb") as file:
                    self._open = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._open


def hash_word(word: bytes) -> np.uint64:
    """A number for a word, the same on all machines."""
    return np.uint64(int.from_bytes(blake2b(word, digest_size=8).digest(), "little"))
