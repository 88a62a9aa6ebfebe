"""Regularization paths against solves to high accuracy at many values of lambda."""

import _thread
import itertools
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import BCFW, ChainSVM, DeformableSVM, FrankWolfe, GraphCutSVM, Status, regularization_path
from maxmargin.execution.runner import bind
from maxmargin.problem import n_examples
from maxmargin.solvers.block_coordinate.path_steps import PathFollower, find_motion, kinks_of
from maxmargin.solvers.objective.bounds import project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from tests import naive
from tests.naive import blocks_of
from tests.small import poses
from tests.toy import Candidates

EPS = 0.2


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=5, n_labels=3)


@pytest.fixture(scope="module")
def path(problem):
    return regularization_path(problem, eps=EPS, random_state=0)


def suboptimality(problem, regularization, w):
    blocks, C = blocks_of(problem), 1 / (n_examples(problem) * regularization)
    _, optimum = naive.solve(blocks, C, tol=1e-8)
    return naive.primal(w.astype(float), blocks, C) - optimum


def test_the_path_is_approximate_everywhere(problem, path):
    assert (path.gap <= 0.9 * EPS + 1e-9).all()
    assert (np.diff(path.lambdas) < 0).all()
    rng = np.random.default_rng(0)
    between = np.exp(rng.uniform(np.log(path.lambdas[-1]), np.log(path.lambdas[0]), 15))
    worst = [suboptimality(problem, value, path.w_at(value)) for value in (*between, *path.lambdas[:3])]
    assert max(worst) <= EPS
    assert max(worst) > 0.2 * EPS  # breakpoints are not wasted


def test_just_above_a_breakpoint_the_weights_before_it_hold(problem, path):
    k = len(path) // 2
    above, below = path.lambdas[k] * (1 + 1e-9), path.lambdas[k] * (1 - 1e-9)
    assert np.array_equal(path.w_at(above), path.weights(k - 1))
    assert np.array_equal(path.w_at(below), path.weights(k))
    assert np.array_equal(path.w_at(path.lambdas[k]), path.weights(k))


def test_beyond_both_ends(problem, path):
    for factor in (1.0001, 2, 100):
        value = factor * path.lambdas[0]
        assert suboptimality(problem, value, path.w_at(value)) <= EPS
    assert path.is_complete  # separable up to eps: the last weights are good for every smaller lambda
    for factor in (0.5, 0.01):
        value = factor * path.lambdas[-1]
        assert suboptimality(problem, value, path.w_at(value)) <= EPS


def test_lambda_infinity_is_that_of_the_paper(problem, path):
    blocks = blocks_of(problem)
    # several outputs have the highest cost: with the one the oracle took, the formula of Algorithm 6 holds
    direction = path.w_at(2 * path.lambdas[0]) * 2 * path.lambdas[0]
    margins = np.mean([np.max(-p @ direction) for p, _ in blocks])
    assert np.isclose(path.lambdas[0], (direction @ direction + margins) / (0.9 * EPS))


def test_the_path_begins_at_the_most_costly_outputs(problem, path):
    """There the accuracy holds without a step: two passes find lambda_infinity, a third certifies."""
    assert path.passes[0] == 0
    assert path.oracle_calls[0] == 3 * n_examples(problem)
    assert 0 < path.gap[0] <= 0.9 * EPS
    assert np.isclose(naive.primal(path.weights(0).astype(float), blocks_of(problem), path.Cs[0]), path.primal[0])


def follower(problem, solver, **options):
    settings = {"sample_weight": None, "lower": None, "upper": None, "eps": EPS, "kappa": 0.9, "random_state": 0}
    return PathFollower(bind(problem), solver=solver, **(settings | options))


WEIGHT = np.array([1.0, 0.5, 2.0, 0.0, 3.0])
AT_LEAST_ZERO = np.r_[np.full(12, -np.inf), np.zeros(9)]  # the transitions
BOXES = [(None, None), (AT_LEAST_ZERO, None), (-1.0, np.where(AT_LEAST_ZERO == 0, 0.1, 0.3))]


@pytest.mark.parametrize(("lower", "upper"), BOXES, ids=["free", "cone", "box"])
@pytest.mark.parametrize("steps", ["fw", "pairwise"])
def test_carried_gaps_are_those_of_an_evaluation(problem, lower, upper, steps):
    """Proposition 1 for each block, with sample weights, and with any bounds."""
    bounds = {"lower": lower, "upper": upper}
    walk = follower(problem, BCFW(steps=steps, sampling="gap"), sample_weight=WEIGHT, **bounds)
    old, factor = walk.solve(0.1, None, 0.0), 0.7
    start = walk.carry(old, factor)
    objective = Objective(problem, 1 / (5 * factor * 0.1), WEIGHT, **bounds)
    v, dual = objective.at(start.dual)
    found = objective.evaluate(project(v, objective.bounds), point=start.dual)
    assert np.allclose(v, start.v, atol=1e-5)
    assert np.isclose(dual, start.value, atol=1e-6)
    assert np.allclose(found.gaps, start.dual.gaps, atol=1e-5)
    assert np.isclose(found.value - dual, start.dual.gaps.sum(), atol=1e-5)
    w, C = project(v, objective.bounds), 1 / (5 * factor * 0.1)
    assert np.isclose(naive.primal(w, blocks_of(problem), C, WEIGHT), dual + start.dual.gaps.sum(), atol=1e-5)


def test_a_breakpoint_starts_without_a_pass_of_the_oracle(problem):
    path = regularization_path(problem, eps=EPS, solver=BCFW(sampling="gap"), random_state=0)
    after_one_pass = path.oracle_calls[path.passes == 1]
    assert len(after_one_pass) > 5
    assert (after_one_pass == 2 * n_examples(problem)).all()  # that pass, and one that certifies


def test_any_positive_accuracy(problem):
    for eps in (1.5, 1e3):
        path = regularization_path(problem, eps=eps, random_state=0)
        assert path.is_complete
        for value in (path.lambdas[0], 0.3 * path.lambdas[-1]):
            assert suboptimality(problem, value, path.w_at(value)) <= eps


def test_bounds_of_zero(problem):
    path = regularization_path(problem, eps=EPS, lower=AT_LEAST_ZERO, lambda_min=0.01, random_state=0)
    assert path.status is Status.OPTIMAL
    blocks = blocks_of(problem)
    for value in (2 * path.lambdas[0], *np.geomspace(path.lambdas[0], path.lambdas[-1], 6)):
        w, C = path.w_at(value).astype(float), 1 / (5 * value)
        assert (w >= AT_LEAST_ZERO).all()
        _, optimum = naive.solve(blocks, C, tol=1e-8, lower=AT_LEAST_ZERO)
        assert naive.primal(w, blocks, C) - optimum <= EPS


SOME_BOXES = [
    (-1.0, np.where(AT_LEAST_ZERO == 0, 0.1, 0.3)),
    (np.where(AT_LEAST_ZERO == 0, 0.05, -np.inf), 0.5),  # zero is outside
    (AT_LEAST_ZERO, np.r_[np.full(10, np.inf), np.full(11, 0.02)]),
]


@pytest.mark.long
@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize(("lower", "upper"), SOME_BOXES, ids=["box", "without zero", "half"])
@pytest.mark.parametrize("accuracy", [{"eps": EPS}, {"tol": 0.1}], ids=str)
def test_any_bounds(lower, upper, accuracy):
    """Against independent solves, on the path, and far above where it begins: between the kinks, too."""
    problem = toy_chains(n=5, n_labels=3)
    bounds, blocks = {"lower": lower, "upper": upper}, blocks_of(problem)
    path = regularization_path(problem, **accuracy, **bounds, lambda_min=0.3, random_state=0)
    assert path.status is Status.OPTIMAL
    on_the_path = np.geomspace(path.lambdas[0], path.lambdas[-1], 4)
    for value in (*path.lambdas[0] * np.geomspace(1, 100, 5), *on_the_path):
        w, C = path.w_at(value).astype(float), 1 / (5 * value)
        assert (w >= lower).all()
        assert (w <= upper).all()
        _, optimum = naive.solve(blocks, C, tol=1e-8, **bounds)
        assert naive.primal(w, blocks, C) - optimum <= (EPS if "eps" in accuracy else 0.1 * optimum / 0.9)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize(("lower", "upper"), SOME_BOXES[:2], ids=["box", "without zero"])
def test_gaps_are_convex_between_kinks(lower, upper):
    """And so below the straight line between those at the kinks."""
    walk = follower(toy_chains(n=5, n_labels=3), BCFW(), lower=lower, upper=upper)
    objective, means = walk.objective, walk.objective.true_means()
    found = objective.evaluate(project(np.zeros(21), objective.bounds), means=means)
    psi, kinks = -found.gradient, kinks_of(-found.gradient, objective.bounds)
    assert len(kinks) > 3
    clipped = [project(t * psi, objective.bounds) for t in (*kinks, 2 * kinks[-1], 3 * kinks[-1])]
    assert np.allclose(clipped[-1] - clipped[-2], kinks[-1] * find_motion(psi, objective.bounds))

    def gap(t):
        there = walk.at(1 / t)
        primal = there.evaluate(project(t * psi, objective.bounds), point=means).value
        return primal - there.dual_value(found.cost, t * psi)

    for before, after in itertools.pairwise([1e-6, *kinks[:6]]):
        for share in (0.25, 0.5, 0.75):
            line = (1 - share) * gap(before) + share * gap(after)
            assert gap((1 - share) * before + share * after) <= line + 1e-5
            assert gap(before) >= -1e-5


@pytest.mark.usefixtures("interpreted_loops")
def test_a_path_of_poses(monkeypatch):
    """Springs have bounds that are neither 0 nor infinite."""
    X, y, _ = poses(np.random.default_rng(0))
    model = DeformableSVM(edges=[(0, 1)], dtype="float64")
    path = regularization_path(model, X, y, eps=0.3, C_min=0.01, lambda_min=0.05, X_dev=X, y_dev=y, random_state=0)
    assert (path.gap <= 0.3).all()
    assert np.isclose(path.Cs[0], 0.01)
    best = path.model_at(path.best_lambda)
    alone = clone(best).set_params(tol=1e-3).fit(X, y)
    assert path.primal[np.argmax(path.scores)] - alone.certificate_.dual <= 0.3
    from_infinity = regularization_path(model, X[:3], y[:3], eps=0.5, lambda_min=1.0, random_state=0)
    assert from_infinity.status is Status.OPTIMAL
    assert from_infinity.w_at(1e6).any()  # bounds leave the springs their stiffness


@pytest.mark.usefixtures("interpreted_loops")
def test_the_smallest_C_of_interest_saves_breakpoints():
    problem = toy_chains(n=5, n_labels=3)
    whole = regularization_path(problem, eps=EPS, lambda_min=0.1, random_state=0)
    part = regularization_path(problem, eps=EPS, lambda_min=0.1, lambda_max=1.0, random_state=0)
    same = regularization_path(problem, eps=EPS, lambda_min=0.1, C_min=0.2, random_state=0)
    assert part.lambdas.tolist() == same.lambdas.tolist()
    assert part.lambdas[0] == 1.0
    assert len(part) < len(whole)
    for value in np.geomspace(1.0, 0.1, 4):
        assert suboptimality(problem, value, part.w_at(value)) <= EPS
    with pytest.raises(ValueError, match=r"The path begins at lambda = 1, below 2"):
        part.w_at(2.0)


@pytest.mark.usefixtures("interpreted_loops")
def test_relative_accuracy():
    problem = toy_chains(n=5, n_labels=3)
    path = regularization_path(problem, tol=0.1, lambda_min=0.02, random_state=0)
    assert (path.gap <= 0.09 * path.primal + 1e-9).all()
    for value in (3 * path.lambdas[0], *np.geomspace(path.lambdas[0], path.lambdas[-1], 6)):
        _, optimum = naive.solve(blocks_of(problem), 1 / (5 * value), tol=1e-8)
        assert suboptimality(problem, value, path.w_at(value)) <= 0.1 * optimum / 0.9


@pytest.mark.usefixtures("interpreted_loops")
def test_a_grid_is_solved_to_the_tol_of_its_model(words):
    X, y = words
    options = {"method": "grid", "lambdas": [0.1, 0.01], "random_state": 0}
    model = ChainSVM(tol=0.003, dtype="float64")
    path = regularization_path(model, X[:8], y[:8], **options)
    assert (path.gap <= 0.003 * path.primal).all()
    rough = regularization_path(model, X[:8], y[:8], tol=0.3, **options)
    assert (rough.gap <= 0.3 * rough.primal).all()
    assert rough.passes.sum() < path.passes.sum()


def test_a_table_and_a_line_of_it(path):
    frame = path.to_frame()
    assert frame.columns[:3].tolist() == ["lambda", "C", "primal"]
    assert len(frame) == len(path)
    assert np.array_equal(frame["gap"], path.gap)
    assert set(frame["status"]) == {"OPTIMAL"}
    assert repr(path) == f"Path({len(path)} breakpoints, C from {path.Cs[0]:.3g} to {path.Cs[-1]:.3g}, OPTIMAL)"
    assert len(str(path).splitlines()) == len(path) + 1


def test_a_path_of_attractive_edges(interpreted_loops):
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(4, 2)), [(0, 1), (1, 2), (2, 3)]) for _ in range(8)]
    y = [(nodes[:, 0] > 0).astype(int) for nodes, _ in X]
    path = regularization_path(GraphCutSVM(), X, y, eps=0.5, lambda_min=0.01, X_dev=X, y_dev=y, random_state=0)
    assert (path.gap <= 0.5).all()
    assert path.scores.max() > 0.9
    with pytest.raises(ValueError, match="lower and upper are for problems"):
        regularization_path(GraphCutSVM(), X, y, lower=0)


def test_lambda_min_ends_the_path(problem):
    short = regularization_path(problem, eps=EPS, lambda_min=1.0, random_state=0)
    assert np.isclose(short.lambdas[-1], 1.0)
    assert not short.is_complete
    with pytest.raises(ValueError, match=r"The path ends at lambda = 1, above 0\.5"):
        short.w_at(0.5)


@pytest.mark.parametrize("solver", [BCFW(), BCFW(steps="away", sampling="gap"), FrankWolfe(), "auto"], ids=str)
def test_other_solvers(problem, solver):
    other = regularization_path(problem, eps=EPS, lambda_min=0.05, solver=solver, random_state=0)
    assert (other.gap <= EPS).all()


def test_heuristic_path(problem):
    heuristic = regularization_path(problem, eps=EPS, method="heuristic", random_state=0)
    values = np.geomspace(heuristic.lambdas[-1], heuristic.lambdas[0], 6)
    assert max(suboptimality(problem, value, heuristic.w_at(value)) for value in values) <= 3 * EPS  # no guarantee
    assert heuristic.status is Status.ESTIMATED
    with pytest.raises(ValueError, match=r"A heuristic path needs BCFW\(..., exact_gaps=False\)"):
        regularization_path(problem, method="heuristic", solver=BCFW())


@pytest.mark.parametrize("options", [{}, {"steps": "pairwise", "cache": 50}], ids=str)
def test_a_heuristic_path_calls_the_oracle_less(words, options):
    (X, y), calls = words, []
    for method in ("approximate", "heuristic"):
        solver = BCFW(**options, sampling="gap", exact_gaps=method == "approximate")
        path = regularization_path(
            ChainSVM(), X[:20], y[:20], eps=0.5, lambda_min=1.0, method=method, solver=solver, random_state=0
        )
        calls.append(path.oracle_calls.sum())
    assert calls[1] < calls[0]


def test_grid(problem):
    grid = regularization_path(problem, eps=EPS, method="grid", lambdas=[0.1, 10.0, 1.0], random_state=0)
    assert grid.lambdas.tolist() == [10.0, 1.0, 0.1]
    assert (grid.gap <= 0.9 * EPS).all()
    for k, value in enumerate(grid.lambdas):
        assert suboptimality(problem, value, grid.weights(k)) <= 0.9 * EPS
    default = regularization_path(problem, eps=EPS, method="grid", max_passes=2, random_state=0)
    assert len(default) == 31


def test_warm_starts_pay_off(problem):
    values = np.geomspace(1.0, 0.02, 8)
    warm = regularization_path(problem, eps=0.01, method="grid", lambdas=values, random_state=0)
    method = BCFW(steps="pairwise", sampling="gap", cache=50)
    cold = [
        method.solve(problem, 1 / (5 * value), tol=1e-15, abs_tol=0.009, random_state=0).trace.passes[-1]
        for value in values
    ]
    assert warm.passes.sum() < sum(cold)


def test_held_out_scores_pick_C(words, capsys):
    X, y = words
    path = regularization_path(ChainSVM(), X[:8], y[:8], eps=0.5, X_dev=X[20:], y_dev=y[20:], random_state=0, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(path) + 1
    assert lines[1:] == [path.line(k) for k in range(len(path))]
    assert len(path.scores) == len(path)
    best = path.model_at(path.best_lambda)
    assert np.isclose(best.score(X[20:], y[20:]), path.scores.max())
    assert np.isclose(best.C, path.best_C)
    weak, strong = path.model_at(path.lambdas[-1]), path.model_at(path.lambdas[0])
    assert np.abs(weak.coef_.emissions).max() > np.abs(strong.coef_.emissions).max()
    figure = pytest.importorskip("matplotlib.figure").Figure()
    left, right = figure.subplots(1, 2)
    path.plot(left)
    assert np.array_equal(left.child_axes[1].get_lines()[0].get_ydata(), path.scores)
    figure.draw_without_rendering()
    panels = [axes for axes in [*figure.axes, *left.child_axes] if axes is not right]
    assert max(axes.get_tightbbox().x1 for axes in panels) <= right.get_window_extent().x0  # keeps to its place


def test_plot(path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = path.plot()
    assert ax.get_xlabel() == "C"
    assert ax.get_xscale() == "log"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0.0}, "eps must be a positive number, not 0.0"),
        ({"eps": np.inf}, "eps must be a positive number, not inf"),
        ({"kappa": 1.5}, "kappa must be less than 1, not 1.5"),
        ({"tol": 0.0}, "tol must be a positive number, not 0.0"),
        ({"tol": 1.0}, "tol must be less than 1, not 1.0"),
        ({"tol": 0.1, "eps": 0.1}, "eps and tol must not both be given"),
        ({"C_min": 0.1, "lambda_max": 0.1}, "lambda_max and C_min must not both be given"),
        ({"lambda_max": 1e-6}, "lambda_max must be at least lambda_min, 1e-05, not 1e-06"),
        ({"lambda_min": 0}, "lambda_min must be a positive number, not 0"),
        ({"method": "exact"}, "method must be one of approximate, heuristic, grid, not 'exact'"),
        ({"method": "grid", "lambdas": [1, -1]}, "lambdas must be a list of positive numbers"),
        ({"solver": "sgd"}, "A path needs a solver that keeps a dual point, such as BCFW, not SGD"),
        ({"X_dev": []}, "X_dev and y_dev must be given together"),
        ({"X_dev": [], "y_dev": []}, "X_dev and y_dev need an estimator, not a problem"),
    ],
)
def test_bad_options(problem, options, message):
    with pytest.raises(ValueError, match=message):
        regularization_path(problem, **options)


def test_costly_truth():
    rng = np.random.default_rng(0)
    costs = [np.array([0.0, 1.0, 1.0]), np.array([0.5, 1.0, 1.0])]
    with pytest.raises(ValueError, match=r"true outputs that cost nothing, but that of example 1 costs 0\.5"):
        regularization_path(Candidates([rng.normal(size=(3, 2)) for _ in costs], costs))


def test_a_problem_has_no_estimator(path, words):
    with pytest.raises(TypeError, match="it has weights, but no estimator"):
        path.model_at(1.0)
    with pytest.raises(AttributeError, match="The path has no scores: pass X_dev and y_dev"):
        _ = path.best_C
    with pytest.raises(ValueError, match="regularization must be positive, not 0"):
        path.w_at(0)


def test_ctrl_c_returns_the_path_so_far(words):
    X, y = words
    regularization_path(ChainSVM(), X, y, eps=0.5, lambda_min=10.0, random_state=0)  # compiled and loaded
    threading.Timer(0.5, _thread.interrupt_main).start()
    path = regularization_path(ChainSVM(), X, y, eps=1e-4, random_state=0)
    assert path.status is Status.INTERRUPTED
    assert len(path) >= 1
    assert path.w_at(path.lambdas[-1]).any()


def test_ctrl_c_in_the_last_pass_of_a_solution_ends_the_path(monkeypatch, problem):
    """Such a solution is finished, and is not interrupted itself."""
    solve, statuses = BCFW.solve, []

    def interrupted_at_the_end(self, *args, **options):
        result = solve(self, *args, **options, callback=press_ctrl_c)
        statuses.append(result.status)
        return result

    def press_ctrl_c(trace):
        if trace.gap[-1] <= 0.9 * EPS:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BCFW, "solve", interrupted_at_the_end)
    path = regularization_path(problem, eps=EPS, random_state=0)
    assert path.status is Status.INTERRUPTED
    assert statuses == [Status.OPTIMAL]


def test_limits_are_reported(problem):
    short = regularization_path(problem, eps=EPS, max_passes=1, random_state=0)
    assert short.status is Status.MAX_PASSES
    timed = regularization_path(problem, eps=1e-5, time_limit=0.5, random_state=0)
    assert timed.status is Status.TIMEOUT


def test_the_estimator_s_seed_and_data_arguments_count(words):
    X, y = (examples[:8] for examples in words)
    lengths = [len(x) for x in X]
    one = regularization_path(ChainSVM(random_state=3), X, y, eps=0.5)
    two = regularization_path(ChainSVM(random_state=3), np.concatenate(X), y, eps=0.5, lengths=lengths)
    assert np.array_equal(one.lambdas, two.lambdas)
    assert np.array_equal(one.weights(-1), two.weights(-1))
