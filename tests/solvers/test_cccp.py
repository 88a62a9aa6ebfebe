"""Outputs that are known in part: rounds of completions, L-BFGS, EM, and certificates recomputed by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import CCCP, Loss, Perceptron, Status
from maxmargin.arrays.blocks import Blocks
from maxmargin.execution.clock import BrokenOff
from maxmargin.problem import IMPOSSIBLE, restrict
from maxmargin.runtime import interpreted
from maxmargin.solvers import BCFW, LBFGS, SGD, Auto, ExponentiatedGradient, NSlack, OneSlack
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.limits import Limits
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.latent.cccp_rounds import Rounds, find_changes, take_over
from maxmargin.solvers.objective.active_sets import DualPoint, no_means, rename, sets_of
from maxmargin.solvers.objective.latent_objective import LatentObjective
from maxmargin.supervision.weak import Weak
from maxmargin.testing import toy_chains
from tests import naive
from tests.solvers.test_checkpoint import assert_same, copies_of
from tests.toy import Candidates, random_candidates

C = 2.0

pytestmark = pytest.mark.usefixtures("interpreted_loops")


class Consistent(Candidates):
    """Candidates of which some are ruled out."""

    def __init__(self, toy, is_consistent, max_sees=None):
        super().__init__(toy.phi, toy.costs, toy.phi[0].dtype)
        self.is_consistent = is_consistent
        self.max_sees = is_consistent if max_sees is None else max_sees

    def left(self, i, theta):
        return np.where(self.is_consistent[i], theta, IMPOSSIBLE)

    def max_oracle(self, i, theta, y, work):
        return super().max_oracle(i, np.where(self.max_sees[i], theta, IMPOSSIBLE), y, work)

    def exp_oracle(self, i, theta, mu, work):
        return super().exp_oracle(i, self.left(i, theta), mu, work)

    def topk_oracle(self, i, theta, outputs, values, level, work):
        count = super().topk_oracle(i, self.left(i, theta), outputs, values, level, work)
        return min(count, int(self.is_consistent[i].sum()))


def partial_candidates(n, n_candidates, random_state, share=0.4, n_known=0):
    """Candidates with sets of those that may be the true one, which cost nothing."""
    toy, rng = random_candidates(n, n_candidates, random_state), np.random.default_rng(random_state)
    sets = [rng.random(n_candidates) < share * (i >= n_known) for i in range(n)]
    for is_consistent, costs in zip(sets, toy.costs, strict=True):
        is_consistent[0] = True
        costs[is_consistent] = 0
    is_weak = np.array([is_consistent.sum() > 1 for is_consistent in sets])
    return toy, Weak(Consistent(toy, sets), is_weak=is_weak), sets


def latent_value(toy, sets, w, loss="hinge", weight=None):
    """F(w) from its definition."""
    values = []
    for phi, costs, is_consistent in zip(toy.phi, toy.costs, sets, strict=True):
        scores = phi.astype(float) @ w
        if loss == "hinge":
            values.append((scores + costs).max() - scores[is_consistent].max())
        else:
            values.append(np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[is_consistent]))
    weight = np.ones(len(values)) if weight is None else weight
    return w @ w / (2 * len(values) * C) + np.dot(weight, values) / len(values)


def majorant_optimum(toy, sets, w, loss="hinge"):
    """The lowest value of the convex function that touches F at w, by brute force."""
    blocks, entropy = [], 0.0
    for phi, costs, is_consistent in zip(toy.phi, toy.costs, sets, strict=True):
        scores = np.where(is_consistent, phi @ w, -np.inf)
        p = np.exp(scores - np.logaddexp.reduce(scores)) if loss == "log" else np.eye(len(phi))[np.argmax(scores)]
        entropy -= np.sum(p[p > 0] * np.log(p[p > 0])) / len(toy.phi)
        blocks.append((p @ phi - phi, costs))
    if loss == "hinge":
        return naive.solve(blocks, C)[1]
    return naive.log_primal(naive.solve_log(blocks, C), blocks, C) - entropy


def assert_honest(result, toy, sets, loss, tol):
    """Assert that the objective never rises, that the certificate holds, and that the status says what it means."""
    assert (np.diff(result.trace.primal) <= 0).all()
    assert result.status is Status.STATIONARY
    assert result.certificate.is_local
    value = latent_value(toy, sets, result.w, loss)
    assert np.isclose(result.certificate.primal, value, rtol=1e-9)
    best = majorant_optimum(toy, sets, result.w, loss)
    assert result.certificate.dual <= best + 1e-9
    assert value - best <= 1.01 * tol * value


HINGE = [CCCP(), CCCP(BCFW(steps="pairwise")), CCCP(OneSlack()), CCCP(NSlack()), CCCP(SGD())]
OPTIONS = [CCCP(self_paced=True), CCCP(annealing=0.0), CCCP(self_paced=True, annealing=0.3)]


@pytest.mark.parametrize("solver", HINGE + OPTIONS, ids=str)
def test_hinge_loss_of_outputs_known_in_part(solver):
    toy, weak, sets = partial_candidates(10, 5, 0)
    tol = 5e-2 if isinstance(solver.inner, SGD) else 1e-3
    result = solver.solve(toy, C, weak=weak, tol=tol, max_passes=4000, random_state=0)
    assert_honest(result, toy, sets, "hinge", tol)
    assert len(result.trace.extras["changed"]) == len(result.trace)


@pytest.mark.parametrize("solver", [LBFGS(), Auto(), CCCP(), CCCP(LBFGS()), CCCP(ExponentiatedGradient())], ids=str)
def test_log_loss_of_outputs_known_in_part(solver):
    """L-BFGS on the difference of two log-sums, and EM, end where the gradient is zero."""
    toy, weak, sets = partial_candidates(10, 5, 1)
    result = solver.solve(toy, C, loss="log", weak=weak, tol=1e-5, random_state=0)
    assert_honest(result, toy, sets, "log", 1e-5)
    w, gradient = result.w, np.zeros(4)
    for k, e in enumerate(1e-5 * np.eye(4)):
        gradient[k] = (latent_value(toy, sets, w + e, "log") - latent_value(toy, sets, w - e, "log")) / 2e-5
    bend = 1 / (10 * C) + np.mean([np.square(phi - phi.mean(axis=0)).sum(axis=1).max() for phi in toy.phi])
    assert np.linalg.norm(gradient) <= 1e-6 + np.sqrt(2 * bend * result.certificate.gap)


def test_em_and_lbfgs_reach_the_same_value():
    toy, weak, _ = partial_candidates(10, 5, 1)
    options = {"loss": "log", "weak": weak, "tol": 1e-8, "random_state": 0}
    direct, em = LBFGS().solve(toy, 0.5, **options), CCCP().solve(toy, 0.5, **options)
    assert np.isclose(direct.certificate.primal, em.certificate.primal, rtol=1e-6)


@pytest.mark.parametrize("solver", [LBFGS(), CCCP(LBFGS())], ids=str)
@pytest.mark.parametrize("loss", ["smooth_hinge", Loss("entropy", 0.3)], ids=str)
def test_smoothed_losses(solver, loss):
    toy, weak, _ = partial_candidates(8, 4, 2)
    result = solver.solve(toy, C, loss=loss, weak=weak, tol=1e-4)
    assert result.status is Status.STATIONARY
    assert (np.diff(result.trace.primal) <= 0).all()


def partial_chains(random_state, share):
    """Chains of which a share of the labels is known, and all their outputs, with whether they are consistent."""
    problem = toy_chains(n=5, n_labels=3, max_length=3, random_state=random_state)
    labels, cuts = problem.supervision.labels, problem.starts[1:-1]
    is_known = np.random.default_rng(random_state).random(len(labels)) < share
    excluded = (np.arange(3) != labels[:, np.newaxis]) & is_known[:, np.newaxis]
    problem.supervision.weight[~is_known] = 0
    weak = Weak(restrict(problem, Blocks(excluded.ravel(), 3 * problem.starts)))
    truths, flags = np.split(labels, cuts), np.split(is_known, cuts)
    sequences = np.split(problem.features.rows, cuts)
    blocks = naive.table(sequences, truths, 3, cost=lambda i, truth, y: float((truth != y)[flags[i]].sum()))
    sets = [
        np.array([(truth == y)[known].all() for y in naive.labellings(len(truth), 3)])
        for truth, known in zip(truths, flags, strict=True)
    ]
    return problem, weak, Candidates(*zip(*[(-psi, costs) for psi, costs in blocks], strict=True)), sets


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.sampled_from(["hinge", "log", "em"]))
def test_the_objective_of_chains_never_rises(random_state, share, method):
    with interpreted():
        problem, weak, toy, sets = partial_chains(random_state, share)
        solver = LBFGS() if method == "log" else CCCP()
        loss = "hinge" if method == "hinge" else "log"
        result = solver.solve(problem, C, loss=loss, weak=weak, tol=1e-3, max_passes=300, random_state=0)
        assert (np.diff(result.trace.primal) <= 0).all()
        primal, dual = result.certificate
        assert np.isclose(primal, latent_value(toy, sets, result.w, loss), rtol=1e-6, atol=1e-9)
        assert dual <= majorant_optimum(toy, sets, result.w, loss) + 1e-9
        if share == 0 and loss == "log":
            assert np.allclose(result.w, 0, atol=1e-9)


def test_everything_known_is_the_inner_solver():
    toy = random_candidates(8, 4, 0)
    for weak in (None, Weak()):
        plain, result = (s.solve(toy, C, weak=weak, random_state=0) for s in (Auto(), CCCP()))
        assert np.array_equal(plain.w, result.w)
        assert result.status is Status.OPTIMAL
    _, alone, sets = partial_candidates(8, 4, 0, share=0.0)
    result = CCCP().solve(toy, C, weak=alone, tol=1e-4, random_state=0)
    assert np.isclose(result.certificate.primal, naive.solve(toy.blocks(), C)[1], rtol=2e-4)
    assert all(is_consistent.sum() == 1 for is_consistent in sets)


def test_it_begins_with_the_examples_that_are_known():
    toy, weak, sets = partial_candidates(10, 5, 3, share=0.7, n_known=5)
    result = CCCP(annealing=0.0).solve(toy, C, weak=weak, tol=1e-3, random_state=0)
    assert_honest(result, toy, sets, "hinge", 1e-3)
    known = BCFW(steps="pairwise").solve(toy, C, 1.0 * ~weak.is_weak, tol=0.1, random_state=0)
    assert result.trace.primal[0] <= 1.2 * latent_value(toy, sets, known.w)


def test_known_examples_of_no_weight_are_nothing_to_begin_with():
    toy, weak, _ = partial_candidates(10, 5, 3, share=0.7, n_known=5)
    weight = 1.0 * weak.is_weak
    rounds = Rounds(
        CCCP(annealing=0.0), Run(LatentObjective(weak, toy, C, sample_weight=weight), Limits(0.1, 0.0, 100, None))
    )
    assert rounds._first_weights().any()


def test_half_of_the_examples_unknown_as_a_whole():
    """They have no loss, at any weights, so that the median of all losses is zero."""
    toy, _, sets = partial_candidates(9, 4, 0)
    for is_consistent, costs in zip(sets[:6], toy.costs[:6], strict=True):
        is_consistent[:], costs[:] = True, 0
    weak = Weak(Consistent(toy, sets), is_weak=np.ones(9, bool))
    solver = CCCP(self_paced=True)
    result = solver.solve(toy, 0.05, weak=weak, tol=1e-2, max_passes=500, time_limit=20, random_state=0)
    assert result.status is Status.STATIONARY


def test_completions_take_over_the_weights_of_old_ones():
    """Where an old one has all the weight, the weights of the model stay where they are."""
    toy, weak, sets = partial_candidates(8, 4, 6, share=0.8)
    objective = LatentObjective(weak, toy, C)
    before = Blocks(np.zeros(8, np.int32), np.arange(9))
    after = Blocks(np.array([np.flatnonzero(s)[-1] for s in sets], np.int32), np.arange(9))
    point = DualPoint(no_means(objective.runner.part_sizes, float), sets_of(before))
    take_over(point.sets, before, after, find_changes(before, after))
    pull = sum(phi[k] - phi[0] for phi, k in zip(toy.phi, after.values, strict=True)) / 8
    v, value = objective.majorant(pull).at(point)
    assert np.allclose(v, 0)
    assert value == 0


def test_a_stored_completion_takes_the_weight_of_another():
    stored = sets_of(Blocks(np.zeros(2, np.int32), np.arange(3)))
    stored.stored_count[1], stored.outputs[3], stored.alpha[2:4] = 2, 5, [0.7, 0.3]
    for i in (0, 1):
        rename(stored, i, np.array([0]), np.array([5]))
    assert stored.outputs[[0, 3]].tolist() == [5, 5]
    assert stored.alpha[:4].tolist() == [1, 0, 0, 1]


def test_an_oracle_that_misses_the_best_completion_keeps_the_old_one():
    toy, _, sets = partial_candidates(10, 5, 4)
    only_first = [np.arange(5) == np.flatnonzero(s)[-1] for s in sets]
    blind = Consistent(toy, sets, max_sees=only_first)
    objective = LatentObjective(Weak(blind), toy, C)
    w = np.random.default_rng(0).normal(size=4)
    outputs = objective.new_outputs()
    found = objective.complete(w, outputs)
    for i, phi in enumerate(toy.phi):  # none is worse than the true one, which is a completion, too
        assert phi[outputs.values[i]] @ w >= phi[0] @ w - 1e-5 * (1 + abs(phi[0] @ w))
    assert found.loss >= -1e-9
    result = CCCP().solve(toy, C, weak=Weak(blind), tol=1e-3, max_passes=300, random_state=0)
    assert (np.diff(result.trace.primal) <= 0).all()


def test_sample_weights_soft_labels_and_bounds_besides():
    toy, weak, sets = partial_candidates(10, 5, 5)
    weight = np.linspace(0, 2, 10)
    result = CCCP().solve(toy, C, weight, weak=weak, tol=1e-3, random_state=0)
    assert result.status is Status.STATIONARY
    assert np.isclose(result.certificate.primal, latent_value(toy, sets, result.w, weight=weight), rtol=1e-9)
    bounded = CCCP().solve(toy, C, weak=weak, lower=0.0, tol=1e-3, random_state=0)
    assert (bounded.w >= 0).all()
    assert np.isclose(bounded.certificate.primal, latent_value(toy, sets, bounded.w), rtol=1e-9)
    q = np.array([0.02, -0.01, 0.0, 0.03])
    pulled = CCCP().solve(toy, C, weak=weak, linear=q, tol=1e-3, random_state=0)
    assert np.isclose(pulled.certificate.primal, latent_value(toy, sets, pulled.w) - q @ pulled.w, rtol=1e-9)


def test_limits_callbacks_and_held_out_data():
    toy, weak, _ = partial_candidates(10, 5, 0)
    for solver in (CCCP(), CCCP(self_paced=True), CCCP(annealing=0.0)):
        result = solver.solve(toy, C, weak=weak, tol=1e-6, max_passes=3, random_state=0)
        assert result.status is Status.MAX_PASSES
        assert np.isfinite(result.certificate.primal)
        limited = solver.solve(toy, C, weak=weak, tol=1e-9, time_limit=0.01, random_state=0)
        assert limited.status is Status.TIMEOUT
    rows = []
    seen = CCCP().solve(
        toy, C, weak=weak, tol=1e-6, random_state=0, callback=lambda t: rows.append(len(t)) or len(t) == 2
    )
    assert (seen.status, rows) == (Status.INTERRUPTED, [1, 2])
    held_out = HeldOut(lambda w: -float(np.abs(w).sum()), patience=100)
    kept = CCCP().solve(toy, C, weak=weak, tol=1e-3, random_state=0, held_out=held_out)
    at = held_out.at
    assert kept.certificate.dual == kept.trace.dual[at]
    again = CCCP().solve(toy, C, weak=weak, tol=1e-6, random_state=0, start=seen)
    assert again.trace.primal[0] <= seen.certificate.primal * (1 + 1e-9)


def test_what_cannot_work_is_refused():
    toy, weak, _ = partial_candidates(6, 4, 0)
    with pytest.raises(ValueError, match=r"BCFW needs the whole output of every example: CCCP\(inner=BCFW\("):
        BCFW().solve(toy, C, weak=weak)
    with pytest.raises(ValueError, match="inner must be a solver of convex problems"):
        CCCP(CCCP())
    with pytest.raises(ValueError, match="annealing must be a number, 0 or more"):
        CCCP(annealing=-1)
    with pytest.raises(ValueError, match="CCCP needs L2 regularization"):
        CCCP(SGD()).solve(toy, np.inf, weak=weak)
    with pytest.raises(ValueError, match="CCCP knows no L1 regularization: l1_ratio must be 0, or the solver LBFGS"):
        CCCP(LBFGS()).solve(toy, C, loss="log", l1_ratio=0.5, weak=weak)
    other, weak_other, _ = partial_candidates(5, 3, 0)
    start = CCCP().solve(toy, C, weak=weak, random_state=0)._replace(dual=BCFW().solve(toy, C).dual)
    with pytest.raises(ValueError, match="start must be a dual point of this problem"):
        CCCP().solve(other, C, weak=weak_other, start=start)
    with pytest.raises(ValueError, match="need the hinge or log loss, not the squared_hinge loss"):
        CCCP().solve(toy, C, loss="squared_hinge", weak=weak)
    with pytest.raises(ValueError, match="Perceptron needs true outputs: it takes none known in part"):
        CCCP(Perceptron()).solve(toy, C, weak=weak)
    with pytest.raises(ValueError, match="must have the true outputs of the problem"):
        CCCP().solve(toy_chains(n=6), C, weak=weak)


def test_a_proven_bound_is_shown_before_the_next_pass(monkeypatch):
    """Which may be broken off."""
    toy, weak, _ = partial_candidates(10, 5, 0)
    start = CCCP().solve(toy, 0.2, weak=weak, tol=1e-4, random_state=0).w
    n_looked, look = [], Rounds.look

    def break_off(self, *given):
        n_looked.append(1)
        if len(n_looked) > 1:
            raise BrokenOff
        return look(self, *given)

    monkeypatch.setattr(Rounds, "look", break_off)
    result = CCCP().solve(toy, 0.2, weak=weak, tol=0.05, start=start, random_state=0)
    assert result.status is Status.STATIONARY
    assert len(result.trace) == 2


@pytest.mark.parametrize(("inner", "loss"), [(Auto(), "hinge"), (SGD(), "hinge"), (LBFGS(), "log")], ids=str)
def test_it_goes_on_from_every_checkpoint(inner, loss, tmp_path):
    problem, weak, *_ = partial_chains(0, 0.3)
    options = {"loss": loss, "weak": weak, "tol": 1e-4, "max_passes": 120, "random_state": 0}
    solver, path = CCCP(inner), tmp_path / "run.checkpoint"
    whole, copies = copies_of(path, lambda **others: solver.solve(problem, C, **options, **others))
    assert_same(whole, solver.solve(problem, C, **options))
    assert len(copies) >= 2
    for copy in {copies[0], copies[-1]}:
        assert_same(solver.solve(problem, C, **options, checkpoint=copy), whole)


def test_a_warm_start_goes_on_from_the_dual_point():
    toy, weak, _ = partial_candidates(12, 5, 1)
    options = {"weak": weak, "tol": 1e-3, "random_state": 0}
    first = CCCP().solve(toy, C, **options)
    again = CCCP().solve(toy, C, **options, start=first)
    assert again.status is first.status is Status.STATIONARY
    assert len(again.trace) == 1  # which certifies the weights at once
    assert again.certificate.primal <= first.certificate.primal * (1 + 1e-9)


def test_weights_that_are_kept_have_all_that_was_proven_of_them():
    """The last row is of the same weights as the one before, and certifies them."""
    toy, weak, sets = partial_candidates(10, 5, 0)
    held_out = HeldOut(lambda w: -latent_value(toy, sets, w), patience=100)
    kept = CCCP().solve(toy, C, weak=weak, tol=0.05, random_state=0, held_out=held_out)
    assert held_out.at == len(kept.trace) - 2
    assert kept.certificate.dual == kept.trace.dual[-1] > kept.trace.dual[-2]
    assert kept.status is Status.STATIONARY
