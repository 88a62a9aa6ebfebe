"""What comes with the package: common functions, compiled as far as all machines have in common.

More than two thirds of the time in which a function is compiled go to Numba's types and LLVM's intermediate code, which
are the same for all processors of a kind. So a wheel brings them, as bitcode of LLVM, in `FOLDER`, and on a new machine
only LLVM is left to work: it makes of them the very code that would be compiled there. They are written while the wheel
is built (`hatch_build.py`, by `maxmargin.cli.compiling_ahead.pack`); where they are not, as in a checkout, or none has
the hash of all that a function depends on, as with another version of Python or after an edit, functions are compiled.
These files are part of the package, and trusted as its code is. MAXMARGIN_BITCODE=0 leaves them alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from maxmargin.runtime import entries

FOLDER = Path(__file__).with_name("bitcode")
is_used = os.environ.get("MAXMARGIN_BITCODE", "1") not in ("", "0")
_packed_to: Path | None = None  # where all that is used is kept, while a wheel is built


@contextlib.contextmanager
def packing(folder: Path) -> Iterator[None]:
    """Keep what is compiled meanwhile, or found in `FOLDER`, in another folder, for a wheel."""
    global _packed_to  # noqa: PLW0603
    _packed_to = folder
    try:
        yield
    finally:
        _packed_to = None


def read(name: str) -> bytes:
    """What came with the package under a name."""
    if not is_used:
        raise FileNotFoundError(name)
    content = entries.read(FOLDER / name, is_trusted=True)
    keep(name, lambda: content)
    return content


def keep(name: str, make: Callable[[], bytes]) -> None:
    """Make something, and keep it for a wheel, where one is built."""
    if _packed_to is not None:
        entries.write(_packed_to / name, make())
