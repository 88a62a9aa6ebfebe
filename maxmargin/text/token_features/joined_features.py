"""Features by name with dense columns beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from maxmargin.checks import as_numbers
from maxmargin.text.token_features.named_features import DenseColumns, FeatureColumns, Sliced
from maxmargin.text.token_features.property_checks import check_length
from maxmargin.wording import count_of, quote


class JoinedFeatures(Sliced[Sequence[Sequence[str]]]):
    """Sequences of items that have names and, beside them, dense columns of numbers, for `ChainCRF` and `ChainSVM`.

    Names stay sparse and numbers dense, in one model.

    Parameters
    ----------
    named
        Sequences of items, each a list of names; or what a transformer of words makes, such as `WindowFeatures`.
    dense
        For each sequence a (T_i, D) array with the numbers of its items.
    names
        What the D columns are called; by default dense:0, dense:1 and so on.
    length : float, default=1.0
        The root mean square length that the rows of numbers to train on are scaled to, by one factor, which the model
        remembers; None leaves them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.text import JoinedFeatures
    >>> dense = [np.array([[0.1, 2.0], [1.5, 0.3]]), np.array([[1.4, 0.2]])]
    >>> X = JoinedFeatures([[["the"], ["dog"]], [["dogs"]]], dense)
    >>> model = ChainCRF().fit(X, [["DET", "NOUN"], ["NOUN"]])
    >>> model.predict(X[:1])[0].tolist(), model.n_features_in_
    (['DET', 'NOUN'], 5)
    """

    def __init__(
        self, named: Any, dense: Sequence[Any], names: Sequence[str] | None = None, *, length: float | None = 1.0
    ) -> None:
        check_length("length", length)
        self.length = length
        self.named: Any = named if hasattr(named, "look_up") else [*named]
        self.dense = [as_numbers(f"dense[{i}]", numbers) for i, numbers in enumerate(dense)]
        if len(self.dense) != len(self.named):
            raise ValueError(
                f"dense must have an array for {count_of(len(self.named), 'sequence')}, but has {len(self.dense)}."
            )
        width = self.dense[0].shape[-1] if self.dense else 0
        self.names = [f"dense:{k}" for k in range(width)] if names is None else [*names]
        for i, numbers in enumerate(self.dense):
            if numbers.ndim != 2 or numbers.shape[1] != len(self.names):
                shape = f"(T, {len(self.names)})"
                raise ValueError(f"dense[{i}] must be of the shape {shape}, not {numbers.shape}.")
            if isinstance(self.named, list) and len(self.named[i]) != len(numbers):
                items = count_of(len(self.named[i]), "item")
                raise ValueError(f"dense[{i}] has {count_of(len(numbers), 'row')}, but named[{i}] has {items}.")
            if not np.isfinite(numbers).all():
                row = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
                raise ValueError(f"dense[{i}] contains NaN or infinity, in row {row}.")

    def __len__(self) -> int:
        return len(self.dense)

    def make_some(self, which: slice) -> Self:
        return type(self)(self.named[which], self.dense[which], self.names, length=self.length)

    def make_one(self, i: int) -> Sequence[Sequence[str]]:
        return self.named[i]

    def look_up(self, columns: FeatureColumns) -> Iterator[Sequence[Sequence[int]]]:
        """The columns of the names of each item."""
        found = self.named.look_up(columns) if not isinstance(self.named, list) else self._find(columns)
        for i, rows in enumerate(found):
            if len(rows) != len(self.dense[i]):
                have = count_of(len(self.dense[i]), "row")
                raise ValueError(f"dense[{i}] has {have}, but sequence {i} has {count_of(len(rows), 'item')}.")
            yield rows

    def _find(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        for i, sequence in enumerate(self.named):
            for t, item in enumerate(sequence):
                if not isinstance(item, list | tuple) or not all(isinstance(name, str) for name in item):
                    raise TypeError(
                        f"named[{i}] has {quote(item)} at position {t}, but an item must be a list of names."
                    )
            yield [columns.find(item) for item in sequence]

    def dense_columns(self) -> DenseColumns:
        """The numbers of all items."""
        table = np.concatenate(self.dense) if self.dense else np.zeros((0, len(self.names)))
        return DenseColumns(self.names, table, np.arange(len(table), dtype=np.int32)[:, np.newaxis], self.length)
