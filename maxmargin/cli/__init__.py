"""The command `maxmargin`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import maxmargin

app = typer.Typer(no_args_is_help=True, add_completion=False)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"maxmargin {maxmargin.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Structured prediction with a certificate for every fit."""


def _check_plot(path: Path | None) -> Path | None:
    """Find out before training what would prevent writing the plot."""
    if path is None:
        return None
    if path.suffix.lower() != ".png":
        raise typer.BadParameter(f"'{path}' must end in .png.")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise typer.BadParameter(f"the folder '{path.parent}' does not exist or cannot be written to.")
    if find_spec("matplotlib") is None:
        raise typer.BadParameter('plots need matplotlib: pip install "maxmargin[plot]".')
    return path


@app.command()
def demo(
    words: Annotated[int, typer.Option(min=20, help="Number of words to train on.")] = 200,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the words and of the training.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="PNG file to draw the training and an example to.",
            callback=_check_plot,
            metavar="FILE",
            dir_okay=False,
            writable=True,
        ),
    ] = None,
) -> None:
    """Learn to read words of handwritten digits, and compare with a linear SVM that reads digit by digit."""
    from maxmargin.cli.digits_demo import run_demo

    run_demo(words, seed, plot)
