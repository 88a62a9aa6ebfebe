"""What gap sampling, pairwise steps and caching save on Taskar's OCR: CPU time and calls of the oracle.

C is that of `benchmarks.ocr`. Oracle calls include those of the certificates.
"""

from __future__ import annotations

import math
import time
from typing import Any

from benchmarks.common import Bar, Log, in_fresh_process, load_ocr, parse_arguments, print_table, report, watched
from benchmarks.ocr import C, fit_crfsuite, fit_maxmargin, warm_up

SHARE_OF_CRFSUITE = 1 / 8
FEWER_CALLS = 3
SMALL_GAP = 1e-4  # relative
SLOWER, SLOW_GAP = 100, 1e-3
SAVED = 0.5


def ocr_problem(size: str) -> Any:
    from maxmargin import ChainSVM

    X, y, _, _ = load_ocr(size)
    log = Log()
    ChainSVM(C=C, fit_intercept=False, max_passes=1, solver=watched("auto", log)).fit(X, y)
    return log.problem


def solve(name: str, solver: Any, problem: Any, tol: float, most_calls: float = math.inf) -> dict[str, Any]:
    """Solve up to a relative gap or a number of oracle calls; say what it took."""
    from maxmargin.problem import n_examples

    began = time.process_time()
    result = solver.solve(
        problem,
        C,
        tol=tol,
        max_passes=math.inf,
        random_state=0,
        callback=lambda trace: trace.oracle_calls[-1] >= most_calls,
    )
    trace = result.trace
    return {
        "solver": name,
        "calls": int(trace.oracle_calls[-1]),
        "effective_passes": float(trace.oracle_calls[-1] / n_examples(problem)),
        "certificates": len(trace),
        "cache_hits": int(trace.cache_hits[-1]),
        "seconds": time.process_time() - began,
        "relative_gap": float(trace.gap[-1] / trace.primal[-1]),
        "notes": trace.notes,
    }


def compare_with_uniform() -> list[dict[str, Any]]:
    """Auto to the small gap, and uniform BCFW until it has got there or has made FEWER_CALLS times as many calls."""
    from maxmargin.solvers import BCFW, Auto

    problem = ocr_problem("large")
    ours = solve("auto", Auto(), problem, SMALL_GAP)
    uniform = BCFW(sampling="uniform")
    return [ours, solve("bcfw, uniform", uniform, problem, SMALL_GAP, FEWER_CALLS * ours["calls"])]


def compare_caches() -> list[dict[str, Any]]:
    """With the slow oracle: Auto, and the same without a cache."""
    from benchmarks.slow_chain import SlowChain
    from maxmargin.solvers import BCFW, Auto

    problem = SlowChain(ocr_problem("small"), SLOWER)
    Auto().solve(problem, C, max_passes=1)  # loads the loops
    without = BCFW(steps="pairwise", sampling="gap")
    return [solve("auto", Auto(), problem, SLOW_GAP), solve("without cache", without, problem, SLOW_GAP)]


def show(title: str, runs: list[dict[str, Any]]) -> None:
    columns = ["oracle calls", "effective passes", "certificates", "cache hits", "CPU s", "relative gap"]
    rows = [[run["solver"], *(run[key] for key in list(run)[1:-1])] for run in runs]
    print_table(title, ["", *columns], rows)
    print(*runs[0]["notes"], sep="\n")


def main() -> None:
    repeats = {"type": int, "default": 1, "help": "fits beside python-crfsuite, of which the fastest counts"}
    arguments = parse_arguments(__doc__, ("--repeats", repeats))
    bars = []

    in_fresh_process(warm_up, "large")
    fits = [
        (in_fresh_process(fit_maxmargin, "large"), in_fresh_process(fit_crfsuite, "large"))
        for _ in range(arguments.repeats)
    ]
    ours, peer = (min(each, key=lambda fit: fit["seconds"]) for each in zip(*fits, strict=True))
    level = ours["levels"][-1]
    seconds = f"{level['seconds']:.1f} s of {peer['seconds']:.1f} s"
    share = level["seconds"] / peer["seconds"]
    claim = f"OCR-large to a gap of {level['gap']} in at most {SHARE_OF_CRFSUITE:.1%} of python-crfsuite's CPU time"
    bars.append(Bar(claim, f"{share:.1%}, {seconds}", share <= SHARE_OF_CRFSUITE))

    to_small_gap = auto, uniform = in_fresh_process(compare_with_uniform)
    show(f"OCR-large, C = {C}, to a relative gap of {SMALL_GAP:g}", to_small_gap)
    ratio = uniform["calls"] / auto["calls"]
    is_there = uniform["relative_gap"] <= SMALL_GAP
    claim = (
        f"OCR-large to a relative gap of {SMALL_GAP:g} with {FEWER_CALLS} times fewer oracle calls than uniform BCFW"
    )
    state = "which reached it" if is_there else f"which had only reached {uniform['relative_gap']:.1e}"
    figure = f"{auto['calls']} calls; uniform BCFW made {ratio:.1f} times as many, {state}"
    holds = auto["relative_gap"] <= SMALL_GAP and ratio >= FEWER_CALLS
    bars.append(Bar(claim, figure, holds))

    caches = cached, without = in_fresh_process(compare_caches)
    show(f"OCR-small, C = {C}, oracle {SLOWER} times slower, to a relative gap of {SLOW_GAP:g}", caches)
    saved, saved_seconds = (1 - cached[key] / without[key] for key in ("calls", "seconds"))
    claim = (
        f"OCR-small, oracle {SLOWER} times slower: the cache that Auto chooses saves {SAVED:.0%} of the oracle calls"
    )
    figure = f"{saved:.0%}, and {saved_seconds:.0%} of the CPU time, by {cached['cache_hits']} hits"
    bars.append(Bar(claim, figure, saved >= SAVED))

    figures = {"maxmargin": ours, "python-crfsuite": peer, "to_small_gap": to_small_gap, "slow_oracle": caches}
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
