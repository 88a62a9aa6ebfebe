"""Where files of sentences have tokens and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxmargin.checks import check_choice
from maxmargin.persist.registry import register
from maxmargin.text.schemes import scheme_named
from maxmargin.text.sentence_files.conllu import Word
from maxmargin.text.sentence_files.line_files import COMPRESSED, check_encoding
from maxmargin.wording import quote

SUFFIXES = {".conllu": "conllu", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
SUFFIXES |= {".ann": "brat", ".spacy": "docbin"}
TEXT_FORMATS = ("text", "standoff", "brat", "doccano", "labelstudio", "spacy", "docbin")  # of texts that have no tokens
DEFAULTS: dict[str, tuple[Any, Any]] = {
    "columns": (None, -1),
    "conllu": ("form", "upos"),
    "json": ("tokens", "tags"),
    **dict.fromkeys(TEXT_FORMATS, (None, None)),
}


@register
@dataclass(frozen=True)
class Layout:
    """Where a file has its tokens and their tags.

    Parameters
    ----------
    format
        {"columns", "conllu", "json"}, or that of a file of texts, {"text", "standoff", "brat", "doccano",
        "labelstudio", "spacy", "docbin"}: see `read_texts`. Those have words only, and tags of IOB2.
    x
        What tokens are made of: numbers of columns, names of columns of CoNLL-U, such as "form", or the field of JSON
        lines. Several make tuples. By default all columns but y, "form", or "tokens".
    y
        The column or field of tags; by default the last column, "upos", or "tags".
    width
        The number of columns, which the layout of a file that was read has.
    separator, comments
        As in `read_columns`.
    encoding
        Of the file.
    scheme
        That of its tags, if it is known: predictions are written in it.
    unknown
        The tag, such as "UNK", that stands where the tag is not known: y has None there.
    tokenizer
        What makes tokens of texts: {"rules", "lines", "blanks"} or "spacy:LANGUAGE"; by default "rules", those of
        `tokenize`. With "lines" each line is a sentence, with "blanks" tokens are what is between blanks.

    Examples
    --------
    >>> from maxmargin.text import Layout
    >>> Layout("conllu", x=("form", "xpos")).y
    'upos'
    """

    format: str = "columns"
    x: Any = None
    y: Any = None
    width: int | None = None
    separator: str | None = None
    comments: str | None = None
    encoding: str = "utf-8"
    scheme: str | None = None
    unknown: str | None = None
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        check_choice("format", self.format, DEFAULTS)
        check_encoding(self.encoding)
        if self.scheme is not None:
            scheme_named(self.scheme)
        for name, default in zip("xy", DEFAULTS[self.format], strict=True):
            value = simplest(getattr(self, name))
            object.__setattr__(self, name, default if value is None else value)
        if self.format in TEXT_FORMATS and (self.x is not None or self.y is not None):
            raise ValueError(f"Files of the format {self.format!r} have no columns: leave them out.")
        allowed = {"columns": "numbers", "conllu": f"of {', '.join(Word._fields)}", "json": "names of fields, one each"}
        for name in [*several(self.x), *several(self.y)]:
            is_known = isinstance(name, int if self.format == "columns" else str)
            if not is_known or (self.format == "conllu" and name not in Word._fields):
                raise ValueError(f"Columns must be {allowed[self.format]}, not {quote(name)}.")
        if isinstance(self.y, tuple) or (self.format == "json" and isinstance(self.x, tuple)):
            raise ValueError(
                f"Columns must be {allowed['json']}, not {quote(self.y if self.format != 'json' else self.x)}."
            )
        if self.y in several(self.x):
            raise ValueError(f"The tags, {quote(self.y)}, cannot be part of the tokens: leave them out of the columns.")


def simplest(value: object) -> Any:
    """Lists as tuples, and a list of one as what it holds."""
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else tuple(value)
    return value


def several(value: object) -> Sequence[Any]:
    """The columns of a layout, one or several, as a sequence."""
    return value if isinstance(value, tuple) else () if value is None else (value,)


def find_format(name: object) -> str:
    """The format of a file by the end of its name: "conllu", "json", "brat", "docbin" or, of all others, "columns".

    A folder is one of brat.

    Examples
    --------
    >>> from maxmargin.text import find_format
    >>> find_format("train.jsonl"), find_format("train.txt")
    ('json', 'columns')
    """
    path = Path(str(name))
    if path.is_dir():
        return "brat"
    return SUFFIXES.get(Path(path.stem if path.suffix.lower() in COMPRESSED else path).suffix.lower(), "columns")
