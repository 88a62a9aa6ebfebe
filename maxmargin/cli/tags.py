"""Tags of files in one scheme, with a word about those that break its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from maxmargin.cli.common import locate_errors, say
from maxmargin.text import Document, Mended, mend_tags
from maxmargin.text.mending import spells_entities
from maxmargin.text.partial_tags import check_known, tags_in

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger


def in_scheme(document: Document, scheme: str | None, say: Callable[[str], None] = say) -> Mended:
    """The tags of a document, mended, in a scheme, or in the one that fits best; says which lines were wrong."""
    with locate_errors(document):
        mended = mend_tags(document.y or [], scheme)
    if mended.faults:
        lines = mended.tell(
            lambda fault: f"{document.where(fault.sequence, fault.position)}: the sentence {fault.fault}"
        )
        say(f"Warning: {lines}")
    return mended


def check_tags_known(document: Document) -> None:
    """Raise where a tag of a document that predictions are compared with is not known."""
    with locate_errors(document):
        check_known(document.y or [], "y")


def settle_scheme(
    tagger: Tagger, train: Document, dev: Document | None, *, say: Callable[[str], None]
) -> tuple[Document, Document | None]:
    """The documents with tags of one scheme, which the tagger has from now on."""
    if dev is not None:
        check_tags_known(dev)
    mended = None if tagger.scheme is None else _in_its_scheme(train, tagger.scheme, say)
    if mended is None:
        tagger.set_params(scheme=None, layout=train.layout)
    else:
        tagger.set_params(scheme=mended.scheme, layout=replace(train.layout, scheme=mended.source))
        train = replace(train, y=mended.y)
        if dev is not None:
            dev = replace(dev, y=in_scheme(dev, mended.scheme, say).y)
        converted = "" if mended.scheme == mended.source else f", converted to {mended.scheme}"
        say(f"Tags are {mended.source}{converted}: predictions keep to its rules.")
    if dev is not None:
        _tell_of_unknown_tags(train, dev, say)
    return train, dev


def _in_its_scheme(train: Document, scheme: str, say: Callable[[str], None]) -> Mended | None:
    """The tags in the scheme that was asked for; None where there is none to be found."""
    try:
        return in_scheme(train, None if scheme == "auto" else scheme, say)
    except ValueError as error:
        if scheme != "auto":
            raise
        if spells_entities(train.y or []):
            say(f"Warning: {error} Without a scheme, predictions keep to no rules.")
        return None


def _tell_of_unknown_tags(train: Document, dev: Document, say: Callable[[str], None]) -> None:
    known = tags_in(train.y or ())
    unknown: dict[str, tuple[int, int]] = {}  # where each is for the first time
    for i, tags in enumerate(dev.y or ()):
        for t, tag in enumerate(tags):
            if tag not in known:
                unknown.setdefault(tag, (i, t))
    for tag, (i, t) in unknown.items():
        say(f"Warning: {dev.where(i, t)}: {tag!r} is not among the tags of {train.name}, and is never predicted.")
