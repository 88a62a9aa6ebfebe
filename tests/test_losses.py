"""The family of losses: values, gradients and dual points against enumeration, on structures and Python classes."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from maxmargin.losses import Loss, find_loss
from maxmargin.losses.smoothing import smooth_max
from maxmargin.solvers import LBFGS, SGD
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.structures.derived.custom_problem import CustomProblem
from maxmargin.testing import toy_chains
from tests.naive import blocks_of
from tests.toy import LabelsByArgmax, label_data, random_candidates

LOSSES = [
    Loss(),
    Loss("l2", level=0.7, max_k=200),
    Loss("entropy", level=0.7),
    Loss("entropy", margin=False),
    Loss("l2", level=30.0, max_k=300),
]


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3, max_length=4)


def naive_value(w, blocks, C, loss, weight):
    n, losses = len(blocks), []
    for psi, costs in blocks:
        z = loss.margin * costs - psi @ w
        losses.append(z.max() if loss.smoothing is None else smooth_max(z, loss.level, loss.smoothing)[0])
    return np.dot(w, w) / (2 * n * C) + np.dot(weight, losses) / n


@pytest.mark.parametrize("loss", LOSSES)
def test_value_gradient_and_dual_point(problem, loss):
    blocks, weight = blocks_of(problem), np.array([1.0, 2.0, 0.0, 0.5, 1.0, 1.0])
    objective = Objective(problem, 0.7, weight, loss=loss)
    w = np.random.default_rng(0).normal(size=21)
    found = objective.evaluate(w)
    assert np.isclose(found.value, naive_value(w, blocks, 0.7, loss, weight))
    hard = naive_value(w, blocks, 0.7, Loss(margin=loss.margin), weight)
    assert np.isclose(found.hard, found.value if loss.smoothing == "entropy" else hard)
    gradient = found.gradient + objective.regularization * w
    numeric = approx_fprime(w, lambda v: naive_value(v, blocks, 0.7, loss, weight), 1e-7)
    assert np.allclose(gradient, numeric, atol=1e-5)
    assert found.n_wrong == found.n_inexact == 0
    v = -found.gradient / objective.regularization
    dual = objective.dual_value(found.cost + found.entropy, v)
    assert np.isclose(found.value - dual, np.dot(gradient, gradient) / (2 * objective.regularization))


@pytest.mark.parametrize("level", [0.5, 30.0])
def test_too_few_outputs_are_noticed_and_give_bounds(problem, level):
    w = np.random.default_rng(0).normal(scale=0.01, size=21)
    few = Objective(problem, loss=Loss("l2", level=level, max_k=2)).evaluate(w)
    full = Objective(problem, loss=Loss("l2", level=level, max_k=200)).evaluate(w)
    assert few.n_inexact > 0
    assert few.hard <= full.value < few.value
    assert few.entropy < full.entropy
    result = LBFGS().solve(problem, loss=Loss("l2", level=30.0, max_k=2), max_passes=5, tol=1e-12)
    assert "raise max_k" in result.trace.notes[-1]


@pytest.mark.parametrize("max_k", [1, 2, 6])
def test_a_smoothed_maximum_is_one_call_and_mixes_at_most_max_k_outputs(max_k):
    toy, calls = random_candidates(5, 20, random_state=0), []
    topk_oracle = toy.topk_oracle

    def counting(i, theta, outputs, values, level, work):
        calls.append(i)
        return topk_oracle(i, theta, outputs, values, level, work)

    toy.topk_oracle = counting
    objective = Objective(toy, loss=Loss("l2", level=50.0, max_k=max_k))
    means = objective.true_means()
    found = objective.evaluate(np.zeros(objective.n_weights), means=means)
    assert calls == list(range(5))
    assert found.n_inexact == 5
    for lo, hi in itertools.pairwise(means.starts):
        means.values[lo] += 1  # the true output
        assert np.count_nonzero(means.values[lo:hi]) == max_k
        assert np.isclose(means.values[lo:hi].sum(), 1)


def test_models_are_asked_for_more_outputs_only_where_they_have_a_weight():
    X, y = label_data()
    asked = []

    class Counting(LabelsByArgmax):
        def k_best(self, x, w, k, y_true=None):
            asked.append(k)
            return super().k_best(x, w, k, y_true)

    for level, expected in ((1e-3, [6] * len(X)), (1e3, [6, 12] * len(X))):
        asked.clear()
        problem = CustomProblem(Counting(), X, y)
        Objective(problem, loss=Loss("l2", level=level)).evaluate(np.arange(12.0)[: problem.n_features])
        assert asked == expected


def test_temperature_joins_hinge_and_log_loss(problem):
    w = np.random.default_rng(1).normal(size=21)
    hinge = Objective(problem).evaluate(w).value
    gaps = [
        Objective(problem, loss=Loss("entropy", level=level)).evaluate(w).value - hinge for level in (1.0, 0.1, 0.01)
    ]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 0.01 * np.log(3**4)
    assert find_loss("log") == Loss("entropy", level=1.0, margin=False)


@pytest.mark.parametrize("loss", [Loss("l2", level=0.5, max_k=200), Loss("entropy", level=0.5)])
def test_lbfgs_minimises_smooth_hinges_with_and_without_bounds(problem, loss):
    for lower in (None, 0.0):
        result = LBFGS().solve(problem, 1.0, loss=loss, tol=1e-7, lower=lower)
        assert result.status.name == "OPTIMAL"
        value = naive_value(result.w, blocks_of(problem), 1.0, loss, np.ones(6))
        assert np.isclose(value, result.trace.primal[-1])
        if lower is not None:
            assert result.w.min() >= 0


def test_threads_and_kept_means_do_not_matter(problem):
    w = np.random.default_rng(2).normal(size=21)
    one, two = (Objective(problem, n_jobs=jobs, loss=LOSSES[1]).evaluate(w) for jobs in (1, 2))
    assert np.isclose(one.value, two.value)
    assert np.allclose(one.gradient, two.gradient)
    objective = Objective(problem, loss=LOSSES[1])
    means = objective.true_means()
    assert np.array_equal(objective.evaluate(w, means=means).gradient, one.gradient)
    assert np.allclose(objective.at(means)[0], -one.gradient / objective.regularization)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": "l2", "level": 0.0}, "level must be a positive number, not 0.0"),
        ({"smoothing": "l2", "level": -1}, "level must be a positive number, not -1"),
        ({"max_k": 0}, "max_k must be an integer, at least 1, not 0"),
        ({"smoothing": "l3"}, "smoothing must be one of None, l2, entropy, not 'l3'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Loss(**options)


def test_unknown_loss():
    with pytest.raises(
        ValueError, match="loss must be a Loss or one of hinge, squared_hinge, smooth_hinge, log, not 'l2'"
    ):
        find_loss("l2")


def test_odd_losses_are_refused():
    with pytest.raises(ValueError, match="smoothing must be one of None, l2, entropy, not 'l3'"):
        replace(Loss("l2"), smoothing="l3")
    assert replace(Loss("l2"), smoothing=None) == Loss()
    with pytest.raises(ValueError, match="margin must be True or False, not None"):
        Loss(margin=None)
    assert replace(Loss("l2"), level=2).level == 2.0
    assert pickle.loads(pickle.dumps(Loss("entropy", level=0.3))) == Loss("entropy", level=0.3)


def test_sgd_without_margin_stays_where_nothing_is_lost(problem):
    result = SGD().solve(problem, loss=Loss(margin=False), max_passes=3, random_state=0)
    assert result.certificate.primal <= 1e-6
