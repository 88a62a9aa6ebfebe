"""Classes of words that a package brings: Brown's paths of spacy-lookups-data, and how its words are mostly spelled."""

from __future__ import annotations

import gzip
import json
from math import exp

from maxmargin.text.resources.packages import find_package

PATHS, CASES = "spacy:", "spacy-case:"  # begin what stands in the place of a file
LENGTH = 20  # bits of a path, which the longest ones of the package do not reach
RARE = 1.5  # logarithm of how many times as frequent as the rarest a word must be to tell how it is spelled
SHARES = 4  # into which spellings are divided


def find_installed_classes(source: str) -> dict[str, str] | None:
    """The classes of the words of a language, such as "spacy:en" or "spacy-case:en"; None if this is another source."""
    if source.startswith(PATHS):
        return find_paths(read_table(source, PATHS, "lexeme_cluster"))
    if source.startswith(CASES):
        return find_cases(read_table(source, CASES, "lexeme_prob"))
    return None


def read_table(source: str, prefix: str, title: str) -> dict[str, float]:
    """The numbers of the words of a language in a table of the package."""
    folder = find_package("spacy-lookups-data", source, extra="classes") / "data"
    language, end = source.removeprefix(prefix), f"_{title}.json.gz"
    path = folder / f"{language}{end}"
    if not path.is_file():
        known = ", ".join(sorted(file.name.removesuffix(end) for file in folder.glob(f"*{end}")))
        raise ValueError(f"{prefix} has no classes of {language!r} in spacy-lookups-data, but of {known}.")
    return json.loads(gzip.decompress(path.read_bytes()))


def find_paths(numbers: dict[str, float]) -> dict[str, str]:
    """The paths of words in Brown's tree.

    The package has paths as numbers, whose lowest bit is the first of the path, and 0 for what has none. So zeros at
    the end of a path are lost: all are filled up with zeros, which keeps them apart, as no path begins another one.
    """
    return {word: format(int(number), f"0{LENGTH}b")[::-1] for word, number in numbers.items() if number}


def find_cases(logs: dict[str, float]) -> dict[str, str]:
    """How often words in lower case are spelled so, and with a capital, in quarters: "0:4" is a name, "4:0" is none.

    The rest is spelled in capitals. Logarithms of probabilities are given; what is not there is as rare as the rarest.
    """
    rarest, classes = min(logs.values()), {}
    frequent = (word for word, log in logs.items() if log > rarest + RARE)
    for word in dict.fromkeys(word.lower() for word in frequent if word.lower() != word.upper()):
        spellings = word, word.capitalize(), word.upper()
        small, capital, all_capitals = (exp(logs.get(spelled, rarest)) for spelled in spellings)
        unit = (small + capital + all_capitals) / SHARES
        classes[word] = f"{round(small / unit)}:{round(capital / unit)}"
    return classes
