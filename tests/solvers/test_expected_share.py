"""Outputs that are known in part, with an expected share of labels of a kind: against brute force."""

import numpy as np
import pytest
from scipy.optimize import brentq

from maxmargin import ChainCRF
from maxmargin.arrays.blocks import Blocks
from maxmargin.losses import find_loss
from maxmargin.problem import part_sizes, restrict
from maxmargin.solvers import CCCP, LBFGS
from maxmargin.solvers.objective.tilted_objective import TiltedObjective
from maxmargin.supervision.shares import expect_share
from maxmargin.supervision.weak import Weak
from maxmargin.testing import toy_chains
from tests.naive import labellings

C, SHARE, KIND = 2.0, 0.6, np.array([False, True, True])

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def weak_chains(seed=0, share=SHARE, dtype=np.float64):
    """Chains of which about half of the labels are known, and how many of the others are of a kind."""
    problem = toy_chains(n=10, random_state=seed, dtype=dtype)
    labels, starts = problem.supervision.labels, problem.starts
    rng = np.random.default_rng(seed)
    allowed = np.eye(3, dtype=bool)[labels] | (rng.random((len(labels), 1)) < 0.6)
    flags = Blocks((~allowed).ravel(), 3 * starts)
    known, supervision = expect_share(share, KIND, labels, np.eye(3)[labels], allowed, starts, dtype, "share")
    consistent = restrict(problem, flags)._replace(supervision=supervision)
    return problem, Weak(consistent, share=known), allowed


def objective_of(problem, weak, weight=None):
    return TiltedObjective(weak, problem, C, sample_weight=weight, n_jobs=1, loss=find_loss("log"))


def tables(problem, w, allowed):
    """Of each example the scores of all labellings, which are allowed, and how many labels of the kind they have."""
    from maxmargin.problem import score_output, scores

    for i, size in enumerate(part_sizes(problem)):
        theta = np.zeros(size)
        scores(problem, w, i, theta)
        lo, hi = problem.starts[i : i + 2]
        rows = np.array([*labellings(hi - lo, 3)], np.int32)
        values = np.array([score_output(problem, i, theta, row) for row in rows])
        yield values, allowed[np.arange(lo, hi), rows].all(axis=1), KIND[rows].sum(axis=1)


def value_by_definition(problem, w, allowed, weight):
    """F(w) by one equation in the tilt; and that."""
    found = [*tables(problem, w, allowed)]

    def tilted(b):
        return [np.where(ok, s + b * c, -np.inf) - np.logaddexp.reduce((s + b * c)[ok]) for s, ok, c in found]

    def surplus(b):
        counts = [np.exp(q) @ c for q, (_, _, c) in zip(tilted(b), found, strict=True)]
        return weight @ (np.array(counts) - SHARE * np.diff(problem.starts))

    b = brentq(surplus, -30, 30, xtol=1e-13)
    divergences = []
    for q, (s, ok, _) in zip(tilted(b), found, strict=True):
        log_p = s - np.logaddexp.reduce(s)
        divergences.append(np.exp(q[ok]) @ (q[ok] - log_p[ok]))
    n = len(found)
    return w @ w / (2 * n * C) + weight @ divergences / n, b


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_a_divergence_from_outputs_with_the_share(seed):
    problem, weak, allowed = weak_chains(seed)
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2, len(problem.starts) - 1)
    objective = objective_of(problem, weak, weight)
    w = rng.normal(size=objective.n_weights)
    value, tilt = value_by_definition(problem, w, allowed, weight)
    found = objective.evaluate(w)
    assert found.value == pytest.approx(value, rel=1e-6)
    assert objective.tilt == pytest.approx(tilt, abs=1e-3)


def test_its_gradient():
    problem, weak, _ = weak_chains()
    objective = objective_of(problem, weak)
    rng = np.random.default_rng(1)
    w, direction = rng.normal(size=(2, objective.n_weights))
    slope = direction @ (objective.evaluate(w).gradient + objective.regularization * w)
    ahead, behind = (objective.evaluate(w + step * direction).value for step in (1e-4, -1e-4))
    assert slope == pytest.approx((ahead - behind) / 2e-4, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_errors_of_the_tilt_loosen_the_bound(seed):
    """A gap is no less than what the gradient says of the majorant: ||grad||^2 / (2 lambda)."""
    problem, weak, _ = weak_chains(seed)
    objective = objective_of(problem, weak)
    objective.precision = 0.2
    w = np.random.default_rng(seed).normal(size=objective.n_weights)
    found, strength = objective.evaluate(w), objective.regularization
    dual = objective.dual_value(found.cost + found.entropy, -found.gradient / strength)
    slope = found.gradient + strength * w
    assert found.value - dual >= slope @ slope / (2 * strength) - 1e-9


def test_potentials_far_from_the_share():
    """Of labels that are all but certain, tilts of thousands are found in a few passes."""
    problem, weak, _ = weak_chains()
    objective = objective_of(problem, weak)
    w = 1e4 * np.random.default_rng(0).normal(size=objective.n_weights)
    assert objective._find_tilt(w) == pytest.approx(objective.expected, abs=2 * objective.precision)


def test_the_tilt_in_float32_ends_at_rounding():
    problem, weak, _ = weak_chains(dtype=np.float32)
    objective = objective_of(problem, weak)
    objective.precision = 0.0
    w = np.random.default_rng(1).normal(size=objective.n_weights)
    assert objective._find_tilt(w) == pytest.approx(objective.expected, abs=1e-5)


@pytest.mark.parametrize("solver", [LBFGS(), CCCP(LBFGS())])
def test_solvers_reach_a_stationary_point_with_the_share(solver):
    problem, weak, allowed = weak_chains()
    result = solver.solve(problem, C, loss="log", weak=weak, tol=1e-3, random_state=0)
    assert result.status.name == "STATIONARY"
    values = result.trace.primal
    assert (np.diff(values) <= 1e-6).all()
    value, _ = value_by_definition(problem, result.w, allowed, np.ones(len(problem.starts) - 1))
    assert result.certificate.primal == pytest.approx(value, rel=1e-5)
    objective = objective_of(problem, weak)
    objective.complete(result.w)
    count = weak.share.number(objective.means, np.ones(objective.n))
    assert count == pytest.approx(weak.share.expected.mean(), abs=1e-5)


def test_bad_input():
    with pytest.raises(ValueError, match=r"share must be between 0\.\d+ and 0\.\d+, by what is known of y, not 0\.999"):
        objective_of(*weak_chains(share=0.999)[:2])
    problem, weak, allowed = weak_chains()
    is_open = np.add.reduceat(allowed.sum(axis=1) > 1, problem.starts[:-1]) > 0
    with pytest.raises(ValueError, match="share needs labels that are not known in examples of a weight above 0"):
        objective_of(problem, weak, 1.0 * ~is_open)
    with pytest.raises(ValueError, match=r"share must be between 0\.\d+ and 0\.\d+, by what is known of y, not 0\.6"):
        objective_of(problem, weak, np.where(is_open, 1e-3, 1.0))
    with pytest.raises(ValueError, match="An expected share of labels needs the log loss, not the hinge loss"):
        CCCP().solve(problem, C, loss="hinge", weak=weak)


def test_checkpoints_know_the_share_and_the_tilt(tmp_path):
    problem, weak, _ = weak_chains()
    path = tmp_path / "run.checkpoint"
    options = {"loss": "log", "tol": 1e-5, "checkpoint": (path, 0)}
    whole = LBFGS().solve(problem, C, loss="log", tol=1e-5, weak=weak)
    LBFGS().solve(problem, C, weak=weak, max_passes=4, **options)
    with pytest.raises(ValueError, match="it is of a run with another label_share"):
        LBFGS().solve(problem, C, weak=weak_chains(share=0.65)[1], **options)
    with pytest.raises(ValueError, match="it is of a run with other labels that are known in part"):
        LBFGS().solve(problem, C, **options)
    resumed = LBFGS().solve(problem, C, weak=weak_chains()[1], **options)
    assert np.array_equal(resumed.w, whole.w)


def test_probabilities_count_as_such():
    """Where "a" is known with the probability 0.25, a quarter of a label is known to be "a"."""
    X = [np.eye(2)[[0, 1, 0]], np.eye(2)[[0, 0, 1]]]
    y = [["a", {"a": 0.25, "b": 0.75}, "b"], ["a", None, "b"]]
    share = ChainCRF(label_share={"a": 0.5})._encode(X, y).weak.share
    assert share.expected[0] == pytest.approx(1.5 - 1.25)
