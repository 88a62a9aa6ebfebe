"""CoNLL column files: a token per line, its word and tags in columns, and a blank line between sentences."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeVar

from maxmargin.garbage import no_garbage_collection
from maxmargin.text.partial_tags import replace_unknown
from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, Parsed, gather, write_lines
from maxmargin.wording import count_of, quote

MOST_KEPT = 1_000_000  # strings and tokens that are remembered
DOCUMENT = "-DOCSTART-"  # a line that begins with it begins a document

# From the number of columns, and that of the first line, to the columns of tokens and tags: see `parse_columns`.
Chooser = Callable[[int, int], tuple[int | Sequence[int], int | None]]

T = TypeVar("T")


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
    with no_garbage_collection:
        sentences = [sentence for sentence in found if sentence is not None]
    tags = None if y is None else replace_unknown([sentence.tags or [] for sentence in sentences], unknown)
    return gather(sentences), tags


def parse_columns(
    lines: Lines, separator: str | None, comments: str | None, choose: Chooser
) -> Iterator[Parsed | None]:
    """The sentences, one by one; None where there may be none for some time.

    `choose` says, of the number of columns and that of the first line, which column, or tuple of columns, is that of
    tokens, and which that of tags.
    """
    parser = SentenceParser(lines, separator, comments, choose)
    rest, n_before = list[str](), 0  # lines whose sentence has not ended, and how many there are before
    for batch in lines.batches():
        ends, begin = [len(rest) + k for k, line in enumerate(batch) if not line or line.isspace()], 0
        rest += batch
        for end in ends:
            if begin < end:
                lines.number = n_before + end + 1
                yield from parser.parse(rest[begin:end], n_before + begin + 1)
            begin = end + 1
        del rest[:begin]
        n_before += begin
        lines.number = n_before + len(rest)
        yield None
    yield from parser.parse(rest, n_before + 1)
    lines.check_any(parser.first, "sentence")


class SentenceParser:
    """Makes sentences of the lines of columns between blank ones."""

    def __init__(self, lines: Lines, separator: str | None, comments: str | None, choose: Chooser) -> None:
        self.lines, self.separator, self.comments, self.choose = lines, separator, comments, choose
        self.kept: dict[Any, Any] = {}  # words, tags and tokens come again and again: one copy of each is enough
        self.first = self.width = 0
        self.n_documents = self.document = 0  # that have begun, by now and where the sentence begins
        self.chosen: list[int] = []
        self.tag: int | None = None

    def parse(self, part: list[str], number: int) -> Iterator[Parsed]:
        """The sentence of lines, if there is one in them; that of the first has a number."""
        if len(self.kept) > MOST_KEPT:
            self.kept.clear()
        self.document = self.n_documents
        fields, numbers = self._split_alike(part), array("i", range(number, number + len(part)))
        if fields is None:
            fields, numbers = self._split_each(part, number)
        if not numbers:
            return
        columns = [self._keep_one(fields[k :: self.width]) for k in self.chosen]
        tokens = columns[0] if self.is_single else self._keep_one([*zip(*columns, strict=True)])
        tags = None if self.tag is None else self._keep_one(fields[self.tag :: self.width])
        if tags is not None and "" in tags:
            self.lines.fail(numbers[tags.index("")], f"the tag, column {self.tag}, is empty")
        yield Parsed(tokens, tags, numbers, self.document)

    def _keep_one(self, values: list[T]) -> list[T]:
        return [*map(self.kept.setdefault, values, values)]

    def _split_alike(self, part: list[str]) -> list[str] | None:
        """The fields of lines, one after the other, where all are tokens of as many columns, simply separated."""
        between = self.separator or ("\t" if part and "\t" in part[0] else " ")
        text = between.join(part)
        if not self.first or DOCUMENT in text or (self.comments and self.comments in text):
            return None
        if {*map(str.count, part, repeat(between))} != {self.width - 1}:
            return None
        fields = text.split(between)
        if self.separator is None and ("" in fields or (" " if between == "\t" else "\t") in text):
            return None
        return fields

    def _split_each(self, part: list[str], number: int) -> tuple[list[str], array[int]]:
        """The fields of lines that are tokens, one after the other, and the numbers of these lines."""
        found, numbers = list[str](), array("i")
        for k, line in enumerate(part, start=number):
            if self.comments and line.startswith(self.comments):
                continue
            fields = split_fields(line) if self.separator is None else line.split(self.separator)
            if fields[0] == DOCUMENT:
                self.n_documents += 1
                continue
            if not self.first:
                self.first, self.width = k, len(fields)
                chosen, self.tag = self.choose(self.width, k)
                self.is_single = isinstance(chosen, int)
                self.chosen = [chosen] if isinstance(chosen, int) else [*chosen]
            if len(fields) != self.width:
                wanted = f"line {self.first} has {self.width}"
                self.lines.fail(k, f"it has {count_of(len(fields), 'column')}, but {wanted}")
            if not numbers:
                self.document = self.n_documents
            found += fields
            numbers.append(k)
        return found, numbers


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
