"""Tables of Arrow and files of Parquet, as chunks of examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING

from maxmargin.wording import quote

if TYPE_CHECKING:
    import pyarrow as pa


def read_chunks(
    source: object, x: str | Sequence[str], y: str | None, size: int
) -> Iterator[tuple[list[object], list[object] | None]]:
    """Pairs (X, y) of `size` rows at most, one example each."""
    columns = [x] if isinstance(x, str) else [*x]
    wanted = columns if y is None else [*columns, y]
    for batch in _batches(source, wanted, size):
        for name in wanted:
            if name not in batch.schema.names:
                raise ValueError(f"There is no column {name!r}, only {', '.join(batch.schema.names)}.")
        rows = [batch.column(name).to_pylist() for name in columns]
        X = rows[0] if isinstance(x, str) else [[*zip(*lists, strict=True)] for lists in zip(*rows, strict=True)]
        if X:
            yield X, None if y is None else batch.column(y).to_pylist()


def _batches(source: object, columns: list[str], size: int) -> Iterator[pa.RecordBatch]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Tables of Arrow and files of Parquet need Arrow: pip install 'maxmargin[arrow]'.") from None
    paths = [source] if isinstance(source, str | PathLike) else source
    if isinstance(paths, Sequence) and all(isinstance(path, str | PathLike) for path in paths):
        for path in paths:
            with pq.ParquetFile(path) as file:
                known = [name for name in columns if name in file.schema_arrow.names]
                yield from file.iter_batches(size, columns=known)
    elif isinstance(source, pa.Table):
        yield from source.to_batches(max_chunksize=size)
    elif isinstance(source, pa.RecordBatchReader):
        for batch in source:
            starts = [*range(0, len(batch), size), len(batch)]
            yield from (batch.slice(lo, hi - lo) for lo, hi in pairwise(starts))
    else:
        raise TypeError(f"source must be a pyarrow.Table, a RecordBatchReader or paths of files, not {quote(source)}.")
