"""`maxmargin clusters`: from text to classes of words."""

from __future__ import annotations

from pathlib import Path

from maxmargin.cli.common import keep_apart, say, tell_size
from maxmargin.persist import check_writable
from maxmargin.text import learn_classes, write_classes
from maxmargin.wording import count_of


def run_clusters(
    files: list[Path], output: Path, n_classes: int, min_count: int, max_passes: int, encoding: str
) -> None:
    """Learn classes of the words in files and write them to another."""
    keep_apart(check_writable(output), "file of classes", files)
    found = learn_classes(
        tuple(files), n_classes=n_classes, min_count=min_count, max_passes=max_passes, encoding=encoding
    )
    write_classes(output, found)
    say(f"{count_of(len(found), 'word')} in {len({*found.values()})} classes are in {tell_size(output)}.")
