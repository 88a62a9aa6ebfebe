"""Checks of estimators: what users of one model expect of all others."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxmargin.encode.inputs.base_encoder import same
from maxmargin.estimators.foundation.fitting import find_loss
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.trace import Status, Trace

# Methods that need a fitted model; those that some models lack are only called where they are.
PREDICTIONS = ("predict", "decision_function", "predict_marginals", "confidence", "sample")
JUDGEMENTS = ("score", "log_likelihood")


def check_estimator(model: object, X: object, y: object, other: object = None) -> None:
    """Check that a model treats its arguments, data and limits as all models do.

    Parameters
    ----------
    model
        The model, not fitted, with a seed as its `random_state`, a subclass of those in `maxmargin.estimators`; it is
        cloned, never trained itself.
    X, y
        At least six examples that it learns in a moment, of which the first three quarters have all labels.
    other
        Examples with another number of features, which the model must refuse.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CandidateSVM
    >>> from maxmargin.testing import check_estimator
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(3, 2)) for _ in range(8)]
    >>> check_estimator(CandidateSVM(random_state=0), X, [int(np.argmax(x[:, 0])) for x in X], other=[np.eye(3)])
    """
    checks = _Checks(model, X, y, other)
    for name, check in inspect.getmembers(checks, inspect.ismethod):
        if name.startswith("check_"):
            check()


class _Checks:
    """The checks of one model on some data; each method is one."""

    def __init__(self, model: Any, X: Any, y: Any, other: Any) -> None:
        self.model, self.X, self.y, self.other = model, X, y, other
        self.n = X.shape[0] if hasattr(X, "shape") else len(X)
        self.fitted = self.fit()

    def fit(self, n: int | None = None, on: Any = None, sample_weight: Any = None, **arguments: Any) -> Any:
        """Fit a clone of the model, with some of its parameters changed, or a model of before, to n examples."""
        chosen = {name: arguments.pop(name) for name in [*arguments] if name in self.model.get_params(deep=False)}
        model = clone(self.model).set_params(**chosen) if on is None else on
        X, y = (self.X, self.y) if n is None else (self.X[:n], self.y[:n])
        return model.fit(X, y, sample_weight, **arguments)

    def check_parameters(self) -> None:
        """Parameters can be read, set, copied and shown, and `fit` changes none."""
        parameters = self.model.get_params(deep=False)
        named = inspect.signature(type(self.model)).parameters
        assert set(parameters) == set(named), "get_params has other names than the constructor"
        again = clone(self.model)
        assert again.get_params(deep=False).keys() == parameters.keys(), "a clone has other parameters"
        assert again.set_params(C=0.25).C == 0.25, "set_params does not set C"
        assert type(self.model).__name__ in repr(self.model), "repr does not name the model"
        assert type(self.model).__name__ in self.model._repr_html_(), "the HTML representation does not name the model"
        for name in named:
            assert f"{name} : " in (inspect.getdoc(type(self.model)) or ""), f"{name} is not documented"
        clean = clone(self.model)
        before = {name: id(value) for name, value in clean.get_params(deep=False).items()}
        returned = clean.fit(self.X, self.y)
        assert returned is clean, "fit does not return the model"
        after = {name: id(value) for name, value in clean.get_params(deep=False).items()}
        assert after == before, "fit changes a constructor argument"

    def check_unfitted(self) -> None:
        """All that needs weights says that there are none yet."""
        model = clone(self.model)
        for name in PREDICTIONS:
            if hasattr(model, name):
                _raises(NotFittedError, f"{name} of a model that is not fitted", getattr(model, name), self.X)
        for name in JUDGEMENTS:
            if hasattr(model, name):
                _raises(NotFittedError, f"{name} of a model that is not fitted", getattr(model, name), self.X, self.y)
        _raises(NotFittedError, "predict_topk of a model that is not fitted", model.predict_topk, self.X, 1)

    def check_attributes(self) -> None:
        """Fitted models say how they were fitted."""
        model = self.fitted
        assert isinstance(model.status_, Status), "status_ is no Status"
        objective, bound = model.certificate_
        assert bound <= objective + 1e-4 * abs(objective), "certificate_ has a lower bound above the objective"
        assert model.n_iter_ == np.ceil(model.trace_.passes[-1]), "n_iter_ is not the number of passes"
        assert (model.trace_.gap >= 0).all(), "a duality gap is negative"
        assert hasattr(model, "coef_"), "there is no coef_"

    def check_determinism(self) -> None:
        """The same seed gives the same model."""
        loss = find_loss(self.model)
        solver = "bcfw" if loss.name == "hinge" else self.model.solver  # "auto" goes by the clock
        assert same(self.fit(solver=solver)._w, self.fit(solver=solver)._w), "two fits with the same seed differ"

    def check_copies(self) -> None:
        """Copies predict like the model itself."""
        expected = self.fitted.predict(self.X)
        for name, made in (
            ("a pickle", pickle.loads(pickle.dumps(self.fitted))),
            ("a copy", copy.copy(self.fitted)),
            ("a deep copy", copy.deepcopy(self.fitted)),
        ):
            assert _equal(made.predict(self.X), expected), f"{name} of the model predicts something else"
            parts = [*made.coef_.values()] if isinstance(made.coef_, dict) else [made.coef_]
            are_views = all(np.shares_memory(part, made._w) for part in parts if isinstance(part, np.ndarray))
            assert are_views, f"coef_ of {name} is not what it predicts with"
        assert not hasattr(clone(self.fitted), "coef_"), "a clone of a fitted model is fitted"

    def check_sample_weight(self) -> None:
        """Weights of 1 are none, those of 0 leave examples out, and bad ones are refused."""
        ones = self.fit(sample_weight=np.ones(self.n))
        _overlap(self.fitted, ones, 1.0, "weights of 1 change the objective")
        kept = 3 * self.n // 4
        weights = np.where(np.arange(self.n) < kept, 1.0, 0.0)
        without, zeros = self.fit(kept), self.fit(sample_weight=weights)
        if without._encoder == zeros._encoder:  # else what it learns about the data differs
            _overlap(without, zeros, self.n / kept, "weights of 0 do not leave examples out")
        for bad in (np.ones(self.n + 1), -np.ones(self.n), np.zeros(self.n), np.full(self.n, np.nan)):
            _raises(ValueError, "a bad sample_weight", clone(self.model).fit, self.X, self.y, bad)
            _raises(ValueError, "a bad sample_weight", self.fitted.score, self.X, self.y, bad)

    def check_scores(self) -> None:
        """Scores are numbers, the same for the same weights, and those of the predictions."""
        score = self.fitted.score(self.X, self.y)
        assert isinstance(score, float), f"score is a {type(score).__name__}"
        assert np.isfinite(score), "score is not finite"
        assert np.isclose(score, self.fitted.score(self.X, self.y, np.full(self.n, 2.0))), "equal weights change score"
        predicted = self.fitted.predict(self.X)
        best = self.fitted.score(self.X, predicted)
        assert best >= score, "predictions score lower as true outputs than others"
        weighted = self.fitted.score(self.X, predicted, np.arange(1.0, self.n + 1))
        assert np.isclose(best, weighted), "weights change the score of perfect predictions"
        _raises((TypeError, ValueError), "score without true outputs", self.fitted.score, self.X, None)
        _raises(ValueError, "fewer outputs than examples", self.fitted.score, self.X, self.y[:1])

    def check_best_outputs(self) -> None:
        """The best of several outputs is the prediction, and scores fall."""
        predicted, best = self.fitted.predict(self.X), self.fitted.predict_topk(self.X, 3)
        assert len(best) == len(predicted) == self.n, "there is not one prediction per example"
        for i, (outputs, scores) in enumerate(best):
            assert 1 <= len(outputs) == len(scores) <= 3, f"example {i} has not one score for each of at most k outputs"
            assert (np.diff(scores) <= 1e-6 * (1 + np.abs(scores[:-1]))).all(), f"the scores of example {i} rise"
            is_tied = len(scores) > 1 and np.isclose(scores[0], scores[1], rtol=1e-5, atol=1e-6)
            assert is_tied or _equal(outputs[0], predicted[i]), f"the best output of example {i} is not the prediction"
        for k in (0, -1, 1.5, True):
            _raises(ValueError, f"k={k!r}", self.fitted.predict_topk, self.X, k)

    def check_held_out(self) -> None:
        """Held-out data keep the best weights, and stop the fit when patience ends."""
        model = self.fit(X_dev=self.X, y_dev=self.y, patience=2, tol=1e-9, max_passes=50)
        scores = model.trace_.dev_score
        assert np.isfinite(scores).all(), "held-out data have no score"
        assert np.isclose(model.score(self.X, self.y), scores.max()), "the weights of the best score were not kept"
        if model.status_ is Status.EARLY_STOPPED:
            assert len(scores) - 1 - np.argmax(scores) == 2, "patience was not kept"
        _raises(ValueError, "X_dev without y_dev", clone(self.model).fit, self.X, self.y, X_dev=self.X)
        _raises(ValueError, "patience=0", clone(self.model).set_params(patience=0).fit, self.X, self.y)

    def check_limits(self) -> None:
        """A callback, passes and time end a fit."""
        lengths: list[int] = []

        def stop(trace: Trace) -> bool:
            lengths.append(len(trace))
            return True

        stopped = self.fit(tol=1e-12, callback=stop)
        assert lengths == [1], "the callback was not called once, or did not stop the fit"
        assert stopped.status_ in (Status.INTERRUPTED, Status.OPTIMAL), f"a callback ended the fit as {stopped.status_}"
        assert self.fit(tol=1e-12, max_passes=1).trace_.passes[-1] <= 1, "more passes than max_passes"
        assert self.fit(tol=1e-12, time_limit=1e-6).status_ in (Status.TIMEOUT, Status.OPTIMAL), "time_limit is ignored"

    def check_warm_start(self) -> None:
        """A second fit goes on from the first; on other data it does as well as any."""
        model = self.fit(warm_start=True)
        cold, warm = model.trace_, self.fit(on=model).trace_
        assert warm.passes[-1] <= max(cold.passes[-1], 1), "a warm start makes more passes than a cold one"
        assert warm.gap[0] < cold.gap[0] or len(cold) == 1, "a warm start begins where a cold one does"
        part = 3 * self.n // 4
        other, fresh = self.fit(part, on=model), self.fit(part)
        assert other.status_ is fresh.status_, "a warm start on other data ends in another way than a cold one"
        _overlap(other, fresh, 1.0, "a warm start on other data certifies something else than a cold one")

    def check_failed_refit(self) -> None:
        """A fit that fails leaves the model as it was."""
        model = self.fit()
        expected, attributes = model.predict(self.X), {*vars(model)}

        def fail(trace: Trace) -> bool:
            raise RuntimeError("on purpose")

        part = self.n // 2
        failing: dict[str, Callable[[], object]] = {
            "a callback that raises": lambda: self.fit(part, on=model, callback=fail),
            "C=-1": lambda: self.fit(part, on=model.set_params(C=-1.0)),
            "a y longer than X": lambda: model.set_params(C=self.model.C).fit(self.X[:part], self.y),
        }
        for what, failure in failing.items():
            _raises((RuntimeError, ValueError), what, failure)
            assert _equal(model.predict(self.X), expected), "a failed fit changes predictions"
            assert {*vars(model)} == attributes, "a failed fit changes attributes"

    def check_bad_data(self) -> None:
        """Nothing, too little and something else are refused."""
        nothing = self.X[:0]
        _raises(ValueError, "an empty X", clone(self.model).fit, nothing, self.y[:0])
        with contextlib.suppress(ValueError):
            assert len(self.fitted.predict(nothing)) == 0, "an empty X has predictions"
        _raises((TypeError, ValueError), "no y", clone(self.model).fit, self.X, None)
        _raises(ValueError, "fewer outputs than examples", clone(self.model).fit, self.X, self.y[:1])
        if self.other is not None:
            _raises(ValueError, "another number of features", self.fitted.predict, self.other)


def _equal(a: Any, b: Any) -> bool:
    """Whether two predictions, or lists of them, are the same."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(np.array_equal(a, b))


def _raises(
    errors: type[Exception] | tuple[type[Exception], ...],
    what: str,
    call: Callable[..., object],
    *args: object,
    **arguments: object,
) -> None:
    try:
        call(*args, **arguments)
    except errors:
        return
    raise AssertionError(f"{what} does not raise {errors}")


def _overlap(first: StructuredModel, second: StructuredModel, scale: float, message: str) -> None:
    """Compare the brackets in which the optima of two fits lie; those of the second are to be scaled."""
    slack = 1e-5 * abs(first.trace_.primal[-1])
    lower = max(first.trace_.dual[-1], scale * second.trace_.dual[-1])
    upper = min(first.trace_.primal[-1], scale * second.trace_.primal[-1])
    assert lower <= upper + slack, message
