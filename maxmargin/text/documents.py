"""Files of sentences in any format: what is in them, on which line, and how to write them again with other tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from maxmargin.checks import check_choice, shown
from maxmargin.persist.registry import register
from maxmargin.text.columns import parse_columns
from maxmargin.text.conllu import Word, parse_conllu
from maxmargin.text.files import Lines
from maxmargin.text.json_lines import parse_json_lines

SUFFIXES = {".conllu": "conllu", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
DEFAULTS: dict[str, tuple[Any, Any]] = {"columns": (None, -1), "conllu": ("form", "upos"), "json": ("tokens", "tags")}
PREDICTED = "predicted"  # the field of predictions in JSON lines that have tags


@register
@dataclass(frozen=True)
class Layout:
    """Where a file has its tokens and their tags.

    Parameters
    ----------
    format : {"columns", "conllu", "json"}
    x : what tokens are made of: numbers of columns, names of columns of CoNLL-U, such as "form", or the field of JSON
        lines. Several make tuples. By default all columns but y, "form", or "tokens"
    y : the column or field of tags; by default the last column, "upos", or "tags"
    width : the number of columns, which the layout of a file that was read has
    separator, comments : as in `read_columns`
    encoding : of the file

    Examples
    --------
    >>> from maxmargin.text import Layout
    >>> Layout("conllu", x=("form", "xpos")).y
    'upos'
    """

    format: str = "columns"
    x: Any = None
    y: Any = None
    width: int | None = None
    separator: str | None = None
    comments: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        check_choice("format", self.format, DEFAULTS)
        for name, default in zip("xy", DEFAULTS[self.format], strict=True):
            value = _simplest(getattr(self, name))
            object.__setattr__(self, name, default if value is None else value)
        kinds = {"columns": "numbers", "conllu": f"of {', '.join(Word._fields)}", "json": "names of fields, one each"}
        for name in [*_several(self.x), *_several(self.y)]:
            is_known = isinstance(name, int if self.format == "columns" else str)
            if not is_known or (self.format == "conllu" and name not in Word._fields):
                raise ValueError(f"Columns must be {kinds[self.format]}, not {shown(name)}.")
        if isinstance(self.y, tuple) or (self.format == "json" and isinstance(self.x, tuple)):
            raise ValueError(
                f"Columns must be {kinds['json']}, not {shown(self.y if self.format != 'json' else self.x)}."
            )


def _simplest(value: Any) -> Any:
    """Lists as tuples, and a list of one as what it holds."""
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else tuple(value)
    return value


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def find_format(name: Any) -> str:
    """The format of a file by the end of its name: "conllu", "json" or, of all others, "columns".

    Examples
    --------
    >>> from maxmargin.text import find_format
    >>> find_format("train.jsonl"), find_format("train.txt")
    ('json', 'columns')
    """
    return SUFFIXES.get(Path(str(name)).suffix.lower(), "columns")


@dataclass(frozen=True)
class Document:
    """The sentences of a file.

    Attributes
    ----------
    name : of the file
    layout : where it has its tokens and tags
    X : list of sentences, lists of words or tuples
    y : list of lists of tags; None if it has none
    numbers : for each sentence the numbers of the lines of its tokens, or that of the line it is in
    lines : all lines
    """

    name: str
    layout: Layout
    X: list[list[Any]]
    y: list[list[Any]] | None
    numbers: list[Sequence[int]]
    lines: list[str]

    def where(self, i: int, t: int = 0) -> str:
        """The file and the line of token t of sentence i."""
        numbers = self.numbers[i]
        return f"{self.name}, line {numbers[min(t, len(numbers) - 1)]}"

    def tagged(self, y: Iterable[Any], probabilities: Iterable[Any] | None = None) -> Iterator[str]:
        """The lines with other tags: in one more column, in that of y (CoNLL-U), or in a field of JSON lines.

        That field is y or, where there are tags there already, "predicted". Probabilities of the tags, if given, are in
        a column of their own, or in the field "probabilities"; CoNLL-U has no place for them.
        """
        is_json = self.layout.format == "json"
        shares = repeat(None) if probabilities is None else probabilities
        rows: Iterable[Any] = zip(y, shares, strict=False)
        if not is_json:
            rows = (
                (tag, p) for tags, ps in rows for tag, p in zip(tags, repeat(None) if ps is None else ps, strict=False)
            )
        new = dict(zip(chain.from_iterable(self.numbers), rows, strict=True))
        last = len(self.lines) - (self.lines[-1] == "")
        for number, line in enumerate(self.lines[:last], start=1):
            yield self._with(line, *new[number]) if number in new else line

    def _with(self, line: str, tags: Any, shares: Any) -> str:
        if self.layout.format == "columns":
            start, separator = line, self.layout.separator
            if separator is None:
                start, separator = line.rstrip(" \t"), "\t" if "\t" in line else " "
            return separator.join([start, str(tags), *([] if shares is None else [f"{shares:.4f}"])])
        if self.layout.format == "conllu":
            fields = line.split("\t")
            fields[Word._fields.index(self.layout.y)] = tags
            return "\t".join(fields)
        field = self.layout.y if self.y is None else PREDICTED
        record = {**json.loads(line), field: [*tags]}
        return json.dumps(record if shares is None else {**record, "probabilities": shares}, ensure_ascii=False)


def read_document(
    source: Any, layout: Layout | None = None, *, needs_tags: bool = True, name: str | None = None
) -> Document:
    r"""Read a file of sentences.

    Parameters
    ----------
    source : path or open file
    layout : where it has its tokens and tags; by default that of its format, which the end of its name tells. That of
        an earlier document demands as many columns as that had, or one less where the last, of tags, is missing
    needs_tags : whether a file without tags is an error
    name : what messages call the file; by default its own name

    Returns
    -------
    Document

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_document
    >>> document = read_document(io.StringIO("He B-NP\nran B-VP\n"))
    >>> document.X, document.y, document.layout.width
    ([['He', 'ran']], [['B-NP', 'B-VP']], 2)
    >>> [*document.tagged([["B-NP", "O"]])]
    ['He B-NP B-NP', 'ran B-VP O']
    """
    if layout is None:
        layout = Layout(find_format(getattr(source, "name", source)))
    lines = Lines(source, layout.encoding, name)
    read = {"columns": _read_columns, "conllu": _read_conllu, "json": _read_json}[layout.format]
    return read(lines, layout, needs_tags)


def _read_columns(lines: Lines, layout: Layout, needs_tags: bool) -> Document:
    chosen = layout

    def choose(width: int, number: int) -> tuple[Any, int | None]:
        nonlocal chosen
        whole = width if layout.width is None else layout.width
        has_tags = width == whole
        if not has_tags and (needs_tags or (width, layout.y) != (whole - 1, whole - 1)):
            lines.fail(number, f"there are {width} columns, but {whole} were expected")
        y = _column(layout.y, whole, lines.name)
        x = _simplest([k for k in range(whole) if k != y]) if layout.x is None else layout.x
        if x == ():
            raise ValueError(f"{lines.name} has one column only: tokens need one, and tags another.")
        x = _simplest([_column(k, whole, lines.name) for k in _several(x)])
        chosen = replace(layout, x=x, y=y, width=whole)
        return x, y if has_tags else None

    X, y, numbers = parse_columns(lines, layout.separator, layout.comments, choose)
    return Document(lines.name, chosen, X, y, numbers, lines.lines)


def _column(k: int, width: int, name: str) -> int:
    if not -width <= k < width:
        raise ValueError(f"Column {k} was asked for, but {name} has {width}, from 0 to {width - 1}.")
    return k % width


def _read_conllu(lines: Lines, layout: Layout, needs_tags: bool) -> Document:
    sentences, numbers = parse_conllu(lines)
    X = [
        [*zip(*(sentence.column(name) for name in layout.x), strict=True)]
        if isinstance(layout.x, tuple)
        else sentence.column(layout.x)
        for sentence in sentences
    ]
    tags = [sentence.column(layout.y) for sentence in sentences]
    has_tags = any(tag != "_" for row in tags for tag in row)
    if needs_tags and not has_tags:
        raise ValueError(f"{lines.name} has no tags in its column {layout.y!r}.")
    return Document(lines.name, layout, X, tags if has_tags else None, numbers, lines.lines)


def _read_json(lines: Lines, layout: Layout, needs_tags: bool) -> Document:
    X: list[list[Any]] = []
    records, numbers = parse_json_lines(lines, layout.x, layout.y, needs_tags)
    for record, number in zip(records, numbers, strict=True):
        X.append([tuple(token) if isinstance(token, list) else token for token in record[layout.x]])
        for token in X[-1]:
            parts = token if isinstance(token, tuple) else (token,)
            if not parts or not all(isinstance(part, str) for part in parts):
                lines.fail(number, f"tokens must be strings or lists of strings, not {shown(token)}")
            if len(parts) != len(_several(X[0][0])):
                lines.fail(
                    number, f"{shown(token)} has {len(parts)} strings, but the first token {len(_several(X[0][0]))}"
                )
    has_tags = all(layout.y in record for record in records)
    tags = [record[layout.y] for record in records] if has_tags else None
    return Document(lines.name, layout, X, tags, [[number] for number in numbers], lines.lines)
