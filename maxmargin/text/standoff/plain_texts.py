"""Plain text: files without entities, each of them one text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from maxmargin.text.sentence_files.line_files import FileToRead, check_encoding, name_of, open_file
from maxmargin.text.standoff.annotated_texts import AnnotatedText


def read_whole(source: FileToRead, encoding: str, name: str | None = None) -> str:
    """All of a file, with its line ends as they are, so that characters are where others count them.

    The mark at the beginning of UTF-8 is kept, too.
    """
    check_encoding(encoding)
    opened: Any = source
    with nullcontext(opened) if hasattr(source, "read") else open_file(opened) as file:
        content = file.read()
    if isinstance(content, str):
        return content
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise ValueError(
            f"{name or name_of(source)}, line {line}: it is not {encoding}: pass the encoding of the file."
        ) from None


def read_plain(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """The text of a file."""
    yield AnnotatedText(read_whole(source, encoding, name), None, name or name_of(source))
