"""`maxmargin report`: a page on what a tagger has learned, and what it gets wrong."""

from __future__ import annotations

from pathlib import Path

from maxmargin.cli.common import keep_apart, load_tagger, read_files, same_tokens, say, tell_size
from maxmargin.cli.tagging import is_model, true_tags
from maxmargin.cli.tags import check_tags_known
from maxmargin.persist import check_writable


def run_report(
    model: Path, given: list[Path], output: Path, train: Path | None, format: str | None, encoding: str | None
) -> None:
    """Write the page of a tagger: on held-out sentences, if there are any, beside other taggers, if there are."""
    tagger = load_tagger(model)
    others = {path.name: load_tagger(path) for path in given if is_model(path)}
    files = [path for path in given if not is_model(path)]
    known = [*given, model, *([] if train is None else [train])]
    keep_apart(check_writable(output), "page", known)
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
    tagger.report(output, X, y, train=parts.get("train"), others=others, title=model.name)
    say(f"The page is {tell_size(output)}.")
