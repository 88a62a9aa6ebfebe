"""JSON lines: an object per line, with the tokens of a sentence and their tags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, write_lines
from maxmargin.wording import quote

SURROGATES = re.compile("[\ud800-\udfff]")


def read_json_lines(
    source: FileToRead, *, x: str = "tokens", y: str | None = "tags", encoding: str = "utf-8"
) -> tuple[list[list[Any]], Any]:
    r"""Read sequences and their labels from JSON lines.

    Parameters
    ----------
    source : path or open file
    x
        The field of the items of a sequence: words, tuples of columns, feature dictionaries, lists of names.
    y
        The field of labels, strings or integers; None if there is none. A label that is not known is null, one of
        several is a list of these, and a set in y.
    encoding : str, default="utf-8"

    Returns
    -------
    X
        List of lists of items; lists of strings are lists.
    y : list of lists of labels, or None

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_json_lines
    >>> read_json_lines(io.StringIO('{"tokens": ["He", "ran"], "tags": ["O", "O"]}\n'))
    ([['He', 'ran']], [['O', 'O']])
    """
    found = parse_json_lines(Lines(source, encoding), x, y, needs_labels=y is not None)
    records = [pair[0] for pair in found if pair is not None]
    return [record[x] for record in records], None if y is None else [record[y] for record in records]


def parse_json_lines(
    lines: Lines, x: str, y: str | None, needs_labels: bool
) -> Iterator[tuple[dict[str, Any], int] | None]:
    """The objects with the numbers of their lines, one by one; None where there may be none for some time."""
    n_found, types = 0, set[type]()
    for number, line in lines:
        if line is None:
            yield None
            continue
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            lines.fail(number, f"it is not JSON: {error}")
        for field in (x, y):
            is_needed = field == x or needs_labels or (isinstance(record, dict) and field in record)
            if is_needed and not (isinstance(record, dict) and isinstance(record.get(field), list)):
                is_text = isinstance(record, dict) and "text" in record
                hint = "; texts with entities are other formats, such as standoff or doccano" if is_text else ""
                lines.fail(number, f"an object must hold a list {field!r}, but there is {quote(record)}{hint}")
        items, labels = record[x], record.get(y)
        if labels is not None and len(labels) != len(items):
            lines.fail(number, f"{x!r} has {len(items)} entries, but {y!r} has {len(labels)}")
        entries = [label if isinstance(label, list) else [label] for label in labels or () if label is not None]
        types |= {type(label) for entry in entries for label in entry}
        if not types <= {str, int}:
            lines.fail(number, f"{y!r} must hold strings or integers, not {quote(labels)}")
        if len(types) > 1:
            lines.fail(number, f"{y!r} must hold strings in all lines or integers in all, not both: {quote(labels)}")
        if [] in entries:
            lines.fail(number, f"{y!r} holds a list without a label: {quote(labels)}")
        if labels is not None:
            record[y] = [{*label} if isinstance(label, list) else label for label in labels]
        n_found += 1
        yield record, number
    lines.check_any(n_found, "sequence")


def dump_record(record: object) -> str:
    """An object as a line, with letters as they are, unless UTF-8 cannot hold them: halves of surrogate pairs."""
    text = json.dumps(record, ensure_ascii=False)
    return text if text.isascii() or not SURROGATES.search(text) else json.dumps(record)


def write_json_lines(target: FileToWrite, **fields: Sequence[object]) -> None:
    r"""Write sequences to JSON lines, an object with these fields for each of them.

    Parameters
    ----------
    target : path or open text file
    fields : lists of sequences, or arrays, by the name of their field

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import write_json_lines
    >>> write_json_lines(sys.stdout, tokens=[["He", "ran"]], tags=[["PRON", "VERB"]])
    {"tokens": ["He", "ran"], "tags": ["PRON", "VERB"]}
    """
    if len({len(values) for values in fields.values()}) != 1:
        raise ValueError("fields must be lists of the same number of sequences.")
    plain = [[value.tolist() if hasattr(value, "tolist") else value for value in values] for values in fields.values()]
    records = (dict(zip(fields, values, strict=True)) for values in zip(*plain, strict=True))
    write_lines(target, map(dump_record, records))
