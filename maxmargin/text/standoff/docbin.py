"""Documents of spaCy in its own binary format; needs spaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from maxmargin.text.sentence_files.line_files import FileToRead
from maxmargin.text.standoff.annotated_texts import AnnotatedText, TextEntity
from maxmargin.text.standoff.tokenizer import sentences_of_doc

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab


def _spacy() -> ModuleType:
    try:
        import spacy
    except ImportError:
        raise ValueError('Files of DocBin need spaCy: pip install "maxmargin[spacy]".') from None
    return spacy


def read_docbin(source: FileToRead, encoding: str, name: str | None = None) -> Iterator[AnnotatedText]:
    """The documents of a .spacy file, with their tokens."""
    spacy = _spacy()
    if hasattr(source, "read"):
        raise ValueError("DocBin is read from a file, not from a stream: give its path.")
    content = Path(source).read_bytes()
    try:
        bin_ = spacy.tokens.DocBin().from_bytes(content)
        docs = [*bin_.get_docs(spacy.blank("xx").vocab)]
    except Exception as error:  # of zlib, msgpack or spaCy
        raise ValueError(f"{source} is no file of DocBin: {error}.") from None
    for k, doc in enumerate(docs, start=1):
        found = [TextEntity(e.start_char, e.end_char, e.label_, e.text) for e in doc.ents]
        entities = found if doc.has_annotation("ENT_IOB") else None
        yield AnnotatedText(doc.text, entities, f"{source}, document {k}", [*sentences_of_doc(doc)])


def write_docbin(path: Path, texts: Iterable[AnnotatedText]) -> None:
    """Write texts to a .spacy file, with the tokens that they were given or, without any, those of spaCy."""
    spacy = _spacy()
    pipeline, docs = spacy.blank("xx"), []
    for annotated in texts:
        doc = pipeline.make_doc(annotated.text) if annotated.sentences is None else _doc(pipeline.vocab, annotated)
        spans = [doc.char_span(e.start, e.end, e.type, alignment_mode="expand") for e in annotated.entities or ()]
        doc.set_ents([span for span in spans if span is not None])
        docs.append(doc)
    path.write_bytes(spacy.tokens.DocBin(docs=docs).to_bytes())


def _doc(vocab: Vocab, annotated: AnnotatedText) -> Doc:
    """A document of the tokens of a text; what is between them, but for single blanks, is a token of its own."""
    words, spaces, starts, last = list[str](), list[bool](), list[bool](), 0
    text = annotated.text

    def fill(end: int) -> None:
        nonlocal last
        if last < end:
            words.append(text[last:end])
            spaces.append(False)
            starts.append(False)
        last = end

    for sentence in annotated.sentences or ():
        for k, (start, end) in enumerate(sentence):
            fill(start)
            has_space = text[end : end + 1] == " "
            words.append(text[start:end])
            spaces.append(has_space)
            starts.append(k == 0)
            last = end + has_space
    fill(len(text))
    return _spacy().tokens.Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
