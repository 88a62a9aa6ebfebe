"""`maxmargin check`: what is wrong with files of tagged sentences, before training."""

from __future__ import annotations

from pathlib import Path

import typer

from maxmargin.cli.common import BAD_INPUT, find_files, print_json, read, show
from maxmargin.text import Document, Layout, check_data, find_format
from maxmargin.text.data_health import ERROR, NOTE, WARNING
from maxmargin.wording import count_of


def run_check(
    given: list[Path], format: str | None, encoding: str, tokenizer: str | None, *, is_strict: bool, as_json: bool
) -> None:
    """Show what is odd about files; ends with an exit code where something is wrong."""
    documents: dict[str, Document] = {}
    for path in find_files(given):
        layout = Layout(format or find_format(path), encoding=encoding, tokenizer=tokenizer)
        documents[str(path)] = read(path, layout)

    def where(name: str, i: int, t: int) -> str:
        return documents[name].where(i, t).removeprefix(f"{name}, ")

    found = check_data({name: (document.X, document.y or []) for name, document in documents.items()}, where)
    counts = {level: found.count(level) for level in (ERROR, WARNING, NOTE)}
    if as_json:
        print_json({"findings": [finding._asdict() for finding in found.findings], **counts})
    else:
        for name, document in documents.items():
            show(f"{name}: {count_of(len(document.X), 'sentence')}, {count_of(sum(map(len, document.X)), 'token')}")
        show(f"\n{found}\n\n" + ", ".join(count_of(n, level) for level, n in counts.items()))
    if counts[ERROR] or (is_strict and counts[WARNING]):
        raise typer.Exit(BAD_INPUT)
