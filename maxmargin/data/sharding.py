"""Shards: examples in portions, of which one is in memory at a time."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np

from maxmargin.checks import check_count
from maxmargin.data.shard_files import ShardFolder, read_manifest, read_shard
from maxmargin.persist.files import Location
from maxmargin.text.sentence_files.documents import cut_document
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.wording import count_of, quote

SENTENCES = 10_000  # of a shard, unless said otherwise: some 200,000 words


class Shard(NamedTuple):
    """The examples of a shard, and their true outputs, None if there are none."""

    X: Any
    y: Any = None


class Shards(Sequence[Shard]):
    """Examples in portions, for data beyond memory: one shard is read, encoded and trained on after the other.

    Every `fit` takes shards in place of X and y. Those in a folder are opened by its path; `write`, `from_files` and
    `from_arrow` fill one. Without a folder of your own, shards are in a temporary one, which goes away with the shards.

    Parameters
    ----------
    folder
        A folder that was written by one of these methods.

    Attributes
    ----------
    n_examples : int
        The number of examples in all shards.
    readers : list of functions
        Each reads a shard.
    layout : Layout or None
        Where the files of sentences had tokens and tags, if the shards were read from such.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainSVM, Shards
    >>> chunks = (([np.eye(2)[labels]], [labels]) for labels in ([0, 1], [1, 1, 0], [0, 0]))
    >>> shards = Shards.write(chunks, "toy.shards")
    >>> len(shards), shards.n_examples
    (3, 3)
    >>> ChainSVM(random_state=0).fit(Shards("toy.shards")).predict([np.eye(2)])
    [array([0, 1])]
    """

    _whole: Shards | None = None  # whose folder may be a temporary one, and stays as long as these do

    def __init__(self, folder: Location) -> None:
        if not isinstance(folder, (str, PathLike)):
            raise TypeError(f"folder must be one of shards, not {quote(folder)}: Shards.write makes it of pairs.")
        shards, more = read_manifest(folder)
        self.readers: Sequence[Callable[[], Shard]] = [partial(_read_stored, folder, shard) for shard in shards]
        self._sizes: list[int | None] = [shard["examples"] for shard in shards]
        self.folder: Path | None = Path(folder)
        self.layout = None if more is None else Layout(**more)

    @classmethod
    def _make_of(
        cls, readers: Sequence[Callable[[], Shard]], sizes: list[int | None], like: Shards | None = None
    ) -> Self:
        shards = cls.__new__(cls)
        shards.readers, shards._sizes = readers, sizes
        shards.folder, shards.layout = (None, None) if like is None else (like.folder, like.layout)
        shards._whole = like
        return shards

    @classmethod
    def write(cls, chunks: Iterable[tuple[object, object]], folder: Location | None = None) -> Self:
        """Write each chunk, a pair (X, y), to a shard of its own, so that no more than one need be in memory.

        Parameters
        ----------
        chunks
            Pairs as `fit` takes them, of one iterator or list; y may be None where it is only predicted.
        folder
            A new folder, or an empty one; by default a temporary one.
        """
        return cls._write(chunks, folder)

    @classmethod
    def _write(
        cls,
        chunks: Iterable[tuple[object, object]],
        folder: Location | None,
        find_layout: Callable[[], Layout] | None = None,
    ) -> Self:
        if isinstance(chunks, (str, bytes)) or not isinstance(chunks, Iterable):
            raise TypeError(f"chunks must be pairs of X and y, not {quote(chunks)}.")
        is_temporary = folder is None
        target = ShardFolder(tempfile.mkdtemp(prefix="maxmargin-shards-") if folder is None else folder)
        target.existed &= not is_temporary
        has_y = True
        try:
            for k, chunk in enumerate(chunks):
                X, y = check_portion(chunk, f"Shard {k}")
                has_y = y is not None if k == 0 else has_y
                if has_y != (y is not None):
                    raise ValueError(f"Shard {k} has {'no y' if has_y else 'y'}, unlike shard 0.")
                target.add(X, y, count_examples(X))
            if not target.shards:
                raise ValueError("Shards need examples, but there are none.")
            target.end(None if find_layout is None else vars(find_layout()))
        except BaseException:
            target.remove()
            raise
        shards = cls(target.path)
        if is_temporary:
            weakref.finalize(shards, shutil.rmtree, target.path, ignore_errors=True)
        return shards

    @classmethod
    def cut(cls, X: Sequence[object], y: Sequence[object] | None = None, *, n_shards: int) -> Self:
        """Cut lists, or arrays, that are in memory into shards of about the same number of examples.

        Parameters
        ----------
        X, y
            As in `fit`.
        n_shards
            The number of shards.
        """
        check_count("n_shards", n_shards)
        n = count_examples(X)
        if n < n_shards or (y is not None and count_examples(y) != n):
            raise ValueError(f"X has {count_of(n, 'example')}: too few for {n_shards} shards, or not as many as y.")
        ends = np.linspace(0, n, n_shards + 1).astype(int).tolist()
        bounds = [*pairwise(ends)]
        read = [partial(lambda lo, hi: Shard(X[lo:hi], None if y is None else y[lo:hi]), lo, hi) for lo, hi in bounds]
        return cls._make_of(read, [hi - lo for lo, hi in bounds])

    @classmethod
    def from_files(
        cls,
        files: Iterable[Location],
        layout: Layout | None = None,
        *,
        folder: Location | None = None,
        size: int = SENTENCES,
        needs_tags: bool = True,
    ) -> Self:
        """Read files of tagged sentences, one after the other, which may be compressed.

        Parameters
        ----------
        files
            Paths of files that `maxmargin.text.read_document` reads, all of one layout.
        layout
            Where they have their tokens and tags; by default that of the format of the first one.
        folder
            A new folder for the shards, or an empty one; by default a temporary one.
        size
            The largest number of sentences of a shard; documents that lines of -DOCSTART- begin stay whole.
        needs_tags
            Whether files without tags are an error.
        """
        check_count("size", size)
        paths = [files] if isinstance(files, str | Path) else [*files]
        if not paths:
            raise ValueError("Shards need at least one file, but there is none.")
        seen: list[Layout] = []

        def chunks() -> Iterator[tuple[object, object]]:
            for path in paths:
                for document in cut_document(path, seen[0] if seen else layout, size, needs_tags=needs_tags):
                    seen[:] = seen or [document.layout]
                    yield document.X, document.y

        return cls._write(chunks(), folder, lambda: seen[0])

    @classmethod
    def from_arrow(
        cls,
        source: object,
        x: str | Sequence[str],
        y: str | None = None,
        *,
        folder: Location | None = None,
        size: int = SENTENCES,
    ) -> Self:
        """Read tables of Arrow, or files of Parquet, with an example in each row; needs the extra `arrow`.

        Parameters
        ----------
        source
            A ``pyarrow.Table``, a reader of record batches, or paths of Parquet files.
        x
            The column of the examples, such as lists of words; several columns make tuples of a word and tags.
        y
            The column of their true outputs.
        folder
            A new folder for the shards, or an empty one; by default a temporary one.
        size
            The largest number of examples of a shard.
        """
        from maxmargin.data.arrow_tables import read_chunks  # which few need

        check_count("size", size)
        return cls.write(read_chunks(source, x, y, size), folder)

    @property
    def n_examples(self) -> int:
        """The number of examples in all shards."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """The number of examples in each shard."""
        for k, size in enumerate(self._sizes):
            if size is None:
                self._sizes[k] = count_examples(self[k].X)
        return [size or 0 for size in self._sizes]

    def __len__(self) -> int:
        """The number of shards."""
        return len(self.readers)

    @overload
    def __getitem__(self, k: int) -> Shard: ...
    @overload
    def __getitem__(self, k: slice) -> Shards: ...
    def __getitem__(self, k: int | slice) -> Shard | Shards:
        if isinstance(k, slice):
            return self._make_of(self.readers[k], self._sizes[k], like=self)
        return self.readers[k]()

    def __iter__(self) -> Iterator[Shard]:
        return (read() for read in self.readers)

    def __repr__(self) -> str:
        return f"<Shards: {count_of(len(self), 'shard')}, {count_of(self.n_examples, 'example')}>"

    def map(self, change: Callable[..., Shard], *values: Sequence[object]) -> Shards:
        """The same shards, each changed whenever it is read, by a function of it and its own of each of the values."""
        own = [*zip(*values, strict=True)] or [()] * len(self)
        readers = [partial(_read_changed, change, *both) for both in zip(self.readers, own, strict=True)]
        return self._make_of(readers, self._sizes, like=self)


def _read_changed(change: Callable[..., Shard], read: Callable[[], Shard], values: Sequence[object]) -> Shard:
    return change(read(), *values)


def _read_stored(folder: Location, shard: dict[str, object]) -> Shard:
    return Shard(*read_shard(folder, shard))


def check_portion(portion: object, name: str) -> tuple[object, object]:
    """X and y of a portion, which messages call by a name."""
    if not (isinstance(portion, (tuple, list)) and len(portion) == 2):
        raise TypeError(f"{name} must be a pair of X and y, not {quote(portion)}.")
    X, y = (value.tolist() if hasattr(value, "iloc") and value.ndim == 1 else value for value in portion)
    X, y = ([*value] if isinstance(value, Iterator) else value for value in (X, y))
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        raise TypeError(f"X of {name[0].lower()}{name[1:]} must be a list or an array of examples, not {quote(X)}.")
    if not count_examples(X):
        raise ValueError(f"{name} holds no examples.")
    if y is not None and count_examples(y) != count_examples(X):
        raise ValueError(f"{name} has {count_of(count_examples(X), 'example')} in X, but {count_examples(y)} in y.")
    return X, y


def count_examples(X: Any) -> int:
    """The number of examples."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
