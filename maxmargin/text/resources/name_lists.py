"""Lists of names: in files, folders and packages."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from maxmargin.text.resources.installed_names import PREFIX, find_installed_names
from maxmargin.text.sentence_files.line_files import Lines


def read_gazetteers(path: str | PathLike[str], *, encoding: str = "utf-8") -> dict[str, list[str]]:
    r"""Read lists of names, one per line, from a file or from all files of a folder.

    Parameters
    ----------
    path
        A file, or a folder of files; what begins with a dot is left out. Or ``"mimesis:en"``, the names of people,
        places, companies and universities that mimesis brings (``pip install "maxmargin[names]"``) of this language, or
        ``"mimesis:all"``, those of all its languages.
    encoding : str, default="utf-8"

    Returns
    -------
    dict of lists of names by title, the name of the file without its end

    Examples
    --------
    >>> from pathlib import Path
    >>> from maxmargin.text import read_gazetteers
    >>> Path("lists").mkdir(exist_ok=True)
    >>> _ = Path("lists", "city.txt").write_text("New York\nRome\n")
    >>> read_gazetteers("lists")
    {'city': ['New York', 'Rome']}
    """
    if isinstance(path, str) and path.startswith(PREFIX):
        return find_installed_names(path.removeprefix(PREFIX))
    path = Path(path)
    files = [file for file in sorted(path.iterdir()) if not file.name.startswith(".")] if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path} holds no lists of names: the folder is empty.")
    lists: dict[str, list[str]] = {}
    for file in files:
        if file.stem in lists:
            raise ValueError(f"{path} has two lists of the title {file.stem!r}: give one another name.")
        lists[file.stem] = read_names(file, encoding)
    return lists


def read_names(path: Path, encoding: str = "utf-8") -> list[str]:
    """The names in a file, one per line, of which there must be some."""
    if path.is_dir():
        raise ValueError(f"{path} must be a file of names, but is a folder, whose files have titles of their own.")
    lines = Lines(path, encoding)
    names = [line.strip() for _, line in lines if line and not line.isspace()]
    lines.check_any(names, "names, but blank lines at most")
    return names
