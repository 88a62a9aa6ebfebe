"""The files that commands are given: one or several, folders of them, and patterns that shells have left alone."""

from __future__ import annotations

from glob import glob
from pathlib import Path

from maxmargin.cli.common import STDIN, read
from maxmargin.text.sentence_files.documents import Document, join_documents
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.sentence_files.line_files import COMPRESSED


def find_files(given: list[Path]) -> list[Path]:
    """The files that are meant: those of a folder, in the order of their names, in place of it, and so of a pattern."""
    found: list[Path] = []
    for path in given:
        if path == STDIN or path.is_file():
            found.append(path)
        elif path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
            if not files:
                raise FileNotFoundError(f"{path}: there are no files in this folder.")
            found += files
        else:
            matches = [Path(name) for name in sorted(glob(str(path), recursive=True))]
            found += [file for file in matches if file.is_file()] or [path]  # which is missed when it is opened
    return found


def read_files(
    given: list[Path],
    layout: Layout | None = None,
    *,
    format: str | None = None,
    encoding: str | None = None,
    needs_tags: bool = True,
) -> Document:
    """The sentences of files, as one document."""
    documents: list[Document] = []
    for path in find_files(given):
        documents.append(read(path, layout, format=format, encoding=encoding, needs_tags=needs_tags))
        layout = documents[0].layout
    return join_documents(documents)


def name_of(path: Path) -> str:
    """The name of a file or folder without its ending, nor that of its compression."""
    name = Path(path.resolve().name)
    return Path(name.stem).stem if name.suffix.lower() in COMPRESSED else name.stem
