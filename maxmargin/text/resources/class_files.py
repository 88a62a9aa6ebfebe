"""Files with classes of words, such as Brown's."""

from __future__ import annotations

from collections.abc import Mapping

from maxmargin.text.resources.installed_classes import find_installed_classes
from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, write_lines


def read_classes(source: FileToRead, *, encoding: str = "utf-8") -> dict[str, str]:
    r"""Read the classes of words from a file.

    A line has a word and its class, with a tab or spaces in between, and perhaps more, which is left out. Where all
    lines begin with a path of 0 and 1, as those of Brown's program do, the class comes first, then the word.

    Parameters
    ----------
    source : path or open file
        Or ``"spacy:en"``, Brown's paths of English that spacy-lookups-data brings (``pip install
        "maxmargin[classes]"``), which has German (de) and Spanish (es), too, or ``"spacy-case:en"``: in how many
        quarters of its texts a word is spelled in lower case, and with a capital (also el).
    encoding : str, default="utf-8"

    Returns
    -------
    dict of the class of each word

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_classes
    >>> read_classes(io.StringIO("0010\tthe\t68\n0111\tdog\t3\n"))
    {'the': '0010', 'dog': '0111'}
    >>> read_classes(io.StringIO("the DET\ndog NOUN\n"))
    {'the': 'DET', 'dog': 'NOUN'}
    """
    if isinstance(source, str) and (installed := find_installed_classes(source)) is not None:
        return installed
    lines = Lines(source, encoding)
    pairs: list[tuple[int, str, str]] = []
    for number, line in lines:
        if line is None or not line or line.isspace():
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) < 2 or not fields[0] or not fields[1]:
            lines.fail(number, "it must have a word and its class")
        pairs.append((number, fields[0], fields[1]))
    lines.check_any(pairs, "class of a word")
    is_path_first = all(first.strip("01") == "" for _, first, _ in pairs)
    classes: dict[str, str] = {}
    for number, first, second in pairs:
        word, name = (second, first) if is_path_first else (first, second)
        if classes.setdefault(word, name) != name:
            lines.fail(number, f"the word {word!r} has the class {name!r}, but had {classes[word]!r} before")
    return classes


def write_classes(target: FileToWrite, classes: Mapping[str, str]) -> None:
    r"""Write classes of words to a file that `read_classes` reads: a word, a tab and its class in each line.

    Parameters
    ----------
    target : path or open text file
    classes
        The class of each word.

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import write_classes
    >>> write_classes(sys.stdout, {"the": "0010", "dog": "0111"})  # doctest: +NORMALIZE_WHITESPACE
    the 0010
    dog 0111
    """
    for word, name in classes.items():
        if any(not text or text.isspace() or set(text) & set("\t\r\n") for text in (word, name)):
            raise ValueError(f"classes has {word!r}: {name!r}, but neither may be blank or hold tabs and line ends.")
    write_lines(target, (f"{word}\t{name}" for word, name in classes.items()))
