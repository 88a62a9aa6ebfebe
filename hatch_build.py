"""A hook of Hatch: wheels bring the bitcode of common loops, so that first fits need not wait for Numba.

What that is, and why: `maxmargin/runtime/shipped.py`. It takes half a minute on two idle cores; what is
there of an earlier build is used again. Where it cannot be made, the wheel goes without, and loops are
compiled by whoever needs them; so they are in editable installations. HATCH_BUILD_NO_HOOKS=true leaves it out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODELS = (["crf", "tagger"], ["chains", "multiclass", "trees", "matchings", "graphs"])  # processes that share loops
MOST_SECONDS = 600
PACK = "import sys; from pathlib import Path; from maxmargin.cli.compiling_ahead import pack; "
PACK += "pack(Path(sys.argv[1]), sys.argv[2:])"


class BitcodeHook(BuildHookInterface):
    """Compiles into `maxmargin/runtime/bitcode`, which pyproject.toml lists among the files of wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Do so before a wheel is built."""
        if version == "editable":
            return
        root = Path(self.root)
        bitcode = root / "maxmargin" / "runtime" / "bitcode"
        try:
            (root / "build").mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=root / "build") as folder:
                pack_all(root, Path(folder) / "bitcode")
                shutil.rmtree(bitcode, ignore_errors=True)
                os.replace(Path(folder) / "bitcode", bitcode)
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"The wheel goes without bitcode of loops: {error}")


def pack_all(root: Path, folder: Path) -> None:
    """Compile what is common, in two processes at once."""
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = [
        subprocess.Popen([sys.executable, "-c", PACK, str(folder), *names], env=os.environ | {"PYTHONPATH": path})
        for names in MODELS
    ]
    try:
        for process in started:
            if process.wait(MOST_SECONDS):
                raise subprocess.CalledProcessError(process.returncode, "pack")
    finally:
        for process in started:
            process.kill()
