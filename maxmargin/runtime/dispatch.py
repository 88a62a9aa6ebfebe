"""Generic functions resolved by type, and kernels compiled once per type.

A *generic* is a function of a problem (or of its features) that each type implements in its own file. The same call
is resolved at compile time, through Numba's ``overload``, when the type is a ``NamedTuple`` with implementations, and
at run time, by a table or a method of the same name, when it is a Python class. A *kernel* is a loop written with
generics only: one source that runs compiled on the library's structures and interpreted on a user's own class.

Compiled kernels are kept on disk by `_KernelCache`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import types as python_types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload

__all__ = ["generic", "implements", "kernel", "supports"]

# Strict IEEE order is not needed, but infinities and NaN never reach a kernel, so comparisons can be vectorised.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"}}

_implemented: dict[type, list[Callable]] = {}  # NamedTuple class -> the functions that implement generics for it


def generic(declaration: Callable) -> Callable:
    """Declare a generic function; its body is never run, its signature and docstring are the contract.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from maxmargin.runtime.dispatch import generic, implements
    >>> @generic
    ... def area(shape): "The area of a shape."
    >>> class Square(NamedTuple):
    ...     side: float
    >>> @implements(area, Square)
    ... def area_square(shape): return shape.side**2
    >>> area(Square(3.0))
    9.0
    """
    name = declaration.__name__
    table: dict[type, Callable] = {}

    @functools.wraps(declaration)
    def resolve(target: Any, *args: Any) -> Any:
        implementation = table.get(type(target))
        if implementation is not None:
            return implementation(target, *args)
        method = getattr(target, name, None)
        if method is None:
            raise NotImplementedError(f"{type(target).__name__} has no {name}().")
        return method(*args)

    resolve.implementations = table  # type: ignore[attr-defined]
    resolve.compiled = {}  # type: ignore[attr-defined]
    return resolve


def supports(function: Callable, target: Any) -> bool:
    """Whether the generic `function` is implemented for `target`."""
    return type(target) in function.implementations or hasattr(target, function.__name__)  # type: ignore[attr-defined]


def implements(function: Callable, *classes: type, **options: Any) -> Callable[[Callable], Callable]:
    """Register the decorated function as the implementation of a generic for NamedTuple classes.

    It must be written in the subset of Python that Numba compiles; `options` go to ``numba.njit``. The first
    parameter is the instance of the class.
    """
    expected = list(inspect.signature(function).parameters)

    def register(implementation: Callable) -> Callable:
        found = list(inspect.signature(implementation).parameters)
        if found != expected:
            raise TypeError(f"{function.__name__} takes ({', '.join(expected)}), not ({', '.join(found)}).")
        for cls in classes:
            _overload_for(function, cls, implementation, options)
            function.compiled[cls] = _compile(implementation, options)  # type: ignore[attr-defined]
            function.implementations[cls] = implementation  # type: ignore[attr-defined]
            _implemented.setdefault(cls, []).append(implementation)
        return implementation

    return register


def _overload_for(function: Callable, cls: type, implementation: Callable, options: dict[str, Any]) -> None:
    def resolve(*args: Any) -> Callable | None:
        return implementation if getattr(args[0], "instance_class", None) is cls else None

    resolve.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
    jit_options: Any = {**_OPTIONS, **options}
    overload(function, jit_options=jit_options)(resolve)


def kernel(function: Callable) -> Callable:
    """Compile `function` for every type of its first argument that implements generics; interpret it for others.

    Kernels are the only compiled functions that Python calls. They release the GIL and are cached on disk.
    """
    compiled = _compile(function, {})

    @functools.wraps(function)
    def call(target: Any, *args: Any) -> Any:
        run = compiled if type(target) in _implemented else function
        return run(target, *args)

    call.compiled = compiled  # type: ignore[attr-defined]
    call.interpreted = function  # type: ignore[attr-defined]
    return call


# The cache. Numba's own (``cache=True``) watches only the file that defines the kernel, so it returns stale code when
# an implementation elsewhere changes, and keeps one index per kernel, which nobody can read any more once it names a
# class that cannot be imported. Ours stamps every entry with all the sources that went into it and keeps one index
# per kernel and set of classes.


def _compile(function: Callable, options: dict[str, Any]) -> Any:
    """``numba.njit`` with the cache attached, or `function` itself under ``NUMBA_DISABLE_JIT=1``."""
    compiled = numba.njit(**{**_OPTIONS, **options})(function)
    if compiled is not function:
        # Without a writable folder, or if Numba's internals have changed, every process compiles for itself.
        with contextlib.suppress(Exception):
            compiled._cache = _make_cache(function)
    return compiled


def _hash_sources(functions: list[Callable]) -> str:
    """A hash of the files of all functions that `functions` reach, and of the constants they use."""
    files, constants = {__file__}, hashlib.sha256()
    seen: set[Any] = set()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(function, ()) for function in functions]
    while waiting:
        value, names = waiting.pop()
        value = getattr(value, "py_func", value)  # what Numba has compiled
        if isinstance(value, (int, float, complex, str, tuple, np.ndarray)):
            constants.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        elif isinstance(value, python_types.ModuleType):
            if (id(value), names) not in seen:
                seen.add((id(value), names))
                waiting.extend((getattr(value, name), names) for name in names if hasattr(value, name))
        elif isinstance(value, python_types.FunctionType) and value not in seen:
            seen.add(value)
            files.add(value.__code__.co_filename)
            names = value.__code__.co_names
            waiting.extend((value.__globals__[name], names) for name in names if name in value.__globals__)
            waiting.extend((cell.cell_contents, ()) for cell in value.__closure__ or ())
    digest = hashlib.sha256(constants.digest())
    for path in sorted(files):
        digest.update(path.encode())
        if os.path.exists(path):
            digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _classes(signature: Any) -> Iterator[type]:
    """The NamedTuple classes in a Numba type, nested ones included."""
    for entry in signature:
        if isinstance(entry, types.BaseTuple):
            if hasattr(entry, "instance_class"):
                yield entry.instance_class
            yield from _classes(entry)


def _make_cache(function: Callable) -> Any:
    from numba.core import caching

    class KernelCache(caching.FunctionCache):
        def _select(self, signature: Any) -> bool:
            """Point at the index of the classes in `signature`; False where they cannot be cached."""
            classes = sorted({(c.__module__, c.__qualname__, c) for c in _classes(signature)}, key=lambda c: c[:2])
            if any(module == "__main__" or "<locals>" in name for module, name, _ in classes):
                return False
            names = ";".join(f"{module}.{name}" for module, name, _ in classes)
            implementations = [f for *_, cls in classes for f in _implemented.get(cls, [])]
            index = hashlib.sha256(names.encode()).hexdigest()[:12]
            self._cache_file = caching.IndexDataCacheFile(
                self._cache_path, f"{self._impl.filename_base}-{index}", _hash_sources([function, *implementations])
            )
            return True

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context) if self._select(sig) else None
            except Exception:  # a broken or unreadable entry only costs a compilation
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                if self._select(data.signature.args):
                    super().save_overload(sig, data)
            except Exception:  # a full disk or a read-only folder only costs the next process a compilation
                return

    return KernelCache(function)
