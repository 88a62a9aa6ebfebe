"""A tagger as a component of a pipeline of spaCy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Self

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from maxmargin.persist import load
from maxmargin.tagger.word_tagger import Tagger
from maxmargin.text.corpus import Corpus
from maxmargin.text.standoff.tokenizer import words_of_doc
from maxmargin.wording import quote

FILE = "tagger.model"  # in the folder of a pipeline


class TaggerComponent:
    """A component that sets the entities of documents or, where tags spell none, the tags of their tokens.

    Sentences are those of the document, if a component before has set them, else all of it is one. With spaCy's
    `overwrite` False, entities that are there already stay, and those that overlap with them are left out.

    Parameters
    ----------
    tagger
        A fitted tagger of words, or the file of one, which is read once it is needed, unless the pipeline, when read
        from disk, brings another one; None if it does so in any case.
    overwrite
        Whether entities that are there go away.
    threshold
        The probability that entities must have; None is that of the tagger.
    batch_size
        Documents that are tagged at a time.

    Examples
    --------
    >>> import spacy
    >>> from maxmargin import Tagger
    >>> from maxmargin.spacy import TaggerComponent
    >>> tagger = Tagger().fit([["Ann", "ran"], ["Rome", "fell"]], [["B-PER", "O"], ["B-LOC", "O"]])
    >>> doc = TaggerComponent(tagger)(spacy.blank("en")("Ann fell"))
    >>> [(entity.text, entity.label_) for entity in doc.ents]
    [('Ann', 'PER')]
    """

    def __init__(
        self,
        tagger: Tagger | str | Path | None = None,
        *,
        overwrite: bool = True,
        threshold: float | None = None,
        batch_size: int = 100,
    ) -> None:
        self._tagger = tagger if tagger is None or isinstance(tagger, str | Path) else check_tagger(tagger)
        self.overwrite, self.threshold, self.batch_size = overwrite, threshold, batch_size

    @property
    def tagger(self) -> Tagger | None:
        """The tagger, read from its file if that has not been done."""
        if isinstance(self._tagger, str | Path):
            if not Path(self._tagger).exists():
                raise ValueError(f"model must be the file of a tagger, but there is no {str(self._tagger)!r}.")
            self._tagger = check_tagger(load(self._tagger))
        return self._tagger

    def __call__(self, doc: Doc) -> Doc:
        self._tag([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Tag documents, many at a time."""
        for docs in minibatch(stream, size=batch_size or self.batch_size):
            self._tag(docs)
            yield from docs

    def _tag(self, docs: list[Doc]) -> None:
        tagger = self.tagger
        if tagger is None:
            raise ValueError('The component has no tagger yet: nlp.add_pipe("maxmargin", config={"model": path}).')
        if self.threshold is not None:
            tagger = copy(tagger).set_params(threshold=self.threshold)
        sentences = [(k, tokens) for k, doc in enumerate(docs) for tokens in words_of_doc(doc)]
        corpus = Corpus([[token.text for token in tokens] for _, tokens in sentences], [k for k, _ in sentences])
        entities: list[list[Span]] = [[] for _ in docs]
        for (k, tokens), found in zip(sentences, tagger.find_spans(corpus), strict=True):
            for start, end, type_, _ in found:
                if tagger.scheme_ is None:
                    tokens[start].tag_ = type_
                else:
                    entities[k].append(Span(docs[k], tokens[start].i, tokens[end - 1].i + 1, label=type_))
        if tagger.scheme_ is not None:
            for doc, spans in zip(docs, entities, strict=True):
                self._set_entities(doc, spans)

    def _set_entities(self, doc: Doc, spans: list[Span]) -> None:
        if not self.overwrite:
            taken = {token.i for entity in doc.ents for token in entity}
            spans = [*doc.ents, *(span for span in spans if not taken.intersection(range(span.start, span.end)))]
        doc.set_ents(spans)

    # --- with a pipeline on disk --------------------------------------------------------------------------------------

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the tagger to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if self.tagger is not None:
            self.tagger.save(folder / FILE)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Read the tagger from a folder, if there is one."""
        file = Path(path) / FILE
        if file.exists():
            self._tagger = check_tagger(load(file))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The file of the tagger."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            file = Path(folder) / FILE
            return file.read_bytes() if file.exists() else b""

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Read the tagger from what `to_bytes` returns."""
        with tempfile.TemporaryDirectory() as folder:
            if content:
                (Path(folder) / FILE).write_bytes(content)
            return self.from_disk(folder)


def check_tagger(tagger: object) -> Tagger:
    """A tagger, if it is a fitted one, of words."""
    if not isinstance(tagger, Tagger):
        raise TypeError(f"tagger must be a Tagger, not {quote(tagger)}.")
    tagger._fitted()
    return tagger


@Language.factory(
    "maxmargin",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "token.tag"],
    default_config={"model": None, "overwrite": True, "threshold": None, "batch_size": 100},
)
def make_component(
    nlp: Language, name: str, model: str | None, overwrite: bool, threshold: float | None, batch_size: int
) -> TaggerComponent:
    """Make the component of a pipeline: `model` is the file of a tagger, None if the pipeline brings it."""
    return TaggerComponent(model, overwrite=overwrite, threshold=threshold, batch_size=batch_size)
