"""The code in the documentation runs, and the list of public names is complete."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import maxmargin
from maxmargin.cli import app
from maxmargin.estimators import all_estimators

ROOT = Path(__file__).parents[1]


def python_blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    """Files that examples write are not left behind."""
    monkeypatch.chdir(tmp_path)


def run_blocks(name):
    namespace = {"__name__": name}
    for block in python_blocks(ROOT / name):
        exec(compile(block, name, "exec"), namespace)
    return namespace


def ends(namespace):
    """Why the models that a page leaves behind stopped training."""
    return {value.status_ for value in namespace.values() if hasattr(value, "status_")}


def test_the_code_of_the_readme_runs():
    assert ends(run_blocks("README.md")) == {maxmargin.Status.OPTIMAL}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("docs/guide.md", marks=pytest.mark.long),
        "docs/solvers.md",
        "docs/scale.md",
        "docs/taggers.md",
        "docs/texts.md",
        "docs/migrating.md",
    ],
)
def test_the_code_of_a_page_runs(name, interpreted_loops):
    found = ends(run_blocks(name))
    assert maxmargin.Status.OPTIMAL in found
    assert maxmargin.Status.DIVERGED not in found


def test_the_code_of_the_page_on_weak_labels_runs(interpreted_loops):
    assert maxmargin.Status.STATIONARY in ends(run_blocks("docs/weak.md"))


def test_the_classes_of_the_extending_page_run(interpreted_loops):
    assert run_blocks("docs/extending.md")["result"].status is maxmargin.Status.OPTIMAL


def test_the_tutorial_runs_from_its_first_block_to_its_last(capsys):
    namespace = {"__name__": "tutorial"}
    text = (ROOT / "docs/tutorial.md").read_text()
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for language, block in blocks:
        if language == "python":
            exec(compile(block, "docs/tutorial.md", "exec"), namespace)
            continue
        for command in block.splitlines():
            result = CliRunner().invoke(app, shlex.split(command)[1:])
            assert result.exit_code == 0, (command, result.stderr)
    assert namespace["tagger"].score(namespace["dev"].X, namespace["dev"].y) > 0.9
    out = capsys.readouterr().out
    assert '{"entities": [{"type": "LOC", "words": ["New", "York"]' in out
    assert '{"error": "X[0] has 1 at position 0' in out


def test_every_public_name_is_listed():
    text = (ROOT / "docs/api.md").read_text()
    for name in maxmargin.__all__:
        assert f"`maxmargin.{name}`" in text, name
        assert getattr(maxmargin, name).__doc__


def test_every_public_name_has_an_example_or_one_beside_it():
    """In docstrings; what functions return may leave that to them."""
    rows = re.findall(r"^\| (`maxmargin.*?) \|", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert len(rows) > 80
    for row in rows:
        names = re.findall(r"`([\w.]+)`", row)
        path, _, _ = names[0].rpartition(".")
        if path.startswith(("maxmargin.torch", "maxmargin.spacy", "maxmargin.vision")):
            continue  # which need what may not be there
        values = []
        for name in names:
            home, _, last = name.rpartition(".")
            path = home or path
            if "dask" not in path:
                values.append(getattr(importlib.import_module(path), last))
        assert any(">>>" in (value.__doc__ or "") for value in values), row


def test_the_page_of_choices_has_every_model():
    text = (ROOT / "docs/choosing.md").read_text()
    assert [name for name in all_estimators() if f"`{name}`" not in text] == []


MODULES = [module.name for module in pkgutil.walk_packages(maxmargin.__path__, "maxmargin.")]
MODULES = [
    name for name in MODULES if not name.startswith(("maxmargin.torch", "maxmargin.spacy"))
]  # tests of their own


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name, interpreted_loops):
    if "dask" in name or "clustered" in name.rpartition(".")[2]:
        pytest.importorskip("distributed")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_benchmarks_are_listed():
    listed = subprocess.run(
        [sys.executable, "-m", "benchmarks"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    names = re.findall(r"^  (\w+)  ", listed, flags=re.MULTILINE)
    told = re.findall(
        r"^\| `python -m benchmarks\.(\w+)", (ROOT / "benchmarks/README.md").read_text(), flags=re.MULTILINE
    )
    assert {*told} <= {*names}
