"""Segments that have features of their own: a list of (start, end, features) beside the rows of each sequence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.example_checks import check_truths, is_integer
from maxmargin.encode.inputs.rows import Rows, stack_rows
from maxmargin.encode.names.vocabulary import Vocabulary
from maxmargin.encode.sentences.transition_rows import learn_given, read_given
from maxmargin.structures.segments.segment_parts import ListedSegments, list_segments
from maxmargin.text.token_features.named_features import find_listed
from maxmargin.wording import count_of, quote


class ListedRows(NamedTuple):
    """Segments, in their order, and their features, in the same order."""

    segments: ListedSegments
    rows: Rows  # sparse


class Given(NamedTuple):
    """What users have given: where segments begin and end, and their features, as lists for each sequence."""

    spans: list[list[tuple[int, int]]]
    items: list[list[Any]]

    def sort(self, rows: Rows) -> ListedRows:
        """The segments with their features as rows."""
        flat = np.array([*chain.from_iterable(self.spans)], np.int64).reshape(-1, 2)
        segments, order = list_segments(starts_of([*map(len, self.spans)]), flat[:, 0], flat[:, 1])
        return ListedRows(segments, Rows(sp.csr_array(rows.matrix)[order], segments.starts))


def learn_listed(
    X: object, segment_features: object, lengths: np.ndarray, *, min_count: int, n_hashed: int | None
) -> tuple[Vocabulary | None, ListedRows]:
    """The vocabulary of the features of segments to train on, if they have names, and these segments.

    Sequences X, of these lengths, may know the features of their segments themselves.
    """
    given = _read(X, segment_features, lengths)
    if given is None or not any(given.items):
        return None, list_nothing(lengths, 0)
    options = {"min_count": min_count, "n_hashed": n_hashed}
    vocabulary, rows = learn_given("segment_features", given.items, _stack, **options)
    return vocabulary, given.sort(rows)


def read_listed(
    X: object, segment_features: object, lengths: np.ndarray, vocabulary: Vocabulary | None, width: int
) -> ListedRows:
    """The segments of other sequences, with features as a model knows them: so many."""
    given = _read(X, segment_features, lengths)
    if given is None and width > 0:
        fitted_with = count_of(width, "feature")
        raise ValueError(f"segment_features are missing, but the model was fitted with {fitted_with} of segments.")
    if given is None or not any(given.items):
        return list_nothing(lengths, width)
    if width == 0:
        raise ValueError("segment_features are there, but the model was fitted without.")
    return given.sort(read_given("segment_features", given.items, _stack, vocabulary, width))


def list_nothing(lengths: np.ndarray, width: int) -> ListedRows:
    """No segments."""
    return Given([[] for _ in lengths], []).sort(Rows(sp.csr_array((0, width)), np.zeros(len(lengths) + 1, np.int64)))


def list_more(listed: ListedRows, spans: Sequence[Sequence[tuple[int, int]]], lengths: np.ndarray) -> ListedRows:
    """With further segments, whose features are all zero."""
    check_truths(spans, len(lengths), "a list of (start, end, label) per sequence", "sequence", "segments")
    segments, rows = listed
    lists: list[list[tuple[int, int]]] = []
    which: list[int] = []
    for i, more in enumerate(spans):
        own = range(segments.starts[i], segments.starts[i + 1])
        known = [(int(segments.begin[k]), int(segments.end[k])) for k in own]
        asked = {_check_bounds(begin, end, int(lengths[i]), f"segments[{i}]") for begin, end in more}
        new = sorted(asked - {*known})
        lists.append(known + new)
        which += [*own, *[-1] * len(new)]
    empty = sp.csr_array((1, rows.matrix.shape[1]), dtype=rows.matrix.dtype)
    matrix = sp.csr_array(sp.vstack([rows.matrix, empty], format="csr"))[np.array(which, np.int64)]
    return Given(lists, []).sort(Rows(matrix, starts_of([*map(len, lists)])))


def _read(X: object, segment_features: object, lengths: np.ndarray) -> Given | None:
    carried = find_listed(X)
    if carried is not None and segment_features is not None:
        raise ValueError("segment_features must be None: X has features of segments already.")
    found = carried if segment_features is None else segment_features
    if found is None:
        return None
    kind = "a list of (start, end, features) per sequence"
    found = check_truths(found, len(lengths), kind, "sequence", "segment_features")
    spans: list[list[tuple[int, int]]] = []
    items: list[list[Any]] = []
    for i, (row, length) in enumerate(zip(found, lengths.tolist(), strict=True)):
        name = f"segment_features[{i}]"
        spans.append([_check_span(entry, length, name) for entry in row])
        items.append([entry[2] for entry in row])
        if len({*spans[-1]}) < len(spans[-1]):
            twice = next(span for k, span in enumerate(spans[-1]) if span in spans[-1][:k])
            raise ValueError(f"{name} has the segment {twice} twice: put its features together.")
    return Given(spans, items)


def _check_span(entry: object, length: int, name: str) -> tuple[int, int]:
    if not isinstance(entry, (tuple, list)) or len(entry) != 3:
        raise TypeError(f"{name} must be a list of (start, end, features), but holds {quote(entry)}.")
    begin, end, _ = entry
    return _check_bounds(begin, end, length, name)


def _check_bounds(begin: object, end: object, length: int, name: str) -> tuple[int, int]:
    if not (is_integer(begin) and is_integer(end)):
        raise TypeError(f"{name} has a segment from {quote(begin)} to {quote(end)}, which must be integers.")
    if not 0 <= begin < end <= length:
        rows = count_of(length, "row")
        raise ValueError(f"{name} has a segment from {begin} to {end}, but the sequence has {rows}.")
    return int(begin), int(end)


def _stack(items: list[list[ArrayLike]], width: int | None) -> Rows:
    filled = next(row for row in items if row)
    width = np.size(filled[0]) if width is None else width
    none = np.zeros((0, width))
    return stack_rows([np.array(row) if row else none for row in items], None, width, may_be_empty=True)
