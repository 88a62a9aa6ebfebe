"""SGD, SVRG, Casimir, cutting planes: reference optima, certificates at every point of the trace, bounds, limits."""

import numpy as np
import pytest

from maxmargin.losses import Loss
from maxmargin.problem import n_examples, spread
from maxmargin.solvers import BCFW, LBFGS, SGD, SVRG, Casimir, NSlack, OneSlack
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.bounds import make_bounds
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.simplex_qp import maximise_on_simplex
from maxmargin.solvers.stochastic.lazy_weights import average, current, lazy_step, lazy_weights
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of
from tests.toy import NoOracle, random_candidates

HINGE_SOLVERS = [
    SGD(),
    SGD(schedule="inverse"),
    SVRG(),
    SVRG(smoothing="entropy"),
    Casimir(),
    Casimir(smoothing="entropy", warm_start="previous"),
    Casimir(schedule="constant", warm_start="extrapolation"),
    Casimir(stop="gradient"),
    Casimir(inner="saga"),
    OneSlack(),
    OneSlack(cache=0),
    OneSlack(cache=0, damped=False),
    NSlack(),
]


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3, max_length=4)


@pytest.mark.parametrize("solver", HINGE_SOLVERS, ids=str)
def test_hinge_solvers_reach_the_reference_optimum(problem, solver):
    optimum = naive.solve(blocks_of(problem), 0.3)[1]
    is_slow = isinstance(solver, SGD) or getattr(solver, "stop", "") == "gradient"
    check_solver(solver, problem, optimum, C=0.3, tol=2e-2 if is_slow else 2e-3)


@pytest.mark.parametrize("schedule", ["constant", "sqrt"])
@pytest.mark.parametrize("averaging", [True, False])
def test_other_schedules_of_sgd_come_close(problem, schedule, averaging):
    optimum = naive.solve(blocks_of(problem), 0.3)[1]
    solver = SGD(schedule=schedule, step=0.03, averaging=averaging)
    result = solver.solve(problem, 0.3, max_passes=300, tol=1e-9, random_state=0)
    assert optimum <= result.trace.primal[-1] <= 1.1 * optimum
    assert 0 < result.trace.dual[-1] <= optimum


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_sgd_needs_no_tuning(loss):
    many = toy_chains(n=80, n_labels=4)
    for C in (0.1, 1.0, 10.0):

        def lowest(solver, C=C):
            return solver.solve(many, C, loss=loss, max_passes=20, tol=1e-9, random_state=0).trace.primal.min()

        tuned = min(lowest(SGD(schedule="decay", step=step)) for step in (1e-3, 1e-2, 0.1, 1.0))
        assert lowest(SGD()) <= 1.2 * tuned


@pytest.mark.parametrize("solver", [SGD(), SVRG(), Casimir()], ids=str)
@pytest.mark.parametrize("loss", ["log", Loss("l2", level=0.5, max_k=200), Loss("entropy", level=0.5)], ids=str)
def test_smooth_losses(problem, solver, loss):
    optimum = LBFGS().solve(problem, 0.3, loss=loss, tol=1e-10).trace.primal[-1]
    check_solver(solver, problem, optimum, C=0.3, tol=1e-2 if isinstance(solver, SGD) else 1e-4, loss=loss)


@pytest.mark.parametrize("solver", [SGD(), SVRG(), Casimir(), NSlack(), OneSlack(), OneSlack(cache=0)], ids=str)
def test_bounds_are_kept_and_certified(problem, solver):
    lower = np.full(21, -np.inf)
    lower[:12] = 0.05
    optimum = naive.solve(blocks_of(problem), 0.3, lower=lower)[1]
    result = solver.solve(problem, 0.3, lower=lower, tol=2e-2, max_passes=3000, random_state=0)
    assert result.status is Status.OPTIMAL
    assert (result.w >= lower).all()
    assert (result.trace.primal >= optimum - 1e-9).all()
    assert (result.trace.dual <= optimum + 1e-9).all()


@pytest.mark.parametrize(
    "solver", [SGD(), SVRG(), Casimir(), Casimir(schedule="constant", level=0.1), LBFGS()], ids=str
)
def test_no_regularization(problem, solver):
    loss = "smooth_hinge" if isinstance(solver, LBFGS) else "hinge"
    result = solver.solve(problem, np.inf, loss=loss, max_passes=60, random_state=0)
    assert result.trace.dual[-1] == 0
    assert result.trace.primal[-1] <= 0.2 * Objective(problem).evaluate(np.zeros(21)).value


@pytest.mark.parametrize("solver", [SGD(), SVRG(), Casimir(smoothing="entropy"), OneSlack(cache=2), NSlack()], ids=str)
def test_python_classes_and_sample_weights(solver):
    toy, weight = random_candidates(12, 5, random_state=0), np.r_[np.ones(6), np.zeros(3), np.full(3, 2.0)]
    optimum = naive.solve(toy.blocks(), 0.5, weight)[1]
    result = solver.solve(toy, 0.5, weight, tol=2e-2, max_passes=2000, random_state=0)
    assert result.status is Status.OPTIMAL
    assert result.trace.dual[-1] - 1e-9 <= optimum <= result.trace.primal[-1] + 1e-9


@pytest.mark.parametrize("usual_shrink", [0.8, 1e-3])
def test_averages_of_lazy_weights(problem, usual_shrink):
    """The weights and their average against a plain loop."""
    rng = np.random.default_rng(0)
    start, direction = rng.normal(size=21), rng.normal(size=21)
    lower = np.r_[np.zeros(5), np.full(16, -np.inf)]
    lazy, w = lazy_weights(np.maximum(start, lower), np.dtype(float), direction), np.maximum(start, lower)
    total = np.zeros(21)
    for t in range(40):
        delta = rng.normal(size=(problem.starts[1] + 3) * 3)
        move = np.zeros(21)
        spread(problem, move, 0, delta, 1.0)
        shrink = 0.0 if t == 20 else usual_shrink
        lazy_step(problem, lazy, make_bounds(lower, None, w), 0, delta, 0.1, shrink, -0.05, t + 1.0)
        w = np.maximum(shrink * w - 0.05 * direction + 0.1 * move, lower)
        total += (t + 1) * w
        assert np.allclose(current(lazy), w)
    assert np.allclose(average(lazy), total / (40 * 41 / 2))


def test_simplex_qp_solves_to_its_gap():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7):
        V, gain, alpha = rng.normal(size=(size, 4)), rng.normal(size=size), np.full(size, 1 / size)
        gap = maximise_on_simplex(gain, V @ V.T, alpha, 1e-10, 100_000)
        assert gap <= 1e-10
        assert np.isclose(alpha.sum(), 1)
        assert alpha.min() >= 0
        value = gain @ alpha - alpha @ V @ V.T @ alpha / 2
        for other in rng.dirichlet(np.ones(size), size=200):
            assert gain @ other - other @ V @ V.T @ other / 2 <= value + 1e-9


def test_one_slack_goes_a_share_of_the_way_where_the_whole_way_leads_too_far():
    problem = toy_chains(n=60, n_labels=3)
    result = OneSlack(cache=0).solve(problem, 10.0, tol=1e-3)
    assert result.status is Status.OPTIMAL
    assert result.trace.passes[-1] <= 110  # 160 the whole way


def test_one_slack_as_published_goes_all_the_way():
    """Every pass is at the minimiser of the restricted problem, with all cuts, and there are more passes."""
    problem = toy_chains(n=60, n_labels=3)
    run = Run(Objective(problem, 10.0), Limits(tol=1e-9), random_state=0)
    certificates = OneSlack(cache=0, damped=False).iterate(run)
    next(certificates)
    for k in range(60):
        certificate = next(certificates)
        assert np.allclose(certificate.w, run.state.minimiser, rtol=1e-9)
        assert len(run.state.cuts.points) == k + 2
    damped, plain = (OneSlack(cache=0, damped=d).solve(problem, 10.0, tol=1e-3) for d in (True, False))
    assert plain.status is Status.OPTIMAL
    assert plain.trace.passes[-1] > damped.trace.passes[-1]


def test_a_cache_saves_calls_of_the_oracle():
    problem = toy_chains(n=60, n_labels=3)
    plain, cached = (OneSlack(cache=c).solve(problem, 1.0, tol=1e-3) for c in (0, 10))
    assert cached.trace.oracle_calls[-1] < plain.trace.oracle_calls[-1] / 2
    assert cached.trace.cache_hits[-1] > 0


@pytest.mark.parametrize("solver", [SGD(gap_every=1), SVRG(), Casimir(), OneSlack(), NSlack(), BCFW()], ids=str)
def test_a_non_finite_objective_stops_the_run_with_the_last_good_weights(solver):
    toy = random_candidates(8, 4, random_state=0)
    score_output, n_good = toy.score_output, 3
    certificates = []

    def breaking(i, theta, y):
        return score_output(i, theta, y) if len(certificates) < n_good else np.nan

    def breaking_topk(i, theta, outputs, values, level, work):
        count = topk_oracle(i, theta, outputs, values, level, work)
        values[:count] += 0.0 if len(certificates) < n_good else np.nan
        return count

    topk_oracle = toy.topk_oracle
    toy.score_output, toy.topk_oracle = breaking, breaking_topk
    result = solver.solve(toy, tol=1e-12, max_passes=500, random_state=0, callback=lambda trace: certificates.append(1))
    assert result.status is Status.DIVERGED
    assert len(result.trace) == n_good
    assert np.isfinite(result.w).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SVRG(level=0.0), "level must be a positive number, not 0.0"),
        (lambda: Casimir(max_k=0), "max_k must be an integer, at least 1, not 0"),
        (lambda: Casimir(smoothing="l1"), "smoothing must be one of None, l2, entropy, not 'l1'"),
        (
            lambda: SVRG(smoothing=None, level=1.0),
            "level is a level of smoothing, of which smoothing=None has none, not 1.0",
        ),
        (lambda: Casimir(schedule="fixed"), "schedule must be one of adaptive, constant, not 'fixed'"),
        (lambda: Casimir(kappa=-1.0), "kappa must be a positive number, not -1.0"),
        (lambda: Casimir(stop="now"), "stop must be one of budget, gradient, not 'now'"),
        (lambda: Casimir(inner="sgd"), "inner must be one of svrg, saga, not 'sgd'"),
        (lambda: Casimir(warm_start="zero"), "warm_start must be one of center, previous, extrapolation, not 'zero'"),
        (lambda: SGD(schedule="linear"), "schedule must be one of polyak, decay, constant, sqrt, inverse, not"),
        (lambda: SGD(schedule="decay", step=0), "step must be a positive number, not 0"),
        (lambda: SGD(step=0.1), "schedule='polyak' has no step to set"),
        (lambda: SGD(schedule="sqrt"), "schedule='sqrt' needs a step"),
        (lambda: OneSlack(cache=-1), "cache must be an integer, at least 0, not -1"),
        (lambda: OneSlack(damped=2), "damped must be True or False, not 2"),
        (lambda: NSlack(keep=0), "keep must be an integer, at least 1, not 0"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_combinations(problem):
    with pytest.raises(ValueError, match="schedule='inverse' needs regularization: give a finite C, or a step"):
        SGD(schedule="inverse").solve(problem, np.inf)
    with pytest.raises(ValueError, match="OneSlack needs regularization: C must be finite"):
        OneSlack().solve(problem, np.inf)
    with pytest.raises(ValueError, match="BCFW minimises the hinge loss, not the log loss"):
        BCFW().solve(problem, loss="log")
    with pytest.raises(TypeError, match="SGD needs the exp oracle for the log loss, which NoOracle does not have"):
        SGD().solve(NoOracle(), loss="log")
    with pytest.raises(TypeError, match="Casimir needs the max and topk oracle for the hinge loss"):
        Casimir().solve(NoOracle())
    with pytest.raises(ValueError, match="start must hold 21 finite weights"):
        SGD().solve(problem, start=np.zeros(3))


@pytest.mark.parametrize("solver", [SVRG(), Casimir(), Casimir(schedule="constant")], ids=str)
def test_one_example_is_solved(solver):
    alone = toy_chains(n=1, random_state=1)
    result = solver.solve(alone, 1.0, max_passes=300, random_state=0)
    assert result.status is Status.OPTIMAL
    assert np.isclose(result.trace.primal[-1], NSlack().solve(alone, 1.0).trace.primal[-1], rtol=2e-3)


@pytest.mark.parametrize("solver", [SVRG(), Casimir()], ids=str)
def test_the_scale_of_weights_does_not_matter(solver, problem):
    n, passes = n_examples(problem), []
    for scale in (0.01, 1.0, 1e4):
        result = solver.solve(problem, 1 / scale, np.full(n, scale), tol=1e-2, max_passes=500, random_state=0)
        assert result.status is Status.OPTIMAL
        passes.append(result.trace.passes[-1])
    assert len(set(passes)) == 1


@pytest.mark.parametrize("solver", [SVRG(), Casimir()], ids=str)
def test_examples_without_weight_tell_nothing_of_step_sizes(solver):
    many, weight = toy_chains(n=300), np.zeros(300)
    weight[5] = 1
    for seed in range(4):
        assert np.isfinite(solver.solve(many, np.inf, weight, max_passes=5, random_state=seed).w).all()


def test_subproblems_with_bounds_are_solved_to_their_accuracy(problem):
    careful = Casimir(stop="gradient").solve(problem, lower=-0.1, upper=0.1, tol=1e-2, max_passes=500, random_state=0)
    assert careful.status is Status.OPTIMAL


def test_sgd_goes_on_from_a_rough_solution(problem):
    rough = LBFGS().solve(problem, loss="log", tol=1e-2)
    result = SGD().solve(problem, loss="log", tol=1e-4, max_passes=2000, start=rough.w, random_state=0)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("solver", [SGD(), SVRG(), Casimir(), LBFGS()], ids=str)
def test_smoothed_maxima_of_too_few_outputs_are_inexact(solver):
    result = solver.solve(toy_chains(n=4, n_labels=5, max_length=6), 0.1, loss=Loss("l2", level=50.0, max_k=5), tol=0.1)
    assert result.status is Status.INEXACT
    assert "raise max_k or lower the level" in result.trace.notes[-1]


def test_bad_starts_and_strengths(problem):
    point = BCFW().solve(problem, random_state=0).dual
    with pytest.raises(ValueError, match="start must be weights, not a dual point, which has none without L2"):
        SGD().solve(problem, np.inf, start=point)
    for ratio in (-1.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="l1_ratio must be a number from 0 to 1, not"):
            LBFGS().solve(problem, l1_ratio=ratio)


def test_a_callback_that_ends_a_run_within_a_run_ends_only_that(problem):
    def look(trace):
        LBFGS().solve(problem, loss="log", callback=lambda _: True)

    assert LBFGS().solve(problem, loss="log", callback=look).status is Status.OPTIMAL


def test_scores_that_are_not_numbers_keep_the_first_weights(problem):
    result = LBFGS().solve(problem, loss="log", held_out=HeldOut(lambda w: np.nan, patience=3))
    assert result.w.size == LBFGS().solve(problem, loss="log").w.size
    scores = iter([np.nan, 0.5, np.nan, 0.2, 0.1])
    later = HeldOut(lambda w: next(scores), patience=3)
    LBFGS().solve(problem, loss="log", held_out=later)
    assert (later.at, later.best_score) == (1, 0.5)
