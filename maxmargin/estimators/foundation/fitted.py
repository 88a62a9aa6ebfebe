"""What all estimators do with the weights of a fit: predictions, scores, copies and files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from maxmargin import inference
from maxmargin.checks import as_sample_weight, check_count
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.execution.threads import count_threads
from maxmargin.persist import save
from maxmargin.problem import part_sizes
from maxmargin.sklearn_contract import Estimator, check_is_fitted
from maxmargin.trace import Certified, Status, Trace

RENAMED = {"fit_bias": "fit_intercept"}  # arguments that models saved by earlier versions have under another name


class FittedModel(Estimator):
    """A model that has an encoder and weights, once it is fitted, and an argument `n_jobs`."""

    _learned = ("_encoder", "_w", "trace_", "status_", "n_iter_", "certificate_")  # by a fit, but for training data

    # --- weights, copies and files --------------------------------------------------------------------------------

    def _become(self, encoder: Any, w: np.ndarray) -> None:
        """Become a model of the weights of a solver."""
        self._encoder, w = encoder.fitted(w)
        self._set_weights(w)

    def _set_weights(self, w: np.ndarray) -> None:
        """Take these weights."""
        self._w = w
        for name, value in self._encoder.attributes(w).items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: the weights once, without the views of them that have names; no training data."""
        state = dict(vars(self))
        views = self._encoder.attributes(self._w) if hasattr(self, "_w") else ()
        for name in ("_result", "_layout", "_trained_on", *views):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "_w" in state:
            self._set_weights(self._w)

    def save(self, path: Any) -> None:
        """Write the model to a file, from which `maxmargin.load` makes it again; see `maxmargin.save`.

        Parameters
        ----------
        path : where; what is there is replaced
        """
        save(self, path)

    def _saved(self) -> dict[str, Any]:
        """What is saved: constructor arguments and, of a fitted model, what it has learned."""
        if not hasattr(self, "_w"):
            return {**self.get_params(deep=False), "fitted": None}
        fitted = {name: getattr(self, name) for name in self._learned}
        fitted["_encoder"], fitted["_w"] = self._encoder.compact(self._w)
        return {**self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def _loaded(cls, fitted: Any, **arguments: Any) -> Self:
        """The model of what was saved, which need not have been one."""
        model = cls(**{RENAMED.get(name, name): value for name, value in arguments.items()})
        if fitted is not None:
            kinds = {"_encoder": Encoder, "trace_": Trace, "status_": Status, "n_iter_": int, "certificate_": Certified}
            for name, kind in kinds.items():
                if not isinstance(fitted[name], kind):
                    raise TypeError(f"{name} is a {type(fitted[name]).__name__}")
            fitted["_encoder"].check(fitted["_w"])
            count_threads(model.n_jobs)
            for name in cls._learned:
                setattr(model, name, fitted[name])
            model._set_weights(fitted["_w"])
        return model

    # --- predictions ----------------------------------------------------------------------------------------------

    def _problem(self, X: Any, **data: Any) -> Any:
        """The problem of new examples."""
        check_is_fitted(self)
        return self._encoder.scored(self._encoder.problem(as_list(X), **data), self._w)

    def _problem_with_truth(self, X: Any, y: Any, **data: Any) -> Any:
        """The problem of new examples whose true outputs are known."""
        if y is None:
            raise TypeError("y must hold the true outputs of X, but it is None.")
        return self._problem(X, y=y, **data)

    def predict(self, X: Any) -> Any:
        """The best output of each example.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        a list or array of outputs like y
        """
        return self._predict(self._problem(X))

    def _predict(self, problem: Any) -> Any:
        return self._encoder.decode_all(problem, inference.best_outputs(problem, self._w, self.n_jobs))

    def predict_certified(self, X: Any) -> list[inference.Prediction]:
        """The output that `predict` finds for each example, its score, and a bound of the score of any other.

        Most structures have exact oracles, whose outputs have the highest score. Graphs with cycles may not: then the
        bound is that of a relaxation.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any

        Returns
        -------
        list of `Prediction`
        """
        problem = self._problem(X)
        found = inference.certified_outputs(problem, self._w, self.n_jobs)
        return [
            prediction._replace(output=self._encoder.decode(problem, i, prediction.output[np.newaxis])[0])
            for i, prediction in enumerate(found)
        ]

    def predict_topk(self, X: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        """The k best outputs of each example, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        X : as in `fit`, with lengths where there are any
        k : the number of outputs

        Returns
        -------
        list of pairs: outputs, (k,) array of scores
        """
        return self._predict_topk(self._problem(X), k)

    def _predict_topk(self, problem: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        check_count("k", k)
        best = inference.best_k_outputs(problem, self._w, int(k), self.n_jobs)
        return [(self._encoder.decode(problem, i, outputs), scores) for i, (outputs, scores) in enumerate(best)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How good predictions are, on average: the share of them that are right, unless said otherwise.

        Labels that were not seen in `fit` are never predicted and count as wrong.

        Parameters
        ----------
        X, y : as in `fit`, with lengths where there are any
        sample_weight : (n,) weights of the examples
        """
        return self._score(self._problem_with_truth(X, y), sample_weight)

    def _score(self, problem: Any, sample_weight: Any) -> float:
        weights = None if sample_weight is None else as_sample_weight(sample_weight, len(part_sizes(problem)))
        return self._encoder.score(problem, inference.best_outputs(problem, self._w, self.n_jobs), weights)


def as_list(X: Any) -> Any:
    """Examples; those in a pandas Series, a column of a table, as a list."""
    return X.tolist() if hasattr(X, "iloc") and X.ndim == 1 else X
