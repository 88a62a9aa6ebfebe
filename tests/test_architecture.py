"""The tree is what docs/architecture.md says: rooms, their order, their sizes, and the names in them."""

import ast
import functools
import itertools
import re
from collections import defaultdict
from pathlib import Path

import pytest

import maxmargin
from maxmargin import public_names

PACKAGE = Path(maxmargin.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
MOST_MODULES = 12
MOST_LINES = 350
IMITATED = {"metrics"}  # of sklearn-crfsuite, whose modules crfsuite/ has by their names

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not there")

MODULES = [path for path in PACKAGE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
FOLDERS = [PACKAGE, *(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)]


def rooms() -> list[list[str]]:
    """The rooms of the page from the top down: those of one row may not import each other, but in their order."""
    table = PAGE.read_text().split("## Rooms")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.M)
    return [[name.rstrip("/") for name in re.findall(r"`(\w+/?)`", row)] for row in rows]


def room_of(module: str) -> str:
    """The room of a module by its dotted name: its folder in the package, or itself."""
    return module.split(".")[1] if "." in module else "maxmargin"


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports_of(path: Path) -> list[str]:
    """What a module imports when it is loaded or later; not what only type checkers see."""
    tree, found, homes = parsed(path), [], public_names.homes()
    hidden = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            is_root = node.module == "maxmargin"
            found += [homes.get(a.name, f"maxmargin.{a.name}") for a in node.names] if is_root else [node.module]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name for name in found if name.split(".")[0] == "maxmargin"]


def test_imports_go_down_only():
    order = {name: k for k, row in enumerate(rooms()) for name in row}
    upward = []
    for path in MODULES + [folder / "__init__.py" for folder in FOLDERS[1:]]:
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imports_of(path):
            other = room_of(name)
            if other == "maxmargin" or (other != room and order[other] < order[room]):
                upward.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not upward, "\n".join(upward)


def test_rooms_have_no_cycles():
    """Rooms of one row of the page may import each other, but not in circles."""
    edges = defaultdict(set)
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        edges[room] |= {room_of(name) for name in imports_of(path)} - {room, "maxmargin"}
    while edges:
        bottom = [room for room, below in edges.items() if not below & edges.keys()]
        assert bottom, f"rooms that import each other: {dict(edges)}"
        for room in bottom:
            del edges[room]


def test_every_room_is_on_the_page_and_says_what_lives_in_it():
    names = {name for row in rooms() for name in row}
    there = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert names == there
    for folder in FOLDERS:
        sentence = ast.get_docstring(parsed(folder / "__init__.py"))
        assert sentence, folder
        assert len(sentence.split()) >= 4, folder


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_rooms_are_small(folder):
    modules = [path for path in folder.glob("*.py") if path in MODULES]
    assert len(modules) <= MOST_MODULES


def test_modules_are_short():
    lengths = {path.name: len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def is_a_letter_apart(a: str, b: str) -> bool:
    """Whether a name becomes another by changing, adding or leaving out at most one letter."""
    if len(a) > len(b):
        a, b = b, a
    if len(b) - len(a) > 1:
        return False
    k = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    return a[k:] == b[k + 1 :] or a[k + 1 :] == b[k + 1 :]


def test_names_of_modules_and_rooms_stand_once():
    names = [path.stem for path in MODULES] + [folder.name for folder in FOLDERS[1:]]
    names = [name for name in names if name not in IMITATED]
    assert not [(a, b) for a, b in itertools.combinations(sorted(names), 2) if is_a_letter_apart(a, b)]


def test_classes_that_share_a_name():
    """A name of a class stands for one thing; PyTorch's part, and python-crfsuite's, have public names of their own."""
    homes = defaultdict(list)
    for path in MODULES:
        if path.parent.name in ("torch", "pycrfsuite"):
            continue
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}
