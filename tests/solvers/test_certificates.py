"""Certificates are of the weights returned, and of the objective asked for: every solver on every loss it takes."""

import numpy as np
import pytest

from maxmargin import ChainSVM, CustomProblem, Loss, Perceptron, Status
from maxmargin.inference import certified_outputs
from maxmargin.losses import NAMED
from maxmargin.solvers import BCFW, SGD, NSlack, all_solvers
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from tests import naive, small
from tests.fuzz import certified
from tests.toy import Candidates, LabelsByArgmax, LabelsWithoutCosts, label_data, random_candidates

LOSSES = [*NAMED.values(), Loss(margin=False), Loss("entropy", level=0.3), Loss("l2", margin=False)]
SOLVERS = {name: solver for name, solver in all_solvers().items() if solver.default_loss.oracle}
PAIRS = [
    pytest.param(solver, loss, id=f"{name}-{k}") for name, solver in SOLVERS.items() for k, loss in enumerate(LOSSES)
]

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture(scope="module")
def toy():
    return random_candidates(6, 4, 0)


def value_of(toy, w, C, loss):
    """The objective from its definition."""
    from maxmargin.losses.smoothing import smooth_max

    losses = []
    for phi, costs in zip(toy.phi, toy.costs, strict=True):
        z = phi @ w - phi[0] @ w + loss.margin * costs
        h = smooth_max(z, loss.level, loss.smoothing)[0] if loss.is_smooth else z.max()
        losses.append(h**2 / 2 if loss.name == "squared_hinge" else h)
    return np.dot(w, w) / (2 * len(losses) * C) + np.mean(losses)


@pytest.mark.parametrize(("solver", "loss"), PAIRS)
def test_a_loss_is_honoured_or_refused(toy, solver, loss):
    options = {"loss": loss, "tol": 1e-3, "max_passes": 30, "random_state": 0}
    if not solver.takes(loss):
        with pytest.raises(ValueError, match=r"minimises the .* loss, not the .* loss"):
            solver.solve(toy, 2.0, **options)
        return
    result = solver.solve(toy, 2.0, **options)
    assert np.isclose(result.certificate.primal, value_of(toy, result.w, 2.0, loss), rtol=1e-6, atol=1e-9)
    assert result.certificate.dual <= result.certificate.primal + 1e-9
    best = solver.solve(toy, 2.0, **{**options, "max_passes": 200}).certificate.primal
    assert result.certificate.dual <= best + 1e-9  # a lower bound of the objective asked for
    if result.status is Status.OPTIMAL:
        assert result.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("name", SOLVERS)
def test_with_held_out_data_the_weights_returned_are_certified(toy, name):
    """Scores that fall with the norm of the weights keep the first ones, far from the optimum."""
    solver = SOLVERS[name]
    held_out = HeldOut(lambda w: -float(np.abs(w).sum()), patience=100)
    result = solver.solve(toy, 10.0, tol=0.02, max_passes=60, random_state=0, held_out=held_out)
    assert np.isclose(result.certificate.primal, value_of(toy, result.w, 10.0, solver.default_loss), rtol=1e-6)
    if result.certificate.relative_gap > 0.02:
        assert result.status is not Status.OPTIMAL
    if result.trace.gap[-1] <= 0.02 * result.trace.primal[-1] < result.certificate.gap and name != "perceptron":
        assert result.status is Status.HELD_OUT


def test_the_perceptron_certifies_its_last_weights():
    problem = toy_chains(n=12, n_labels=4, max_length=5, random_state=2)
    for seed in range(3):
        result = Perceptron(gap_every=1).solve(problem, 1.0, max_passes=7, random_state=seed)
        assert np.isclose(result.certificate.primal, Objective(problem, 1.0).evaluate(result.w).value, rtol=1e-9)


def assert_true(result, value, best):
    """Assert that a certificate encloses the optimum and the objective of its weights, given one that is near it."""
    primal, dual = result.certificate
    found = value(result.w.astype(float))
    assert found * (1 - 1e-9) <= primal
    assert dual <= best * (1 + 1e-9)
    assert (result.trace.dual <= best * (1 + 1e-9)).all()
    assert dual <= primal
    if result.status is Status.OPTIMAL:
        assert found - best <= 1e-3 * found


def separable_candidates(scale, random_state):
    """Candidates in float32, nearly all of which some weights tell from the true ones."""
    rng = np.random.default_rng(random_state)
    phi = [rng.normal(size=(rng.integers(2, 5), 3)) for _ in range(6)]
    phi = [scale * x[np.argsort(-x @ [1, 0.5, 0] + 0.1 * rng.normal(size=len(x)))] for x in phi]
    return Candidates(phi, [np.minimum(np.arange(len(x)), 1) for x in phi], np.float32)


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_certificates_hold_in_float32(C, scale, monkeypatch):
    """Objectives of nearly separable data are no larger than the rounding of potentials."""
    monkeypatch.setattr(
        "maxmargin.solvers.objective.bundle.QP_STEPS", 100
    )  # every mixture has a bound, the best is slow to find
    problem = separable_candidates(scale, 0)
    blocks = problem.blocks()
    exact = BCFW(steps="pairwise").solve(Candidates(problem.phi, problem.costs), C, tol=1e-7, max_passes=300)
    best = naive.primal(exact.w, blocks, C)
    for name in set(SOLVERS) - {"lbfgs"}:
        result = SOLVERS[name].solve(problem, C, max_passes=30, random_state=0)
        assert_true(result, lambda w: naive.primal(w, blocks, C), best)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_certificates_of_chains_hold_in_float32(solver, C):
    loss = NAMED["log" if solver == "lbfgs" else "hinge"]
    X, y, _ = small.chains(np.random.default_rng(1))
    X = [x.astype(np.float32) for x in X]
    options = {"C": C, "loss": loss, "solver": solver, "random_state": 0}
    exact = ChainSVM(dtype="float64", tol=1e-9, max_passes=60, **options).fit(X, y)
    rounded = ChainSVM(dtype="float32", max_passes=30, **options).fit(X, y)
    blocks = certified.blocks_of(exact._encode(X, y).problem)

    def value(w):
        return certified.objective(w, blocks, C, np.ones(len(blocks)), loss)

    primal, dual = rounded.certificate_
    assert dual <= value(exact._w) * (1 + 1e-9)
    assert value(rounded._w.astype(float)) * (1 - 1e-9) <= primal


@pytest.mark.parametrize(
    ("name", "scale", "options"),
    [
        ("ChainSVM", 1e3, {"loss": Loss("entropy", level=1e-9), "solver": "sgd", "dtype": "float64"}),
        ("StructuredSVM", 1, {"loss": Loss("entropy", level=1e-9), "solver": "svrg"}),
        ("DeformableSVM", 2e11, {"loss": "smooth_hinge"}),
    ],
)
def test_certificates_round_by_no_more_than_their_own_rounding(name, scale, options):
    """Low temperatures leave the sizes of scores as they are; maxima of too few outputs are bounded from above."""
    model, *_ = small.make(name)
    X, y, _ = small.CASES[name][1](np.random.default_rng(3))
    for n in (1, 4):
        examples = X[:n] if scale == 1 else [scale * x for x in X[:n]]
        model.set_params(max_passes=20, **options).fit(examples, y[:n])
        assert certified.false_certificate(model, examples, y[:n], None, model) is None


def test_float32_says_where_it_cannot_certify_more():
    problem = separable_candidates(1.0, 0)
    result = BCFW(steps="pairwise").solve(problem, 1e6, tol=1e-3, max_passes=500, random_state=0)
    assert result.status is Status.STALLED
    assert "float64 can" in result.trace.notes[-1]
    assert result.certificate.relative_gap > 1e-3
    exact = BCFW(steps="pairwise").solve(Candidates(problem.phi, problem.costs), 1e6, tol=1e-3, random_state=0)
    assert exact.status is Status.OPTIMAL


class SecondBest(Candidates):
    """An oracle that always misses the best candidate, but knows its score."""

    def bound_oracle(self, i, theta, y, work):
        y[0] = np.argsort(theta)[-2]
        return float(theta.max())

    def max_oracle(self, i, theta, y, work):
        self.bound_oracle(i, theta, y, work)
        return float(theta[y[0]])


@pytest.mark.parametrize("solver", [BCFW(), BCFW(steps="pairwise", sampling="gap"), NSlack(), SGD()], ids=str)
def test_a_bound_in_place_of_the_best_output_is_enough_for_certificates(solver):
    given = separable_candidates(1.0, 0)
    problem = SecondBest(given.phi, given.costs)
    blocks = problem.blocks()
    exact = BCFW(steps="pairwise").solve(Candidates(given.phi, given.costs), tol=1e-7, max_passes=300)
    result = solver.solve(problem, tol=1e-3, max_passes=100, random_state=0)
    assert_true(result, lambda w: naive.primal(w, blocks, 1.0), naive.primal(exact.w, blocks, 1.0))
    assert result.status is not Status.OPTIMAL
    assert not any(found.is_exact for found in certified_outputs(problem, exact.w))


@pytest.mark.parametrize("solver", [BCFW(steps="pairwise"), BCFW(steps="away"), BCFW(cache=5), NSlack()], ids=str)
def test_stored_outputs_tell_a_wrong_oracle(solver):
    """One that forgets the costs is beaten by outputs that it returned itself, at other weights."""
    X, y = label_data(12)
    options = {"C": 10.0, "tol": 0.05, "max_passes": 200, "random_state": 0}
    result = solver.solve(CustomProblem(LabelsWithoutCosts(), X, y), **options)
    assert result.status is Status.INEXACT
    exact = solver.solve(CustomProblem(LabelsByArgmax(), X, y), **options)
    assert exact.status is Status.OPTIMAL
    assert result.certificate.dual <= exact.certificate.primal
