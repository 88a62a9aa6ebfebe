"""Quality of dependency trees: the shares of words with the right head, and with the right head and label."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maxmargin.metrics.labels import check_pairs


def uas(y_true: object, y_pred: object, words: Iterable[Sequence[object]] | None = None) -> float:
    """The unlabelled attachment score: the share of words with the right head.

    Parameters
    ----------
    y_true, y_pred : lists of trees, lists of heads or of pairs of a head and a label
    words
        The sentences, lists of words or of tuples whose first entry is the word: those that are punctuation alone do
        not count then, as in the shared tasks of CoNLL 2006 and 2007. By default all words count.

    Examples
    --------
    >>> from maxmargin.metrics import uas
    >>> uas([[2, 0, 2]], [[2, 0, 1]]), uas([[2, 0, 2]], [[2, 0, 1]], words=[["She", "sings", "!"]])
    (0.6666666666666666, 1.0)
    """
    return _attachment(y_true, y_pred, words, lambda a, b: _head(a) == _head(b))


def las(y_true: object, y_pred: object, words: Iterable[Sequence[object]] | None = None) -> float:
    """The labelled attachment score: the share of words with the right head and the right label.

    Parameters
    ----------
    y_true, y_pred : lists of trees, lists of pairs of a head and a label
    words
        As of `uas`.

    Examples
    --------
    >>> from maxmargin.metrics import las
    >>> las([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]])
    0.5
    """
    return _attachment(y_true, y_pred, words, lambda a, b: tuple(a) == tuple(b))


def is_punctuation(word: str) -> bool:
    """Whether all characters of a word are punctuation, as Unicode says."""
    return all(unicodedata.category(character).startswith("P") for character in word)


def _head(arc: object) -> Any:
    return arc[0] if isinstance(arc, (tuple, list)) else arc


def _attachment(y_true: object, y_pred: object, words: Any, is_right: Callable[[Any, Any], bool]) -> float:
    true, predicted = check_pairs(y_true, y_pred)
    counts = [[True] * len(tree) for tree in true]
    if words is not None:
        counts = [[not is_punctuation(_head(token)) for token in sentence] for sentence in words]
        if [*map(len, counts)] != [*map(len, true)]:
            raise ValueError("words must be the sentences of y_true, with as many words as it has heads.")
    pairs = [
        is_right(a, b)
        for flags, *trees in zip(counts, true, predicted, strict=True)
        for counted, a, b in zip(flags, *trees, strict=True)
        if counted
    ]
    if not pairs:
        raise ValueError("y_true must hold at least one word that is not punctuation.")
    return sum(pairs) / len(pairs)
