"""The items of a sequence, as CRFsuite has them: attributes with values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from maxmargin.wording import name_type

SEPARATOR = ":"


class ItemSequence:
    """The features of the items of a sequence, by name.

    Parameters
    ----------
    pyseq
        Dictionaries of names with numbers, bools, strings, or such once more; or lists of names.

    Examples
    --------
    >>> from maxmargin.pycrfsuite import ItemSequence
    >>> sequence = ItemSequence([["foo"], {"bar": {"baz": 1}, "word": "the"}])
    >>> sequence
    <ItemSequence of size 2>
    >>> sequence.items()
    [{'foo': 1.0}, {'bar:baz': 1.0, 'word:the': 1.0}]
    """

    def __init__(self, pyseq: Iterable[object]) -> None:
        self._items = [_item(item, t) for t, item in enumerate(pyseq)]

    def items(self) -> list[dict[str, float]]:
        """The names and values of each item."""
        return self._items

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def as_items(sequence: Iterable[object]) -> list[dict[str, float]]:
    """The items of a sequence that is one of these already, or is to become one."""
    return sequence.items() if isinstance(sequence, ItemSequence) else ItemSequence(sequence).items()


def _item(item: object, t: int) -> dict[str, float]:
    if isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
        raise TypeError(f"Item {t} must be a dictionary or a list of names, not {name_type(item)}.")
    found: dict[str, float] = {}
    for name, value in _attributes(item):
        found[name] = found.get(name, 0.0) + value
    return found


def _attributes(item: Any) -> Iterator[tuple[str, float]]:
    if not isinstance(item, Mapping):
        yield from ((_text(name), 1.0) for name in item)
        return
    for name, value in item.items():
        if isinstance(value, (Mapping, list, set, frozenset, tuple)):
            yield from ((f"{_text(name)}{SEPARATOR}{inner}", number) for inner, number in _attributes(value))
        elif isinstance(value, (str, bytes)):
            yield f"{_text(name)}{SEPARATOR}{_text(value)}", 1.0
        else:
            yield _text(name), float(value)


def _text(name: object) -> str:
    if not isinstance(name, (str, bytes)):
        raise TypeError(f"Names of features must be strings, not {name!r}.")
    return name if isinstance(name, str) else name.decode()
