"""Graph cuts beside SciPy and PyMaxflow, and what limits training on them.

The grids are like those of segmentation: every pixel is tied to its four neighbours. "noise" has normal potentials and
the same smoothness everywhere; "image" is a smooth random shape under noise, whose edges are weaker across its contour.
SciPy gets the same capacities as integers. Peers are timed without the building of their graphs, ours with the loading
of the capacities. "after a change" is a cut from the last flow, once all potentials of pixels have changed a little, as
in training. Training is that of pixel grids with a few features, by block-coordinate Frank-Wolfe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import Bar, Log, in_fresh_process, parse_arguments, print_table, report, watched
from maxmargin.arrays.vectors import clear
from maxmargin.problem import add_output, augment, max_oracle, scores, spread, squared_norm, true_output
from maxmargin.runtime import loop

GRIDS = [("noise", 0.3), ("noise", 1.0), ("image", 1.0), ("image", 3.0)]  # and their smoothness
N_CUTS = 6  # in one call
CHANGE = 0.02  # of potentials, beside their standard deviation
INTEGER_SCALE = 10_000  # of the capacities that SciPy gets
FASTER_THAN_SCIPY = 3.0
NEAR_PYMAXFLOW = 1.5
ORACLE_SHARE = 0.8


def make_grid(kind: str, smoothness: float, side: int, seed: int) -> tuple[Any, Any, Any]:
    """Potentials of the pixels, edges and their weights."""
    import numpy as np
    from scipy.ndimage import gaussian_filter

    from maxmargin.vision import grid_edges

    rng = np.random.default_rng(seed)
    edges, noise = grid_edges(side, side), rng.normal(size=(side, side))
    if kind == "noise":
        return noise.ravel(), edges, np.full(len(edges), smoothness)
    shape = np.sign(gaussian_filter(rng.normal(size=(side, side)), side / 12))
    contrast = np.abs(np.subtract(*(shape + 0.3 * noise).ravel()[edges.T]))
    return (shape + 0.6 * noise).ravel(), edges, smoothness * np.exp(-contrast)


def least_milliseconds(run: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def time_cuts(kind: str, smoothness: float, side: int, repeats: int) -> dict[str, Any]:
    import numpy as np

    from maxmargin import problem as generics
    from maxmargin.encode.cut_encoder import GraphCutEncoder
    from maxmargin.execution.runner import Runner

    potentials, edges, weights = make_grid(kind, smoothness, side, 0)
    n = side * side
    nothing = np.zeros(n)
    one = {"n_features_in": 1, "n_edge_features_in": 1}
    encoder = GraphCutEncoder(dtype=np.dtype("float64"), stores_sparse=False, classes=np.arange(2), **one)
    problem = encoder.problem([(potentials[:, np.newaxis], edges, weights)])
    theta, y = np.concatenate([nothing, potentials, -weights]), np.zeros(n, np.int32)
    changed = theta + CHANGE * np.concatenate([nothing, np.random.default_rng(1).normal(size=n), 0 * weights])
    runner = Runner(problem)
    scratch = runner.scratches[0]

    def cut(is_cold: bool) -> float:
        return cut_often(runner.problem, changed, theta, y, scratch.work.last, is_cold, N_CUTS // 2, scratch)

    value = cut(True)
    assert np.isclose(value, cut(False), rtol=1e-12)
    figures = {
        "grid": f"{kind}, smoothness {smoothness:g}, {side}x{side}",
        "ours": least_milliseconds(lambda: cut(True), repeats) / N_CUTS,
        "changed": least_milliseconds(lambda: cut(False), repeats) / N_CUTS,
        "scipy": time_scipy(potentials, edges, weights, repeats),
        "pymaxflow": None,
    }
    peer = time_pymaxflow(potentials, edges, weights, repeats)
    if peer is not None:
        labels, figures["pymaxflow"] = peer
        theirs = generics.score_output(problem, 0, theta, labels)
        assert np.isclose(value, theirs), (value, theirs)
    return figures


def time_scipy(potentials: Any, edges: Any, weights: Any, repeats: int) -> float:
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.csgraph import maximum_flow

    n = len(potentials)
    plus, minus = np.flatnonzero(potentials > 0), np.flatnonzero(potentials < 0)
    rows = np.concatenate([edges[:, 0], edges[:, 1], np.full(len(plus), n), minus])
    columns = np.concatenate([edges[:, 1], edges[:, 0], plus, np.full(len(minus), n + 1)])
    capacities = np.concatenate([weights, weights, potentials[plus], -potentials[minus]])
    integers = (capacities * INTEGER_SCALE).astype(np.int32)
    graph = sp.csr_array((integers, (rows, columns)), shape=(n + 2, n + 2))
    return least_milliseconds(lambda: maximum_flow(graph, n, n + 1), repeats)


def time_pymaxflow(potentials: Any, edges: Any, weights: Any, repeats: int) -> tuple[Any, float] | None:
    """The labels and the time of the flow alone; None where PyMaxflow is not installed."""
    try:
        import maxflow
    except ImportError:
        return None
    import numpy as np

    nodes, times = np.arange(len(potentials)), []
    for _ in range(repeats):
        graph = maxflow.GraphFloat(len(nodes), len(edges))
        graph.add_nodes(len(nodes))
        graph.add_edges(edges[:, 0], edges[:, 1], weights, weights)
        graph.add_grid_tedges(nodes, np.maximum(potentials, 0), np.maximum(-potentials, 0))
        began = time.process_time()
        graph.maxflow()
        times.append(time.process_time() - began)
    return 1 - graph.get_grid_segments(nodes).astype(np.int32), 1e3 * min(times)


@loop
def cut_often(problem, changed, theta, y, last, is_cold, count, scratch):
    """The oracle alone with one and the other potentials, `count` times, from the last flow or from none."""
    value = 0.0
    for _ in range(count):
        if is_cold:
            clear(last)
        max_oracle(problem, 0, changed, y, scratch.work)
        if is_cold:
            clear(last)
        value = max_oracle(problem, 0, theta, y, scratch.work)
    return value


@loop
def step_without_oracle(problem, w, sizes, count, scratch):
    """The potentials, a direction, its norm and its effect on the weights, which is zero here; `count` times."""
    for k in range(count):
        i = k % sizes.size
        delta = scratch.delta[: sizes[i]]
        scores(problem, w, i, scratch.theta[: sizes[i]])
        augment(problem, i, scratch.theta[: sizes[i]])
        clear(delta)
        add_output(problem, i, true_output(problem, i), 1.0, delta)
        squared_norm(problem, i, delta, scratch.work)
        spread(problem, w, i, delta, 0.0)


def time_training(side: int, n: int, steps: str) -> dict[str, Any]:
    """Microseconds of a block step, and of all of it but the oracle."""
    import numpy as np

    from maxmargin import BCFW, GraphCutSVM
    from maxmargin.solvers.objective.evaluation import Objective

    rng = np.random.default_rng(0)
    X, y = [], []
    for seed in range(n):
        potentials, edges, weights = make_grid("image", 1.0, side, seed)
        labels = (make_grid("image", 1.0, side, seed)[0] > 0).astype(int)
        noise = rng.normal(size=(side * side, 3))
        X.append(
            (np.column_stack([potentials + noise[:, 0], noise]), edges, np.column_stack([np.ones(len(edges)), weights]))
        )
        y.append(labels)
    log = Log()
    solver = watched(BCFW(steps=steps, gap_every=20), log)
    model = GraphCutSVM(cost="normalized_hamming", C=100.0, tol=1e-9, max_passes=41, solver=solver, random_state=0)
    model.fit(X, y)
    model.fit(X, y)  # the first one compiles or loads the loops
    trace = log.result.trace
    calls = trace.oracle_calls[-1] - trace.oracle_calls[0]
    step = 1e6 * (log.clock[-1] - log.clock[0]) / calls
    objective = Objective(log.problem)
    scratch, sizes = objective.runner.scratches[0], objective.runner.part_sizes
    w = log.result.w.copy()
    bound = objective.problem
    rest = 1e3 * least_milliseconds(lambda: step_without_oracle(bound, w, sizes, 10 * n, scratch), 5) / (10 * n)
    return {"steps": steps, "side": side, "step": step, "rest": rest, "share": 1 - rest / step}


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--sides", {"type": int, "nargs": "+", "default": [100, 300]}),
        ("--repeats", {"type": int, "default": 7}),
    )
    cuts = [in_fresh_process(time_cuts, *grid, side, arguments.repeats) for side in arguments.sides for grid in GRIDS]
    training = [in_fresh_process(time_training, 60, 20, steps) for steps in ("fw", "pairwise")]
    columns = [
        "CPU milliseconds of a cut",
        "ours",
        "ours, after a change",
        "SciPy",
        "PyMaxflow",
        "SciPy / ours",
        "ours / PyMaxflow",
    ]
    rows = [
        (*cut.values(), cut["scipy"] / cut["ours"], cut["pymaxflow"] and cut["ours"] / cut["pymaxflow"]) for cut in cuts
    ]
    print_table("Minimum cuts of grids", columns, rows)
    columns = ["BCFW on pixel grids", "side", "microseconds a step", "without the oracle", "share of the oracle"]
    print_table("Training", columns, (figure.values() for figure in training))
    slowest = min(cut["scipy"] / cut["ours"] for cut in cuts)
    share = min(figure["share"] for figure in training)
    bars = [
        Bar(f"at least {FASTER_THAN_SCIPY:g} times as fast as SciPy", f"{slowest:.1f}", slowest >= FASTER_THAN_SCIPY),
        Bar(f"more than {ORACLE_SHARE:.0%} of training is the oracle", f"{share:.0%}", share > ORACLE_SHARE),
    ]
    if cuts[0]["pymaxflow"] is not None:
        ratio = max(max(cut["ours"], cut["changed"]) / cut["pymaxflow"] for cut in cuts)
        bars.append(Bar(f"within {NEAR_PYMAXFLOW:g} times of PyMaxflow", f"{ratio:.2f}", ratio <= NEAR_PYMAXFLOW))
    else:
        print("PyMaxflow is not installed: no comparison with it.")
    report({"cuts": cuts, "training": training}, bars, arguments.json)


if __name__ == "__main__":
    main()
