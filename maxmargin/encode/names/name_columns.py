"""The columns of names of features: of those that a model knows, or comes to know, and of names that are hashed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count, repeat

MOST_KEPT = 100_000  # names and features whose columns are remembered
DIFFER = "names must differ from each other."
NOWHERE = -1  # the column of names that a model does not know, and of zeros


class Columns(dict):
    """The columns of names: those of training, in the order in which they come; names are added while it grows."""

    def __init__(self, names: Iterable[str] = (), *, grows: bool = False) -> None:
        columns = count()
        super().__init__(zip(names, columns, strict=False))
        if next(columns) != len(self):
            raise ValueError(DIFFER)
        self.grows = grows

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError
        return self.setdefault(name, len(self)) if self.grows else NOWHERE

    def find(self, names: Sequence[str | None]) -> list[int]:
        """The columns of names that are known to be strings; None has none, while it does not grow."""
        return [*(map(self.__getitem__, names) if self.grows else map(self.get, names, repeat(NOWHERE)))]


def make_hash(n_columns: int) -> Callable[[str], int]:
    """The function that hashes names onto so many columns."""
    from sklearn.utils import murmurhash3_32  # slow to import

    def find_column(name: str) -> int:
        return murmurhash3_32(name.encode("utf-8", "surrogatepass"), positive=True) % n_columns  # any string is a name

    return find_column


class HashedColumns(dict):
    """Columns that names are hashed onto, of those that have been looked up; when there are too many, none is kept."""

    grows = False

    def __init__(self, n_columns: int) -> None:
        self.hash = make_hash(n_columns)

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError
        if len(self) >= MOST_KEPT:
            self.clear()
        column = self[name] = self.hash(name)
        return column

    def find(self, names: Sequence[str | None]) -> list[int]:
        """The columns of names; None has none."""
        return [NOWHERE if name is None else self[name] for name in names]


class RareColumns(Columns):
    """The columns of names, then `n_rare` that all others are hashed onto, then dense ones: each has a name, too."""

    def __init__(self, names: Iterable[str], n_rare: int, n_dense: int = 0) -> None:
        super().__init__(names)
        self.first, self.hash = len(self) - n_rare - n_dense, make_hash(n_rare)

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError
        return self.first + self.hash(name)

    def find(self, names: Sequence[str | None]) -> list[int]:
        """The columns of names; None has none."""
        return [NOWHERE if name is None else self[name] for name in names]
