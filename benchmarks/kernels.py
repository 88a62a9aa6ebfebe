"""Kernels on handwritten words: test error and CPU time of chains with kernels, beside SVMs of single letters.

OCR by the fold protocol: "small" trains on fold 0 and tests on the other nine, "large" the reverse. C of each contender
is the best of a few on every third word of fold 0, trained on the others; "large" takes it over. The SVMs of single
letters are those of `sklearn.svm.SVC`, with the same kernel. Every fit runs in a process of its own, on one thread; CPU
times are those of ``fit`` at the chosen C, without compilation.

The part of a pass in BLAS is that of excessive gap reduction, in float64: the time of the product of the Gram matrix
with mean parts in that of all. Steps of BCFW multiply nothing: they add rows of the Gram matrix to scores.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.common import Bar, in_fresh_process, load_ocr, parse_arguments, peak_megabytes, print_table, report

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly 2": {"kernel": "poly", "degree": 2},
    "poly 3": {"kernel": "poly", "degree": 3},
    "rbf": {"kernel": "rbf"},
}
CS = {"chain": (0.01, 0.1, 1.0, 10.0), "letter": (0.1, 1.0, 10.0, 100.0)}
TOL, MOST_PASSES = 0.05, 100  # of chains
MINUTES = 15  # of CPU time, for OCR-large

Run = dict[str, Any]


def new_model(kind: str, kernel: str, C: float, cache: float) -> Any:
    from sklearn.svm import SVC

    from maxmargin import ChainSVM, KernelChainSVM

    options = KERNELS[kernel]
    if kind == "letter":
        return SVC(C=C, coef0=1.0, cache_size=cache / 4, **options)
    common = {"C": C, "tol": TOL, "max_passes": MOST_PASSES, "random_state": 0}
    return ChainSVM(**common) if kernel == "linear" else KernelChainSVM(cache_size=cache, **common, **options)


def fit_and_score(kind: str, kernel: str, C: float, cache: float, train: Any, test: Any) -> Run:
    import numpy as np

    model = new_model(kind, kernel, C, cache)
    stack = np.concatenate if kind == "letter" else list
    began = time.process_time()
    model.fit(*map(stack, train))
    fitted = time.process_time()
    error = 1 - model.score(*map(stack, test))
    run = {"C": C, "error": error, "seconds": fitted - began, "predict": time.process_time() - fitted}
    run |= {"support": len(model.support_) if hasattr(model, "support_") else None, "megabytes": peak_megabytes()}
    if kind == "chain":
        run |= {"passes": model.n_iter_, "gap": model.certificate_.gap / model.certificate_.primal}
    return run


def choose_C(kind: str, kernel: str, cache: float) -> float:
    """The best C on every third word of fold 0; the smallest of several."""
    X, y, _, _ = load_ocr("small")
    parts = [
        [rows[k] for k in range(len(rows)) if (k % 3 == 0) is held_out] for held_out in (False, True) for rows in (X, y)
    ]
    errors = {C: fit_and_score(kind, kernel, C, cache, parts[:2], parts[2:])["error"] for C in CS[kind]}
    return min(errors, key=lambda C: errors[C])


def contend(kind: str, kernel: str, size: str, C: float, cache: float) -> Run:
    X_train, y_train, X_test, y_test = load_ocr(size)
    if kind == "chain":  # load what is compiled, or compile it
        fit_and_score(kind, kernel, C, cache, (X_train[:20], y_train[:20]), (X_test[:2], y_test[:2]))
    return fit_and_score(kind, kernel, C, cache, (X_train, y_train), (X_test, y_test))


def share_of_blas(passes: int) -> float:
    """The share of the product of matrices in the time of passes of excessive gap reduction on OCR-small."""
    from unittest import mock

    from maxmargin import ExcessiveGap, KernelChainSVM
    from maxmargin.features.kernel_features import KernelLayout

    X, y, _, _ = load_ocr("small")
    complete, spent = KernelLayout.complete, 0.0

    def timed(*args: Any) -> None:
        nonlocal spent
        began = time.process_time()
        complete(*args)
        spent += time.process_time() - began

    options = {"kernel": "poly", "C": 0.1, "dtype": "float64", "solver": ExcessiveGap(), "tol": 1e-9}
    KernelChainSVM(**options, max_passes=2).fit(X[:20], y[:20])
    with mock.patch.object(KernelLayout, "complete", timed):
        problem = KernelChainSVM(**options)._encode(X, y).problem
        began = time.process_time()
        ExcessiveGap().solve(problem, 0.1, tol=1e-9, max_passes=passes)
        return spent / (time.process_time() - began)


def judge(runs: dict[tuple[str, str, str], Run]) -> list[Bar]:
    errors = {key: run["error"] for key, run in runs.items()}
    bars = []
    if ("chain", "linear", "small") in errors:
        linear = errors["chain", "linear", "small"]
        best = min(error for (kind, _, size), error in errors.items() if (kind, size) == ("chain", "small"))
        claim = "OCR small: kernels cut the error of the linear chain by at least a third"
        bars.append(Bar(claim, f"{linear:.2%} to {best:.2%}, by {1 - best / linear:.0%}", best <= 2 / 3 * linear))
    if (cubic := runs.get(("chain", "poly 3", "large"))) is not None:
        bars.append(Bar("OCR large, cubic kernel: below 6 %", f"{cubic['error']:.2%}", cubic["error"] < 0.06))
        claim, minutes = f"OCR large, cubic kernel: within {MINUTES} CPU minutes", cubic["seconds"] / 60
        bars.append(Bar(claim, f"{minutes:.1f}", minutes <= MINUTES))
    return bars


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--sizes", {"nargs": "+", "choices": ["small", "large"], "default": ["small", "large"]}),
        ("--kernels", {"nargs": "+", "choices": list(KERNELS), "default": list(KERNELS)}),
        ("--kinds", {"nargs": "+", "choices": list(CS), "default": list(CS)}),
        ("--cache", {"type": float, "default": 6000.0, "help": "megabytes for rows of the Gram matrix"}),
        ("--C", {"type": float, "help": "in place of the best"}),
    )
    runs: dict[tuple[str, str, str], Run] = {}
    for kernel in arguments.kernels:
        for kind in arguments.kinds:
            C = arguments.C or in_fresh_process(choose_C, kind, kernel, arguments.cache)
            for size in arguments.sizes:
                runs[kind, kernel, size] = in_fresh_process(contend, kind, kernel, size, C, arguments.cache)
                run = runs[kind, kernel, size]
                print(f"{kind}, {kernel}, {size}: {run['error']:.2%} in {run['seconds']:.1f} CPU s", flush=True)
    columns = ["", "C", "test error", "CPU s", "predict s", "passes", "relative gap", "support", "peak MB"]
    for size in arguments.sizes:
        rows = [
            [
                f"{kind}, {kernel}",
                run["C"],
                f"{run['error']:.2%}",
                run["seconds"],
                run["predict"],
                run.get("passes"),
                run.get("gap"),
                run["support"],
                f"{run['megabytes']:.0f}",
            ]
            for (kind, kernel, its_size), run in runs.items()
            if its_size == size
        ]
        print_table(f"OCR {size}, one thread", columns, rows)
    bars = judge(runs)
    share = in_fresh_process(share_of_blas, 30)
    bars.append(Bar("over 60 % of a pass of excessive gap reduction in BLAS", f"{share:.0%}", share > 0.6))
    figures = [{"kind": kind, "kernel": kernel, "size": size, **run} for (kind, kernel, size), run in runs.items()]
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
