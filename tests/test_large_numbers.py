"""Numbers so large that scores lose their meaning are refused by one sentence; smaller ones give right answers."""

from itertools import pairwise

import numpy as np
import pytest

from maxmargin import BCFW, SGD, ChainCRF, ChainSVM, Loss, MulticlassSVM, Status, Tree, TreeCRF, TreeSVM
from maxmargin.problem import IMPOSSIBLE, exp_oracle, part_sizes, workspace
from maxmargin.testing import toy_chains
from tests.small import CASES, make
from tests.toy import Candidates

pytestmark = pytest.mark.usefixtures("interpreted_loops")

X, Y = [np.eye(2), np.eye(2)[::-1], np.eye(2)], [["a", "b"], ["b", "a"], ["a", "b"]]
TREES = [Tree(x, [(0, 1)]) for x in X]
MODELS = {ChainSVM: X, ChainCRF: X, TreeSVM: TREES, TreeCRF: TREES}


@pytest.mark.parametrize("scale", [1e13, 1e39, 1e300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_features_are_refused(scale, dtype):
    with pytest.raises(ValueError, match=r"X\[1\] contains 1e\+\d+, which is beyond 1e\+12, in row 0\.$"):
        ChainSVM(dtype=dtype).fit([X[0], scale * X[1], X[2]], Y)
    model = ChainCRF(dtype=dtype).fit(X, Y)
    for method in (model.predict, model.predict_marginals, lambda x: model.score(x, Y)):
        with pytest.raises(ValueError, match="which is beyond"):
            method([scale * x for x in X])


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("StructuredSVM", "MulticlassSVM")])
def test_every_model_fits_features_of_any_scale_it_takes(name):
    model, X, y, _ = make(name)
    for scale in (1e-12, 1e-4, 1e4, 1e8, 1e11):
        if name == "AlignmentCRF":  # whose features are squared differences
            scaled = [tuple(np.sqrt(scale) * rows for rows in x) for x in X]
        else:
            scaled = [(scale * x[0], *x[1:]) if isinstance(x, tuple) else scale * np.asarray(x) for x in X]
        fitted = model.set_params(max_passes=5).fit(scaled, y)
        assert np.isfinite(fitted.trace_.primal).all(), scale
        assert np.isfinite(fitted.trace_.dual).all(), scale
        assert fitted.certificate_.dual <= fitted.certificate_.primal * (1 + 1e-6), scale
        fitted.predict(scaled)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e7, 1e9, 1e11])
def test_marginals_of_large_scores_are_marginals(kind, dtype, scale):
    model = kind(dtype=dtype, random_state=0).fit(MODELS[kind], Y)
    model._w *= scale
    for marginals in model.predict_marginals(MODELS[kind]):
        assert np.allclose(marginals.sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(model.predict(MODELS[kind]), Y)


@pytest.mark.parametrize("kind", MODELS)
def test_weights_and_features_beyond_reach_are_refused(kind):
    model = kind(random_state=0).fit(MODELS[kind], Y)
    for large in (1e18, 1e300, np.inf, np.nan):
        with np.errstate(over="ignore", invalid="ignore"):
            model._w[:] = large
        for method in (model.predict, model.predict_marginals, model.decision_function):
            with pytest.raises(ValueError, match=r"Scores of X\[0\] are beyond 1e\+15, or not numbers"):
                method(MODELS[kind])


@pytest.mark.parametrize("scale", [1e3, 1e9, 1e11])
def test_forbidden_transitions_stay_forbidden(scale):
    allowed = {("a", "b"), ("b", "a"), ("b", "b")}
    model = ChainSVM(allowed_transitions=allowed, fit_intercept=False, random_state=0).fit(X, Y)
    predicted = model.predict([scale * np.eye(2)[[0, 0, 0]], scale * np.eye(2)[[1, 0, 0, 1]]])
    assert all((a, b) in allowed for y in predicted for a, b in pairwise(y))


def test_impossible_parts_have_no_share_of_large_potentials():
    problem = toy_chains(n=1)
    theta = np.random.default_rng(0).normal(size=part_sizes(problem)[0]) * 1e11
    theta[0], means = IMPOSSIBLE, np.zeros(theta.size)
    assert np.isfinite(exp_oracle(problem, 0, theta, means, workspace(problem, 1)))
    assert means[0] == 0
    assert np.isfinite(means).all()


@pytest.mark.parametrize("weight", [1e13, 1e300, np.inf, np.nan])
def test_large_sample_weights_are_refused(weight):
    for fit in (ChainSVM().fit, ChainCRF().fit, lambda X, y, w: BCFW().solve(toy_chains(n=3), 1.0, w)):
        with pytest.raises(ValueError, match=r"sample_weight must hold numbers from 0 to 1e\+12"):
            fit(X, Y, [1.0, weight, 1.0])
    with pytest.raises(ValueError, match="sample_weight must hold"):
        MulticlassSVM().fit(np.eye(2), [0, 1], [1.0, weight])


@pytest.mark.parametrize("C", [1e-30, 1e-10, 1e10, 1e30])
@pytest.mark.parametrize("kind", [ChainSVM, TreeCRF])
def test_strengths_at_the_limits(kind, C):
    fitted = kind(C=C, random_state=0, max_passes=50).fit(MODELS[kind], Y, [1e6, 1e-12, 1.0])
    assert np.isfinite(fitted.trace_.primal).all()
    assert fitted.certificate_.dual <= fitted.certificate_.primal


@pytest.mark.parametrize("level", [1e-300, 1e300])
def test_levels_of_smoothing_have_limits(level):
    with pytest.raises(ValueError, match="level must be between 1e-09 and"):
        Loss("entropy", level=level)


class Growing(Candidates):
    """Candidates whose scores are infinite once they have been looked at often enough."""

    patience = 0

    def scores(self, w, i, theta):
        super().scores(w, i, theta)
        self.patience -= 1
        if self.patience < 0:
            theta[:] = np.inf


def test_a_run_without_a_finite_objective_says_so():
    problem = Growing(np.random.default_rng(0).normal(size=(5, 3, 4)), [[0.0, 1.0, 2.0]] * 5)
    with pytest.raises(ValueError, match=r"The objective is not finite: .* too large for float64"):
        SGD(schedule="decay", step=0.01).solve(problem, random_state=0)
    problem.patience = 100
    with np.errstate(invalid="ignore"):
        result = SGD(schedule="decay", step=0.01).solve(problem, tol=1e-12, random_state=0)
    assert result.status is Status.DIVERGED
    assert np.isfinite(result.trace.primal).all()
    assert np.isfinite(result.w).all()


def test_large_costs_are_refused():
    with pytest.raises(ValueError, match="cost must hold numbers"):
        ChainSVM(cost=[[0, 1e13], [1, 0]]).fit(X, Y)
    with pytest.raises(ValueError, match=r"position_weight\[0\] must hold numbers"):
        ChainSVM().fit(X, Y, position_weight=[[1e13, 1]] * 3)
