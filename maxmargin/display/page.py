"""A page in one file: sections of markup, data for its script, and a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import NamedTuple

from maxmargin.display.markup import Markup, as_json, escape, join, tag
from maxmargin.persist.files import Location, replacing


class Section(NamedTuple):
    """A part of a page, and how its heading is linked to."""

    name: str
    title: str
    body: Markup


def make_page(title: str, sections: Iterable[Section], data: Mapping[str, object]) -> str:
    """The whole page; scripts find `data` in the element "figures"."""
    sections = [*sections]
    style, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; base-uri 'none'"
    )
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
    page = f'<!DOCTYPE html>\n<html lang="en">{tag("head", head)}{body}</html>\n'
    return page.encode("utf-8", "replace").decode("utf-8")  # which has no halves of surrogate pairs


def write_page(path: Location, page: str) -> None:
    """Write a page as a whole, in place of what is there."""
    with replacing(path) as file:
        file.write(page.encode("utf-8"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
