"""A page in one file: sections of markup, data for its script, and a policy that lets nothing else run or load.

Whatever comes from data is escaped here: markup is made by `tag`, data by `as_json`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import NamedTuple


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """A text as markup that shows it; markup as it is. Characters that change the direction of others are isolated."""
    return text if isinstance(text, Markup) else Markup(html.escape(str(text)))


def join(parts: Iterable[object]) -> Markup:
    """Texts and markup, one after the other."""
    return Markup("".join(map(escape, parts)))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; attributes that are None or False are left out, those that are True have no value.

    An underscore at the end of an attribute is left out, others become dashes.

    Examples
    --------
    >>> from maxmargin.report.page import tag
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = [
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    return Markup(f"<{name}{''.join(given)}>{join(content)}</{name}>")


def table(titles: Iterable[object], rows: Iterable[Iterable[object]], **attributes: object) -> Markup:
    """A table whose first column is one of titles, too."""
    head = tag("tr", *(tag("th", title, scope="col") for title in titles))
    body = [
        tag("tr", *(tag("th", cell, scope="row") if k == 0 else tag("td", cell) for k, cell in enumerate(row)))
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), **attributes), class_="scroll", tabindex=0)


def as_json(value: object) -> str:
    """JSON that can stand in markup: it ends no element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class Section(NamedTuple):
    """A part of a page, and how its heading is linked to."""

    name: str
    title: str
    body: Markup


def make_page(title: str, sections: Iterable[Section], data: Mapping[str, object]) -> str:
    """The whole page; scripts find `data` in the element "figures"."""
    sections = [*sections]
    style, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    links = [tag("a", section.title, href=f"#{section.name}") for section in sections]
    parts = [
        tag("section", tag("h2", section.title, id=f"{section.name}-title"), section.body, id=section.name)
        for section in sections
    ]
    head = join(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", title),
            tag("style", Markup(style)),
        ]
    )
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("nav", *links, aria_label="Sections")),
        tag("main", *parts),
        tag("script", Markup(as_json(data)), type="application/json", id="figures"),
        tag("script", Markup(script)),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{tag("head", head)}{body}</html>\n'


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
