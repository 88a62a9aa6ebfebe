"""Pages, taken apart: what is in them, and that nothing in them can run or load anything but their own script."""

import base64
import hashlib
import re
from html.parser import HTMLParser

VOID = {"img", "input", "meta"}


class Elements(HTMLParser):
    """Tags with their attributes, the texts of scripts and of styles, and cells of tables by their first one."""

    def __init__(self, page):
        super().__init__()
        self.scripts, self.styles, self.at, self.tags, self.open, self.rows = [], [], None, [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        self.open += [name] * (name not in VOID)
        self.at = {"script": self.scripts, "style": self.styles}.get(name)
        if self.at is not None:
            self.at.append("")
        if name == "tr":
            self.rows.append([])
        elif name in ("th", "td") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, name):
        assert self.open.pop() == name
        self.at = None

    def handle_data(self, text):
        if self.at is not None:
            self.at[-1] += text
        elif {"th", "td"} & {*self.open}:
            self.rows[-1][-1] += text

    def row(self, name):
        """The cells of the only row of this name."""
        (found,) = [row[1:] for row in self.rows if row and row[0] == name]
        return found


def check_page(text):
    """Assert that a page is one file that is safe; return its elements."""
    elements = Elements(text)
    assert len(elements.scripts) == 2
    (policy,) = [given["content"] for name, given in elements.tags if given.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    for content in (elements.styles[0], elements.scripts[1]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not any(key.startswith("on") or key == "style" for _, given in elements.tags for key in given)
    assert not re.search(r"https?://", text)
    links = [given[key] for _, given in elements.tags for key in ("href", "src") if key in given]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    ids = [given["id"] for _, given in elements.tags if "id" in given]
    assert len(ids) == len({*ids})
    return elements
