"""What a function depends on: all that it reaches by its names, as one hash."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numba import types

if TYPE_CHECKING:
    from maxmargin.runtime.tables import Interface

Function = Callable[..., Any]
CONSTANTS = (int, float, complex, str, bytes, frozenset, type(None), type(Ellipsis), np.generic, np.dtype)


class Generic(Protocol):
    """A function of a problem, of features or of a loss that each type implements in its own way.

    Attributes
    ----------
    implementations
        The functions, by type.
    options
        What is said to Numba about them.
    interface
        Those that loops call by address have one, and what follows.
    words
        The annotations of its arguments but the first, and of its result.
    arguments, result
        What these are for numbers of a dtype.
    slot
        Its place in tables.
    """

    __name__: str
    implementations: dict[type, Function]
    options: dict[type, dict[str, Any]]
    interface: Interface | None
    words: dict[str, str]
    arguments: list[Callable[[types.Type], types.Type]]
    result: Callable[[types.Type], types.Type]
    signature: str
    slot: int

    def __call__(self, target: object, /, *args: object) -> Any: ...


class Reach:
    """Everything that a function reaches through its names, as compiled for arguments of some classes.

    Parameters
    ----------
    function
        The function.
    classes
        The NamedTuple classes of its arguments, which select the implementations of generics.

    Attributes
    ----------
    digest
        A hash of it all.
    generics
        The generics among it.
    """

    def __init__(self, function: Function, classes: Iterable[type] = ()) -> None:
        self.classes = [*classes]
        self.generics: list[Generic] = []
        self._seen: set[object] = set()
        self._hash = hashlib.sha256()
        self._visit("", function, ())
        self.digest = self._hash.hexdigest()

    def _note(self, *values: object) -> None:
        self._hash.update(repr(values).encode())

    def _visit(self, name: str, value: Any, names: tuple[str, ...]) -> None:
        """Take note of what `name` stands for in code that has these names."""
        self._note(name)
        if hasattr(value, "py_func"):  # what Numba has compiled
            self._note(as_text(value.targetoptions))
            value = value.py_func
        if hasattr(value, "implementations"):
            self._visit_generic(value)
        elif isinstance(value, FunctionType):
            self._visit_function(getattr(value, "compiled", value))  # helpers may have another form in Python
        elif isinstance(value, (ModuleType, type)):
            self._visit_attributes(value, names)
        elif isinstance(value, np.ndarray):
            self._note(value.dtype, value.shape, hashlib.sha256(value.tobytes()).hexdigest())
        elif isinstance(value, enum.Enum):
            self._note(type(value).__qualname__, value.name, value.value)
        elif isinstance(value, (tuple, list)):
            for k, item in enumerate(value):
                self._visit(str(k), item, names)
        elif isinstance(value, CONSTANTS):
            self._note(type(value).__name__, as_text(value))
        else:  # a function of another library
            self._note(getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value).__qualname__))

    def _visit_attributes(self, owner: ModuleType | type, names: tuple[str, ...]) -> None:
        self._note(owner.__name__)
        for name in names:
            if hasattr(owner, name) and (owner, name) not in self._seen:
                self._seen.add((owner, name))
                self._visit(name, getattr(owner, name), names)

    def _visit_generic(self, function: Generic) -> None:
        self._note(function.__module__, function.__name__)
        if function not in self.generics:
            self.generics.append(function)
        for cls in self.classes:
            if cls in function.implementations:
                self._visit(f"{cls.__module__}.{cls.__qualname__}", function.implementations[cls], ())

    def _visit_function(self, function: FunctionType) -> None:
        self._note(function.__module__, function.__qualname__)
        if function in self._seen:
            return
        self._seen.add(function)
        self._note(as_text(getattr(function, "options", {})))
        codes = [*_codes(function.__code__)]
        names = tuple(name for code in codes for name in code.co_names)
        for code in codes:
            constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
            if code is function.__code__ and constants and constants[0] == function.__doc__:
                constants = constants[1:]
            variables = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
            self._note(code.co_code, variables, as_text(constants))
        for name in names:
            if name in function.__globals__:
                self._visit(name, function.__globals__[name], names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._visit(name, cell.cell_contents, names)
        for k, default in enumerate(function.__defaults__ or ()):
            self._visit(f"default {k}", default, names)


def as_text(value: object) -> object:
    """A value whose text is the same in every process: sets are sorted."""
    if isinstance(value, (set, frozenset)):
        return "set", sorted(map(repr, value))
    if isinstance(value, dict):
        return sorted((key, as_text(item)) for key, item in value.items())
    return tuple(map(as_text, value)) if isinstance(value, (tuple, list)) else value


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
