"""Arrays out of memory: in a file without a name, which goes away with the process, and mapped while they are needed.

Any value made of named tuples, tuples, lists, dictionaries and arrays can be spilled; what is no array, or a small one,
stays in memory. A file, not one for each value, as the number of files that may be open is limited.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

SMALL = 4096  # bytes: arrays below stay in memory
ALIGNMENT = 64


class FilePlace(NamedTuple):
    """Where an array is in a file, counted from where its value begins."""

    dtype: np.dtype
    shape: tuple[int, ...]
    at: int


class SpillFile:
    """A file of values, without a name.

    Parameters
    ----------
    folder
        Where there is room for it; by default that of temporary files.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.persist.spilled import SpillFile
    >>> kept = SpillFile().put({"w": np.arange(1000.0), "n": 3})
    >>> kept.load()["w"][-1], kept.load()["n"]
    (np.float64(999.0), 3)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = tempfile.gettempdir() if folder is None else os.fspath(folder)
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        self.end = 0

    def put(self, value: object) -> Spilled:
        """Write a value."""
        spilled = Spilled(self)
        spilled.store(value)
        return spilled

    def write(self, arrays: Iterable[tuple[np.ndarray, FilePlace]], at: int) -> None:
        """Write arrays to their places."""
        try:
            for array, place in arrays:
                self.file.seek(at + place.at)
                self.file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                self.file.write(bytes(-array.nbytes % ALIGNMENT))
            self.file.flush()
        except OSError as error:
            message = f"Portions of the data cannot be kept in {self.folder!r}: {error.strerror or error}."
            raise OSError(message) from error


class Spilled:
    """A value in a `SpillFile`."""

    def __init__(self, home: SpillFile) -> None:
        self.home = home
        self.at = self.room = self.size = 0
        self.skeleton: Any = None  # the value with places of arrays in place of them

    def store(self, value: object) -> None:
        """Write another value in place of this one: where it is, if there is room, else at the end, with more room."""
        arrays: dict[int, tuple[np.ndarray, FilePlace]] = {}
        end = 0

        def place(array: np.ndarray) -> np.ndarray | FilePlace:
            nonlocal end
            if array.nbytes < SMALL or array.dtype.hasobject:
                return array
            if id(array) not in arrays:
                arrays[id(array)] = array, FilePlace(array.dtype, array.shape, end)
                end += array.nbytes + -array.nbytes % ALIGNMENT
            return arrays[id(array)][1]

        self.skeleton = replace_arrays(value, np.ndarray, place)
        if end > self.room:
            grown = 2 * end if self.room else end  # what has grown once may do so again
            self.at, self.room = self.home.end, grown + -grown % mmap.ALLOCATIONGRANULARITY
            self.home.end += self.room
        self.size = end
        self.home.write(arrays.values(), self.at)

    def load(self, *, maps: bool = False) -> Any:
        """The value; its arrays can be changed, of which `store` makes something that lasts.

        They are read or, if said so, mapped, for as long as anything refers to them; then they cannot be stored again.
        """
        if not maps or not self.size:
            mapped: Any = bytearray(self.size)
            self.home.file.seek(self.at)
            self.home.file.readinto(mapped)
        else:
            mapped = mmap.mmap(self.home.file.fileno(), self.size, access=mmap.ACCESS_COPY, offset=self.at)
        made: dict[int, np.ndarray] = {}

        def read(place: FilePlace) -> np.ndarray:
            if place.at not in made:
                count = int(np.prod(place.shape, dtype=np.int64))
                made[place.at] = np.frombuffer(mapped, place.dtype, count, place.at).reshape(place.shape)
            return made[place.at]

        return replace_arrays(self.skeleton, FilePlace, read)


def replace_arrays(value: Any, kind: type, replace: Callable[[Any], Any]) -> Any:
    """A value in which everything of a kind is replaced by something else."""
    if isinstance(value, kind):
        return replace(value)
    if isinstance(value, dict):
        return {key: replace_arrays(item, kind, replace) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replace_arrays(item, kind, replace) for item in value))
    if type(value) in (list, tuple):
        return type(value)(replace_arrays(item, kind, replace) for item in value)
    return value
