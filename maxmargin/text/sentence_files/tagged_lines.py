"""Lines of files with other tags: in one more column, in that of the tags (CoNLL-U), or in a field of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from maxmargin.text.sentence_files.columns import DOCUMENT
from maxmargin.text.sentence_files.conllu import Word
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.sentence_files.json_lines import dump_record

PREDICTED = "predicted"  # the field of predictions in JSON lines that have tags


def tag_columns(
    layout: Layout, lines: Sequence[str], tags: Iterable[str], shares: Iterable[float] | None = None
) -> Iterator[str]:
    """Lines of columns with a tag in one more column, and its probability in another."""
    separators = [layout.separator or ""] * len(lines)
    if layout.separator is None:
        lines = [*map(str.rstrip, lines, repeat(" \t"))]
        separators = ["\t" if "\t" in line else " " for line in lines]
    last = () if shares is None else (separators, map("{:.4f}".format, shares))
    return map("".join, zip(lines, separators, tags, *last, strict=True))


def first_lines(lines: Sequence[str], places: Sequence[int]) -> list[int]:
    """Where lines are that begin documents, and have several columns, given where those of tokens are."""
    is_other = np.ones(len(lines), bool)
    is_other[np.array(places, np.int64)] = False
    found = ((k, lines[k]) for k in np.flatnonzero(is_other).tolist())
    return [k for k, line in found if line.startswith(DOCUMENT) and len(line.split()) > 1]


def tag_records(
    layout: Layout, lines: Sequence[str], tags: Iterable[Any], shares: Iterable[Any] | None = None
) -> Iterator[str]:
    """Lines of words in CoNLL-U with their tags, or lines of JSON with those of a sentence each."""
    for line, tag, share in zip(lines, tags, repeat(None) if shares is None else shares, strict=False):
        if layout.format == "conllu":
            fields = line.split("\t")
            fields[Word._fields.index(layout.y)] = tag
            yield "\t".join(fields)
            continue
        record = json.loads(line)
        record[PREDICTED if layout.y in record else layout.y] = [*tag]
        yield dump_record(record if share is None else {**record, "probabilities": share})
