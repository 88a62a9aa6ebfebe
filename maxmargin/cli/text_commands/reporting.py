"""`maxmargin report`: a page on what a tagger, or a parser, has learned, and what it gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from maxmargin.cli.common import (
    check_tagger,
    is_parser,
    keep_apart,
    load_tagger,
    read_files,
    same_tokens,
    say,
    tell_size,
)
from maxmargin.cli.tagging import is_model, true_tags
from maxmargin.cli.tags import check_tags_known
from maxmargin.cli.text_commands.tree_files import check_format, read_trees
from maxmargin.persist import check_writable, load
from maxmargin.tagger.word_tagger import Tagger

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


def run_report(
    model: Path, given: list[Path], output: Path, train: Path | None, format: str | None, encoding: str | None
) -> None:
    """Write the page of a tagger: on held-out sentences, if there are any, beside other taggers, if there are."""
    found, files = load(model), [path for path in given if not is_model(path)]
    keep_apart(check_writable(output), "page", [*given, model, *([] if train is None else [train])])
    if is_parser(found):
        check_format(format)
        if train is not None:
            raise typer.BadParameter("--train compares tags, and a parser has none: leave it out.")
        others = [path for path in given if is_model(path)]
        report_parser(found, files, output, others, model.name, encoding)
    else:
        report_tags(check_tagger(found, model), given, files, output, train, model.name, format, encoding)
    say(f"The page is {tell_size(output)}.")


def report_parser(
    parser: Pipeline, files: list[Path], output: Path, others: list[Path], title: str, encoding: str | None
) -> None:
    """Write the page of a parser, whose trees are drawn as arcs, beside others of the same features."""
    beside = {}
    for path in others:
        other = load(path)
        if not is_parser(other) or repr(other[:-1]) != repr(parser[:-1]):
            raise ValueError(f"{str(path)!r} holds no parser with the features of {title}: it cannot be compared.")
        beside[path.name] = other[-1]
    sentences = read_trees(files, encoding)
    words, y = [sentence.column("form") for sentence in sentences], [sentence.arcs for sentence in sentences]
    examples = (parser[:-1].transform(sentences), y) if sentences else ()
    parser[-1].report(output, *examples, shown=words, others=beside, title=title)


def report_tags(
    tagger: Tagger,
    given: list[Path],
    files: list[Path],
    output: Path,
    train: Path | None,
    title: str,
    format: str | None,
    encoding: str | None,
) -> None:
    """Write the page of a tagger."""
    others = {path.name: load_tagger(path) for path in given if is_model(path)}
    parts = {}
    for name, paths in (("test", files), ("train", [] if train is None else [train])):
        if paths:
            document = read_files(paths, tagger.layout, format=format, encoding=encoding)
            check_tags_known(document)
            for who, one in {"the tagger": tagger, **others}.items():
                same_tokens(document, one, who)
            true_tags(document, tagger)  # which tells of lines that are wrong
            parts[name] = document.X, document.y or []
    X, y = parts.get("test", (None, None))
    tagger.report(output, X, y, train=parts.get("train"), others=others, title=title)
