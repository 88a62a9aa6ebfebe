"""What is known of words from outside, from the files that options name; what reads these is loaded when they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from maxmargin.text.resources.word_vectors import VectorFile, WordVectors

T = TypeVar("T")


def read_all_lists(texts: list[str], encoding: str) -> dict[str, list[str]]:
    """The names in files, by title, and those of the files of folders."""
    from maxmargin.text.resources.name_lists import read_gazetteers, read_names

    titled = ((title, path or title) for title, _, path in (text.partition("=") for text in texts))
    return join_titles(
        "--gazetteer",
        (
            read_in_either(read_gazetteers, path, encoding)
            if path == title
            else {title: read_in_either(read_names, Path(path), encoding)}
            for title, path in titled
        ),
    )


def read_all_classes(texts: list[str], encoding: str) -> dict[str, dict[str, str]]:
    """The classes of words in files, by title."""
    from maxmargin.text.resources.class_files import read_classes

    titled = (text.partition("=") for text in texts)
    return join_titles(
        "--classes", ({title: read_in_either(read_classes, path, encoding)} for title, _, path in titled)
    )


def read_patterns(texts: list[str], encoding: str) -> dict[str, str]:
    """Regular expressions by title."""
    return join_titles("--pattern", ({title: pattern} for title, _, pattern in (text.partition("=") for text in texts)))


def read_vector_file(path: Path, encoding: str) -> WordVectors | VectorFile:
    """The vectors in a file."""
    from maxmargin.text.resources.vector_files import read_vectors

    return read_in_either(read_vectors, path, encoding)


READERS: dict[str, Callable[[Any, str], Any]] = {
    "lists": read_all_lists,
    "classes": read_all_classes,
    "patterns": read_patterns,
    "vectors": read_vector_file,
}


def read_in_either(read: Callable[..., T], source: str | Path, encoding: str) -> T:
    """What is in a file of UTF-8, as most are, or else of the encoding of the sentences."""
    try:
        return read(source, encoding="utf-8")
    except ValueError:
        return read(source, encoding=encoding)


def join_titles(flag: str, parts: Iterable[dict[str, T]]) -> dict[str, T]:
    """All that an option names, by title."""
    found: dict[str, T] = {}
    for part in parts:
        for title in part:
            if title in found:
                raise typer.BadParameter(f"{flag} has the title {title!r} twice: give one of both another name.")
        found |= part
    return found
