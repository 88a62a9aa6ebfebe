"""Classes of words that a package brings: those of spacy-lookups-data, learned by Brown's algorithm."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

PREFIX = "spacy:"  # begins what stands in the place of a file
PACKAGE = "spacy_lookups_data"
LENGTH = 20  # bits of a path, which the longest ones of the package do not reach


def find_installed_classes(language: str) -> dict[str, str]:
    """The paths of the words of a language, such as "en".

    The package has paths as numbers, whose lowest bit is the first of the path, and 0 for what has none. So zeros at
    the end of a path are lost: all are filled up with zeros, which keeps them apart, as no path begins another one.
    """
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ValueError(f'{PREFIX}{language} needs spacy-lookups-data: pip install "maxmargin[classes]".')
    folder, end = Path(found.origin).parent / "data", "_lexeme_cluster.json.gz"
    path = folder / f"{language}{end}"
    if not path.is_file():
        known = ", ".join(sorted(file.name.removesuffix(end) for file in folder.glob(f"*{end}")))
        raise ValueError(f"spacy-lookups-data has no classes of {language!r}, but of {known}.")
    numbers = json.loads(gzip.decompress(path.read_bytes()))
    return {word: format(number, f"0{LENGTH}b")[::-1] for word, number in numbers.items() if number}
