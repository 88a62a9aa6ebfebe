"""The commands of texts: finding entities, converting, suggesting, checking, reporting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.cli import options
from maxmargin.cli.common import STDIN, reports_errors
from maxmargin.cli.text_commands.format_options import FORMATS, Format, TextEncoding, Tokenizer


def tag(
    model: options.Model,
    file: Annotated[list[Path] | None, options.inputs("text", metavar="[FILE...]", show_default="-")] = None,
    output: options.Output = None,
    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            help=f"Format to write: {FORMATS}.",
            metavar="FORMAT",
            show_default="standoff, or by the end of the name",
        ),
    ] = None,
    read: Annotated[
        Format | None,
        typer.Option(
            "--read",
            help="Format of the files, one of those of --format.",
            metavar="FORMAT",
            show_default="text, or by the end of the name",
        ),
    ] = None,
    encoding: options.SameEncoding = None,
    tokenizer: Tokenizer = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Probability that entities must have.", show_default="that of the model"),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Write a page to look at, in place of a format.")] = False,
) -> None:
    """Find the entities of texts as they are: a line of JSON for each file, with characters and probabilities.

    Other formats are those of brat, Doccano, Label Studio and spaCy.
    """
    from maxmargin.cli.text_commands.raw_text import run_tag

    if html and format is not None:
        raise typer.BadParameter("--html and --format are two ways to write: give one of them.")
    how = {"source_format": read, "format": "html" if html else format, "encoding": encoding, "tokenizer": tokenizer}
    run_tag(model, file or [STDIN], output, **how, threshold=threshold)


def convert(
    file: Annotated[list[Path], options.inputs("tagged sentences or texts", metavar="FILE...")],
    output: options.Output = None,
    format: options.FileFormat = None,
    to: Annotated[
        Format | None,
        typer.Option(
            "--to",
            "-t",
            help="Format to write, one of those of --format.",
            metavar="FORMAT",
            show_default="columns, or by the end of the name",
        ),
    ] = None,
    encoding: TextEncoding = "utf-8",
    tokenizer: Tokenizer = None,
) -> None:
    """Write files of tagged sentences, or of texts with entities, in another format.

    Texts that are made of sentences have a sentence per line, with blanks between words.
    """
    from maxmargin.cli.text_commands.raw_text import run_convert

    run_convert(file, output, source=format, target=to, encoding=encoding, tokenizer=tokenizer)


def suggest(
    model: options.Model,
    file: options.Inputs = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many sentences to show.")] = 20,
    format: options.SameFormat = None,
    encoding: options.SameEncoding = None,
    json: options.Json = False,
) -> None:
    """Show the sentences that a tagger is least sure of: those that are worth most if people tag them."""
    from maxmargin.cli.text_commands.suggesting import run_suggest

    run_suggest(model, file or [STDIN], format, encoding, n=number, as_json=json)


def check(
    file: Annotated[list[Path], options.inputs("tagged sentences", metavar="FILE...")],
    format: options.FileFormat = None,
    encoding: TextEncoding = "utf-8",
    tokenizer: Tokenizer = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail for warnings, too.")] = False,
    json: options.Json = False,
) -> None:
    """Look for what is wrong, or odd, about tagged sentences, those to train on first.

    Tags that break rules, sentences with other tags elsewhere, what train and test share, odd characters, rare types.
    The exit code is 1 where there are errors.
    """
    from maxmargin.cli.text_commands.checking import run_check

    run_check(file, format, encoding, tokenizer, is_strict=strict, as_json=json)


def report(
    model: options.Model,
    file: Annotated[
        list[Path] | None,
        options.inputs("tagged sentences, held out; models among them are compared", metavar="[FILE...]"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.", metavar="FILE")] = Path(
        "fit.html"
    ),
    train: Annotated[
        Path | None, typer.Option(help="What it was trained on, to be compared with the others.", metavar="FILE")
    ] = None,
    format: options.SameFormat = None,
    encoding: options.SameEncoding = None,
) -> None:
    """Write a page on what a tagger, or a parser, gets wrong, and why: one file of HTML that needs no network."""
    from maxmargin.cli.text_commands.reporting import run_report

    run_report(model, file or [], output, train, format, encoding)


def add_commands(app: typer.Typer) -> None:
    """Make them commands."""
    for command in (tag, convert, suggest, check, report):
        app.command()(reports_errors(command))
