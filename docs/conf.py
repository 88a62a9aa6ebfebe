"""The documentation as a site: ``nox -s docs``, or ``sphinx-build -W docs build/docs``."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
os.environ.pop("MPLBACKEND", None)  # notebooks have one of their own

from maxmargin.version import __version__  # noqa: E402

project, author, release = "maxmargin", "The maxmargin developers", __version__
copyright = author
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "sg_execution_times.rst"]
html_theme = "furo"
html_title = f"maxmargin {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

numpydoc_show_class_members = False
autodoc_mock_imports = [name for name in ("spacy", "dask", "distributed") if find_spec(name) is None]
autodoc_typehints = "none"  # numpydoc's sections have them
python_maximum_signature_line_length = 100
autodoc_member_order = "groupwise"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 30,
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}
suppress_warnings = ["config.cache"]

REFERENCE = HERE / "reference"
REPOSITORY = "https://github.com/maxmargin/maxmargin/tree/main"
FOREIGN = "BaseEstimator, tuple, dict, str, Enum, Module, Generic, Exception"  # whose methods are documented elsewhere
_CODE = re.compile(r"`([\w.]+)`")
_PAGE = """---
orphan: true
---

# {title}

```{{eval-rst}}
.. currentmodule:: {module}

.. auto{kind}:: {name}
{options}
```
"""  # orphans: in the sidebar of every page, these would take most of the time of a build
_INDEX = """# All names

By letters; [by what they are for](../api.md).

{names}
"""


def public_rows() -> list[list[str]]:
    """The dotted names in each row of api.md; those without a module are in the one of the name before."""
    rows = re.findall(r"^\| (`maxmargin.*?) \|", (HERE / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    found = []
    for row in rows:
        names: list[str] = []
        for name in _CODE.findall(row):
            names.append(name if name.startswith("maxmargin.") else f"{names[-1].rpartition('.')[0]}.{name}")
        found.append(names)
    return found


def public_names() -> list[str]:
    """All of them."""
    return [name for row in public_rows() for name in row]


def resolve(name: str) -> tuple[str, str, Any]:
    """The module of a dotted name, the name in it, and what it stands for."""
    module, _, last = name.rpartition(".")
    value = getattr(import_module(module), last, None)
    return module, last, import_module(name) if value is None else value


def find_example(name: str) -> str:
    """The example in the docstring of a name; nothing where there is none."""
    _, prompt, text = (inspect.getdoc(resolve(name)[2]) or "").partition(">>>")
    return prompt + re.split(r"\n\n\w+\n-+\n", text)[0]


def write_page(name: str, beside: list[str]) -> None:
    """A page of the reference: a class with its methods, a function, a module or a value.

    What comes of functions, and has no example of its own, shows that of a name beside it.
    """
    module, last, value = resolve(name)
    kind = "module" if inspect.ismodule(value) else "class" if inspect.isclass(value) else "function"
    if not callable(value) and kind == "function":
        kind = "data"
    options = "   :members:\n" if kind == "module" else ""
    if kind == "class":
        options = (
            "   :members:\n   :inherited-members: BaseEstimator, tuple, dict, str, Enum, Module, Generic, Exception\n"
        )
    text = _PAGE.format(title=name, module=module, kind=kind, name=name if kind == "module" else last, options=options)
    if not find_example(name):
        other = next(filter(find_example, beside))
        text += f"\nBy way of [`{other}`]({other}.md):\n\n```python\n{find_example(other)}\n```\n"
    (REFERENCE / f"{name}.md").write_text(text, encoding="utf-8")


def write_reference(app: Sphinx) -> None:
    """A page for each public name; modules that need what is not installed have theirs by stand-ins for it."""
    from sphinx.ext.autodoc.mock import mock

    shutil.rmtree(REFERENCE, ignore_errors=True)
    REFERENCE.mkdir()
    with mock(autodoc_mock_imports):
        for row in public_rows():
            for name in row:
                write_page(name, row)
    names = "\n".join(f"- [{name}]({name}.md)" for name in sorted(public_names(), key=str.lower))
    (REFERENCE / "index.md").write_text(_INDEX.format(names=names), encoding="utf-8")


def link_sources(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to files outside of the documentation lead to the repository."""
    source[0] = re.sub(r"\]\(\.\./(?=[^)]*)(?!docs/|api\.md|[a-z]+\.md)", f"]({REPOSITORY}/", source[0])


def sign_class(
    app: Sphinx, what: str, name: str, member: Any, options: object, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """The constructor as Python sees it, where a class makes its objects in a way of its own."""
    if what != "class" or signature is None:
        return None
    bare = [value.replace(annotation=value.empty) for value in inspect.signature(member).parameters.values()]
    return str(inspect.Signature(bare)), None


def skip_foreign(app: Sphinx, what: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Methods that scikit-learn adds are documented there."""
    return True if (getattr(member, "__module__", None) or "").startswith("sklearn.") else None


class LinkNames(SphinxPostTransform):
    """Names of the library in code style lead to their pages, wherever they stand."""

    default_priority = 900

    def run(self, **kwargs: Any) -> None:
        """Wrap each such name in a link."""
        objects = self.env.get_domain("py").objects  # type: ignore[attr-defined]
        by_name = {name.rpartition(".")[2]: name for name in public_names()}
        for literal in [*self.document.findall(nodes.literal)]:
            text = literal.astext().partition("(")[0]
            name = by_name.get(text, text)
            if name not in objects or isinstance(literal.parent, nodes.reference):
                continue
            entry = objects[name]
            if entry.docname == self.env.docname:
                continue
            target = self.app.builder.get_relative_uri(self.env.docname, entry.docname)
            link = nodes.reference("", "", internal=True, refuri=f"{target}#{entry.node_id}")
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("builder-inited", write_reference, priority=100)
    app.connect("source-read", link_sources)
    app.connect("autodoc-process-signature", sign_class)
    app.connect("autodoc-skip-member", skip_foreign)
    app.add_post_transform(LinkNames)
