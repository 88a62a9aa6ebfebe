"""Compiled functions kept on disk, each under a hash of all that it depends on.

Numba's own cache (``cache=True``) watches the file that defines a function: it returns stale code when a function
elsewhere changes, and compiles anew when a docstring does. Here an entry is a file whose name holds the function, the
types of its arguments, and a stamp: of the bytecode, constants and names of every function that it reaches, of the
implementations of generics that its types select, of the interfaces, and of this room and `arrays`, which lay out
memory. So two processes never disagree on an index, and an edit recompiles what it touches. What is not watched:
functions that are given to Numba by ``overload`` or ``intrinsic`` outside these rooms; delete the cache after an edit
of one. Where the files are, and which of them are trusted: `maxmargin.runtime.entries`.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import hashlib
import sys
import types as python_types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys

from maxmargin.runtime.abi import Stored
from maxmargin.runtime.entries import ENDING, Entry, folder_of
from maxmargin.runtime.tables import Interface

_CONSTANTS = (int, float, complex, str, bytes, frozenset, type(None), type(Ellipsis), np.generic, np.dtype)


class Reach:
    """Everything that a function reaches through its names, as compiled for arguments of some classes.

    Parameters
    ----------
    function : the function
    classes : the NamedTuple classes of its arguments, which select the implementations of generics

    Attributes
    ----------
    digest : a hash of it all
    generics : the generics among it
    """

    def __init__(self, function: Callable, classes: Iterable[type] = ()) -> None:
        self.classes = [*classes]
        self.generics: list[Any] = []
        self._seen: set[Any] = set()
        self._hash = hashlib.sha256()
        self._visit("", function, ())
        self.digest = self._hash.hexdigest()

    def _note(self, *values: Any) -> None:
        self._hash.update(repr(values).encode())

    def _visit(self, name: str, value: Any, names: tuple[str, ...]) -> None:
        """Take note of what `name` stands for in code that has these names."""
        self._note(name)
        if hasattr(value, "py_func"):  # what Numba has compiled
            self._note(_plain(value.targetoptions))
            value = value.py_func
        if hasattr(value, "implementations"):
            self._visit_generic(value)
        elif isinstance(value, python_types.FunctionType):
            self._visit_function(getattr(value, "compiled", value))  # helpers may have another form in Python
        elif isinstance(value, (python_types.ModuleType, type)):
            self._visit_attributes(value, names)
        elif isinstance(value, np.ndarray):
            self._note(value.dtype, value.shape, hashlib.sha256(value.tobytes()).hexdigest())
        elif isinstance(value, enum.Enum):
            self._note(type(value).__qualname__, value.name, value.value)
        elif isinstance(value, (tuple, list)):
            for k, item in enumerate(value):
                self._visit(str(k), item, names)
        elif isinstance(value, _CONSTANTS):
            self._note(type(value).__name__, _plain(value))
        else:  # a function of another library
            self._note(getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value).__qualname__))

    def _visit_attributes(self, owner: Any, names: tuple[str, ...]) -> None:
        self._note(owner.__name__)
        for name in names:
            if hasattr(owner, name) and (owner, name) not in self._seen:
                self._seen.add((owner, name))
                self._visit(name, getattr(owner, name), names)

    def _visit_generic(self, function: Any) -> None:
        self._note(function.__module__, function.__name__)
        if function not in self.generics:
            self.generics.append(function)
        for cls in self.classes:
            if cls in function.implementations:
                self._visit(f"{cls.__module__}.{cls.__qualname__}", function.implementations[cls], ())

    def _visit_function(self, function: Any) -> None:
        self._note(function.__module__, function.__qualname__)
        if function in self._seen:
            return
        self._seen.add(function)
        self._note(_plain(getattr(function, "options", {})))
        codes = [*_codes(function.__code__)]
        names = tuple(name for code in codes for name in code.co_names)
        for code in codes:
            constants = [c for c in code.co_consts if not isinstance(c, python_types.CodeType)]
            if code is function.__code__ and constants and constants[0] == function.__doc__:
                constants = constants[1:]
            variables = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
            self._note(code.co_code, variables, _plain(constants))
        for name in names:
            if name in function.__globals__:
                self._visit(name, function.__globals__[name], names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._visit(name, cell.cell_contents, names)
        for k, default in enumerate(function.__defaults__ or ()):
            self._visit(f"default {k}", default, names)


def _plain(value: Any) -> Any:
    """A value whose text is the same in every process: sets are sorted."""
    if isinstance(value, (set, frozenset)):
        return "set", sorted(map(repr, value))
    if isinstance(value, dict):
        return sorted((key, _plain(item)) for key, item in value.items())
    return tuple(map(_plain, value)) if isinstance(value, (tuple, list)) else value


def _codes(code: Any) -> Iterator[Any]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            yield from _codes(constant)


@functools.cache
def _surroundings() -> str:
    """A hash of what all compiled code depends on: versions, settings, and the files that lay out memory."""
    digest = hashlib.sha256(repr((sys.version, numba.__version__, llvmlite.__version__, np.__version__)).encode())
    digest.update(repr([vars(config)[name] for name in ("BOUNDSCHECK", "OPT", "USING_SVML")]).encode())
    for room in ("arrays", "runtime"):
        for path in sorted((Path(__file__).parents[1] / room).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def classes_of(kinds: Iterable[Any]) -> Iterator[type]:
    """The NamedTuple classes of stored arguments, nested ones included."""
    for kind in kinds:
        if isinstance(kind, Stored):
            yield kind.instance_class
            yield from classes_of(kind.kinds)


loaded: collections.Counter[str] = collections.Counter()  # how often each function came from disk
compiled_anew: collections.Counter[str] = collections.Counter()

COMPILING = "Compiling for this machine: some seconds, only once ..."
_waiting: list[Callable[[], None]] = []  # to be told, once, that something has to be compiled


@contextlib.contextmanager
def before_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` before the first function that has to be compiled meanwhile, if there is any."""
    _waiting.append(tell)
    try:
        yield
    finally:
        if tell in _waiting:
            _waiting.remove(tell)


class LoopCache:
    """The entries of one function, in the place of Numba's cache in its dispatcher.

    Without a folder that can be written to, or where an entry is broken, every process compiles for itself what is not
    there.
    """

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self._sought: dict[Any, Path | None] = {}  # where entries were looked for, and will be kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        with contextlib.suppress(Exception):  # a broken or unreadable entry only costs a compilation
            path = self._sought[sig] = self._path(sig, target_context.codegen())
            if path is not None:
                entry = Entry.read(path)
                if entry.counts_references:  # of Numba's other parts loaded code needs none
                    rtsys.initialize(target_context)
                found = CompileResult._rebuild(target_context, *entry.reduced)
                loaded[self.function.__name__] += 1
                return found
        compiled_anew[self.function.__name__] += 1
        while _waiting:
            _waiting.pop()()
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep a compiled function, in place of older ones of the same signature."""
        with contextlib.suppress(Exception):  # a full disk or a read-only folder only costs the next compilation
            path = self._sought.pop(sig)
            if path is not None and not compiled.lifted and not compiled.library.has_dynamic_globals:
                Entry.of(compiled).write(path)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        kinds = getattr(sig, "args", sig)
        classes = [*classes_of(kinds)]
        if any(cls.__module__ == "__main__" or "<locals>" in cls.__qualname__ for cls in classes):
            return None  # another process has another class of that name
        cells = [cell.cell_contents for cell in self.function.__closure__ or ()]  # which tell loops of a factory apart
        closure = [_plain(value) for value in cells if isinstance(value, _CONSTANTS)]
        place = str(sig), codegen.magic_tuple(), _surroundings(), closure, self.options.get("boundscheck")
        signature = hashlib.sha256(repr(place).encode()).hexdigest()[:16]
        interfaces = [interface.description for interface in Interface.named.values()]
        parts = Reach(self.function, classes).digest, interfaces, _plain(self.options)
        stamp = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        name = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        return folder_of(self.function) / f"{name}-{signature}-{stamp}{ENDING}"
