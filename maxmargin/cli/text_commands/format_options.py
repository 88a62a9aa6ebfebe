"""The formats of files, and what makes tokens of texts, as options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FILES = "Files"  # a part of what --help prints


class Format(StrEnum):
    """Formats of files: of sentences, and of texts."""

    columns = "columns"
    conllu = "conllu"
    json = "json"
    text = "text"
    standoff = "standoff"
    brat = "brat"
    doccano = "doccano"
    labelstudio = "labelstudio"
    spacy = "spacy"
    docbin = "docbin"


FORMATS = ", ".join(Format)
WRITTEN_ONLY = {"html": "html", "jsonl": "standoff"}  # formats of predictions, and what they are called for texts


Predicted = StrEnum("Predicted", [(name, name) for name in (*Format.__members__, *WRITTEN_ONLY)])  # type: ignore[misc]


def check_encoding(name: str | None) -> str | None:
    """Check that Python knows an encoding."""
    try:
        "".encode(name or "utf-8")
    except LookupError:
        raise typer.BadParameter(f"{name!r} is no encoding that Python knows.") from None
    return name


def check_tokenizer(name: str | None) -> str | None:
    """Check that there is a tokenizer of a name."""
    from maxmargin.text.standoff.tokenizer import find_tokenizer

    try:
        find_tokenizer(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return name


PredictedFormat = Annotated[
    Predicted | None,
    typer.Option(
        "--format",
        "-f",
        rich_help_panel=FILES,
        help=f"Format of the files: {FORMATS}; or one that is only written: html, jsonl.",
        metavar="FORMAT",
        show_default="that of the training file",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        rich_help_panel=FILES,
        callback=check_tokenizer,
        help="What makes tokens of texts: rules, lines (each a sentence), blanks, or spacy:LANGUAGE.",
        show_default="rules, or as in training",
    ),
]
Texts = Annotated[
    list[Path],
    typer.Argument(
        help="Files of text: a sentence per line, blanks between words.",
        exists=True,
        dir_okay=False,
        metavar="FILE...",
    ),
]
MinCount = Annotated[int, typer.Option(min=1, help="Leave out words that occur less often.")]
VectorLength = Annotated[int, typer.Option("--size", min=1, help="Length of vectors.")]
TextEncoding = Annotated[str, typer.Option("--encoding", help="Encoding of the files.", callback=check_encoding)]
