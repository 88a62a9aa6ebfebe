"""Where the public names are defined, so that each is loaded on first use.

They are written once, in `__init__.pyi`, which type checkers and editors read, too.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (\S+) import ([A-Za-z]\w*) as \2$", re.MULTILINE)


@cache
def homes(package: str = "maxmargin") -> dict[str, str]:
    """The modules in which a package's public names are defined, by name; rooms that are public are in it itself."""
    stub = Path(__file__).parent.joinpath(*package.split(".")[1:], "__init__.pyi")
    return {name: home for home, name in _LINE.findall(stub.read_text(encoding="utf-8"))}


def names_in(room: str, listed_in: str = "maxmargin") -> list[str]:
    """The public names that are defined in the modules of a room, sorted."""
    return sorted((name for name, home in homes(listed_in).items() if home.startswith(f"{room}.")), key=str.lower)


def find(name: str, room: str, listed_in: str = "maxmargin") -> Any:
    """What a public name stands for, asked for as an attribute of a room of the package, or of the package itself."""
    home = homes(listed_in).get(name, "")
    if home == room:  # so that `import maxmargin` is enough
        return importlib.import_module(f"{home}.{name}")
    if not home.startswith(f"{room}."):
        raise AttributeError(f"module {room!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def load_lazily(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a package that lists public names of its own."""
    names = names_in(package, listed_in=package)
    return names, partial(find, room=package, listed_in=package), names.copy
