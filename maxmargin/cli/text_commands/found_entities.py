"""`maxmargin predict --format html` and `jsonl`: sentences with their entities, and how probable these are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from maxmargin.cli.common import same_tokens, stream, writing
from maxmargin.cli.predicting import tag_shares
from maxmargin.text.document_tags import word_of
from maxmargin.text.sentence_files.json_lines import dump_record
from maxmargin.text.standoff.annotated_texts import AnnotatedText
from maxmargin.text.standoff.text_documents import texts_of

if TYPE_CHECKING:
    from maxmargin.tagger.light_tagger import LightTagger
    from maxmargin.tagger.word_tagger import Tagger
    from maxmargin.text import Document


def write_found(
    tagger: Tagger | LightTagger, sources: list[Path], output: Path | None, format: str, encoding: str | None
) -> None:
    """Write what a tagger finds in files of sentences: lines of JSON as they come, or a page in the end."""
    texts: list[AnnotatedText] = []
    parts = (stream(path, tagger.layout, None, encoding, are_whole=tagger.asks_documents) for path in sources)
    with writing(output) as write:
        for document in chain.from_iterable(parts):
            same_tokens(document, tagger)
            if format == "jsonl":
                write(_describe(tagger, document))
            elif document.X:
                texts += texts_of(document, tagger.find_spans(document.X))
        if format == "html":
            from maxmargin.text.standoff.text_page import show_texts  # which the other formats do without

            write([show_texts(texts).rstrip("\n")])


def _describe(tagger: Tagger | LightTagger, document: Document) -> Iterator[str]:
    """The sentences of a document as lines of JSON."""
    tags = tagger.predict(document.X)
    shares = tag_shares(tagger, document.X, tags)
    found = [[]] * len(tags) if tagger.scheme_ is None else tagger.predict_entities(document.X)
    for tokens, own, probabilities, entities in zip(document.X, tags, shares, found, strict=True):
        record = {"tokens": tokens, "tags": own, "probabilities": probabilities}
        if tagger.scheme_ is not None:
            words = [*map(word_of, tokens)]
            texts = (" ".join(words[entity.start : entity.end]) for entity in entities)
            record["entities"] = [
                {**entity._asdict(), "text": text, "probability": round(entity.probability, 6)}
                for entity, text in zip(entities, texts, strict=True)
            ]
        yield dump_record(record)
