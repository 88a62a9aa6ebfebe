"""Lists of names that a package brings: those of mimesis, which makes up data of people and places."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from maxmargin.text.resources.packages import find_package

PREFIX = "mimesis:"  # begins what stands in the place of a file
EVERY = "all"  # in the place of a language
SOURCES: dict[str, tuple[tuple[str, ...], ...]] = {  # of each list: a file, and where it has the names
    "forename": (("person", "names"),),
    "surname": (("person", "surnames"),),
    "nationality": (("person", "nationality"),),
    "university": (("person", "university"),),
    "city": (("address", "city"),),
    "country": (("address", "country", "name"),),
    "state": (("address", "state", "name"),),
    "company": (("finance", "company", "name"), ("finance", "banks")),
}


def find_installed_names(language: str) -> dict[str, list[str]]:
    """The lists of names of a language, such as "en", in all its countries, or of all languages, by title."""
    folder = find_package("mimesis", f"{PREFIX}{language}", extra="names") / "datasets"
    languages = sorted(path.parent.name for path in folder.glob("*/person.json"))
    chosen = [name for name in languages if language in (EVERY, name, name.partition("-")[0])]
    if not chosen:
        raise ValueError(f"mimesis has no names of {language!r}, but of {EVERY}, {', '.join(languages)}.")
    lists = {title: dict.fromkeys(name for n in chosen for name in read_list(folder / n, title)) for title in SOURCES}
    return {title: [*names] for title, names in lists.items() if names}


def read_list(folder: Path, title: str) -> Iterator[str]:
    """The names of a list in the files of one language; some languages have none of some lists."""
    for file, *keys in SOURCES[title]:
        path = folder / f"{file}.json"
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        for key in keys:
            found = found.get(key, {})
        yield from filter(str.strip, strings_in(found))


def strings_in(values: object) -> Iterator[str]:
    """The strings of lists, and of dicts, which tell names of men and women apart."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, list | dict):
        for value in values.values() if isinstance(values, dict) else values:
            yield from strings_in(value)
