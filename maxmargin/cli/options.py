"""The options of the commands, each written once."""

from __future__ import annotations

import os
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Optional

import typer


class Format(StrEnum):
    """Formats of files."""

    columns = "columns"
    conllu = "conllu"
    json = "json"


class Kind(StrEnum):
    """Kinds of models."""

    crf = "crf"
    svm = "svm"


def split_columns(text: str | None) -> list[Any] | None:
    """Columns between commas: numbers, or names."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise typer.BadParameter(f"{text!r} must be columns with commas in between, such as 0,1 or form,xpos.")
    return [int(part) if part.lstrip("-").isdecimal() else part for part in parts]


def _encoding(name: str | None) -> str | None:
    try:
        "".encode(name or "utf-8")
    except LookupError:
        raise typer.BadParameter(f"{name!r} is no encoding that Python knows.") from None
    return name


def _separator(text: str | None) -> str | None:
    return text and text.replace("\\t", "\t")  # as few shells let users type a tab


def _checked_columns(text: str | None) -> str | None:
    split_columns(text)
    return text


def _gazetteers(names: list[str] | None) -> list[str]:
    for name in names or []:
        title, _, path = name.partition("=")
        if not title or not path:
            raise typer.BadParameter(f"{name!r} must be a name and a file, such as city=cities.txt.")
    return names or []


def check_plot(path: Path | None) -> Path | None:
    """Find out before training what would prevent writing the plot."""
    if path is None:
        return None
    if path.suffix.lower() != ".png":
        raise typer.BadParameter(f"{str(path)!r} must end in .png.")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise typer.BadParameter(f"the folder {str(path.parent)!r} does not exist or cannot be written to.")
    if find_spec("matplotlib") is None:
        raise typer.BadParameter('plots need matplotlib: pip install "maxmargin[plot]".')
    return path


TRAIN = typer.Argument(help="File of tagged sentences; - is standard input.", metavar="FILE", allow_dash=True)
INPUT = typer.Argument(help="File of sentences; - is standard input.", metavar="FILE", allow_dash=True)
MODEL = typer.Argument(
    help="File that `maxmargin train` or `path` has written.", exists=True, dir_okay=False, metavar="MODEL"
)

Train = Annotated[Path, TRAIN]
Input = Annotated[Path, INPUT]
Model = Annotated[Path, MODEL]
Dev = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--dev", help="Held-out file, scored while training: the best weights are kept.", metavar="FILE"),
]
Output = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--model",
        "-m",
        "--output",
        "-o",
        help="Where to write the model.",
        show_default="FILE with .model",
        metavar="MODEL",
    ),
]
FileFormat = Annotated[
    Optional[Format],  # noqa: UP045
    typer.Option(
        "--format", "-f", rich_help_panel="Files", help="Format of the files.", show_default="by the end of the name"
    ),
]
Columns = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--columns",
        rich_help_panel="Files",
        callback=_checked_columns,
        help="Columns of tokens, from 0, or names in CoNLL-U.",
        show_default="all but the tags",
    ),
]
Tags = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--tags",
        rich_help_panel="Files",
        callback=_checked_columns,
        help="Column or field of tags.",
        show_default="last column, upos, or tags",
    ),
]
Separator = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--separator",
        rich_help_panel="Files",
        callback=_separator,
        help="What separates columns; \\t is a tab.",
        show_default="spaces and tabs",
    ),
]
Comments = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--comments",
        rich_help_panel="Files",
        help="What lines of comments begin with, in column files.",
        show_default="there are none",
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", rich_help_panel="Files", help="Encoding of the files.", callback=_encoding)
]
SameEncoding = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--encoding",
        rich_help_panel="Files",
        help="Encoding of the file.",
        callback=_encoding,
        show_default="that of the file it was trained on",
    ),
]
Type = Annotated[Kind, typer.Option("--type", help="Conditional random field, or structural SVM.")]
Scheme = Annotated[
    str,
    typer.Option("--scheme", help="Scheme to convert tags to, such as bilou; auto finds theirs, none has no rules."),
]
MinCount = Annotated[
    int,
    typer.Option("--min-count", rich_help_panel="Features", min=1, help="Leave out features that occur less often."),
]
Window = Annotated[
    int, typer.Option("--window", rich_help_panel="Features", min=0, help="Words on either side that are features.")
]
Affixes = Annotated[
    int, typer.Option("--affixes", rich_help_panel="Features", min=0, help="Length of the longest prefix and suffix.")
]
Gazetteers = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--gazetteer",
        rich_help_panel="Features",
        callback=_gazetteers,
        help="A list of names, one per line, and its title; may be repeated.",
        metavar="TITLE=FILE",
    ),
]
Plot = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--plot", help="PNG file to draw to.", callback=check_plot, metavar="FILE", dir_okay=False, writable=True
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of SVMs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
