"""Outputs that are known in part, with an expected share of labels of a kind: against brute force."""

import numpy as np
import pytest
from scipy.optimize import brentq

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


def weak_chains(seed=0, share=SHARE):
    """Chains of which about half of the labels are known, and how many of the others are of a kind."""
    problem = toy_chains(n=10, random_state=seed)
    labels, starts = problem.supervision.labels, problem.starts
    rng = np.random.default_rng(seed)
    allowed = np.eye(3, dtype=bool)[labels] | (rng.random((len(labels), 1)) < 0.6)
    flags = Blocks((~allowed).ravel(), 3 * starts)
    known, supervision = expect_share(share, KIND, labels, allowed, starts, np.float64, "share")
    consistent = restrict(problem, flags)._replace(supervision=supervision)
    return problem, Weak(consistent, share=known), allowed


def objective_of(problem, weak, weight=None):
    return TiltedObjective(weak, problem, C, weight, 1, loss=find_loss("log"))


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
        weak_chains(share=0.999)
    problem, weak, _ = weak_chains()
    with pytest.raises(ValueError, match="An expected share of labels needs the log loss, not the hinge loss"):
        CCCP().solve(problem, C, loss="hinge", weak=weak)
