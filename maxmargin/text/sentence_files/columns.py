"""CoNLL column files: a token per line, its word and tags in columns, and a blank line between sentences."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxmargin.text.partial_tags import replace_unknown
from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, Parsed, gather, write_lines
from maxmargin.wording import count_of, quote

MOST_KEPT = 1_000_000  # strings and tokens that are remembered
DOCUMENT = "-DOCSTART-"  # a line that begins with it begins a document


def read_columns(
    source: FileToRead,
    *,
    x: int | Sequence[int] | None = None,
    y: int | None = -1,
    separator: str | None = None,
    comments: str | None = None,
    encoding: str = "utf-8",
    unknown: str | None = None,
) -> tuple[list[list[Any]], Any]:
    r"""Read sentences and their tags from a column file.

    Blank lines separate sentences; lines that begin with -DOCSTART- are left out, and begin a document. All others must
    have the same number of columns, else an error names the file and the line.

    Parameters
    ----------
    source : path or open file
    x : int or list of ints, default=None
        The columns of tokens, counted from 0 or, if negative, from the end; None takes all but `y`.
    y : int, default=-1
        The column of tags; None if there is none.
    separator : str, default=None
        What separates columns; None takes any spaces and tabs.
    comments : str, default=None
        What comments begin with, such as "#"; by default there are none, for a token may be a "#".
    encoding : str, default="utf-8"
    unknown : str, default=None
        The tag, such as "UNK", that stands where the tag is not known: y has None there.

    Returns
    -------
    X : list of sentences, lists of words where tokens have one column, else of tuples of columns
        It is a `Corpus`, which knows their documents, if the file has any.
    y : list of lists of tags, or None

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_columns
    >>> X, y = read_columns(io.StringIO("He PRP B-NP\nran VBD B-VP\n\nStop VB B-VP\n"))
    >>> X, y
    ([[('He', 'PRP'), ('ran', 'VBD')], [('Stop', 'VB')]], [['B-NP', 'B-VP'], ['B-VP']])
    """
    lines = Lines(source, encoding)
    found = parse_columns(lines, separator, comments, lambda width, _: _choose(x, y, width, lines.name))
    sentences = [sentence for sentence in found if sentence is not None]
    tags = None if y is None else replace_unknown([sentence.tags or [] for sentence in sentences], unknown)
    return gather(sentences), tags


def parse_columns(
    lines: Lines,
    separator: str | None,
    comments: str | None,
    choose: Callable[[int, int], tuple[int | Sequence[int], int | None]],
) -> Iterator[Parsed | None]:
    """The sentences, one by one; None where there may be none for some time.

    `choose` says, of the number of columns and that of the first line, which column, or tuple of columns, is that of
    tokens, and which that of tags.
    """
    kept: dict[Any, Any] = {}  # words, tags and tokens come again and again: one copy of each is enough
    width = first = document = 0
    sentence: Any = None
    chosen: Any = None
    for number, line in lines:
        if line is None:
            yield None
            continue
        if not line or line.isspace():
            if sentence is not None:
                yield sentence
                sentence = None
                if len(kept) > MOST_KEPT:
                    kept.clear()
            continue
        if comments and line.startswith(comments):
            continue
        fields = split_fields(line) if separator is None else line.split(separator)
        if fields[0] == DOCUMENT:
            document += 1
            continue
        if not first:
            first, width = number, len(fields)
            chosen, tag = choose(width, number)
            is_single = isinstance(chosen, int)
        if len(fields) != width:
            lines.fail(number, f"it has {count_of(len(fields), 'column')}, but line {first} has {width}")
        if sentence is None:
            sentence = Parsed([], None if tag is None else [], array("i"), document)
        token = fields[chosen] if is_single else tuple([fields[k] for k in chosen])
        if token not in kept:
            kept[token] = token if is_single else tuple([kept.setdefault(field, field) for field in token])
        sentence.tokens.append(kept[token])
        sentence.numbers.append(number)
        if tag is not None:
            if not fields[tag]:
                lines.fail(number, f"the tag, column {tag}, is empty")
            sentence.tags.append(kept.setdefault(fields[tag], fields[tag]))
    lines.check_any(first, "sentence")
    if sentence is not None:
        yield sentence


def split_fields(line: str) -> list[str]:
    """What is between spaces and tabs, not between other blanks, which may be part of a word."""
    fields = line.split("\t" if "\t" in line else " ")
    if "" in fields or ("\t" in line and " " in line):
        return re.split("[ \t]+", line.strip(" \t"))
    return fields


def _choose(x: int | Sequence[int] | None, y: int | None, width: int, name: str) -> tuple[int | list[int], int | None]:
    """The columns of tokens, a number for a single one, and that of tags."""

    def column(k: int, argument: str) -> int:
        if not isinstance(k, int) or not -width <= k < width:
            raise ValueError(f"{argument} names the column {k!r}, but {name} has {width}, from 0 to {width - 1}.")
        return k % width

    tag = None if y is None else column(y, "y")
    if x is None:
        others = [k for k in range(width) if k != tag]
        if not others:
            raise ValueError(f"{name} has one column, of tags: pass y=None if it is one of words.")
        return others[0] if len(others) == 1 else others, tag
    chosen = column(x, "x") if isinstance(x, int) else [column(k, "x") for k in x]
    if tag in (chosen if isinstance(chosen, list) else [chosen]):
        raise ValueError(f"x names the column {tag} of {name}, which is y, that of the tags.")
    return chosen, tag


def write_columns(target: FileToWrite, *columns: Sequence[Sequence[str | Sequence[str]]], separator: str = " ") -> None:
    r"""Write sentences to a column file: a token per line, a blank line after each sentence.

    ``write_columns(path, X, y, model.predict(X))`` writes what conlleval reads.

    Parameters
    ----------
    target : path or open text file
    columns
        Lists of sentences; their tokens are strings or, for several columns, tuples of strings.
    separator
        What to put between columns.

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import write_columns
    >>> write_columns(sys.stdout, [["He", "ran"]], [["B-NP", "B-VP"]])
    He B-NP
    ran B-VP
    <BLANKLINE>
    """
    if len({len(column) for column in columns}) != 1:
        raise ValueError("columns must be lists of the same number of sentences.")
    write_lines(target, _rows(columns, separator))


def _rows(columns: Sequence[Sequence[Sequence[str | Sequence[str]]]], separator: str) -> Iterator[str]:
    for i, parts in enumerate(zip(*columns, strict=True)):
        if len({len(part) for part in parts}) != 1:
            raise ValueError(f"Sentence {i} has {', '.join(str(len(part)) for part in parts)} tokens in its columns.")
        for t, cells in enumerate(zip(*parts, strict=True)):
            fields = [field for cell in cells for field in (cell if isinstance(cell, (tuple, list)) else (cell,))]
            for field in fields:
                if not isinstance(field, str) or not field or re.search(rf"[{re.escape(separator)}\r\n]", field):
                    wanted = "a string without line ends and separators, not empty"
                    raise ValueError(f"Token {t} of sentence {i} has {quote(field)}, but a column must be {wanted}.")
            yield separator.join(fields)
        yield ""
