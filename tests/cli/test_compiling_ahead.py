import os
import subprocess
import sys

import pytest

from maxmargin.cli import compiling_ahead
from maxmargin.cli.compiling_ahead import MODELS
from tests.cli.conftest import input_error, run

USED = """
import sys
from maxmargin.cli.compiling_ahead import MODELS, fit_model
from maxmargin.runtime.cache import compiled_anew, loaded
fit_model(MODELS["multiclass"])
print(compiled_anew.total(), loaded.total() > 0)
"""


@pytest.fixture
def few_examples(interpreted_loops, monkeypatch):
    """Loops run as Python, on next to nothing."""
    monkeypatch.setattr(compiling_ahead, "N_EXAMPLES", 2)
    monkeypatch.setitem(compiling_ahead.TO_THE_END, "tol", 0.1)


def test_all_models_are_fitted_and_told(few_examples, tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_CACHE_DIR", str(tmp_path / "new"))
    code, out, _ = run("compile")
    assert code == 0
    *models, last = out.splitlines()
    assert [line.split(" ")[0] for line in models] == [*MODELS]
    assert last == f"{tmp_path / 'new'} has 0 files, 0.0 MB."


def test_a_few_models(few_examples, tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_CACHE_DIR", str(tmp_path))
    assert [line.split(" ")[0] for line in run("compile", "--for", "trees, multiclass").out.splitlines()[:-1]] == [
        "trees",
        "multiclass",
    ]


def test_bad_input(tmp_path, monkeypatch):
    known = "chains, crf, tagger, segments, parsers, multiclass, trees, matchings, graphs"
    assert input_error("compile", "--for", "crf,chain") == f"--for must be one of {known}, not 'chain'."
    assert all(name in run("compile", "--help").out for name in MODELS)
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("MAXMARGIN_CACHE_DIR", str(file))
    assert str(file) in input_error("compile", "--for", "crf")


@pytest.mark.long
def test_later_processes_compile_nothing(tmp_path):
    environment = {**os.environ, "MAXMARGIN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "maxmargin", "compile", "--for", "multiclass"]
    said = [subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout for _ in "ab"]
    assert "all was there" not in said[0]
    assert "multiclass (MulticlassSVM): all was there" in said[1]
    used = subprocess.run([sys.executable, "-c", USED], env=environment, check=True, capture_output=True, text=True)
    assert used.stdout.split() == ["0", "True"]
