"""Fits of which some outputs are known in part: solvers, weights, warnings, files."""

import numpy as np
import pytest

from maxmargin import CandidateCRF, CandidateSVM, Status, load

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture(scope="module")
def candidates():
    """Examples of four candidates, the best by their first feature but for noise; of every other one two may be."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(16)]
    y = [int(np.argmax(x[:, 0] + 0.3 * rng.normal(size=4))) for x in X]
    return X, y, [k if i % 2 else {k, (k + 1) % 4} for i, k in enumerate(y)]


def latent_loss(model, X, y, loss):
    """The mean loss of sets of candidates, from its definition."""
    losses = []
    for x, known in zip(X, y, strict=True):
        scores, is_known = x @ model.coef_, np.isin(np.arange(4), [*known] if isinstance(known, set) else known)
        if loss == "hinge":
            losses.append((scores + ~is_known).max() - scores[is_known].max())
        else:
            losses.append(np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[is_known]))
    return np.mean(losses) + model.coef_ @ model.coef_ / (2 * len(X) * model.C)


@pytest.mark.parametrize("solver", ["auto", "bcfw", "one-slack", "casimir"])
def test_margins(candidates, solver):
    X, y, partial = candidates
    model = CandidateSVM(C=1.0, tol=1e-2, solver=solver, dtype="float64", random_state=0).fit(X, partial)
    assert model.status_ is Status.STATIONARY
    assert np.isclose(model.certificate_.primal, latent_loss(model, X, partial, "hinge"))
    assert "stationary up to" in str(model.certificate_)
    assert "changed" in model.trace_.extras
    assert model.score(X, y) >= 0.7


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "exponentiated-gradient"])
def test_likelihoods(candidates, solver):
    """By L-BFGS on the difference, and by EM where another solver is named: to the same value."""
    X, _, partial = candidates
    model = CandidateCRF(C=1.0, tol=1e-6, solver=solver, dtype="float64", random_state=0).fit(X, partial)
    best = CandidateCRF(C=1.0, tol=1e-9, dtype="float64").fit(X, partial)
    assert model.status_ is Status.STATIONARY
    assert np.isclose(model.certificate_.primal, latent_loss(model, X, partial, "log"))
    assert np.isclose(model.certificate_.primal, best.certificate_.primal, rtol=1e-4)


def test_weak_weight(candidates):
    """With a weight of 0 only what is known as a whole counts; it multiplies weights of examples."""
    X, y, partial = candidates
    model = CandidateCRF(tol=1e-9, dtype="float64", weak_weight=0.0).fit(X, partial)
    known = CandidateCRF(tol=1e-9, dtype="float64").fit(X, y, np.arange(16) % 2)
    assert np.allclose(model.coef_, known.coef_, atol=1e-4)
    half = CandidateCRF(tol=1e-9, dtype="float64", weak_weight=0.5).fit(X, partial, np.full(16, 2.0))
    same = CandidateCRF(tol=1e-9, dtype="float64").fit(X, partial, np.where(np.arange(16) % 2, 2.0, 1.0))
    assert np.allclose(half.coef_, same.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="weak_weight must be a number, 0 or more"):
        CandidateCRF(weak_weight=-1).fit(X, partial)


def test_files_and_warnings_say_what_is_proven(candidates, tmp_path):
    X, _, partial = candidates
    model = CandidateSVM(random_state=0).fit(X, partial)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.status_ is Status.STATIONARY
    assert loaded.certificate_.is_local
    assert str(loaded.certificate_) == str(model.certificate_)
    with pytest.warns(
        UserWarning, match=r"Not solved to tol=1e-06: the weights are stationary only up to .* raise max_passes"
    ):
        CandidateSVM(tol=1e-6, max_passes=3, random_state=0).fit(X, partial)


def test_a_warm_start_goes_on(candidates):
    X, _, partial = candidates
    model = CandidateSVM(C=1.0, tol=1e-2, warm_start=True, dtype="float64", random_state=0).fit(X, partial)
    first = model.certificate_.primal
    model.set_params(tol=1e-4).fit(X, partial)
    assert model.trace_.primal[0] <= first * (1 + 1e-9)
    assert model.status_ is Status.STATIONARY
