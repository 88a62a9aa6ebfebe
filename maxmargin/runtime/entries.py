"""The files in which compiled functions are kept, and where they are.

Reading one runs what is in it, so that only those are read which nobody else could have written: files of this user,
of root or of the owner of this very package, which others cannot write to. Each begins with a hash of its name and
content, so that none is read in the place of another.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import llvmlite
import numba
import numpy as np

from maxmargin.persist.files import remove_abandoned, replacing
from maxmargin.runtime.numba_private import settings

ENDING = ".loop"
PYTHON = MAGIC_NUMBER, EXTENSION_SUFFIXES[0]  # of its bytecode and of its binary interface
OF_NUMBA = [  # what bitcode calls and is called by
    *("_arraystruct.h", "_dynfunc.c", "_helperlib.c", "_numba_common.h", "_pymodule.h"),
    *(f"core/{name}.py" for name in ("callconv", "compiler", "environment", "funcdesc", "pythonapi", "serialize")),
]
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
    given = os.environ.get("MAXMARGIN_CACHE_DIR") or vars(numba.config)["CACHE_DIR"]
    if given:
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "maxmargin"
    variable, usual = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / usual) / "maxmargin"


def folder_of(function: Callable[..., object]) -> Path:
    """Where the entries of a function are: each place of a package has a folder of its own."""
    package = function.__module__.partition(".")[0]
    source = getattr(sys.modules.get(package), "__file__", None) or ""
    digest = hashlib.sha256(os.path.dirname(os.path.abspath(source)).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / f"{package}-{digest[:12]}"


@functools.cache
def surroundings() -> str:
    """A hash of what all compiled code depends on: versions, settings, and the files that lay out memory."""
    return _hash_of((PYTHON, numba.__version__, llvmlite.__version__, np.__version__, settings()), [])


@functools.cache
def surroundings_of_bitcode() -> str:
    """As `surroundings`, of what bitcode depends on, so that a wheel goes with more versions than it was built with.

    It calls functions of Python and of Numba by their names, and none of NumPy, whose version says nothing, therefore:
    arrays come as addresses, or through a function of Numba. Of Numba it has these functions, how functions are called,
    and what a result is: bugfix releases in which the files with all that are the same make no difference.
    """
    numbers = [version.split(".")[:2] for version in (numba.__version__, llvmlite.__version__)]
    return _hash_of((PYTHON, numbers, settings()), [Path(numba.__file__).parent / name for name in OF_NUMBA])


def _hash_of(values: object, paths: list[Path]) -> str:
    """A hash of values, of files, and of those here that lay out memory."""
    digest = hashlib.sha256(repr(values).encode())
    rooms = [Path(__file__).parents[1] / room for room in ("arrays", "runtime")]
    for path in [*paths, *(path for room in rooms for path in sorted(room.glob("*.py")))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, in place of older ones, whose names differ after the last dash only."""
    place = path.stem.rpartition("-")[0] + "-"
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent, place)
    with replacing(path, mode=0o644, lasts=False) as file:
        file.write(_hash(path, content) + content)
    for name in os.listdir(path.parent):
        if name.startswith(place) and name.endswith(ENDING) and name != path.name:
            (path.parent / name).unlink(missing_ok=True)


def read(path: Path, *, is_trusted: bool = False) -> bytes:
    """What `write` has written, and nobody else could have, unless the file is trusted anyway."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not is_trusted and os.name == "posix" and (status.st_uid not in _trusted() or status.st_mode & OTHERS_WRITE):
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
    return content[size:]


@functools.cache
def _trusted() -> set[int]:
    """Users who could run what they like here anyway."""
    return {os.geteuid(), 0, os.stat(__file__).st_uid}


def _hash(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()
