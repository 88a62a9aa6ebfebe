"""Files of texts as files of sentences: what taggers are trained on, and how what they find goes back into texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from maxmargin.text.corpus import Corpus
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.schemes import Entity, find_entities, spell_entities
from maxmargin.text.sentence_files.documents import Document
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.sentence_files.line_files import FileToRead, name_of
from maxmargin.text.standoff.annotated_texts import AnnotatedText, TextEntity, align, warn_of
from maxmargin.text.standoff.text_formats import FORMATS, read_texts
from maxmargin.text.standoff.tokenizer import Sentences, Tokenizer, find_tokenizer

SCHEME = "IOB2"  # of tags that are made of entities


@dataclass(frozen=True)
class TextDocument(Document):
    """The sentences of a file of texts.

    Attributes
    ----------
    texts
        Its texts, with their sentences.
    places
        The text of each sentence, and its number in it.
    """

    texts: Sequence[AnnotatedText] = ()
    places: Sequence[tuple[int, int]] = ()

    def _spans(self, i: int) -> list[tuple[int, int]]:
        text, k = self.places[i]
        return (self.texts[text].sentences or [])[k]

    def where(self, i: int, t: int = 0) -> str:
        """The text and the character of token t of sentence i."""
        spans = self._spans(i)
        return f"{self.texts[self.places[i][0]].name}, character {spans[min(t, len(spans) - 1)][0]}"

    def with_entities(self, found: Iterable[Sequence[Any]]) -> list[AnnotatedText]:
        """The texts with other entities: for each sentence those of its tokens, with their probability or without."""
        entities: list[list[TextEntity]] = [[] for _ in self.texts]
        for i, row in enumerate(found):
            k, spans = self.places[i][0], self._spans(i)
            for first, last, type_, *probability in row:
                start, end = spans[first][0], spans[last - 1][1]
                entities[k].append(TextEntity(start, end, type_, self.texts[k].text[start:end], *probability))
        return [replace(text, entities=own) for text, own in zip(self.texts, entities, strict=True)]

    def tagged(self, y: Iterable[Sequence[str]], probabilities: object = None) -> Iterator[str]:
        """The lines of a file of the same format, with the entities that tags spell, or with a tag for each token."""
        lines = FORMATS[self.layout.format].lines or FORMATS["standoff"].lines
        assert lines is not None
        return lines(self.with_entities(find_entities(y)))


def read_text_document(
    source: FileToRead, layout: Layout, *, needs_tags: bool = True, name: str | None = None
) -> TextDocument:
    """The sentences of a file of texts, of the format and the tokenizer of a layout, with tags of IOB2."""
    texts = read_texts(source, layout.format, encoding=layout.encoding, name=name)
    for annotated in texts:
        if needs_tags and annotated.entities is None:
            raise ValueError(f"{annotated.name} has no entities, and none to say that there are none.")
    own_name = name or name_of(source)
    return make_text_document(texts, layout, own_name)


def make_text_document(texts: Sequence[AnnotatedText], layout: Layout, name: str) -> TextDocument:
    """The sentences of texts, with tags of IOB2 where all have been looked at."""
    return _make(texts, layout, name, find_tokenizer(layout.tokenizer))


def _make(texts: Sequence[AnnotatedText], layout: Layout, name: str, tokenizer: Tokenizer) -> TextDocument:
    aligned = [align(annotated, tokenizer) for annotated in texts]
    warn_of([fault for found in aligned for fault in found.faults], sum(len(text.entities or ()) for text in texts))
    X, y, places = list[list[str]](), list[list[str]](), list[tuple[int, int]]()
    for k, (annotated, found) in enumerate(zip(texts, aligned, strict=True)):
        for n, (spans, entities) in enumerate(zip(found.sentences, found.entities, strict=True)):
            X.append([annotated.text[start:end] for start, end in spans])
            y.append(spell_entities(entities, len(spans), SCHEME))
            places.append((k, n))
    kept = [replace(text, sentences=found.sentences) for text, found in zip(texts, aligned, strict=True)]
    is_known = all(annotated.entities is not None for annotated in texts)
    corpus = Corpus(X, [k for k, _ in places])
    return TextDocument(name, layout, corpus, y if is_known else None, [], [], texts=kept, places=places)


def tokenize_texts(texts: Sequence[str], tokenizer: str | Tokenizer | None) -> TextDocument:
    """The sentences of texts as they are."""
    named = [AnnotatedText(text, None, f"text[{k}]") for k, text in enumerate(texts)]
    return _make(named, Layout("text"), "the texts", find_tokenizer(tokenizer))


def texts_of(document: Document, entities: Iterable[Sequence[Entity | ScoredEntity]]) -> list[AnnotatedText]:
    """A file of sentences as texts: words with blanks in between, a sentence per line, a text per document."""
    if isinstance(document, TextDocument):
        return document.with_entities(entities)
    numbers = document.X.documents if isinstance(document.X, Corpus) else [0] * len(document.X)
    rows = zip(numbers, document.X, entities, strict=True)
    parts = groupby(rows, key=itemgetter(0))
    return [_join(f"{document.name}, document {k}", [row[1:] for row in same]) for k, same in parts]


def _join(name: str, sentences: Sequence[tuple[Any, Any]]) -> AnnotatedText:
    pieces, spans, entities, at = list[str](), Sentences(), list[TextEntity](), 0
    for tokens, found in sentences:
        words = [token if isinstance(token, str) else token[0] for token in tokens]
        own = []
        for word in words:
            own.append((at, at + len(word)))
            at += len(word) + 1
        text = " ".join(words)
        pieces.append(text)
        spans.append(own)
        begin = own[0][0] if own else at
        for first, last, type_, *probability in found:
            start, end = own[first][0], own[last - 1][1]
            entities.append(TextEntity(start, end, type_, text[start - begin : end - begin], *probability))
        at = at if own else at + 1
    return AnnotatedText("\n".join(pieces), entities, name, [own for own in spans if own])
