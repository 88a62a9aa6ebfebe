"""How long a user waits before work begins, in this revision and an earlier one: CPU time of imports and first fits.

Both are installed by pip from their sources, as users have them: the wheel brings bitcode of common loops, of which a
first fit with an empty cache makes machine code; what it does not bring is compiled, by MAXMARGIN_BITCODE=0 all of it.
One process fits `ChainSVM`, then another solver, then other structures, which share what they can; others, each with
another empty cache, fit `ChainCRF` and `Tagger`. With the cache filled, the first fit of a process loads: the figure is
what it takes longer than the next. Fits are of small data, a fraction of a second once compiled, but for one of all of
CoNLL-2000, with another empty cache, where the figure is what the first takes longer than the next, too. Imports are
those of a new process; `maxmargin predict` is a process that tags one sentence, with an empty cache and after that. The
time of `pip install .` is that of the clock, in a new virtual environment.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import BEFORE, Bar, Revision, parse_arguments, print_table, report, revisions
from benchmarks.first_fits import LARGE_TAGGER, PREDICTING, PREDICTING_FIRST, PREDICTING_MEMORY

PROGRAM = Path(__file__).with_name("first_fits.py")
IMPORTS = ("import maxmargin", "from maxmargin import ChainSVM", "import sklearn.base")
LOADING = "ChainSVM, loops on disk, over a warm fit"
INSTALLING, WHEEL = "pip install ., by the clock", "MB of the wheel"
MOST_SECONDS = {
    "from maxmargin import ChainSVM": 1.0,
    "ChainSVM": 3.0,
    'then ChainSVM(solver="sgd")': 2.5,
    "then MulticlassSVM": 3.0,
    "then TreeSVM": 3.0,
    "then MatchingSVM": 3.0,
    "then GraphCutSVM": 3.0,
    "ChainCRF": 3.0,
    LARGE_TAGGER: 6.0,
    LOADING: 0.5,
    PREDICTING: 0.4,
    PREDICTING_FIRST: 2.0,
    INSTALLING: 60.0,
}
MOST_MEMORY = 100
MOST_MEGABYTES = 20


def time_import(revision: Revision, statement: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)")
        return revision.run(program, cache=folder)


def time_first_fits(revision: Revision) -> dict[str, float]:
    """CPU seconds of first fits, compiled and loaded, and what the loops take on disk."""
    with tempfile.TemporaryDirectory() as cache:
        figures = revision.run(PROGRAM, "structures", cache=cache)
        for name in ("crf", "tagger", "large"):
            with tempfile.TemporaryDirectory() as empty:
                figures |= revision.run(PROGRAM, name, cache=empty)
        loaded = revision.run(PROGRAM, "again", cache=cache)
        figures |= revision.run(PROGRAM, "predict", cache=cache)
        figures |= {"ChainSVM, a warm fit": loaded["warm"], LOADING: loaded["first"] - loaded["warm"]}
        sizes = [path.stat().st_size for path in Path(cache).rglob("*") if path.is_file()]
    return figures | {"files in the cache of structures": float(len(sizes)), "MB in it": sum(sizes) / 1e6}


def measure(revision: Revision, repeats: int) -> dict[str, float]:
    time_import(revision, "from maxmargin import ChainSVM")  # which also writes the bytecode
    figures = {s: statistics.median(time_import(revision, s) for _ in range(5)) for s in IMPORTS}
    runs = [time_first_fits(revision) for _ in range(repeats)]
    figures |= {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return figures | {INSTALLING: revision.seconds, WHEEL: revision.megabytes}


def row(name: str, figures: dict[str, dict[str, float]]) -> list[Any]:
    before, now = (figures[key][name] for key in (next(iter(figures)), "now"))
    compared = [before, now, f"{before / now:.1f}"] if len(figures) > 1 else [None, now, None]
    return [name, *compared, MOST_SECONDS.get(name)]


def main() -> None:
    repeats = {"type": int, "default": 1, "help": "empty caches per revision, of which the median counts"}
    arguments = parse_arguments(__doc__, BEFORE, ("--repeats", repeats))
    try:
        with revisions(arguments.before, installed=True) as both:
            figures = {revision.name: measure(revision, arguments.repeats) for revision in both}
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"startup: {error}") from error
    now = figures["now"]
    columns = ["CPU seconds", f"before: {arguments.before}", "now", "ratio", "bar"]
    print_table("Start-up", columns, [row(name, figures) for name in now])
    bars = [
        Bar(f"{name} in less than {most:g} s", f"{now[name]:.2f} s", now[name] < most)
        for name, most in MOST_SECONDS.items()
    ]
    memory = now[PREDICTING_MEMORY]
    bars.append(Bar(f"{PREDICTING} with at most {MOST_MEMORY} MB", f"{memory:.0f} MB", memory <= MOST_MEMORY))
    bars.append(Bar(f"a wheel of at most {MOST_MEGABYTES} MB", f"{now[WHEEL]:.1f} MB", now[WHEEL] <= MOST_MEGABYTES))
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
