"""Markup, and JSON that can stand in it: whatever comes from data is escaped here, by `tag` and `as_json`."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

VOID = {"img", "input", "meta"}  # elements without an end


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
    >>> from maxmargin.display.markup import tag
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = [
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    ]
    end = "" if name in VOID else f"{join(content)}</{name}>"
    return Markup(f"<{name}{''.join(given)}>{end}")


def table(titles: Iterable[object], rows: Iterable[Iterable[object]], **attributes: object) -> Markup:
    """A table whose first column is one of titles, too; without titles of columns, if there are none."""
    heads = [tag("th", title, scope="col") for title in titles]
    head = tag("thead", tag("tr", *heads)) if heads else ""
    body = [
        tag("tr", *(tag("th", cell, scope="row") if k == 0 else tag("td", cell) for k, cell in enumerate(row)))
        for row in rows
    ]
    return tag("div", tag("table", head, tag("tbody", *body), **attributes), class_="scroll", tabindex=0)


def as_json(value: object) -> str:
    """JSON that can stand in markup: it ends no element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
