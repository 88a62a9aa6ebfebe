"""Figures and tables of the five papers: what came of each, by stored results of runs that anyone can repeat.

Without a name it lists every figure and table with its command, its status and the numbers that bear on what the paper
says. Its status is "reproduced" if the run has the paper's data and all claims hold, "in part" if some claims hold or
the data are others, "not" if no claim holds or nothing is stored; figures and tables of theory have nothing to run.
With the name of a stored result its command is run, and the result replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import (
    cache_regimes,
    egr,
    gaps_figure,
    idal,
    localization_figure,
    paper_claims,
    path,
    prox_linear_figure,
    smoother_figure,
)
from benchmarks.common import ROOT
from benchmarks.paper_claims import Finding

STORED = ROOT / "benchmarks" / "stored"
MOST_POINTS = 50  # of a curve
DIGITS = 5
PAPERS = {
    "Smoother": "A smoother way to train structured prediction models (Pillutla, Roulet, Kakade, Harchaoui 2019)",
    "Gaps": "Minding the gaps for block Frank-Wolfe optimization of structured SVMs (Osokin et al. 2016)",
    "EGR": "Accelerated training of max-margin Markov networks with kernels (Zhang, Saha, Vishwanathan)",
    "IDAL": "SDCA-powered inexact dual augmented Lagrangian method for fast CRF learning (Hu, Obozinski 2018)",
    "Local": "A smoother way to train structured prediction models, on localization (Madali, Mallet)",
}
RUN = "python -m benchmarks."
COMMANDS = {
    "smoother-solvers": "smoother_figure --datasets wnut --part solvers --C 1 --seconds 4 --sentences 1000",
    "smoother-mu": "smoother_figure --part mu --C 100 --sentences 1000 --seconds 1",
    "smoother-non-smooth": "smoother_figure --part non-smooth --C 100 --sentences 1000 --seconds 1",
    "smoother-start": "smoother_figure --part start --C 100 --sentences 1000 --seconds 1",
    "smoother-k": "smoother_figure --part k --sentences 1000 --seconds 4",
    "prox-linear": "prox_linear_figure",
    "gaps-staleness": "path --part staleness --data ocr-small --n 626 --passes 200",
    "gaps-cache": "cache_regimes --passes 60",
    "gaps-letters": "gaps_figure --datasets ocr-small --seeds 1 --seconds 1.5",
    "gaps-horses": "gaps_figure --datasets horses --seeds 1 --seconds 1.5",
    "gaps-paths": "path --part methods kappa --data ocr-small --n 626 --lambda-min 1e-2",
    "gaps-paths-horses": "path --part methods --data horses --n 147 --lambda-min 1",
    "egr": "egr --datasets ocr --C 0.1 --n 200 --passes 1000 --seconds 60",
    "idal": "idal --part figure --tasks grids emotions --seconds 3",
    "local": "localization_figure --images 40 --trials 3 --passes 20 --epochs 2",
}  # by the names of their results


class Item(NamedTuple):
    """A figure or table: what it shows, and what there is of it here."""

    paper: str
    name: str
    about: str
    result: str | None = None
    differs: str = ""  # in data or size, or why there is no result
    find: Callable[[Any], list[Finding]] = lambda figures: []
    draw: Callable[[Any, Any], None] | None = None
    command: str = ""  # where no result is stored
    is_theory: bool = False


class Stored(NamedTuple):
    """The result of a run: how, when and on what, and its figures."""

    command: str
    date: str
    machine: str
    figures: Any


def theory(paper: str, name: str, about: str) -> Item:
    return Item(paper, name, about, is_theory=True)


def draw_part(part: str) -> Callable[[Any, Any], None]:
    """The drawing of one part of the regularization paths."""

    def draw(figures: Any, file: Any) -> None:
        chosen = [one for one in figures if one["part"] == part]
        path.draw([(path.TASKS[one["data"]], one["runs"]) for one in chosen], file)

    return draw


def draw_options(figure: str) -> Callable[[Any, Any], None]:
    """The drawing of one of the figures of prox-linear training."""

    def draw(figures: Any, file: Any) -> None:
        prox_linear_figure.draw({title: runs for title, runs in figures.items() if title.startswith(figure)}, file)

    return draw


SMALL = "WNUT-17, its first 1,000 sentences, in place of CoNLL-2003"
VOC = "PASCAL VOC 2007 is not at hand; see blood cells, in Local"
LONG = "takes long: no result is stored"
BRIEF = f"{SMALL}; 1 CPU second each, far from converged"
CELLS = "40 images each of blood cells to train on and to judge by, 3 trials, a network trained on them for 2 epochs"
ITEMS = [
    theory("Smoother", "Table 1", "rates of convergence by oracle calls"),
    theory("Smoother", "Figure 1", "the trellis of a chain"),
    theory("Smoother", "Table 2", "costs of smooth oracles"),
    theory("Smoother", "Table 3", "outer iterations of Casimir"),
    theory("Smoother", "Table 4", "total cost of Casimir-SVRG"),
    Item("Smoother", "Figure 2", "solvers on named entities", "smoother-solvers", f"{SMALL}; 4 CPU seconds each",
         paper_claims.solvers, smoother_figure.draw),
    Item("Smoother", "Figures 3, 8 to 10", "solvers on localization in PASCAL VOC 2007, a linear score", differs=VOC,
         command="localization_figure"),
    Item("Smoother", "Figures 4, 11 to 13", "prox-linear training on localization in PASCAL VOC 2007", differs=VOC),
    Item("Smoother", "Figure 5a", "levels of smoothing", "smoother-mu", BRIEF,
         paper_claims.levels, smoother_figure.draw),
    Item("Smoother", "Figure 5b", "no smoothing at all", "smoother-non-smooth", BRIEF,
         paper_claims.no_smoothing, smoother_figure.draw),
    Item("Smoother", "Figure 5c", "where subproblems start", "smoother-start", f"{BRIEF}; one C of two",
         paper_claims.starts, smoother_figure.draw),
    Item("Smoother", "Figure 5d", "K of the top-K oracle", "smoother-k",
         f"{SMALL}; one run each, of 4 CPU seconds, far from converged",
         paper_claims.top_k, smoother_figure.draw),
    Item("Smoother", "Figure 6", "prox-linear training: smoothing", "prox-linear",
         "50 words of digits and a small network in place of PASCAL VOC 2007", paper_claims.prox_levels,
         draw_options("6")),
    Item("Smoother", "Figure 7", "prox-linear training: other options", "prox-linear",
         "50 words of digits and a small network in place of PASCAL VOC 2007", paper_claims.prox_options,
         draw_options("7")),
    Item("Gaps", "Figure 1", "known gaps grow stale", "gaps-staleness", "", paper_claims.staleness,
         path.draw_staleness),
    Item("Gaps", "Figure 2", "regimes of the cache", "gaps-cache", "", paper_claims.cache_regimes,
         cache_regimes.draw),
    Item("Gaps", "Figures 3 and 5, letters", "variants of BCFW on OCR-small", "gaps-letters", "one seed of five",
         paper_claims.variants, gaps_figure.draw),
    Item("Gaps", "Figures 3, 5 and 6, horses", "variants of BCFW on segmentation", "gaps-horses",
         "Weizmann horses in place of HorseSeg; one seed of five", paper_claims.variants, gaps_figure.draw),
    Item("Gaps", "Figures 3, 5 and 6, the rest", "variants of BCFW on OCR-large, CoNLL-2000 and poses", differs=LONG,
         command="gaps_figure --datasets ocr-large conll poses"),
    Item("Gaps", "Figure 4", "regularization paths on HorseSeg-small", "gaps-paths-horses",
         "Weizmann horses in place of HorseSeg; down to lambda = 1", paper_claims.paths, draw_part("methods")),
    Item("Gaps", "Figure 7", "kappa of regularization paths", "gaps-paths",
         "pairwise steps only; down to lambda = 0.01", paper_claims.kappas, draw_part("kappa")),
    Item("Gaps", "Figure 8, OCR-small", "regularization paths", "gaps-paths",
         "pairwise steps only; down to lambda = 0.01", paper_claims.paths, draw_part("methods")),
    Item("Gaps", "Figure 8, the rest", "regularization paths on OCR-large and HorseSeg", differs=LONG,
         command="path --data ocr-large --n 6251 --lambda-min 3e-5"),
    Item("Gaps", "Table 1", "sizes of the data, and the time of an oracle call", differs="not measured"),
    Item("EGR", "Table 1", "rates of convergence, here as measured", "egr",
         "the paper has no experiment; 200 words of OCR-small", paper_claims.rates, egr.draw),
    Item("IDAL", "Figure 1", "IDAL beside SoftBCFW, SoftSDCA and GDMM", "idal",
         "emotions in place of yeast; segmentation not stored", paper_claims.relaxations,
         lambda figures, file: idal.draw(figures["runs"], file)),
    theory("IDAL", "Table 1", "methods by model, variables, rate and oracle"),
    theory("IDAL", "Tables 2 to 4", "notation"),
    theory("Local", "Figures 1 and 2", "cutting planes, as a sketch"),
    theory("Local", "Table 1", "total cost of Casimir-SVRG"),
    theory("Local", "Figures 3 and 4", "R-CNN, and two images of cells"),
    Item("Local", "Figure 5", "solvers and starts on localization of blood cells", "local", CELLS,
         paper_claims.localization, localization_figure.draw),
]  # fmt: skip


@cache
def load(result: str) -> Stored:
    stored = json.loads((STORED / f"{result}.json").read_text(encoding="utf-8"))
    return Stored(**stored)


def findings(item: Item) -> list[Finding]:
    """The claims of the paper beside the numbers of the stored result."""
    return item.find(load(item.result).figures) if item.result else []


def status(item: Item) -> str:
    """What came of a figure or table: see the text at the top."""
    if item.is_theory:
        return "nothing to run"
    told = [finding.agrees for finding in findings(item) if finding.agrees is not None]
    if item.result is None or (told and not any(told)):
        return "not"
    return "reproduced" if all(told) and not item.differs else "in part"


def command_of(item: Item) -> str:
    arguments = COMMANDS[item.result] if item.result else item.command
    return RUN + arguments if arguments else ""


def show(item: Item) -> None:
    print(f"  {item.name}: {item.about}\n      {status(item)}" + (f": {item.differs}" if item.differs else ""))
    if command := command_of(item):
        print(f"      {command}  ({f'{load(item.result).date}, {item.result}' if item.result else 'nothing stored'})")
    for finding in findings(item):
        sign = {True: "agrees", False: "differs", None: ""}[finding.agrees]
        print(f"      {sign:8} {finding.claim}: {finding.numbers}")


def thin(value: Any) -> Any:
    """A result as it is stored: so many digits of numbers, and so many points of curves, first and last among them."""
    if isinstance(value, dict):
        return {key: thin(entry) for key, entry in value.items()}
    if isinstance(value, list):
        if len(value) > MOST_POINTS and not isinstance(value[0], dict):
            value = [value[k * (len(value) - 1) // (MOST_POINTS - 1)] for k in range(MOST_POINTS)]
        return [thin(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def describe_machine() -> str:
    """Its processor, its cores, and how busy it is."""
    about = Path("/proc/cpuinfo")
    names = [line for line in about.read_text().splitlines() if "model name" in line] if about.exists() else []
    name = names[0].partition(": ")[2] if names else platform.machine()
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def store(result: str, figures: Any, machine: str) -> None:
    stored = Stored(RUN + COMMANDS[result], date.today().isoformat(), machine, thin(figures))
    (STORED / f"{result}.json").write_text(json.dumps(stored._asdict(), separators=(",", ":")) + "\n", encoding="utf-8")


def run(result: str) -> None:
    """Run the command of a result, and store what it found."""
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        module, *arguments = shlex.split(COMMANDS[result])
        command = [sys.executable, "-m", f"benchmarks.{module}", *arguments, "--json", str(file)]
        subprocess.run(command, check=True, cwd=ROOT)
        store(result, json.loads(file.read_text())["figures"], machine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=[*COMMANDS], help="of a stored result, to run and store it again")
    name = parser.parse_args().name
    if name is not None:
        run(name)
    for paper, title in PAPERS.items():
        items = [item for item in ITEMS if item.paper == paper and name in (None, item.result)]
        if items:
            print(f"\n{paper}: {title}\n")
        for item in items:
            show(item)


if __name__ == "__main__":
    main()
