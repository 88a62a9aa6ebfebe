"""The format of brat: a text in a .txt file, and its entities in an .ann file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from maxmargin.text.sentence_files.line_files import FileToRead, Lines
from maxmargin.text.standoff.annotated_texts import AnnotatedText, TextEntity, make_entity, warn_of
from maxmargin.text.standoff.plain_texts import read_whole
from maxmargin.wording import quote


def read_brat(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """The texts of a folder, or that of a .txt or .ann file; without an .ann file it has no entities.

    Of annotations only entities are read, lines that begin with T; the parts of one in pieces, and what is in between,
    are one entity, with a warning.
    """
    if hasattr(source, "read"):
        raise ValueError("Files of brat are two, a .txt and an .ann file: give the path of one, or of their folder.")
    path = Path(source)
    texts = sorted(path.glob("**/*.txt")) if path.is_dir() else [path.with_suffix(".txt")]
    if not texts:
        raise ValueError(f"{path} holds no .txt file.")
    faults, n_entities = list[str](), 0
    for text_path in texts:
        text, notes = read_whole(text_path, encoding), text_path.with_suffix(".ann")
        entities = [*_entities(notes, text, encoding, faults)] if notes.exists() else None
        n_entities += len(entities or ())
        yield AnnotatedText(text, entities, str(text_path))
    warn_of(faults, n_entities, "one pair of bounds")


def _entities(path: Path, text: str, encoding: str, faults: list[str]) -> Iterator[TextEntity]:
    """The entities of a text; those in pieces, with more than blanks in between, are told among the faults."""
    lines = Lines(path, encoding)
    for number, line in lines:
        if line is None or not line.startswith("T"):
            continue
        fields = line.split("\t")
        type_, _, places = fields[1].partition(" ") if len(fields) > 1 else ("", "", "")
        bounds = places.replace(";", " ").split()
        if len(bounds) < 2 or not all(bound.isdecimal() for bound in bounds):
            lines.fail(number, "an entity must be T1, a tab, its type, its first character and the one after its last")
        numbers = [int(bound) for bound in bounds]
        said = fields[2] if len(fields) > 2 and len(numbers) == 2 else None  # of pieces, what is in between is left out
        entity = make_entity(text, min(numbers), max(numbers), type_, f"{path}, line {number}", said)
        gaps = [text[end:start] for end, start in zip(numbers[1:-1:2], numbers[2::2], strict=False)]
        if any(gap and not gap.isspace() for gap in gaps):
            faults.append(f"{path}, line {number}: {type_!r} is in pieces, and is taken for {quote(entity.text)}")
        yield entity


def brat_lines(texts: Iterable[AnnotatedText]) -> Iterator[str]:
    """The lines of the .ann file of a text; line ends within an entity, which brat has not got, are blanks."""
    for annotated in texts:
        for k, entity in enumerate(annotated.entities or (), start=1):
            covered = " ".join(entity.text.splitlines())
            yield f"T{k}\t{entity.type} {entity.start} {entity.end}\t{covered}"


def write_beside(notes: Path, text: str) -> None:
    """Write the text that an .ann file is about beside it, unless it is there; raises where another one is."""
    path = notes.with_suffix(".txt")
    if not path.exists():
        path.write_bytes(text.encode())
        return
    try:
        there = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:  # in another encoding, which its reader has been told
        return
    if there != text:
        raise ValueError(
            f"{path}, beside {notes.name}, must hold the text of its entities, but holds another: rename one."
        )


def write_brat(folder: Path, texts: Iterable[AnnotatedText]) -> None:
    """Write texts to a folder, each with its entities, under its own name."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for k, annotated in enumerate(texts, start=1):
        stem = Path(annotated.name).stem if Path(annotated.name).suffix == ".txt" else f"text-{k:05}"
        stem = stem if stem not in taken else f"{stem}-{k:05}"
        taken.add(stem)
        (folder / f"{stem}.txt").write_bytes(annotated.text.encode())
        lines = "".join(f"{line}\n" for line in brat_lines([annotated]))
        (folder / f"{stem}.ann").write_bytes(lines.encode())
