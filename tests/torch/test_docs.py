"""The code in the documentation of `maxmargin.torch` runs; the core never imports PyTorch."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

import maxmargin.torch
from tests.test_docs import ROOT, run_blocks

MODULES = [module.name for module in pkgutil.walk_packages(maxmargin.torch.__path__, "maxmargin.torch.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name, interpreted_loops):
    torch.manual_seed(0)
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_code_of_the_page_runs(interpreted_loops):
    torch.manual_seed(0)
    assert run_blocks("docs/deep.md")


def test_every_public_name_is_listed():
    text = (ROOT / "docs/api.md").read_text()
    for name in maxmargin.torch.__all__:
        assert f"`{name}`" in text or f"`maxmargin.torch.{name}`" in text, name
        assert getattr(maxmargin.torch, name).__doc__


def test_the_core_does_not_import_pytorch():
    names = "[getattr(maxmargin, name) for name in maxmargin.__all__]"
    code = f"import sys, maxmargin; {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(ROOT), check=False).returncode == 0
