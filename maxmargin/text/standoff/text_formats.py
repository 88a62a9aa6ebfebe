"""The formats of files of texts with entities, each a line of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from maxmargin.checks import check_choice
from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS, find_format
from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, name_of, write_lines
from maxmargin.text.standoff import brat, docbin, json_texts, plain_texts
from maxmargin.text.standoff.annotated_texts import AnnotatedText


class TextFormat(NamedTuple):
    """How texts are read and written.

    `lines` are those of a file with several texts, or None where a format has no such file; then `write` writes to a
    path.
    """

    read: Callable[[FileToRead, str, str | None], Iterator[AnnotatedText]]
    lines: Callable[[Iterable[AnnotatedText]], Iterator[str]] | None = None
    write: Callable[[Path, Iterable[AnnotatedText]], None] | None = None


FORMATS = {
    "text": TextFormat(plain_texts.read_plain),
    "standoff": TextFormat(json_texts.read_own, json_texts.own_lines),
    "brat": TextFormat(brat.read_brat, brat.brat_lines, brat.write_brat),
    "doccano": TextFormat(json_texts.read_doccano, json_texts.doccano_lines),
    "labelstudio": TextFormat(json_texts.read_label_studio, json_texts.label_studio_lines),
    "spacy": TextFormat(json_texts.read_spacy_json, json_texts.spacy_lines),
    "docbin": TextFormat(docbin.read_docbin, None, docbin.write_docbin),
}
assert {*FORMATS} == {*TEXT_FORMATS}


def read_texts(
    source: FileToRead, format: str | None = None, *, encoding: str = "utf-8", name: str | None = None
) -> list[AnnotatedText]:
    r"""Read texts and their entities.

    Parameters
    ----------
    source : path or open file
        That of brat is a .txt or .ann file, or a folder of them.
    format
        {"text", "standoff", "brat", "doccano", "labelstudio", "spacy", "docbin"}; by default what the end of the name
        tells: .txt, .jsonl, .ann or a folder, .spacy.
    encoding : str, default="utf-8"
    name
        What messages call the file; by default its own name.

    Returns
    -------
    list of AnnotatedText

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_texts
    >>> read_texts(io.StringIO('{"text": "Ann ran", "label": [[0, 3, "PER"]]}'), "doccano")[0].entities
    [TextEntity(start=0, end=3, type='PER', text='Ann', probability=None)]
    """
    found = [*FORMATS[text_format(source, format)].read(source, encoding, name)]
    if not any(annotated.text.strip() for annotated in found):
        raise ValueError(f"{name or name_of(source)} holds no text.")
    return found


def write_texts(target: FileToWrite, texts: Sequence[AnnotatedText], format: str | None = None) -> None:
    """Write texts and their entities.

    Parameters
    ----------
    target : path or open text file
        A folder, for several texts in the format of brat; a path that ends in .ann is the file of one.
    texts : list of AnnotatedText
    format
        As in `read_texts`, but for "text"; "standoff" is our own, with all that is known.

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import AnnotatedText, TextEntity, write_texts
    >>> write_texts(sys.stdout, [AnnotatedText("Ann ran", [TextEntity(0, 3, "PER", "Ann", 0.9)])], "standoff")
    {"text": "Ann ran", "entities": [{"start": 0, "end": 3, "type": "PER", "text": "Ann", "probability": 0.9}]}
    """
    name = text_format(target, format)
    found, is_file = FORMATS[name], hasattr(target, "write")
    is_notes = is_file or Path(str(target)).suffix == ".ann"
    if found.write is not None and not (name == "brat" and is_notes and len(texts) == 1):
        if is_file or is_notes:
            raise ValueError(f"Texts in the format {name!r} are written to a path, for brat a folder, not to a stream.")
        found.write(Path(target), texts)  # type: ignore[arg-type]
    elif found.lines is not None:
        if name == "brat" and not is_file:
            brat.write_beside(Path(target), texts[0].text)  # type: ignore[arg-type]
        write_lines(target, found.lines(texts))
    else:
        raise ValueError("Plain text has no place for entities: write another format.")


def text_format(source: FileToRead | FileToWrite, format: str | None) -> str:
    """The format of a file: as asked for, or by the end of its name."""
    if format is not None:
        check_choice("format", format, FORMATS)
        return format
    found = find_format(name_of(source))
    return found if found in FORMATS else "standoff" if found == "json" else "text"
