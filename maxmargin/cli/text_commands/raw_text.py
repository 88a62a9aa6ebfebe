"""`maxmargin tag` and `maxmargin convert`: texts with entities, of any format, in any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from maxmargin.cli.common import STDIN, check_light, find_files, in_batches, keep_apart, read, stream, writing
from maxmargin.persist import check_writable
from maxmargin.tagger.light_tagger import LightTagger, open_tagger
from maxmargin.text import (
    AnnotatedText,
    Document,
    Layout,
    convert_tags,
    find_entities,
    find_format,
    write_columns,
    write_texts,
)
from maxmargin.text.mending import mend_tags
from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS
from maxmargin.text.sentence_files.json_lines import dump_record
from maxmargin.text.standoff.brat import write_beside
from maxmargin.text.standoff.text_documents import SCHEME, TextDocument, texts_of
from maxmargin.text.standoff.text_formats import FORMATS, text_format

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger

PAGE = "html"  # a format that is only written


def run_tag(
    model: Path,
    given: list[Path],
    output: Path | None,
    *,
    threshold: float | None = None,
    **how: str | None,
) -> None:
    """Write the entities that a tagger finds in texts, as `tag_files` does; in the format "html", as a page."""
    sources = find_files(given)
    if output is not None:
        keep_apart(output, "output", [model, *sources])
    tagger = check_light(open_tagger(model), model)
    if threshold is not None:
        tagger.threshold = threshold
    tag_files(tagger, sources, output, **how)


def tag_files(
    tagger: Tagger | LightTagger,
    sources: list[Path],
    output: Path | None,
    *,
    source_format: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    tokenizer: str | None = None,
) -> None:
    """Write the entities that a tagger finds in files of texts."""
    texts = [
        text
        for path in sources
        for document in stream(path, text_layout(path, tagger, source_format, tokenizer), None, encoding)
        for text in tag_texts(tagger, document)
    ]
    write_annotated(output, texts, format)


def text_layout(path: Path, tagger: Tagger | LightTagger, format: str | None, tokenizer: str | None) -> Layout:
    """How to read a text: plainly, unless its name says something else, by the tokenizer of a tagger or another."""
    usual = tagger.layout or Layout("text")
    found = format or ("text" if path == STDIN else text_format(path, None))
    return Layout(found, encoding=usual.encoding, tokenizer=tokenizer or usual.tokenizer)


def tag_texts(tagger: Tagger | LightTagger, document: Document) -> list[AnnotatedText]:
    """The texts of a document with the entities that a tagger finds."""
    assert isinstance(document, TextDocument)
    return document.with_entities([*in_batches(document.X, tagger.find_spans)])


def write_annotated(output: Path | None, texts: Sequence[AnnotatedText], format: str | None) -> None:
    """Write texts to standard output, a file or a folder; by the end of its name where no format was asked for."""
    if format == PAGE:
        from maxmargin.text.standoff.text_page import show_texts  # which other formats do without

        with writing(output) as write:
            write([show_texts(texts).rstrip("\n")])
        return
    name = format or ("standoff" if output is None else text_format(output, None))
    name = "standoff" if name == "text" else name
    lines = FORMATS[name].lines
    needs_path = FORMATS[name].write is not None and not (name == "brat" and len(texts) == 1 and not _is_folder(output))
    if needs_path or lines is None:
        if output is None:
            raise ValueError(f"Texts in the format {name!r} need a path to write to: --output.")
        if name == "docbin":
            check_writable(output)
        write_texts(output, texts, name)
        return
    if name == "brat" and output is not None:
        write_beside(output, texts[0].text)
    with writing(output) as write:
        write(lines(texts))


def _is_folder(output: Path | None) -> bool:
    return output is not None and (output.is_dir() or not output.suffix)


def run_convert(
    given: list[Path],
    output: Path | None,
    *,
    source: str | None,
    target: str | None,
    encoding: str,
    tokenizer: str | None,
) -> None:
    """Write tagged sentences, or texts with entities, in another format."""
    paths = find_files(given)
    if output is not None:
        keep_apart(output, "output", paths)
    source = source or ("columns" if paths[0] == STDIN else find_format(paths[0]))
    layout = Layout(source, encoding=encoding, tokenizer=tokenizer)
    documents = [read(path, layout) for path in paths]
    format = target or ("columns" if output is None else find_format(output))
    if format in TEXT_FORMATS:
        texts = [text for document in documents for text in texts_of(document, find_entities(_tags(document)))]
        write_annotated(output, texts, format)
        return
    with writing(output) as write:
        for document in documents:
            write(_lines(document, format))


def _tags(document: Document) -> list[list[str]]:
    """The tags of a document, mended, in the scheme that texts have."""
    return convert_tags(mend_tags(document.y or []).y, SCHEME)


def _lines(document: Document, format: str) -> Iterator[str]:
    """Sentences and tags in columns, or in JSON lines."""
    if format == "json":
        for tokens, tags in zip(document.X, document.y or [], strict=True):
            yield dump_record({"tokens": tokens, "tags": tags})
        return
    if format != "columns":
        raise ValueError(f"Sentences are converted to columns, json or a format of texts, not to {format!r}.")
    out = StringIO()
    write_columns(out, document.X, document.y or [], separator="\t")
    yield from out.getvalue().split("\n")[:-1]
