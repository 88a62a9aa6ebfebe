"""Rows of portions that are read twice: what was read while names were learned is kept, out of memory.

Names that other portions add come after those that are known, so that the columns of rows stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import scipy.sparse as sp

from maxmargin.encode.inputs.rows import Rows
from maxmargin.persist.spilled import Spilled, SpillFile


class KeptRows:
    """The rows of a portion, by the order in which they are asked for.

    Parameters
    ----------
    home
        Where they are to be.
    """

    def __init__(self, home: SpillFile) -> None:
        self.home, self.rows = home, list[Spilled]()


_kept: ContextVar[tuple[KeptRows, Iterator[Spilled] | None] | None] = ContextVar("_kept", default=None)


@contextmanager
def keeping_rows(kept: KeptRows | None, *, again: bool = False) -> Iterator[None]:
    """A context in which rows of a portion are kept or, when it is read again, taken from there."""
    token = _kept.set(None if kept is None else (kept, iter(kept.rows) if again else None))
    try:
        yield
    finally:
        _kept.reset(token)


def put_rows(rows: Rows | None) -> None:
    """Keep rows that have no dense columns; None where they must be read again."""
    found = _kept.get()
    if found is not None and found[1] is None:
        parts = rows and ((rows.matrix.data, rows.matrix.indices, rows.matrix.indptr), rows.starts)
        found[0].rows.append(found[0].home.put(parts))


def take_rows(width: int | None) -> Rows | None:
    """The rows that were kept, with so many columns; None if there are none, or no columns are known."""
    found = _kept.get()
    if found is None or found[1] is None:
        return None
    parts: Any = next(found[1]).load()
    if parts is None or width is None:
        return None
    (data, indices, indptr), starts = parts
    return Rows(sp.csr_array((data, indices, indptr), (len(indptr) - 1, width)), starts)
