"""What the benchmarks share: fresh processes, earlier revisions, data, watched solvers and reports.

The libraries that are measured are imported inside functions: the process that starts the contenders stays small, and
no contender carries the memory of another.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).parents[1]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def in_fresh_process(function: Callable[..., Any], *args: Any, environment: dict[str, str] | None = None) -> Any:
    """Call a module's function in a new process of one BLAS thread; return what it returns."""
    with (
        mock.patch.dict(os.environ, ONE_THREAD | (environment or {})),
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
    ):
        return pool.submit(function, *args).result()


class Revision(NamedTuple):
    """A state of this repository: its name, the interpreter that has it installed, and what is to be on its path.

    If it was installed for the benchmark: in how many seconds, by the clock, and the MB of its wheel.
    """

    name: str
    python: str
    path: str
    seconds: float = 0.0
    megabytes: float = 0.0

    def run(self, program: Path, *arguments: str, cache: str) -> Any:
        """Run a program in a new process of one thread; return the JSON that it prints last.

        Parameters
        ----------
        program : a file that uses nothing but the public names of the library
        arguments : of its command line
        cache : the folder of compiled loops
        """
        environment = os.environ | ONE_THREAD | {"NUMBA_CACHE_DIR": cache, "MAXMARGIN_CACHE_DIR": cache}
        environment["PYTHONPATH"] = self.path
        command = [self.python, "-P", str(program), *arguments]
        with tempfile.TemporaryDirectory() as folder:  # where there is no package to be imported by accident
            output = subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(output.stdout.splitlines()[-1])


WORKING_TREE = Revision("now", sys.executable, str(ROOT))
PNG = ("--png", {"type": Path, "metavar": "FILE", "help": "draw the figure to FILE"})
BEFORE = ("--before", {"default": "ef3f3c3", "metavar": "REV", "help": "the commit to compare with, or none"})


@contextlib.contextmanager
def revisions(before: str, *, installed: bool = False) -> Iterator[list[Revision]]:
    """The commit `before`, unless it is "none", and the working tree as it is, or as `installed` by pip.

    The commit is cloned and installed in a virtual environment of its own, both in a folder that goes away, with the
    versions of its dependencies that are installed here. So is a copy of the working tree.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), []
        if before != "none":
            for command in (
                ["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder / "before")],
                ["git", "-C", str(folder / "before"), "checkout", "--quiet", before],
            ):
                subprocess.run(command, check=True)
            found.append(install(before, folder / "before", folder / "venv_before"))
        if installed:
            left = shutil.ignore_patterns("bitcode", "build", "results", ".*_cache", "__pycache__", ".git")
            shutil.copytree(ROOT, folder / "now", ignore=left)
            found.append(install(WORKING_TREE.name, folder / "now", folder / "venv_now"))
        yield found if installed else [*found, WORKING_TREE]


def install(name: str, source: Path, folder: Path) -> Revision:
    """A revision whose wheel is built from its source and installed in a new virtual environment in a folder."""
    python, wheels = str(folder / "bin" / "python"), folder / "wheels"
    versions = folder.with_suffix(".txt")
    versions.write_text("".join(f"{d.name}=={d.version}\n" for d in distributions() if d.name != "maxmargin"))
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PIP_CONSTRAINT"] = str(versions)  # which holds for what builds the wheel, too
    began = time.perf_counter()
    subprocess.run(
        [python, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", str(wheels), str(source)], check=True, env=environment
    )
    (wheel,) = wheels.iterdir()
    subprocess.run([python, "-m", "pip", "install", "-qq", str(wheel)], check=True, env=environment)
    return Revision(name, python, "", time.perf_counter() - began, wheel.stat().st_size / 1e6)


def cpu_seconds() -> float:
    """The CPU time of this process so far, and of those that it has started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def peak_megabytes() -> float:
    """The highest memory this process has had so far, or since `forget_peak`; at least its parent's when it started."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on macOS
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def forget_peak() -> float:
    """Begin to measure the peak anew, where the system can, with what is left once garbage is gone; return that."""
    import gc

    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


@dataclass
class Log:
    """What a watched solver was given, what it returned, and the CPU time when it began and at each certificate."""

    problem: Any = None
    result: Any = None
    began: float = 0.0
    clock: list[float] = field(default_factory=list)


def watched(solver: Any, log: Log) -> Any:
    """The solver, by name or as it is, with its next run noted in `log`."""
    from maxmargin.solvers import Solver, find_solver

    class Watched(Solver):
        def takes(self, loss: Any) -> bool:
            return find_solver(solver).takes(loss)

        def solve(self, problem: Any, *args: Any, **options: Any) -> Any:
            def note(_: Any) -> None:
                log.clock.append(time.process_time())

            log.problem, log.began = problem, time.process_time()
            log.result = find_solver(solver).solve(problem, *args, **{**options, "callback": note})
            return log.result

    return Watched()


def load_ocr(size: str) -> tuple[list, list, list, list]:
    """Taskar's handwritten words as X_train, y_train, X_test, y_test: "small" trains on fold 0, "large" on the rest."""
    from maxmargin.datasets import load_ocr

    words = load_ocr(train_on_fold_zero=size == "small")
    return words.X_train, words.y_train, words.X_test, words.y_test


def random_chains(n_sequences: int, length: int, n_labels: int, n_features: int) -> tuple[list, list]:
    """Sequences whose labels mostly follow one another in turn, and whose features surround a centre per label."""
    import numpy as np

    rng = np.random.default_rng(0)
    moves = rng.choice(3, p=[0.2, 0.6, 0.2], size=(n_sequences, length))
    labels = (rng.integers(n_labels, size=(n_sequences, 1)) + np.cumsum(moves, axis=1)) % n_labels
    centres = rng.normal(size=(n_labels, n_features)).astype(np.float32)
    noise = rng.normal(scale=3.0, size=(n_sequences, length, n_features)).astype(np.float32)
    return list(centres[labels] + noise), list(labels)


class Bar(NamedTuple):
    """A claim, the figure that decides it, and whether it holds."""

    claim: str
    figure: str
    holds: bool


def parse_arguments(description: str | None, *options: tuple[str, dict[str, Any]]) -> argparse.Namespace:
    """The command line of a benchmark: its own options and ``--json``."""
    parser = argparse.ArgumentParser(description=description)
    for name, settings in options:
        parser.add_argument(name, **settings)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser.parse_args()


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print rows of texts and numbers, the first column to the left."""

    def text(cell: Any) -> str:
        return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)

    lines = [list(columns), *([text(cell) for cell in row] for row in rows)]
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    print(f"\n{title}\n")
    for name, *cells in lines:
        padded = (cell.rjust(width) for cell, width in zip(cells, others, strict=True))
        print("  ".join([name.ljust(first), *padded]).rstrip())
    print(flush=True)


def report(figures: Any, bars: list[Bar], path: Path | None) -> None:
    """Print which bars hold; write everything to `path`, if given."""
    for bar in bars:
        print(f"{'PASS' if bar.holds else 'FAIL'}  {bar.claim}: {bar.figure}")
    if path is not None:
        path.write_text(json.dumps({"figures": figures, "bars": [bar._asdict() for bar in bars]}, indent=2) + "\n")


def report_runs(runs: list[Any], draw: Callable[[list[Any], Path], None], arguments: argparse.Namespace) -> None:
    """Draw the figure of runs, and write them, where that is asked for."""
    if arguments.png is not None:
        draw(runs, arguments.png)
    report(runs, [], arguments.json)


def save_with_legend(figure: Any, panel: Any, path: Path) -> None:
    """Write a figure, with the lines of one of its panels explained above."""
    lines = panel.get_lines()
    labels = [line.get_label() for line in lines]
    n_columns = 4 if max(map(len, labels)) < 35 else 3
    figure.legend(lines, labels, loc="outside upper center", ncols=n_columns, frameon=False)
    figure.savefig(path)
