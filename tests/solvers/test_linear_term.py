"""Objectives with a linear term: every solver against a reference optimum, which soft labels have by enumeration."""

import numpy as np
import pytest

from maxmargin import Loss, Status
from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.losses import NAMED
from maxmargin.solvers import BCFW, LBFGS, SGD, Casimir, ExponentiatedGradient, FrankWolfe, OneSlack, all_solvers
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.supervision.weak import Weak
from tests import naive
from tests.toy import Candidates, random_candidates

C = 0.5
SOLVERS = {name: solver for name, solver in all_solvers().items() if solver.default_loss.oracle and solver.takes_linear}
SLOW = {"sgd", "frank-wolfe", "extragradient"}

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def soft_targets(toy, random_state=0):
    """Probabilities of the candidates of each example, and all outputs relative to their means."""
    rng = np.random.default_rng(random_state)
    shares = [rng.dirichlet(np.ones(len(phi))) for phi in toy.phi]
    blocks = [(p @ phi - phi, costs) for p, phi, costs in zip(shares, toy.phi, toy.costs, strict=True)]
    return as_blocks(shares, float), [(psi.astype(float), costs.astype(float)) for psi, costs in blocks]


@pytest.fixture(scope="module")
def toy():
    return random_candidates(6, 4, 0)


@pytest.mark.parametrize("name", SOLVERS)
def test_soft_labels_are_trained_on_to_the_enumerated_optimum(toy, name):
    target, blocks = soft_targets(toy)
    for loss in ("hinge", "log"):
        if not SOLVERS[name].takes(NAMED[loss]):
            continue
        is_log = loss == "log"
        optimum = naive.log_primal(naive.solve_log(blocks, C), blocks, C) if is_log else naive.solve(blocks, C)[1]
        tol = 2e-2 if name in SLOW else 1e-3
        result = SOLVERS[name].solve(
            toy, C, loss=loss, weak=Weak(target=target), tol=tol, max_passes=5000, random_state=0
        )
        value = (naive.log_primal if is_log else naive.primal)(result.w, blocks, C)
        assert result.status is Status.OPTIMAL
        assert np.isclose(result.certificate.primal, value, rtol=1e-9)
        assert optimum * (1 - 1e-9) <= value <= optimum * (1 + 1.01 * tol)
        assert (result.trace.dual <= optimum * (1 + 1e-9)).all()
        assert result.certificate.dual >= optimum * (1 - 1.01 * tol)


@pytest.mark.parametrize("name", SOLVERS)
def test_outputs_in_place_of_true_ones_may_cost_something(toy, name):
    costly = Candidates(toy.phi, [costs + 0.2 for costs in toy.costs])
    target, blocks = soft_targets(costly)
    if SOLVERS[name].takes(NAMED["hinge"]):
        _, optimum = naive.solve(blocks, C)
        result = SOLVERS[name].solve(costly, C, loss="hinge", weak=Weak(target=target), max_passes=60, random_state=0)
        assert (result.trace.dual <= optimum * (1 + 1e-9)).all()
        assert np.isclose(result.certificate.primal, naive.primal(result.w, blocks, C), rtol=1e-9)


@pytest.mark.parametrize("name", sorted({*all_solvers()} - {*SOLVERS}))
def test_solvers_that_take_no_linear_term_say_so(toy, name):
    solver = all_solvers()[name]
    if solver.takes_linear:  # those of relaxed losses, on graphs alone: see `test_idal`
        return
    with pytest.raises(ValueError, match="needs true outputs: it takes none known in part, no soft labels"):
        solver.solve(toy, C, weak=Weak(target=soft_targets(toy)[0]))


def test_a_linear_term_is_that_of_the_solver(toy):
    """As a Gaussian prior: without losses the weights are its mean, and with a huge C they are those without it."""
    mean = np.array([1.0, -2.0, 0.5, 0.0])
    nothing = Candidates(toy.phi, toy.costs)
    nothing.phi = [0 * phi for phi in toy.phi]
    for solver in (BCFW(), LBFGS(), OneSlack()):
        loss = "log" if isinstance(solver, LBFGS) else "hinge"
        result = solver.solve(nothing, C, loss=loss, linear=mean / (6 * C), tol=1e-9)
        assert np.allclose(result.w, mean, atol=1e-4)
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("name", SOLVERS)
def test_a_prior_is_what_weights_are_drawn_to(toy, name):
    """Also where the objective would be negative without its constant."""
    prior = np.array([1.0, -2.0, 0.5, 3.0])
    psi = [phi[0] - phi for phi in toy.phi]
    moved = [(d, costs - d @ prior) for d, costs in zip(psi, toy.costs, strict=True)]  # of w - prior
    for loss in ("hinge", "log"):
        if not SOLVERS[name].takes(NAMED[loss]):
            continue
        tol = 2e-2 if name in SLOW else 1e-3
        result = SOLVERS[name].solve(toy, C, loss=loss, prior=prior, tol=tol, max_passes=5000, random_state=0)
        if loss == "hinge":
            value, optimum = naive.primal(result.w - prior, moved, C), naive.solve(moved, C)[1]
        else:
            at = result.w - prior
            losses = np.mean([np.logaddexp.reduce(-d @ result.w) for d in psi])
            value = at @ at / (2 * len(psi) * C) + losses
            optimum = LBFGS().solve(toy, C, loss="log", prior=prior, tol=1e-10).certificate.dual
        assert result.status is Status.OPTIMAL
        assert np.isclose(result.certificate.primal, value, rtol=1e-9)
        assert optimum * (1 - 1e-9) <= value <= optimum * (1 + 1.01 * tol)
        assert (result.trace.dual <= optimum * (1 + 1e-8)).all()
        assert result.certificate.dual >= optimum * (1 - 1.01 * tol)


@pytest.mark.parametrize("solver", [LBFGS(), ExponentiatedGradient(), Casimir()], ids=str)
def test_bounds_are_true_where_a_linear_term_makes_objectives_negative(toy, solver):
    q = np.array([2.0, -1.0, 0.5, 1.0])
    best = LBFGS().solve(toy, C, loss="log", linear=q, abs_tol=1e-9, max_passes=3000)
    assert best.certificate.primal < -1
    result = solver.solve(toy, C, loss="log", linear=q, max_passes=20, random_state=0)
    assert (result.trace.dual <= best.certificate.primal + 1e-7).all()


@pytest.mark.parametrize("solver", [BCFW(steps="pairwise"), OneSlack(), Casimir(), SGD()], ids=str)
def test_bounds_hold_with_a_linear_term(toy, solver):
    target, blocks = soft_targets(toy, 1)
    lower, upper = -0.05, np.array([0.1, np.inf, np.inf, 0.02])
    _, optimum = naive.solve(blocks, C, lower=lower, upper=upper)
    result = solver.solve(
        toy, C, weak=Weak(target=target), lower=lower, upper=upper, tol=5e-3, max_passes=3000, random_state=0
    )
    assert (result.w >= lower).all()
    assert (result.w <= upper).all()
    assert result.certificate.dual <= optimum * (1 + 1e-9) <= naive.primal(result.w, blocks, C) * (1 + 2e-9)
    assert result.status is Status.OPTIMAL


def test_l1_regularization_with_a_linear_term(toy):
    target, blocks = soft_targets(toy, 2)
    best = naive.solve_log(blocks, C, l1_ratio=0.3)
    optimum = naive.log_primal(best, blocks, C, l1_ratio=0.3)
    result = LBFGS().solve(toy, C, loss="log", l1_ratio=0.3, weak=Weak(target=target), tol=1e-6)
    assert result.status is Status.OPTIMAL
    assert np.allclose(result.w, best, atol=1e-3)
    assert result.certificate.dual <= optimum * (1 + 1e-12) <= result.certificate.primal * (1 + 1e-9)


def test_sample_weights_and_smoothed_losses(toy):
    target, blocks = soft_targets(toy, 3)
    weight = np.array([1.0, 0, 2, 0.5, 1, 3])
    _, optimum = naive.solve(blocks, C, weight)
    for solver in (BCFW(steps="pairwise"), FrankWolfe()):
        result = solver.solve(toy, C, weight, weak=Weak(target=target), tol=1e-2, max_passes=5000, random_state=0)
        assert result.certificate.dual <= optimum <= result.certificate.primal
        assert result.status is Status.OPTIMAL
    for loss in (Loss("entropy", 0.3), Loss("l2", 0.5)):
        found = LBFGS().solve(toy, C, weight, loss=loss, weak=Weak(target=target), tol=1e-8)
        rival = Casimir().solve(toy, C, weight, loss=loss, weak=Weak(target=target), tol=1e-4, random_state=0)
        assert np.isclose(found.certificate.primal, rival.certificate.primal, rtol=1e-3)


@pytest.mark.parametrize(
    "solver", [BCFW(averaging=True), BCFW(steps="away", cache=3), ExponentiatedGradient(batch=True)]
)
def test_other_variants(toy, solver):
    target, blocks = soft_targets(toy, 4)
    _, optimum = naive.solve(blocks, C)
    result = solver.solve(toy, C, loss="hinge", weak=Weak(target=target), tol=3e-2, max_passes=5000, random_state=0)
    assert result.status is Status.OPTIMAL
    assert result.certificate.dual <= optimum * (1 + 1e-9) <= naive.primal(result.w, blocks, C) * (1 + 2e-9)


@pytest.mark.parametrize("name", ["bcfw", "auto", "lbfgs", "sgd", "exponentiated-gradient", "one-slack"])
def test_certificates_hold_in_float32(toy, name):
    target, blocks = soft_targets(toy)
    loss = "log" if name == "lbfgs" else "hinge"
    coarse = Candidates(toy.phi, toy.costs, np.float32)
    _, blocks = soft_targets(coarse)
    is_log = loss == "log"
    optimum = naive.log_primal(naive.solve_log(blocks, C), blocks, C) if is_log else naive.solve(blocks, C)[1]
    result = SOLVERS[name].solve(coarse, C, loss=loss, weak=Weak(target=target), max_passes=50, random_state=0)
    value = (naive.log_primal if is_log else naive.primal)(result.w.astype(float), blocks, C)
    assert result.certificate.dual <= optimum * (1 + 1e-6)  # targets are rounded, too
    assert value <= result.certificate.primal * (1 + 1e-6)


def test_warm_starts_go_on_from_another_linear_term(toy):
    """The dual point stays valid: only the weights move."""
    target, blocks = soft_targets(toy, 5)
    _, optimum = naive.solve(blocks, C)
    first = BCFW(steps="pairwise").solve(toy, C, tol=1e-6, max_passes=500, random_state=0)
    again = BCFW(steps="pairwise").solve(
        toy, C, weak=Weak(target=target), start=first, tol=1e-6, max_passes=500, random_state=0
    )
    assert np.isclose(again.certificate.primal, optimum, rtol=1e-5)
    v, value = Objective(toy, C, linear=np.full(4, 0.1)).at(first.dual)
    plain, gain = Objective(toy, C).sums_of(first.dual)
    assert np.allclose(v, plain + 0.1 * 6 * C)
    assert np.isclose(value, gain - v @ v / (12 * C))


def test_bad_terms_are_refused(toy):
    with pytest.raises(ValueError, match="linear must hold 4 finite numbers"):
        BCFW().solve(toy, C, linear=np.zeros(3))
    with pytest.raises(ValueError, match="linear must hold 4 finite numbers"):
        BCFW().solve(toy, C, linear=[0, 0, np.inf, 0])
    with pytest.raises(ValueError, match=r"need L2 regularization: a finite C"):
        LBFGS().solve(toy, np.inf, loss="log", linear=np.zeros(4))
    with pytest.raises(ValueError, match=r"weak\.target must hold a number for every part"):
        BCFW().solve(toy, C, weak=Weak(target=Blocks(np.zeros(3), np.array([0, 3]))))
