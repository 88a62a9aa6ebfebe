"""What the five papers say of their figures, held against the results of runs.

Each function takes the figures of a stored result and returns findings: a claim of the paper, the numbers found here
that bear on it, and whether they agree, or None where the paper says nothing in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Figures = Any  # as a benchmark writes them with --json
Run = dict[str, Any]
LITTLE = 1.5  # worst over best: an option that matters less is one that a method is robust to


class Finding(NamedTuple):
    """A claim, the numbers that bear on it, and whether they agree; None where there is nothing to agree with."""

    claim: str
    numbers: str
    agrees: bool | None


def worst_over_best(values: Iterable[float]) -> float:
    values = [*values]
    return max(values) / min(values)


def robust(what: str, values: Iterable[float]) -> Finding:
    ratio = worst_over_best(values)
    return Finding(f"{what} matters little (worst over best at most {LITTLE:g})", f"{ratio:.2f}", ratio <= LITTLE)


def below(claim: str, values: dict[str, float], form: str = ".3f") -> Finding:
    """The first value is below all others."""
    first, *others = values.values()
    return Finding(claim, list_numbers(values, form), first < min(others))


def last_objectives(runs: list[Run]) -> dict[str, float]:
    return {run["method"]: run["primal"][-1] for run in runs}


def list_numbers(numbers: dict[str, float], form: str = ".4f") -> str:
    return "; ".join(f"{name}: {value:{form}}" for name, value in numbers.items())


# A smoother way to train structured prediction models


def solvers(runs: list[Run]) -> list[Finding]:
    last = last_objectives(runs)
    smooth = [name for name in last if name.startswith(("SVRG", "Casimir"))]
    others = [name for name in last if name not in smooth]
    best, rival = (min(names, key=last.__getitem__) for names in (smooth, others))

    def compare(claim: str, other: str) -> Finding:
        return below(claim, {name: last[name] for name in (best, other)}, ".4f")

    at_end, on_the_way = (
        [max(score(run["score"]) for run in runs if run["method"] in names) for names in (smooth, others)]
        for score in (lambda scores: scores[-1], max)
    )
    return [
        compare("smoothing leads to lower objectives than SGD in the same time", "SGD"),
        compare("smoothing leads to lower objectives than averaged BCFW in the same time", "BCFW, average"),
        compare("smoothing leads to the lowest objective of all", rival),
        Finding(
            "held-out F1 at the end is level (within a point)",
            f"smooth: {at_end[0]:.1%}; others: {at_end[1]:.1%}",
            at_end[0] >= at_end[1] - 0.01,
        ),
        Finding("the best held-out F1 on the way", f"smooth: {on_the_way[0]:.1%}; others: {on_the_way[1]:.1%}", None),
    ]


def levels(runs: list[Run]) -> list[Finding]:
    last = last_objectives(runs)
    found = {
        schedule: {name.partition(";")[0]: last[name] for name in last if name.endswith(f"{schedule}, published")}
        for schedule in ("adaptive", "constant")
    }
    constant = found["constant"]
    ratios = {schedule: worst_over_best(values.values()) for schedule, values in found.items()}
    is_rising = [*constant.values()] == sorted(constant.values())
    return [
        Finding("a constant mu must be small", list_numbers(constant), is_rising),
        below("the adaptive schedule depends less on mu (worst over best)", ratios, ".2f"),
    ]


def no_smoothing(runs: list[Run]) -> list[Finding]:
    last = last_objectives(runs)
    names = [name.partition("; ") for name in last]
    families = dict.fromkeys((family, variant.partition("smooth")[2]) for family, _, variant in names)
    return [
        Finding(
            f"objectives of {family}{way or ', as it comes'}: with smoothing, and without",
            f"{last[f'{family}; smooth{way}']:.4f}, {last[f'{family}; non-smooth{way}']:.4f}",
            None,
        )
        for family, way in families
    ]


def starts(runs: list[Run]) -> list[Finding]:
    found = {
        schedule: {
            run["method"].partition(";")[0]: run for run in runs if run["method"].endswith(f"{schedule}, published")
        }
        for schedule in ("adaptive", "constant")
    }
    ratios = {schedule: worst_over_best(run["primal"][-1] for run in some.values()) for schedule, some in found.items()}
    unstable = {start: int(run["unstable"].split()[0]) for start, run in found["constant"].items()}
    return [
        below("the adaptive schedule depends less on the start (worst over best)", ratios, ".2f"),
        *(
            below(
                f"constant: more stable from the {first} than from the {second} (unstable values of L, of 7)",
                {name: unstable[name] for name in (first, second)},
                "d",
            )
            for first, second in (("center", "extrapolation"), ("previous", "center"))
        ),
    ]


def top_k(runs: list[Run]) -> list[Finding]:
    return [robust("K", last_objectives(runs).values())]


def prox_levels(figures: dict[str, dict[str, Run]]) -> list[Finding]:
    last = {title: [run["objectives"][-1] for run in runs.values()] for title, runs in figures.items()}
    titles = {"mu/k": "6b: mu, adaptive", "mu": "6c: mu, constant"}
    ratios = {name: worst_over_best(last[title]) for name, title in titles.items()}
    at_one = dict(zip(titles, last["6a: schedules"], strict=True))
    return [
        Finding("objectives at mu = 1", list_numbers(at_one), None),
        below("mu/k depends less on mu (worst over best)", ratios, ".2f"),
    ]


def prox_options(figures: dict[str, dict[str, Run]]) -> list[Finding]:
    etas, iterations, starts = (
        [run["objectives"][-1] for run in figures[title].values()]
        for title in ("7a: eta", "7b: iterations", "7c: start")
    )
    *fixed, free = etas
    center, *others = starts
    return [
        robust("a fixed eta, 0.3 to 10,", fixed),
        Finding("objectives by eta", list_numbers({"the best fixed one": min(fixed), "one that adapts": free}), None),
        robust("how many iterations the inner solver has, 1 to 10,", iterations),
        Finding(
            "the prox-center is within 10 % of the best start",
            list_numbers({"center": center, "the best other": min(others)}),
            center <= 1.1 * min(others),
        ),
    ]


# Minding the gaps


def staleness(figures: Figures) -> list[Finding]:
    runs = figures[0]["runs"]
    gaps, ratios = ({name: run[key][-1] for name, run in runs.items()} for key in ("gap", "ratio"))
    expected = np.median(runs["uniform"]["speed-up"])
    half_way = np.exp(gap_at(runs["gap inf"], "passes", runs["gap inf"]["passes"][-1] / 2))

    def compare(claim: str, other: str) -> Finding:
        return below(claim, {name: gaps[name] for name in ("gap 10", other)}, ".4f")

    return [
        compare("sampling by gaps, known anew every 10 passes, converges faster than uniformly", "uniform"),
        compare("to refresh the known gaps after every pass wastes calls", "gap 1"),
        Finding(
            "never refreshed, known gaps end all progress (less than a tenth in the second half)",
            list_numbers({"half-way": half_way, "at the end": gaps["gap inf"]}),
            gaps["gap inf"] > 0.9 * half_way,
        ),
        Finding(
            "for they understate the true gap most (true over known)",
            list_numbers(ratios, ".2f"),
            max(ratios.values()) == ratios["gap inf"],
        ),
        Finding("Theorem 2 expects sampling by gaps to be faster (factor, median)", f"{expected:.2f}", expected > 1),
    ]


def cache_regimes(figures: Figures) -> list[Finding]:
    from benchmarks.cache_regimes import DEFAULT, FACTORS, NUS, regime

    plain, *runs = figures[0]["runs"]
    without, gaps = plain["gap"][-1], {tuple(run["point"]): run["gap"][-1] for run in runs}
    local, shared = (min(run["gap"][-1] for run in runs if regime(run) == kind) for kind in ("local", "global"))
    large = [run for run in runs if FACTORS[-1] == run["point"][0] or NUS[-1] == run["point"][1]]
    hits = max(run["hits"] for run in large)
    small = [gaps[DEFAULT[0], nu] for nu in NUS if nu <= 0.1]
    return [
        below("the local criterion in charge is best", {"local": local, "global": shared}),
        below("F and nu both small: hardly any progress", {"no cache": without, "smallest": gaps[FACTORS[0], NUS[0]]}),
        Finding("F or nu large: hardly any hit", f"at most {hits:.1%} of steps", hits < 0.05),
        below("F = 0.25, nu = 0.01 is better than no cache", {"cache": gaps[DEFAULT], "no cache": without}),
        robust("nu, 1e-4 to 0.1, at F = 0.25", small),
    ]


def variants(runs: list[Run]) -> list[Finding]:
    """Pairs of runs that differ in one option only, by their gaps after as many passes, or CPU seconds."""
    found = {(run["C"], run["method"]): run for run in runs}

    def compare(claim: str, old: str, new: str, key: str) -> Finding:
        pairs = [
            (run, found[C, changed])
            for (C, method), run in found.items()
            if (changed := switch(method, old, new)) != method
        ]
        wins = 0
        for before, after in pairs:
            end = min(before[key][-1], after[key][-1])
            wins += gap_at(after, key, end) < gap_at(before, key, end)
        return Finding(claim, f"in {wins} of {len(pairs)} pairs", wins == len(pairs))

    by_time = compare("a cache is ahead by time (the paper: where the oracle is slow)", "", ", cache", "seconds")
    return [
        compare("sampling by gaps is always ahead of uniform sampling by passes", "uniform", "gap", "passes"),
        compare("sampling by gaps is always ahead of uniform sampling by time", "uniform", "gap", "seconds"),
        compare("a cache always helps by passes", "", ", cache", "passes"),
        compare("pairwise steps lead to smaller gaps", "fw", "pairwise", "passes"),
        Finding(by_time.claim, by_time.numbers, None),
    ]


def switch(method: str, old: str, new: str) -> str:
    """The method with one option changed, or itself where it has another value of it."""
    if not old:
        return method if method.endswith(new) else method + new
    return ", ".join(new if part == old else part for part in method.split(", "))


def gap_at(run: Run, key: str, place: float) -> float:
    """The logarithm of the gap after so many passes or seconds."""
    return float(np.interp(place, run[key], np.log(run["gap"])))


def paths(figures: Figures) -> list[Finding]:
    runs = runs_of(figures, "methods")
    found = []
    for key, form in (("passes", ".0f"), ("seconds", ".2f")):
        ends = {name: run[key][-1] for name, run in runs.items()}
        pair = {name: ends[name] for name in ("path", "cold grid")}
        found += [
            below(f"warm starts make a grid cheaper, by {key}", {n: ends[n] for n in ("warm grid", "cold grid")}, form),
            Finding(
                f"the whole path costs about as much as a grid, by {key} (at most twice)",
                list_numbers(pair, form),
                pair["path"] <= 2 * pair["cold grid"],
            ),
            below(f"the heuristic path is cheaper, by {key}", {n: ends[n] for n in ("heuristic path", "path")}, form),
        ]
    return found


def kappas(figures: Figures) -> list[Finding]:
    runs = runs_of(figures, "kappa")
    proven = [run["passes"][-1] for name, run in runs.items() if name.startswith("path")]
    gaps = {name.rpartition(" ")[2]: run["gap"] for name, run in runs.items() if name.startswith("heuristic")}
    return [
        robust("kappa, 0.5 to 0.99, of the path with proof", proven),
        Finding(
            "kappa = 0.7 keeps the heuristic path within eps = 0.1",
            f"largest gap {gaps['0.7']:.3f}",
            gaps["0.7"] <= 0.1,
        ),
        Finding("kappa near 1 does not", f"largest gap {gaps['0.99']:.3f}", gaps["0.99"] > 0.1),
    ]


def runs_of(figures: Figures, part: str) -> dict[str, Run]:
    return next(one["runs"] for one in figures if one["part"] == part)


# Excessive gap reduction, inexact dual augmented Lagrangian, localization


def rates(runs: list[Run]) -> list[Finding]:
    found = {run["method"]: run for run in runs}
    adaptive, batch = found["EGR, adaptive"], found["exponentiated gradient, batch"]
    ours, theirs = adaptive["reached"][-1], batch["reached"][-1]
    more = ((theirs or batch["passes"]) / ours) if ours else 0.0
    fewer = {name: run["reached"][-1] for name, run in found.items() if ours and (run["reached"][-1] or ours) < ours}
    return [
        Finding(
            "gaps of EGR fall as 1/k^2: exponent at most -1.8",
            f"{adaptive['exponent']:.2f}",
            adaptive["exponent"] <= -1.8,
        ),
        Finding(
            "exponentiated gradient, at 1/k, takes more passes to a relative gap of 1e-3",
            f"{'' if theirs else 'more than '}{more:.1f} times as many",
            more > 1,
        ),
        Finding(
            "passes to 1e-3 of EGR, and of those that take fewer", f"{ours:.0f}; {list_numbers(fewer, '.0f')}", None
        ),
    ]


def relaxations(figures: Figures) -> list[Finding]:
    from benchmarks.idal import bars_of

    runs = figures["runs"]
    tasks = dict.fromkeys(run["task"] for run in runs)
    bars = [bar for task in tasks for bar in bars_of([run for run in runs if run["task"] == task])]
    return [Finding(*bar) for bar in bars]


def localization(runs: list[Run]) -> list[Finding]:
    kinds = [run for run in runs if run["kind"] == "WBC"]
    names = dict.fromkeys(run["method"] for run in kinds)
    excess, score = (
        {name: float(np.mean([run[key][-1] for run in kinds if run["method"] == name])) for name in names}
        for key in ("excess", "score")
    )
    smooth = {name: excess[name] for name in names if name.startswith(("SVRG", "Casimir"))}
    others = {name: excess[name] for name in ("SGD", "BCFW, average")}
    best, rest = min(smooth, key=smooth.__getitem__), min(others, key=others.__getitem__)
    corloc = max(score[name] for name in smooth), max(score[name] for name in names if name not in smooth)
    starts = {
        schedule: [excess[name] for name in smooth if name.startswith(f"Casimir, {schedule}")]
        for schedule in ("adaptive", "constant")
    }
    spreads = {schedule: max(some) - min(some) for schedule, some in starts.items()}
    return [
        below(
            "smoothing leads to lower objectives than SGD and BCFW after as many calls (above the lowest)",
            {best: smooth[best], rest: others[rest]},
            ".2%",
        ),
        Finding(
            "held-out CorLoc is level (within a point)",
            list_numbers({"smooth": corloc[0], "others": corloc[1]}, ".3f"),
            corloc[0] >= corloc[1] - 0.01,
        ),
        below("the adaptive schedule depends less on the start (spread of objectives)", spreads, ".2%"),
    ]
