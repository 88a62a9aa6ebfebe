"""The lines of files to read, and files to write to: paths, or files that are open."""

from __future__ import annotations

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from maxmargin.text.corpus import Corpus
from maxmargin.wording import quote

FileToRead = str | PathLike[str] | IO[str] | IO[bytes]
FileToWrite = str | PathLike[str] | IO[str]

CHUNK = 1 << 20  # bytes, or characters, that are read at a time


COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".zst": "compression.zstd"}  # the module that reads each


def open_file(path: str | PathLike[str]) -> IO[bytes]:
    """A file to read, decompressed if its name says that it is compressed."""
    path = Path(path)
    module = COMPRESSED.get(path.suffix.lower())
    if module is None:
        return open(path, "rb")
    try:
        return import_module(module).open(path, "rb")
    except ImportError:
        raise ValueError(f"{str(path)!r} cannot be read: files of {path.suffix} need Python 3.14 or later.") from None


def check_encoding(name: str) -> None:
    """Raise unless `name` is that of an encoding of texts."""
    try:
        "".encode(name)
    except (LookupError, TypeError, UnicodeError):  # such as "zlib", of which Python knows how to unpack it
        raise ValueError(f"encoding must be the name of an encoding of texts, not {quote(name)}.") from None


def name_of(source: FileToRead | FileToWrite) -> str:
    """What messages call a file."""
    own = str(source) if isinstance(source, str | PathLike) else getattr(source, "name", None)
    return own if isinstance(own, str) else "the stream"  # that of a pipe is a number


class Lines:
    """The lines of a file and, for messages, its name; of any line ends, without the mark at the beginning of UTF-8.

    Iteration gives the number and the text of each, from 1, and reads the file on the way. Where it may have to wait
    for more, as at the end of what a pipe holds, the text is None: those who wait for sentences get what there is.
    """

    def __init__(self, source: FileToRead, encoding: str, name: str | None = None) -> None:
        check_encoding(encoding)
        self.is_open = hasattr(source, "read")
        self.name = name or name_of(source)
        self.source: Any = source
        self.encoding = encoding
        self.number = 0  # of the last line
        self.kept: list[str] | None = None  # the lines so far, where they are to be kept

    def __iter__(self) -> Iterator[tuple[int, str | None]]:
        for batch in self.batches():
            for line in batch:
                self.number += 1
                yield self.number, line
            yield self.number, None

    def batches(self) -> Iterator[list[str]]:
        """The lines that come at once, and then the next ones; whoever takes them counts them in `number`."""
        parts: list[str] = []  # of a line whose end is not there yet
        is_first = True
        for text in self._texts():
            if is_first and text:
                text, is_first = text.removeprefix("\ufeff"), False
            whole, end, rest = text.rpartition("\n")
            lines = "".join([*parts, whole]).replace("\r\n", "\n").removesuffix("\r").split("\n") if end else []
            parts = [rest] if end else [*parts, rest]
            yield self._keep(lines)
        last = "".join(parts)
        if last:
            yield self._keep([last])

    def _keep(self, lines: list[str]) -> list[str]:
        if self.kept is not None:
            self.kept += lines
        return lines

    def _texts(self) -> Iterator[str]:
        """The text of the file, piece by piece, as it comes."""
        decoder = getincrementaldecoder(self.encoding)()
        with nullcontext(self.source) if self.is_open else open_file(self.source) as file:
            read = getattr(file, "read1", file.read)  # the former does not wait until a chunk is full
            while content := read(CHUNK):
                yield content if isinstance(content, str) else self._decode(decoder, content)
            yield self._decode(decoder, b"", final=True)

    def _decode(self, decoder: IncrementalDecoder, content: bytes, *, final: bool = False) -> str:
        try:
            return decoder.decode(content, final)
        except UnicodeError as error:
            before = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""  # UTF-16 has no mark
            line = self.number + 1 + before.count(b"\n")
            self.fail(line, f"it is not {self.encoding}: pass the encoding of the file")

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise an error at a line."""
        raise ValueError(f"{self.name}, line {line}: {problem}.")

    def check_any(self, found: object, what: str) -> None:
        """Raise an error unless something was found."""
        if not found:
            raise ValueError(f"{self.name} holds no {what}.")


class Parsed(NamedTuple):
    """A sentence of a file: its tokens, their tags, if there are any, and the numbers of their lines, or of its own.

    `document` counts the documents that have begun.
    """

    tokens: list[Any]
    tags: list[Any] | None
    numbers: Sequence[int]
    document: int = 0


def gather(sentences: Sequence[Parsed]) -> list[Any]:
    """The tokens of sentences, in their documents if any has begun."""
    tokens = [sentence.tokens for sentence in sentences]
    if not any(sentence.document for sentence in sentences):
        return tokens
    return Corpus(tokens, [sentence.document for sentence in sentences])


def write_lines(target: FileToWrite, lines: Iterable[str]) -> None:
    """Write lines to a path, in UTF-8, or to an open text file; nothing, if making them raises an error."""
    text = "\n".join([*lines, ""])
    if hasattr(target, "write"):
        target.write(text)
    else:
        Path(target).write_bytes(text.encode())
