"""A page of texts to look at: their entities in colour, and how probable they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section, make_page
from maxmargin.text.standoff.annotated_texts import AnnotatedText, TextEntity

N_COLOURS = 8  # of the style sheet


def show_texts(texts: Sequence[AnnotatedText]) -> str:
    """The page of texts with their entities, which do not overlap, as one text of HTML."""
    entities = [entity for text in texts for entity in text.entities or ()]
    types = sorted({entity.type for entity in entities})
    colours = {type_: f"t{k % N_COLOURS}" for k, type_ in enumerate(types)}
    counts = [
        (tag("span", type_, class_=colours[type_]), sum(one.type == type_ for one in entities)) for type_ in types
    ]
    counted = table(("type", "number"), counts, class_="numbers") if counts else tag("p", "There are none.")
    slider = tag("input", id="least", type="range", min=0, max=1, step=0.01, value=0)
    choice = tag(
        "p", tag("label", "Least probability ", slider), tag("output", "", id="left", for_="least"), class_="choice"
    )
    shown = [
        tag("article", tag("h3", text.name), tag("p", *_mark(text, colours), class_="prose", dir="auto"))
        for text in texts
    ]
    sections = [
        Section("entities", "Entities", join([counted, choice] if counts else [counted])),
        Section("texts", "Texts", join(shown)),
    ]
    return make_page("Entities", sections, {})


def _mark(text: AnnotatedText, colours: dict[str, str]) -> Iterator[object]:
    """The characters of a text, those of entities in marks."""
    end = 0
    for entity in sorted(text.entities or ()):
        yield text.text[end : entity.start]
        yield _mark_entity(entity, colours[entity.type])
        end = entity.end
    yield text.text[end:]


def _mark_entity(entity: TextEntity, colour: str) -> Markup:
    p = entity.probability
    told = entity.type if p is None else f"{entity.type} {100 * p:.0f} %"
    share = {} if p is None else {"data_p": f"{p:.6f}"}
    return tag("mark", tag("bdi", entity.text), " ", tag("small", told), class_=f"entity {colour}", **share)
