"""Files of word vectors: those of GloVe, word2vec and fastText, as text or binary, and .npy files."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.text.resources.word_vectors import BINARY, ROWS, TEXT, VectorFile, WordVectors, hash_word
from maxmargin.text.sentence_files.line_files import COMPRESSED, FileToWrite, Lines, check_encoding, write_lines
from maxmargin.wording import count_of, quote

LARGEST = np.finfo(np.float32).max
LONGEST = 1 << 24  # bytes of a line: without a limit, one of a large file that is no text would be read as a whole
MOST_READ = 1 << 28  # bytes of a file that is read as a whole; others are mapped
HEADER = re.compile(rb"(\d+)[ \t]+(\d+)[ \t]*\r?\n")  # the numbers of words and columns
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # characters that text has not got
BOM = b"\xef\xbb\xbf"  # what some programs begin a file of UTF-8 with
FASTTEXT = (793712314).to_bytes(4, "little")  # begins a model of fastText


def read_vectors(
    path: str | PathLike[str], *, most_read: int = MOST_READ, encoding: str = "utf-8"
) -> WordVectors | VectorFile:
    r"""Read the vectors of words from a file, or map it, if it is large.

    Lines of text have a word and its numbers, as those of GloVe, word2vec and fastText (.vec) do, the latter after a
    line with the numbers of words and columns; after such a line numbers may be binary, as word2vec writes them. Of an
    .npy file, a matrix, the words are in the file of the same name that ends in .txt, a line each. Where a word is
    there more than once, its first vector counts.

    Parameters
    ----------
    path
        The file.
    most_read
        The number of bytes up to which a file is read, so that models hold its vectors. Larger ones are mapped: models
        hold where they are, and need the file.
    encoding
        Of words.

    Returns
    -------
    WordVectors or VectorFile

    Examples
    --------
    >>> from maxmargin.text import read_vectors
    >>> with open("tiny.vec", "w") as file:
    ...     _ = file.write("2 3\nthe 0.1 0.2 0.3\ndog 1 0 2\n")
    >>> vectors = read_vectors("tiny.vec")
    >>> vectors.words, vectors.width
    (['the', 'dog'], 3)
    """
    check_encoding(encoding)
    path = Path(path)
    size = path.stat().st_size
    if not size:
        raise ValueError(f"{path} holds no vectors: it is empty.")
    if path.suffix.lower() in COMPRESSED:
        raise ValueError(f"{path} is compressed, and cannot be mapped: unpack it first.")
    if path.suffix.lower() == ".npy":
        return _read_rows(path, size, most_read, encoding)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        shape = find_shape(data, str(path))
        records = binary_records(data, shape, str(path)) if shape.is_binary else text_records(data, shape, str(path))
        decoded = _decode(records, "word" if shape.is_binary else "line", str(path), encoding)
        if size <= most_read:
            return _in_memory(data, decoded, shape, str(path))
        hashes, places = _index((word, place) for _, word, place in decoded)
    return VectorFile(str(path.resolve()), size, BINARY if shape.is_binary else TEXT, shape.width, hashes, places)


def write_vectors(target: FileToWrite, vectors: WordVectors) -> None:
    r"""Write vectors of words to a file of text that `read_vectors` reads, as those of word2vec and fastText are.

    Parameters
    ----------
    target : path or open text file
    vectors

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import WordVectors, write_vectors
    >>> write_vectors(sys.stdout, WordVectors(["the", "dog"], [[0.5, 1.0], [2.0, 0.0]]))
    2 2
    the 0.5 1
    dog 2 0
    """
    if not isinstance(vectors, WordVectors):
        raise TypeError(f"vectors must be WordVectors, not {quote(vectors)}.")
    for word in vectors.words:
        if not word.split() or word != word.strip():
            raise ValueError(f"vectors has the word {word!r}, but it may not be blank, nor begin or end with a blank.")
    rows = zip(vectors.words, vectors.vectors.tolist(), strict=True)
    lines = (" ".join([word, *(f"{number:.9g}" for number in row)]) for word, row in rows)
    write_lines(target, chain([f"{len(vectors.words)} {vectors.width}"], lines))


Content = mmap.mmap | bytes  # of a file


class FileShape(NamedTuple):
    """How a file has its vectors."""

    begin: int  # where the first one begins
    n_words: int | None  # if the file says so
    width: int
    is_binary: bool


def find_shape(data: Content, name: str) -> FileShape:
    """How a file has its vectors, by its beginning."""
    if data[:4] == FASTTEXT:
        raise ValueError(f"{name} is a model of fastText: read the .vec file that fastText writes beside it.")
    start = len(BOM) if data[: len(BOM)] == BOM else 0
    header = HEADER.match(data[start : start + 100])
    if header is None:
        fields = data[start : _line_end(data, start, f"{name}, line 1")].split()
        shape = FileShape(start, None, len(fields) - 1, False)
    else:
        n_words, width = map(int, header.groups())
        begin = start + header.end()
        line = data[begin : begin + 100 * (width + 10)].split(b"\n", 1)[0]
        has_numbers = CONTROL.search(data[begin : begin + 4 * width]) is None and _is_line(line, 1)
        shape = FileShape(begin, n_words, width, not (has_numbers or _is_line(line, width)))
    if shape.width < 1:
        raise ValueError(f"{name}, line 1: it must have a word and the numbers of its vector.")
    return shape


def is_number(text: bytes) -> bool:
    """Whether a text is that of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_line(line: bytes, width: int) -> bool:
    """Whether a line has a word, which may have blanks, and numbers."""
    fields = line.split()
    return len(fields) > width and all(map(is_number, fields[-width:]))


def _line_end(data: Content, start: int, where: str) -> int:
    end = data.find(b"\n", start, start + LONGEST)
    if end < 0 and len(data) - start > LONGEST:
        raise ValueError(
            f"{where} is longer than {LONGEST >> 20} MB, but must have a word and the numbers of its vector."
        )
    return len(data) if end < 0 else end


def text_records(data: Content, shape: FileShape, name: str) -> Iterator[tuple[int, bytes, int]]:
    """The number, the word and the first number's place of each line."""
    start, number, n_words = shape.begin, 1 + (shape.n_words is not None), 0
    while start < len(data):
        end = _line_end(data, start, f"{name}, line {number}")
        line = data[start:end].rstrip()
        if line:
            if line[:1].isspace():
                raise ValueError(f"{name}, line {number}: it begins with a blank, not with a word.")
            word = line.rsplit(None, shape.width)[0]
            if len(word) == len(line) or is_number(word.rsplit(None, 1)[-1]):  # too few numbers, or too many
                word = line.split(None, 1)[0]
            yield number, word, start + len(word)
            n_words += 1
        start, number = end + 1, number + 1
    if n_words < (shape.n_words or 0):
        raise ValueError(f"{name} says that it has {count_of(shape.n_words or 0, 'word')}, but has {n_words:,}.")


def binary_records(data: Content, shape: FileShape, name: str) -> Iterator[tuple[int, bytes, int]]:
    """The number, the word and the vector's place of each record."""
    start = shape.begin
    for number in range(1, (shape.n_words or 0) + 1):
        blank = data.find(b" ", start)
        if blank < 0 or blank + 1 + 4 * shape.width > len(data):
            raise ValueError(
                f"{name} ends within the vector of word {number}, but says that it has "
                f"{count_of(shape.n_words or 0, 'word')} of {count_of(shape.width, 'number')} each."
            )
        yield number, data[start:blank].lstrip(b"\n"), blank + 1
        start = blank + 1 + 4 * shape.width


def _decode(
    records: Iterator[tuple[int, bytes, int]], unit: str, name: str, encoding: str
) -> Iterator[tuple[str, str, int]]:
    """Where each word is, for messages, the word, and the place of its numbers."""
    for number, word, place in records:
        where = f"{name}, {unit} {number}"
        try:
            text = word.decode(encoding)
        except UnicodeDecodeError:
            raise ValueError(f"{where}: the word is not {encoding}: pass the encoding of the file.") from None
        yield where, text, place


def _in_memory(data: Content, records: Iterator[tuple[str, str, int]], shape: FileShape, name: str) -> WordVectors:
    vectors: dict[str, np.ndarray] = {}
    for where, text, place in records:
        try:
            vector = (
                np.frombuffer(data[place : place + 4 * shape.width], "<f4")
                if shape.is_binary
                else np.array(data[place : _line_end(data, place, where)].split(), np.float64)
            )
        except ValueError:
            raise ValueError(f"{where}: the vector of {text!r} must hold numbers.") from None
        if len(vector) != shape.width:
            raise ValueError(f"{where}: the vector of {text!r} has {len(vector)} numbers, but others {shape.width}.")
        if not (abs(vector) <= LARGEST).all():
            raise ValueError(f"{where}: the vector of {text!r} contains NaN or infinity.")
        vectors.setdefault(text, vector.astype(np.float32))
    if not vectors:
        raise ValueError(f"{name} holds no vectors of words.")
    return WordVectors(vectors, np.stack([*vectors.values()]))


def _read_rows(path: Path, size: int, most_read: int, encoding: str) -> WordVectors | VectorFile:
    try:
        matrix = np.load(path, mmap_mode="r")
    except ValueError:
        raise ValueError(f"{path} must be an .npy file of numbers, but it is another one, or damaged.") from None
    listed = path.with_suffix(".txt")
    if not listed.is_file():
        raise ValueError(f"{path} needs the file {listed}, with the word of each row in a line.")
    n_words = sum(1 for _ in _words_of(listed, encoding))
    if matrix.ndim != 2 or len(matrix) != n_words or matrix.dtype.kind != "f":
        expected = f"a row of numbers for each of {count_of(n_words, 'word')} in {listed.name}"
        raise ValueError(f"{path} must be a matrix with {expected}, not of shape {matrix.shape} and {matrix.dtype}.")
    if size <= most_read:
        words = [*_words_of(listed, encoding)]
        is_bad = ~np.isfinite(matrix).all(axis=1)
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise ValueError(f"{path}, row {row}: the vector of {words[row]!r} contains NaN or infinity.")
        first = dict(zip(reversed(words), reversed(range(len(words))), strict=True))
        kept = sorted(first.values())
        return WordVectors([words[row] for row in kept], matrix[kept])
    hashes, places = _index((word, row) for row, word in enumerate(_words_of(listed, encoding)))
    return VectorFile(str(path.resolve()), size, ROWS, matrix.shape[1], hashes, places)


def _words_of(path: Path, encoding: str) -> Iterator[str]:
    """The words of a file that has one in each line."""
    return (line for _, line in Lines(path, encoding) if line is not None)


def _index(records: Iterator[tuple[str, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of words, ascending, and their places."""
    both = np.fromiter(
        ((hash_word(word.encode()), place) for word, place in records), np.dtype([("hash", "u8"), ("place", "i8")])
    )
    hashes, first = np.unique(both["hash"], return_index=True)
    return hashes, both["place"][first]
