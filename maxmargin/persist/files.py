"""Files that are there as a whole or not at all: written beside the old ones, whose place they then take."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # on Windows, where nobody can remove a file that is being written
    fcntl = None  # type: ignore[assignment]

Location = str | os.PathLike[str]  # of a file
LONGEST_NAME = 100  # of the name of a file in that of what is written beside it
ENDING = re.compile(r"\.[0-9a-f]{12}\.part\Z")


@contextmanager
def replacing(path: Location, *, mode: int | None = None, lasts: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of another once all is written; if writing fails, that one stays.

    Errors of writing, as of a full disk, are one sentence that names the file.

    Parameters
    ----------
    path
        Where.
    mode
        Its permissions, of which the umask takes some away; None are those of the file that it replaces, or all.
    lasts
        Whether it must be on disk, as a whole, even if the power fails right after.
    """
    target = check_writable(path)
    kept = stat.S_IMODE(target.stat().st_mode) if mode is None and target.exists() else None
    file, beside = _open_beside(target, mode if mode is not None else 0o666 if kept is None else kept)
    try:
        with file:
            if kept is not None:
                os.chmod(beside, kept)
            yield file
            file.flush()
            if lasts:
                os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.strerror and error.filename is None:
            raise type(error)(f"{os.fspath(path)!r} cannot be written: {error.strerror}.") from error
        raise
    if lasts:
        _sync_folder(target.parent)


def check_writable(path: Location) -> Path:
    """The file that a path leads to, through links; raises an OSError of one sentence if it cannot be written.

    What killed processes have left beside it goes away.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} cannot be written: it is a folder.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)!r} cannot be written: its folder does not exist.")
    try:
        remove_abandoned(target.parent, target.name)
        file, beside = _open_beside(target, 0o600)
        with file:
            beside.unlink()
    except OSError as error:
        raise type(error)(f"{os.fspath(path)!r} cannot be written: {error.strerror or error}.") from error
    return target


def remove_abandoned(folder: Path, begin: str) -> None:
    """Remove what killed processes have left beside files whose names begin so: what no process has locked."""
    begin = f".{begin[:LONGEST_NAME]}"
    for name in os.listdir(folder):
        if name.startswith(begin) and ENDING.search(name):
            with contextlib.suppress(OSError), _lock(folder / name):  # it is of another user, or in use
                os.unlink(folder / name)


def _open_beside(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A new file in the same folder, to be renamed; it is locked while it is open."""
    while True:
        beside = target.with_name(f".{target.name[:LONGEST_NAME]}.{uuid.uuid4().hex[:12]}.part")
        file = open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        if fcntl is not None:
            with contextlib.suppress(OSError):  # on file systems without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if beside.exists():  # if nobody took it for abandoned before it was locked
            return file, beside
        file.close()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock a file; raises an OSError if another process has."""
    if fcntl is None:
        yield
        return
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _sync_folder(folder: Path) -> None:
    """Make a rename last, where folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
