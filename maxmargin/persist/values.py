"""Values to what JSON can hold, with arrays beside, and back.

None, bools, integers, finite floats, strings and lists stand for themselves. Everything else is an object of one
entry, whose key says what it is: {"tuple": [...]}, {"array": 3}, {"object": [name, {...}]}. A list of tuples of
strings, such as tokens, may be {"tuples": [their size, [all strings]]}, which is read far faster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from itertools import chain
from sys import intern
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from maxmargin.persist.container import DTYPES, Arrays, Broken
from maxmargin.persist.registry import MODELS, STATES, Registry
from maxmargin.wording import name_type, quote

Node = None | bool | int | float | str | list["Node"] | dict[str, "Node"]  # what JSON can hold
PLAIN = (type(None), bool, int, str)
COLLECTIONS: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset}
TYPES: dict[str, type] = {"float": float, "int": int, "float32": np.float32, "float64": np.float64}
MOST_ALIKE = 100  # items of a set that have the same hash
NAMES_OF_TYPES = {cls: name for name, cls in {**COLLECTIONS, **TYPES}.items()}


class Writer:
    """Turns values into what JSON can hold, and collects their arrays.

    Parameters
    ----------
    given
        Objects that are not written but named: a reader is given others in their place.
    keeps_state
        Whether it is the state of a fit: objects of classes of states are part of it, and arrays that share memory do
        so when they are read, too.
    """

    def __init__(self, given: Mapping[str, object] = MappingProxyType({}), *, keeps_state: bool = False) -> None:
        self.arrays: list[np.ndarray] = []
        self._given = {id(value): name for name, value in given.items()}
        self._keeps_state = keeps_state
        self._registries = {"state": STATES, "object": MODELS} if keeps_state else {"object": MODELS}
        self._numbers: dict[int, int] = {}  # of arrays, by their identity

    def __call__(self, value: object, where: str) -> Node:
        """The node of a value, which messages call `where`; raises a TypeError if it cannot be saved."""
        if id(value) in self._given:
            return {"given": self._given[id(value)]}
        if isinstance(value, PLAIN) and type(value) in PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [item if type(item) is str else self(item, f"{where}[{k}]") for k, item in enumerate(value)]
        if isinstance(value, tuple | set | frozenset) and type(value) in NAMES_OF_TYPES:
            items = value if isinstance(value, tuple) else sorted(value, key=repr)
            return {NAMES_OF_TYPES[type(value)]: [self(item, f"{where}[{k}]") for k, item in enumerate(items)]}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            return {"scalar": self._number(np.array([value]))}
        if isinstance(value, np.dtype) and value.kind in "biuf":
            return {"dtype": value.str}
        if isinstance(value, type) and NAMES_OF_TYPES.get(value) in TYPES:
            return {"type": NAMES_OF_TYPES[value]}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            raise TypeError(f"{where} cannot be saved: it is a random generator, whose state changes; give a seed.")
        for form, registry in self._registries.items():
            recipe = registry.by_class.get(type(value))
            if recipe is not None:
                parts = recipe.get(value).items()
                return {form: [recipe.name, {key: self(part, f"{where}.{key}") for key, part in parts}]}
        if type(value) is dict or isinstance(value, Mapping):
            pairs = ((self(key, f"a key of {where}"), self(item, f"{where}[{key!r}]")) for key, item in value.items())
            return {"dict": [[*pair] for pair in pairs]}
        what = "a function" if callable(value) and hasattr(value, "__name__") else name_type(value)
        raise TypeError(
            f"{where} cannot be saved: {quote(value)} is {what}, and files hold only data and objects of classes that "
            "maxmargin.register knows."
        )

    def _array(self, array: np.ndarray, where: str) -> Node:
        if array.dtype == object:
            items = [self(item, f"{where}.flat[{k}]") for k, item in enumerate(array.ravel().tolist())]
            return {"objects": [[*array.shape], items]}
        if not DTYPES.fullmatch(array.dtype.newbyteorder("<").str):
            raise TypeError(f"{where} cannot be saved: arrays of {array.dtype} are neither of numbers nor of strings.")
        if not self._keeps_state:
            return {"array": self._number(array)}
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if root is array or root.dtype != array.dtype or not (array.flags.c_contiguous and root.flags.c_contiguous):
            return {"array": self._number(array)}
        offset = (array.ctypes.data - root.ctypes.data) // root.itemsize if array.size else 0
        return {"view": [self._number(root), offset, [*array.shape]]}

    def _number(self, array: np.ndarray) -> int:
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[id(array)]


class TokenWriter(Writer):
    """A writer that puts the strings of lists of tuples, such as tokens, into one list."""

    def __call__(self, value: object, where: str) -> Node:
        if type(value) is list and {*map(type, value)} == {tuple}:
            sizes, strings = {*map(len, value)}, [*chain.from_iterable(value)]
            if len(sizes) == 1 and {*map(type, strings)} == {str}:
                return {"tuples": [sizes.pop(), strings]}
        return super().__call__(value, where)


def check_hashes(items: list[Hashable]) -> list[Hashable]:
    """The items of a set, or keys of a dictionary; raises where so many have one hash that lookups take long."""
    if len(items) > MOST_ALIKE and max(Counter(map(hash, items)).values()) > MOST_ALIKE:
        raise Broken("its text holds a set or dictionary that was made to take long")
    return items


class Reader:
    """Turns what `Writer` has written back into values; raises `Broken` or what constructors raise.

    Parameters
    ----------
    arrays
        Those of the file.
    given
        The objects that the file only names.
    keeps_state
        Whether it is the state of a fit.
    """

    def __init__(
        self, arrays: Arrays, given: Mapping[str, object] = MappingProxyType({}), *, keeps_state: bool = False
    ) -> None:
        self.arrays, self.given, self.keeps_state = arrays, given, keeps_state

    def __call__(self, node: object) -> Any:
        """The value of a node."""
        if type(node) is list:
            return [item if type(item) is str else self(item) for item in node]
        if type(node) is not dict:
            return node
        if len(node) != 1:
            raise Broken("its text holds an object of no known form")
        ((key, inner),) = node.items()
        if key in COLLECTIONS:
            items = [self(item) for item in inner]
            return COLLECTIONS[key](items if key == "tuple" else check_hashes(items))
        if key not in self.FORMS:
            raise Broken(f"its text holds a value of the unknown form {quote(key)}")
        return self.FORMS[key](self, inner)

    def _make(self, inner: tuple[object, dict[str, object]], registry: Registry | None) -> object:
        name, parts = inner
        recipe = None if registry is None else registry.find(name)
        if recipe is None:
            raise Broken(f"it holds an object of the class {quote(name)}, which is not registered here")
        return recipe.make(**{key: self(part) for key, part in parts.items()})

    def _objects(self, inner: tuple[tuple[int, ...], list[object]]) -> np.ndarray:
        shape, items = inner
        array = np.empty(len(items), object)
        for k, item in enumerate(items):
            array[k] = self(item)
        return array.reshape(shape)

    def _view(self, inner: tuple[int, int, tuple[int, ...]]) -> np.ndarray:
        k, offset, shape = inner
        return self.arrays[k].reshape(-1)[offset : offset + math.prod(shape)].reshape(shape)

    def _tuples(self, inner: tuple[int, list[str]]) -> list[tuple[str, ...]]:
        size, strings = inner
        if type(size) is not int or size < 1 or len(strings) % size or {*map(type, strings)} != {str}:
            raise Broken("its text holds tuples that are not of strings, or not of their size")
        return [*zip(*[map(intern, strings)] * size, strict=True)]

    def _dict(self, inner: list[tuple[object, object]]) -> dict[Hashable, object]:
        keys = check_hashes([self(key) for key, _ in inner])
        return dict(zip(keys, (self(item) for _, item in inner), strict=True))

    def _float(self, inner: str) -> float:
        if inner not in ("nan", "inf", "-inf"):
            raise Broken("its text holds a number of no known form")
        return float(inner)

    def _dtype(self, inner: str) -> np.dtype:
        if inner not in ("<f4", "<f8"):
            raise Broken("it names a type of numbers that no model has")
        return np.dtype(inner).newbyteorder("=")

    FORMS: ClassVar[dict[str, Callable[[Reader, Any], object]]] = {
        "array": lambda self, inner: self.arrays[inner],
        "dict": _dict,
        "dtype": _dtype,
        "float": _float,
        "given": lambda self, inner: self.given[inner],
        "object": lambda self, inner: self._make(inner, MODELS),
        "objects": _objects,
        "scalar": lambda self, inner: self.arrays[inner][0],
        "state": lambda self, inner: self._make(inner, STATES if self.keeps_state else None),
        "tuples": _tuples,
        "type": lambda self, inner: TYPES[inner],
        "view": _view,
    }
