"""`maxmargin clusters` and `maxmargin vectors`: from text to classes of words, and to their vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from maxmargin.cli.common import keep_apart, say, tell_size
from maxmargin.persist import check_writable
from maxmargin.text import FeatureSources, cluster_vectors, learn_classes, learn_vectors, write_classes, write_vectors
from maxmargin.wording import count_of

if TYPE_CHECKING:
    from maxmargin.cli.options import Choices
    from maxmargin.tagger.word_tagger import Tagger
    from maxmargin.text import Document

TITLE = "class"  # of classes of words that are learned from text


def run_clusters(
    files: list[Path], output: Path, by: str, n_classes: int, min_count: int, max_passes: int, size: int, encoding: str
) -> None:
    """Learn classes of the words in files and write them to another."""
    keep_apart(check_writable(output), "file of classes", files)
    options: dict[str, Any] = {"min_count": min_count, "encoding": encoding}
    if by == "vectors":
        found = cluster_vectors(learn_vectors(tuple(files), size=size, **options), n_classes)
    else:
        found = learn_classes(tuple(files), n_classes=n_classes, max_passes=max_passes, **options)
    write_classes(output, found)
    say(f"{count_of(len(found), 'word')} in {len({*found.values()})} classes are in {tell_size(output)}.")


def run_vectors(files: list[Path], output: Path, size: int, min_count: int, encoding: str) -> None:
    """Learn vectors of the words in files and write them to another."""
    keep_apart(check_writable(output), "file of vectors", files)
    found = learn_vectors(tuple(files), size=size, min_count=min_count, encoding=encoding)
    write_vectors(output, found)
    say(f"Vectors of {count_of(len(found.words), 'word')} are in {tell_size(output)}.")


def check_learned(choices: Choices) -> None:
    """Raise where what is to be learned of words has no text, or is given, too."""
    if choices.unlabelled is None and choices.learn != "classes":
        raise typer.BadParameter("--learn says what to learn from the text of --unlabelled: name one.")
    if choices.unlabelled is not None and choices.learn != "classes" and choices.features["vectors"] is not None:
        raise typer.BadParameter("--learn vectors has vectors of its own: leave out --vectors.")
    if choices.unlabelled is not None and choices.learn != "vectors" and TITLE in (choices.features["classes"] or {}):
        raise typer.BadParameter(f"--unlabelled calls its classes {TITLE!r}: give those of --classes another name.")


def learn_from_text(choices: Choices, tagger: Tagger, train: Document) -> None:
    """Let a tagger know what is learned of words from text that is not tagged, and from the sentences to train on."""
    if choices.unlabelled is None:
        return
    words = [[token if isinstance(token, str) else token[0] for token in sentence] for sentence in train.X]
    text, encoding, found = (choices.unlabelled, words), choices.encoding, dict[str, Any]()
    kinds = ["classes", "vectors"] if choices.learn == "both" else [str(choices.learn)]
    choices.say(f"Learning {' and '.join(kinds)} of words from {choices.unlabelled} ...")
    windows = tagger.features.sources[-1] if isinstance(tagger.features, FeatureSources) else tagger.features
    if "classes" in kinds:
        found["classes"] = {**(windows.classes or {}), TITLE: learn_classes(text, encoding=encoding)}
    if "vectors" in kinds:
        found["vectors"] = learn_vectors(text, encoding=encoding)
    windows.set_params(**found)
