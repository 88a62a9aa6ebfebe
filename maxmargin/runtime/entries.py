"""The files in which compiled functions are kept, and where they are.

Reading one runs what is in it, so that only those are read which nobody else could have written: files of this user,
of root or of the owner of this very package, which others cannot write to. Each begins with a hash of its name and
content, so that none is read in the place of another.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import stat
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import config, serialize

from maxmargin.persist.files import remove_abandoned, replacing

ENDING = ".loop"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Where compiled functions are kept, so that later processes need not compile them again.

    It is what the environment variable MAXMARGIN_CACHE_DIR says, or else NUMBA_CACHE_DIR; by default ``maxmargin``
    among the user's caches: in ``~/.cache`` or XDG_CACHE_HOME, ``~/Library/Caches`` on macOS, LOCALAPPDATA on Windows.
    All of it can be deleted at any time.

    Examples
    --------
    >>> from pathlib import Path
    >>> from maxmargin.runtime import cache_folder
    >>> isinstance(cache_folder(), Path)
    True
    """
    given = os.environ.get("MAXMARGIN_CACHE_DIR") or vars(config)["CACHE_DIR"]
    if given:
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "maxmargin"
    variable, usual = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / usual) / "maxmargin"


def folder_of(function: Callable) -> Path:
    """Where the entries of a function are: each place of a package has a folder of its own."""
    package = function.__module__.partition(".")[0]
    source = getattr(sys.modules.get(package), "__file__", None) or ""
    digest = hashlib.sha256(os.path.dirname(os.path.abspath(source)).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"{package}-{digest[:12]}"


class Entry(NamedTuple):
    """What is on disk of a compiled function, after a hash."""

    counts_references: bool  # then it calls Numba's runtime, which takes 20 MB of memory to set up
    reduced: tuple[Any, ...]  # Numba's own form

    @classmethod
    def of(cls, compiled: Any) -> Entry:
        """Without what only a caller that inlines it would need, or a reader: most of Numba's form.

        Of the code for inlining the names of functions stay, which Numba looks up.
        """
        library = compiled.library
        (name, kind, (machine_code, bitcode)), *others = compiled._reduce()
        names = [function.name for function in library.get_defined_functions()]
        outline = llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names))
        others = ["" if isinstance(item, str) else item for item in others]  # a listing of the types of variables
        called = [function.name.lower() for function in llvm.parse_bitcode(bitcode).functions]
        counts_references = any(name.startswith("nrt_") for name in called)
        return cls(counts_references, ((name, kind, (machine_code, outline.as_bitcode())), *others))

    def write(self, path: Path) -> None:
        """Write the file whole or not at all, in place of older ones, whose names differ after the last dash only."""
        content = serialize.dumps(tuple(self))
        place = path.stem.rpartition("-")[0] + "-"
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path.parent, place)
        with replacing(path, mode=0o644, lasts=False) as file:
            file.write(_hash(path, content) + content)
        for name in os.listdir(path.parent):
            if name.startswith(place) and name.endswith(ENDING) and name != path.name:
                (path.parent / name).unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> Entry:
        """Read a file that `write` has written, and nobody else could have."""
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if os.name == "posix" and (status.st_uid not in _trusted() or status.st_mode & OTHERS_WRITE):
                warnings.warn(
                    f"Compiled functions in {path.parent} are not used, as others could have written them: they must "
                    "belong to you, to root or to the owner of the package, and only their owner may write to them.",
                    stacklevel=2,
                )
                raise PermissionError(path)
            content = file.read()
        size = hashlib.sha256().digest_size
        if _hash(path, content[size:]) != content[:size]:
            raise ValueError(f"{path} is damaged.")
        return cls(*pickle.loads(content[size:]))


@functools.cache
def _trusted() -> set[int]:
    """Users who could run what they like here anyway."""
    return {os.geteuid(), 0, os.stat(__file__).st_uid}


def _hash(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()
