"""Texts with entities by their characters, and how these become tags of tokens."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from maxmargin.text.mending import SHOWN
from maxmargin.text.schemes import Entity
from maxmargin.text.standoff.tokenizer import Sentences, Tokenizer, check_tokens, tokens_of
from maxmargin.wording import quote


class TextEntity(NamedTuple):
    """An entity of a text.

    Attributes
    ----------
    start, end
        Its first character, and the one after its last.
    type
        Its type, or the tag of a token.
    text
        Its characters.
    probability
        That its bounds and its type are right; None where it is not known.

    Examples
    --------
    >>> from maxmargin.text import TextEntity
    >>> TextEntity(9, 13, "LOC", "Rome").probability is None
    True
    """

    start: int
    end: int
    type: str
    text: str
    probability: float | None = None


@dataclass(frozen=True)
class AnnotatedText:
    """A text with its entities.

    Attributes
    ----------
    text
        All of it.
    entities
        Each a `TextEntity`; None where nobody has looked for them.
    name
        What messages call it.
    sentences
        Its sentences of tokens, where its file says so: first character, and the one after the last, of each.
    record
        What else its file says of it.

    Examples
    --------
    >>> from maxmargin.text import AnnotatedText, TextEntity
    >>> text = AnnotatedText("Ann left Rome.", [TextEntity(0, 3, "PER", "Ann"), TextEntity(9, 13, "LOC", "Rome")])
    >>> [entity.text for entity in text.entities]
    ['Ann', 'Rome']
    """

    text: str
    entities: Sequence[TextEntity] | None = None
    name: str = "text"
    sentences: Sentences | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


class Aligned(NamedTuple):
    """Sentences of tokens with their entities, by tokens, and what was wrong with those of the text."""

    sentences: Sentences
    entities: list[list[Entity]]
    faults: list[str]


def make_entity(text: str, start: Any, end: Any, type_: object, name: str, said: object = None) -> TextEntity:
    """An entity of a text; raises where it is none, or not the one that the file has said it is, but for blanks."""
    is_counted = all(isinstance(place, int) and not isinstance(place, bool) for place in (start, end))
    if not is_counted or not isinstance(type_, str) or not type_:
        wanted = "two whole numbers and a type that is not empty"
        raise ValueError(f"{name}: an entity must have {wanted}, not {quote((start, end, type_))}.")
    if not 0 <= start < end <= len(text):
        raise ValueError(f"{name}: {type_!r} is from {start} to {end}, but the text has {len(text)} characters.")
    found = text[start:end]
    if isinstance(said, str) and said.strip() and said.split() != found.split():
        there = f"{type_!r} from {start} to {end} is {quote(found)}, but should be {quote(said)}"
        raise ValueError(f"{name}: {there}: bounds must be counted in characters.")
    return TextEntity(start, end, type_, found)


def align(annotated: AnnotatedText, tokenizer: Tokenizer) -> Aligned:
    """The sentences of a text, and its entities by tokens.

    An entity that begins or ends within a token is widened to the tokens that it touches; one that touches none is left
    out. Of entities that overlap then, the longest stays, of those alike the first. Sentences that an entity goes
    across are one. All but the last is told as a fault.
    """
    text, name = annotated.text, annotated.name
    if annotated.sentences is None:
        sentences = tokens_of(text, tokenizer, name)
    else:
        sentences = annotated.sentences
        check_tokens(sentences, text, name)
    spans = [*chain.from_iterable(sentences)]
    starts, ends = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    faults: list[str] = []
    found: list[Entity] = []
    for entity in annotated.entities or ():
        first, last = int(np.searchsorted(ends, entity.start, "right")), int(np.searchsorted(starts, entity.end))
        if first >= last:
            faults.append(f"{name}: {_tell(entity)} has no token, and is left out")
            continue
        whole = text[starts[first] : ends[last - 1]]
        if whole != entity.text.strip():
            faults.append(f"{name}: {_tell(entity)} is no whole token, and is taken for {quote(whole)}")
        found.append(Entity(first, last, entity.type))
    is_free, kept = np.ones(len(spans), bool), list[Entity]()
    for span in sorted(found, key=lambda span: span.start - span.end):
        if is_free[span.start : span.end].all():
            kept.append(span)
            is_free[span.start : span.end] = False
        else:
            place = f"{span.type!r} at {starts[span.start]}"
            faults.append(f"{name}: {place} overlaps with a longer one or an earlier one, and is left out")
    return Aligned(*_by_sentence(sentences, sorted(kept)), faults)


def _tell(entity: TextEntity) -> str:
    return f"{entity.type!r} from {entity.start} to {entity.end}, {quote(entity.text)},"


def _by_sentence(sentences: Sentences, entities: Iterable[Entity]) -> tuple[Sentences, list[list[Entity]]]:
    """Sentences, joined where an entity goes across, and the entities of each, by its own tokens."""
    joined, own = list[list[Any]](), list[list[Entity]]()
    rest, first, end = [*entities][::-1], 0, 0
    for sentence in sentences:
        if own and own[-1] and own[-1][-1].end > len(joined[-1]):
            joined[-1] = [*joined[-1], *sentence]
        else:
            joined.append(sentence)
            own.append([])
            first = end
        end += len(sentence)
        while rest and rest[-1].start < end:
            start, last, type_ = rest.pop()
            own[-1].append(Entity(start - first, last - first, type_))
    return joined, own


def warn_of(faults: Sequence[str], n_entities: int, what: str = "tokens") -> None:
    """Warn of entities that do not fit tokens, or what else they must fit."""
    if faults:
        rest = len(faults) - SHOWN
        more = [f"and {rest:,} more"] if rest > 0 else []
        are = "entity does" if n_entities == 1 else "entities do"
        told = f"{len(faults):,} of {n_entities:,} {are} not fit {what}:"
        warnings.warn("\n  ".join([told, *faults[:SHOWN], *more]), UserWarning, stacklevel=3)
