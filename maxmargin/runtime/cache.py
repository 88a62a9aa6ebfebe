"""Compiled functions kept on disk, each under a hash of all that it depends on.

Numba's own cache (``cache=True``) watches the file that defines a function: it returns stale code when a function
elsewhere changes, and compiles anew when a docstring does. Here an entry is a file whose name holds the function, the
types of its arguments, and a stamp: of the bytecode, constants and names of every function that it reaches, of the
implementations of generics that its types select, of the interfaces, and of this room and `arrays`, which lay out
memory. So two processes never disagree on an index, and an edit recompiles what it touches. What is not watched:
functions that are given to Numba by ``overload`` or ``intrinsic`` outside these rooms; delete the cache after an edit
of one. Where the files are, and which of them are trusted: `maxmargin.runtime.entries`. What is not there may have come
with the package, half compiled: `maxmargin.runtime.shipped`.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from numba import types
from numba.core.typing.templates import Signature

from maxmargin.runtime import entries, numba_private, shipped
from maxmargin.runtime.abi import Stored
from maxmargin.runtime.numba_private import Compiled, Context
from maxmargin.runtime.reach import CONSTANTS, Function, Reach, as_text
from maxmargin.runtime.tables import Interface

Arguments = tuple[types.Type, ...]


def classes_of(arguments: Iterable[types.Type]) -> Iterator[type]:
    """The NamedTuple classes of stored arguments, nested ones included."""
    for argument in arguments:
        if isinstance(argument, Stored):
            yield argument.instance_class
            yield from classes_of(argument.fields)


loaded: collections.Counter[str] = collections.Counter()  # how often each function came from disk
finished: collections.Counter[str] = collections.Counter()  # or was made of what came with the package
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


def tell_of_compiling(function: Function) -> None:
    """Tell those who wait for it that a function has to be compiled."""
    compiled_anew[function.__name__] += 1
    while _waiting:
        _waiting.pop()()


class EntryNames(NamedTuple):
    """The names of an entry: as it is on this machine, and on all machines of its kind, whatever their processors."""

    here: str
    on_all_machines: str


class LoopCache:
    """The entries of one function, in the place of Numba's cache in its dispatcher.

    Without a folder that can be written to, or where an entry is broken, every process compiles for itself what is not
    there.
    """

    def __init__(self, function: Function, options: dict[str, object]) -> None:
        self.function = function
        self.options = options
        self._sought: dict[object, EntryNames] = {}  # where entries were looked for, and will be kept

    def load_overload(self, sig: Signature | Arguments, target_context: Context) -> Compiled | None:
        """The compiled function of a signature, or None."""
        with contextlib.suppress(Exception):  # without one, it is compiled by every process
            self._sought[sig] = self._names(sig, target_context)
        for find, count in ((self._load, loaded), (self._finish, finished)):
            with contextlib.suppress(Exception):  # a broken or unreadable entry only costs a compilation
                found = find(self._sought[sig], target_context)
                count[self.function.__name__] += 1
                return found
        tell_of_compiling(self.function)
        return None

    def save_overload(self, sig: Signature | Arguments, compiled: Compiled) -> None:
        """Keep a compiled function, in place of older ones of the same signature."""
        with contextlib.suppress(Exception):  # a full disk or a read-only folder only costs the next compilation
            names = self._sought.pop(sig)
            if numba_private.can_be_kept(compiled):
                entries.write(self._path(names), numba_private.dump(compiled))
                shipped.keep(names.on_all_machines, lambda: numba_private.dump_bitcode(compiled))

    def _load(self, names: EntryNames, context: Context) -> Compiled:
        return numba_private.load(entries.read(self._path(names)), context)

    def _finish(self, names: EntryNames, context: Context) -> Compiled:
        content = numba_private.finish(shipped.read(names.on_all_machines), context)
        found = numba_private.load(content, context)
        with contextlib.suppress(OSError):
            entries.write(self._path(names), content)
        return found

    def _path(self, names: EntryNames) -> Path:
        return entries.folder_of(self.function) / names.here

    def _names(self, sig: Signature | Arguments, target_context: Context) -> EntryNames:
        classes = [*classes_of(sig.args if isinstance(sig, Signature) else sig)]
        if any(cls.__module__ == "__main__" or "<locals>" in cls.__qualname__ for cls in classes):
            raise ValueError("Another process has another class of that name.")
        cells = [cell.cell_contents for cell in self.function.__closure__ or ()]  # which tell loops of a factory apart
        closure = [as_text(value) for value in cells if isinstance(value, CONSTANTS)]
        interfaces = [interface.description for interface in Interface.named.values()]
        parts = Reach(self.function, classes).digest, interfaces, as_text(self.options)
        stamp = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        name = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        machine = numba_private.machine(target_context)

        def name_on(*machine: object) -> str:
            place = str(sig), machine, closure, self.options.get("boundscheck")
            signature = hashlib.sha256(repr(place).encode()).hexdigest()[:16]
            return f"{name}-{signature}-{stamp}{entries.ENDING}"

        kind = numba_private.kind_of_machine(target_context)
        return EntryNames(name_on(*machine, entries.surroundings()), name_on(kind, entries.surroundings_of_bitcode()))
