"""Compiled functions kept on disk, each under a hash of all that it depends on.

Numba's own cache (``cache=True``) watches the file that defines a function: it returns stale code when a function
elsewhere changes, and compiles anew when a docstring does. Here an entry is a file whose name holds the function, the
types of its arguments, and a stamp: of the bytecode, constants and names of every function that it reaches, of the
implementations of generics that its types select, of the interfaces, and of this room, which lays out memory. So an
entry is never stale, two processes never disagree on an index, and an edit recompiles what it touches.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
import types as python_types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, config, serialize

from maxmargin.runtime.abi import Interface, Stored

_CONSTANTS = (int, float, complex, str, bytes, tuple, frozenset, type(None), type(Ellipsis), np.generic, np.dtype)


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
        self.generics: set[Any] = set()
        self._seen: set[Any] = set()
        self._parts: set[str] = set()
        self._visit(function, ())
        self.digest = hashlib.sha256("\n".join(sorted(self._parts)).encode()).hexdigest()

    def _visit(self, value: Any, names: tuple[str, ...]) -> None:
        value = getattr(value, "py_func", value)  # what Numba has compiled
        if isinstance(value, python_types.ModuleType):
            for name in names:
                if hasattr(value, name) and (value.__name__, name) not in self._seen:
                    self._seen.add((value.__name__, name))
                    self._visit(getattr(value, name), names)
        elif hasattr(value, "implementations"):
            self._visit_generic(value)
        elif isinstance(value, python_types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, np.ndarray):
            self._parts.add(f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}")
        elif isinstance(value, _CONSTANTS):
            self._parts.add(repr(value))
        else:  # a class, or a function of another library
            self._parts.add(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value))}")

    def _visit_generic(self, function: Any) -> None:
        self.generics.add(function)
        self._parts.add(f"{function.__module__}.{function.__name__}")
        for cls in self.classes:
            if cls in function.implementations:
                self._parts.add(f"{function.__name__} of {cls.__module__}.{cls.__qualname__}")
                self._visit(function.implementations[cls], ())

    def _visit_function(self, function: Any) -> None:
        if function in self._seen:
            return
        self._seen.add(function)
        self._parts.add(f"{function.__module__}.{function.__qualname__}: {_code_digest(function)}")
        for code in _codes(function.__code__):
            for name in code.co_names:
                if name in function.__globals__:
                    self._parts.add(f"{function.__qualname__} names {name}")
                    self._visit(function.__globals__[name], code.co_names)
        for cell in function.__closure__ or ():
            self._visit(cell.cell_contents, ())
        for default in function.__defaults__ or ():
            self._visit(default, ())


def _codes(code: Any) -> Iterator[Any]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            yield from _codes(constant)


def _code_digest(function: Any) -> str:
    """A hash of what a function does, whatever its docstring, comments and place in the file."""
    digest = hashlib.sha256()
    for code in _codes(function.__code__):
        constants = [c for c in code.co_consts if not isinstance(c, python_types.CodeType) and c != function.__doc__]
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants)).encode())
    return digest.hexdigest()


@functools.cache
def _surroundings() -> str:
    """A hash of what all compiled code depends on: versions, settings, and the files that lay out memory."""
    digest = hashlib.sha256(repr((sys.version, numba.__version__, llvmlite.__version__, np.__version__)).encode())
    digest.update(repr([vars(config)[name] for name in ("BOUNDSCHECK", "OPT")]).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in ("abi", "dispatch", "numeric", "views"):
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


class KernelCache:
    """The entries of one function, in the place of Numba's cache in its dispatcher.

    Without a writable folder, or where an entry is broken, every process compiles for itself.
    """

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self._implementation = caching.CompileResultCacheImpl(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        target_context.refresh()
        with contextlib.suppress(Exception):  # a broken or unreadable entry only costs a compilation
            path = self._path(sig, target_context.codegen())
            if path is not None and path.exists():
                found = self._implementation.rebuild(target_context, pickle.loads(path.read_bytes()))
                loaded[self.function.__name__] += 1
                return found
        compiled_anew[self.function.__name__] += 1
        return None

    def save_overload(self, sig: Any, compiled: Any) -> None:
        """Keep a compiled function, in place of older ones of the same signature."""
        with contextlib.suppress(Exception):  # a full disk or a read-only folder only costs the next compilation
            path = self._path(sig, compiled.codegen)
            if path is None or not self._implementation.check_cachable(compiled):
                return
            self._implementation.locator.ensure_cache_path()
            content = serialize.dumps(self._implementation.reduce(compiled))
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
            for old in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*{path.suffix}"):
                if old != path:
                    old.unlink(missing_ok=True)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        kinds = getattr(sig, "args", sig)
        classes = [*classes_of(kinds)]
        if any(cls.__module__ == "__main__" or "<locals>" in cls.__qualname__ for cls in classes):
            return None  # another process has another class of that name
        signature = hashlib.sha256(repr((str(sig), codegen.magic_tuple())).encode()).hexdigest()[:16]
        interfaces = [interface.description for interface in Interface.named.values()]
        options = [(name, sorted(value) if isinstance(value, set) else value) for name, value in self.options.items()]
        parts = Reach(self.function, classes).digest, _surroundings(), interfaces, sorted(options, key=str)
        stamp = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        name = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        return Path(self._implementation.locator.get_cache_path()) / f"{name}-{signature}-{stamp}.kernel"
