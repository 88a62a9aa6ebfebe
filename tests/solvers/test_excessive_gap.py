"""Excessive gap reduction: its invariants and its rate by enumeration, the optimum, and what it refuses."""

import numpy as np
import pytest

from maxmargin import CustomProblem, Loss
from maxmargin.problem import squared_diameters
from maxmargin.solvers import ExcessiveGap
from maxmargin.solvers.exponentiated import excessive_gap
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.fuzz.certified import blocks_of
from tests.small import make
from tests.toy import Labels, label_data, random_candidates

pytestmark = pytest.mark.usefixtures("interpreted_loops")

WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 1.5, 1.0])


def smoothed_value(w, blocks, weight, strength, level):
    """J_mu(w), from its definition."""
    losses = [level * (np.logaddexp.reduce((costs - psi @ w) / level) - np.log(len(costs))) for psi, costs in blocks]
    return strength / 2 * w @ w + weight @ losses / len(blocks)


def recorded(monkeypatch, solver, *args, **options):
    """The points of a run, the first one included."""
    points, Smoothed = [], excessive_gap.Smoothed
    start, step = Smoothed.start, Smoothed.step

    def noted(method):
        def call(*given):
            point = method(*given)
            if point.is_excessive or not solver.adaptive:
                points.append(point)
            return point

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Smoothed, "start", noted(start))
        patch.setattr(Smoothed, "step", noted(step))
        result = solver.solve(*args, **options)
    return result, points


@pytest.fixture(scope="module")
def chains():
    return toy_chains(n=6, n_labels=3, max_length=3)


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("C", [0.1, 5.0])
def test_the_gap_is_excessive_at_every_step(chains, monkeypatch, adaptive, C):
    result, points = recorded(monkeypatch, ExcessiveGap(adaptive), chains, C, WEIGHT, tol=1e-9, max_passes=40)
    blocks, strength, n = blocks_of(chains), 1 / (6 * C), 6
    assert len(points) > 20
    for point in points:
        value = smoothed_value(point.w, blocks, WEIGHT, strength, point.level)
        dual = point.alpha.cost - strength / 2 * point.alpha.v @ point.alpha.v
        assert value <= dual + 1e-9 * (1 + abs(value))
        spread = WEIGHT @ [np.log(len(costs)) for _, costs in blocks] / n
        assert naive.primal(point.w, blocks, C, WEIGHT) - dual <= point.level * spread * (1 + 1e-9)
    assert np.isclose(naive.primal(result.w, blocks, C, WEIGHT), result.certificate.primal)
    assert (result.trace.dual <= naive.solve(blocks, C, WEIGHT, tol=1e-6)[1] * (1 + 1e-6)).all()


@pytest.mark.parametrize("C", [0.1, 5.0])
def test_the_rate_of_the_paper(chains, monkeypatch, C):
    """Its constants are the largest ||psi|| and number of outputs; ours are smaller."""
    _, points = recorded(monkeypatch, ExcessiveGap(adaptive=False), chains, C, tol=1e-9, max_passes=40)
    blocks, strength = blocks_of(chains), 1 / (6 * C)
    spread = np.log(max(len(costs) for _, costs in blocks))
    largest = max(np.square(psi).sum(axis=1).max() for psi, _ in blocks)
    ours = np.mean(squared_diameters(chains)) / 4
    assert ours < largest
    for k, point in enumerate(points, start=1):
        assert point.level <= 6 * ours / strength / ((k + 1) * (k + 2)) * (1 + 1e-9)
        dual = point.alpha.cost - strength / 2 * point.alpha.v @ point.alpha.v
        gap = naive.primal(point.w, blocks, C) - dual
        assert gap <= 6 * spread * largest / strength / ((k + 1) * (k + 2))


@pytest.mark.parametrize("solver", [ExcessiveGap(), ExcessiveGap(adaptive=False)], ids=str)
def test_the_reference_optimum(solver):
    problem = toy_chains(n=5, n_labels=2, max_length=3)
    optimum = naive.solve(blocks_of(problem), 0.1)[1]
    check_solver(solver, problem, optimum, C=0.1, tol=1e-2)


@pytest.mark.parametrize("name", ["BoxSVM", "CandidateSVM", "ChainSVM", "MulticlassSVM", "StructuredSVM", "TreeSVM"])
def test_no_two_outputs_are_further_apart_than_the_diameter(name):
    model, X, y, _ = make(name)
    problem = model._encode(X, y).problem
    for (psi, _), bound in zip(blocks_of(problem), squared_diameters(problem), strict=True):
        largest = max(np.square(psi - row).sum(axis=1).max() for row in psi)
        assert 0 < largest <= bound * (1 + 1e-6)


@pytest.mark.parametrize("name", ["ChainSVM", "TreeSVM"])
def test_diameters_of_weights_of_observed_pairs(name):
    model, X, y, _ = make(name)
    problem = model.set_params(only_observed=True)._encode(X, y).problem
    for (psi, _), bound in zip(blocks_of(problem), squared_diameters(problem), strict=True):
        assert max(np.square(psi - row).sum(axis=1).max() for row in psi) <= bound * (1 + 1e-6)


def test_a_start_is_gone_on_from():
    problem = toy_chains(n=5, n_labels=2, max_length=3)
    first = ExcessiveGap().solve(problem, 1.0, tol=0.01)
    again = ExcessiveGap().solve(problem, 1.0, tol=0.01, start=first)
    assert again.trace.primal[0] == first.certificate.primal
    assert again.status is Status.OPTIMAL


def test_threads_do_not_change_the_result(chains):
    one, two = (ExcessiveGap().solve(chains, 0.3, tol=0.05, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.allclose(one.w, two.w)


def test_examples_without_a_choice():
    toy = random_candidates(3, 1, 0)
    result = ExcessiveGap().solve(toy, 1.0)
    assert result.status is Status.OPTIMAL
    assert not result.w.any()


@pytest.mark.parametrize("C", [1e-6, 1e6, 1e30])
def test_extreme_strengths(C):
    toy = random_candidates(5, 3, 1)
    result = ExcessiveGap().solve(toy, C, max_passes=60)
    assert 0 <= result.certificate.dual <= result.certificate.primal <= Objective(toy, C).evaluate(np.zeros(4)).value


def test_bad_input(chains):
    toy = random_candidates(4, 3, 0)  # which does not tell its diameters
    with pytest.raises(TypeError, match=r"ExcessiveGap\(adaptive=False\) needs squared_diameters, which Candidates"):
        ExcessiveGap(adaptive=False).solve(toy)
    with pytest.raises(ValueError, match="adaptive must be True or False, not 1"):
        ExcessiveGap(adaptive=1)
    with pytest.raises(ValueError, match="takes no bounds"):
        ExcessiveGap().solve(chains, lower=0.0)
    with pytest.raises(ValueError, match="knows no L1 regularization"):
        ExcessiveGap().solve(chains, l1_ratio=0.5)
    with pytest.raises(ValueError, match="C must be finite"):
        ExcessiveGap().solve(chains, np.inf)
    with pytest.raises(ValueError, match="minimises the hinge loss, not the log loss"):
        ExcessiveGap().solve(chains, loss=Loss("entropy", margin=False))
    model, X, y, _ = make("MatchingSVM")
    with pytest.raises(TypeError, match="ExcessiveGap needs the exp oracle"):
        ExcessiveGap().solve(model._encode(X, y).problem)


def test_structures_of_ones_own():
    problem = CustomProblem(Labels(), *label_data(6))
    assert ExcessiveGap(adaptive=False).solve(problem, 0.1, tol=0.05).status is Status.OPTIMAL
