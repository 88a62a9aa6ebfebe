"""Where installed packages are that bring data on words."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def find_package(name: str, wanted: str, *, extra: str) -> Path:
    """The folder of a package that something needs; raises an error that names the extra it is in."""
    found = find_spec(name.replace("-", "_"))
    if found is None or found.origin is None:
        raise ValueError(f'{wanted} needs {name}: pip install "maxmargin[{extra}]".')
    return Path(found.origin).parent
