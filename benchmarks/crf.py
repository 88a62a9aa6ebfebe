"""`ChainCRF` beside python-crfsuite's L-BFGS: the same model, features and regularization, c1 ||w||_1 + c2 ||w||^2.

Both train in a process of their own, on one thread, `ChainCRF` by its default solver. Times to the same objective, that
is, within 1e-4 of where python-crfsuite stops, leave out the encoding, or the time to hand the data over, which stands
beside them; that of a whole ``fit`` does not.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from benchmarks import crfsuite_peer
from benchmarks.chunking import load_chunking
from benchmarks.common import Bar, Log, forget_peak, in_fresh_process, load_ocr, peak_megabytes, print_table, watched

WHOLE = 1 / 14  # of its time, that a whole fit on larger data is to take
MORE_MEGABYTES = 150  # than its process
ACCURACY = 1e-4  # relative difference of objectives that counts as the same


class Setting(NamedTuple):
    """A dataset, the pairs of features and labels that have weights, and the share of the peer's time to stay below."""

    only_observed: bool
    share: float
    c1: float = 0.0
    c2: float = 1.0
    most_megabytes: float | None = None  # by default so much more than the process of python-crfsuite
    is_chunking: bool = False


SETTINGS = {
    "ocr-small": Setting(only_observed=False, share=1 / 4),
    "ocr-large": Setting(only_observed=False, share=1 / 35, most_megabytes=250),
    "conll": Setting(only_observed=True, share=1 / 25, is_chunking=True),
    "conll-l1": Setting(only_observed=True, share=1 / 2, c1=0.1, c2=0.0, is_chunking=True),
    "conll-elastic": Setting(only_observed=True, share=1 / 20, c1=0.1, c2=0.1, is_chunking=True),
}


def load(name: str) -> tuple[list, list, list, list]:
    return load_chunking() if SETTINGS[name].is_chunking else load_ocr(name.removeprefix("ocr-"))


def new_model(name: str, log: Log) -> Any:
    from maxmargin import ChainCRF

    setting, solver = SETTINGS[name], watched("auto", log)
    strength = setting.c1 + 2 * setting.c2
    return ChainCRF(
        C=1 / strength,
        l1_ratio=setting.c1 / strength,
        fit_intercept=False,
        only_observed=setting.only_observed,
        tol=1e-4,
        max_passes=3000,
        random_state=0,
        solver=solver,
    )


def warm_up(name: str) -> None:
    """Load the loops from disk, compiling those that are missing."""
    warm_up_on(name, *load(name)[:2])


def warm_up_on(name: str, X: list, y: list) -> None:
    """As if there was much to do, so that the solver takes all that it would; at a gap for which it hands over."""
    from maxmargin.runtime.modes import as_on_much_data

    with as_on_much_data():
        new_model(name, Log()).set_params(tol=1e-7, C=10.0).fit(X[:50], y[:50]).predict(X[:2])


def fit_maxmargin(name: str, objective: float) -> dict[str, Any]:
    """Train; note the CPU time at which the objective was as low as the one given, up to ACCURACY."""
    X_train, y_train, X_test, y_test = load(name)
    warm_up_on(name, X_train, y_train)
    before = forget_peak()
    log = Log()
    began = time.process_time()
    model = new_model(name, log).fit(X_train, y_train)
    seconds, peak = time.process_time() - began, peak_megabytes()
    n, trace = len(X_train), model.trace_
    reached = [k for k in range(len(trace)) if trace.primal[k] * n <= objective * (1 + ACCURACY)]
    return {
        "seconds": seconds,
        "seconds_to_objective": log.clock[reached[0]] - log.began if reached else None,
        "encoding": log.began - began,
        "iterations": len(trace),
        "passes": int(trace.passes[-1]),
        "notes": trace.notes,
        "objective": float(trace.primal[-1]) * n,
        "lower_bound": float(trace.dual[-1]) * n,
        "weights": int(model._w.size),
        "megabytes": peak,
        "megabytes_before": before,
        **measure(name, model.predict(X_test), y_test),
    }


def fit_crfsuite(name: str) -> dict[str, Any]:
    data, setting = load(name), SETTINGS[name]
    before = forget_peak()
    options = {"c1": setting.c1, "c2": setting.c2}
    figures, predicted = crfsuite_peer.train(data, as_items, options, has_every_pair=not setting.only_observed)
    return {**figures, "megabytes_before": before, **measure(name, predicted, data[3])}


def as_items(x: Any) -> Any:
    """A sequence as python-crfsuite reads it: names of the features of each row; they are all binary."""
    import numpy as np
    import pycrfsuite  # type: ignore[import-untyped]
    import scipy.sparse as sp

    if sp.issparse(x):
        columns = np.split(x.indices, x.indptr[1:-1])
    else:
        columns = [np.flatnonzero(row) for row in x]
    return pycrfsuite.ItemSequence([[str(k) for k in row] for row in columns])


def measure(name: str, predicted: list, y: list) -> dict[str, float]:
    """The share of wrong labels and, of chunks, the F1 score."""
    from maxmargin.metrics import entity_f1

    figures = {"error": crfsuite_peer.label_error(predicted, y)}
    if SETTINGS[name].is_chunking:
        figures["f1"] = entity_f1(y, predicted)
    return figures


def show(name: str, ours: dict[str, Any], peer: dict[str, Any]) -> None:
    def shared(run: dict[str, Any]) -> list[Any]:
        f1 = f"{100 * run['f1']:.2f}" if "f1" in run else None
        return [f"{run['error']:.2%}", f1, f"{run['megabytes']:.0f}", f"{run['megabytes_before']:.0f}"]

    def row(label: str, seconds: float, run: dict[str, Any], bound: Any) -> list[Any]:
        values = [seconds, f"{run['encoding']:.2f}", run["iterations"], f"{run['objective']:.1f}", bound]
        return [label, *values, *shared(run), peer["seconds"] / seconds]

    rows = [row("python-crfsuite L-BFGS", peer["seconds"], peer, None)]
    bound = f"{ours['lower_bound']:.1f}"
    if ours["seconds_to_objective"] is not None:
        rows.append(row("ChainCRF, same objective", ours["seconds_to_objective"], ours, bound))
    rows.append(row("ChainCRF, relative gap 1e-4", ours["seconds"], ours, bound))
    columns = [
        "",
        "CPU s",
        "encoding s",
        "iterations",
        "objective",
        "lower bound",
        "error",
        "F1",
        "peak MB",
        "before MB",
    ]
    title = f"{name}: {ours['weights']} weights, c1 = {SETTINGS[name].c1:g}, c2 = {SETTINGS[name].c2:g}, one thread"
    print_table(title, [*columns, "crfsuite / ours"], rows)


def check(name: str, ours: dict[str, Any], peer: dict[str, Any]) -> list[Bar]:
    share, difference = SETTINGS[name].share, ours["objective"] / peer["objective"] - 1
    whole, most = ours["seconds"] / peer["seconds"], SETTINGS[name].most_megabytes
    most = peer["megabytes"] + MORE_MEGABYTES if most is None else most
    taken = (ours["seconds_to_objective"] or float("inf")) / peer["seconds"]
    bars = [
        Bar(f"{name}: the objective of python-crfsuite, or 1e-4 above", f"{difference:+.1e}", difference <= ACCURACY),
        Bar(f"{name}: in at most {share:.1%} of its CPU time", f"{taken:.1%}", taken <= share),
        Bar(f"{name}: in at most {most:.0f} MB", f"{ours['megabytes']:.0f} MB", ours["megabytes"] <= most),
    ]
    if share < WHOLE:
        bars.append(Bar(f"{name}: a whole fit in at most {WHOLE:.1%}", f"{whole:.1%}", whole <= WHOLE))
    if "f1" in ours:
        f1 = 100 * ours["f1"]
        bars.append(
            Bar(
                f"{name}: chunk F1 within 0.1 of python-crfsuite's",
                f"{f1:.2f}, {100 * peer['f1']:.2f}",
                abs(f1 - 100 * peer["f1"]) <= 0.1,
            )
        )
    return bars


def run(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    peer = in_fresh_process(fit_crfsuite, name)
    return in_fresh_process(fit_maxmargin, name, peer["objective"]), peer


if __name__ == "__main__":
    crfsuite_peer.compare(__doc__, "--datasets", [*SETTINGS], warm_up, run, show, check)
