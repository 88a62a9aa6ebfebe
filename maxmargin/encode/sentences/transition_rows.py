"""Features of transitions: a row for each two neighbours of a sequence, beside the rows of its positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.inputs.rows import Rows, stack_rows
from maxmargin.encode.names.named_rows import have_names
from maxmargin.encode.names.vocabulary import Vocabulary, known_by_name, learn_names
from maxmargin.text.token_features.named_features import find_edges
from maxmargin.wording import count_of


def learn_transitions(
    X: object, edge_features: object, lengths: np.ndarray, *, min_count: int, n_hashed: int | None
) -> tuple[Vocabulary | None, Rows | None]:
    """The vocabulary of the features of transitions to train on, and their rows; None where there are none.

    Sequences X, of these lengths, may know the features of their transitions themselves.
    """
    given = _find(X, edge_features)
    if given is None:
        return None, None
    options = {"min_count": min_count, "n_hashed": n_hashed}
    vocabulary, rows = learn_given("edge_features", given, _stack, **options)
    return vocabulary, _check(rows, lengths)


def read_transitions(
    X: object, edge_features: object, lengths: np.ndarray, vocabulary: Vocabulary | None, width: int
) -> Rows | None:
    """The rows of transitions as a model knows them: those of so many features, or None."""
    given = _find(X, edge_features)
    if (given is None) != (width == 0):
        with_or_without = "without" if width == 0 else f"with {count_of(width, 'feature')} of transitions"
        was_given = "are missing" if given is None else "are there"
        raise ValueError(f"edge_features {was_given}, but the model was fitted {with_or_without}.")
    if given is None:
        return None
    return _check(read_given("edge_features", given, _stack, vocabulary, width), lengths)


def with_constant(rows: Rows) -> Rows:
    """The rows with one more column, the first one, of ones."""
    matrix = rows.matrix
    n_rows = matrix.shape[0]
    if not sp.issparse(matrix):
        return Rows(np.hstack([np.ones((n_rows, 1)), matrix]), rows.starts)
    begins = matrix.indptr[:-1]
    parts = np.insert(matrix.data, begins, 1), np.insert(matrix.indices + 1, begins, 0)
    indptr = matrix.indptr + np.arange(n_rows + 1, dtype=matrix.indptr.dtype)
    return Rows(sp.csr_array((*parts, indptr), (n_rows, 1 + matrix.shape[1])), rows.starts)


def _find(X: object, edge_features: object) -> object:
    carried = find_edges(X)
    if carried is not None and edge_features is not None:
        raise ValueError("edge_features must be None: X has features of transitions already.")
    return carried if edge_features is None else edge_features


def _stack(edges: object, width: int | None) -> Rows:
    """The rows of matrices, of which those of sequences of one position may be anything that is empty."""
    if not isinstance(edges, Sequence):
        raise TypeError(f"X must hold a matrix per sequence, not be a {type(edges).__name__}.")
    is_empty = [edge is None or not (edge.shape[0] if hasattr(edge, "shape") else len(edge)) for edge in edges]
    if width is None and all(is_empty):
        raise ValueError("X must have a row for at least one transition.")
    if width is None:
        width = np.shape(next(edge for edge, empty in zip(edges, is_empty, strict=True) if not empty))[-1]
    none = np.zeros((0, width))
    return stack_rows(
        [none if empty else edge for edge, empty in zip(edges, is_empty, strict=True)], None, width, may_be_empty=True
    )


def learn_given(
    argument: str, given: Any, stack: Callable[[Any, int | None], Rows], **options: Any
) -> tuple[Vocabulary | None, Rows]:
    """The vocabulary of an argument to train on, and its rows; None, and what is stacked, where features have no names.

    See `learn_names` for the options.
    """
    with naming(argument):
        are_named, given = have_names(given)
        return learn_names(given, may_be_empty=True, **options) if are_named else (None, stack(given, None))


def read_given(
    argument: str, given: Any, stack: Callable[[Any, int | None], Rows], vocabulary: Vocabulary | None, width: int
) -> Rows:
    """The rows of an argument as a model knows them: by name, or those of so many features, stacked."""
    with naming(argument):
        return stack(given, width) if vocabulary is None else known_by_name(given, vocabulary, may_be_empty=True)


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Errors name an argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"In {argument}: {error}") from None


def _check(rows: Rows, lengths: np.ndarray) -> Rows:
    expected = np.maximum(lengths - 1, 0)
    if len(rows.lengths) != len(expected):
        raise ValueError(f"edge_features has {len(rows.lengths)} entries, but X has {len(expected)} sequences.")
    is_wrong = rows.lengths != expected
    if is_wrong.any():
        i = int(np.argmax(is_wrong))
        raise ValueError(
            f"edge_features[{i}] must have {count_of(int(expected[i]), 'row')}, one for each transition of X[{i}], "
            f"but has {rows.lengths[i]}."
        )
    return rows._replace(dense=None)
