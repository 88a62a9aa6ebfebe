"""Predictions and scores, which all fitted models have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.checks import check_count
from maxmargin.data.shard_predictions import predicts_shards
from maxmargin.data.sharding import Shards
from maxmargin.display.notebook import offer_model, show_model
from maxmargin.encode.names.forked_reading import reading_on
from maxmargin.estimators.foundation.fit_options import documents_prediction
from maxmargin.estimators.foundation.fitting import as_known, as_list, as_seed
from maxmargin.estimators.foundation.predictions import agreeing, check_has
from maxmargin.persist.files import Location, check_writable
from maxmargin.problem import AnyProblem, exp_oracle, max_marginals, sample_oracle, topk_oracle
from maxmargin.sklearn_contract import check_is_fitted


@predicts_shards
class Predictor:
    """What a model predicts with its weights, its encoder and so many threads."""

    _encoder: Any
    _w: np.ndarray
    n_jobs: int | None
    command_: str | None
    _repr_html_ = show_model
    _repr_mimebundle_ = offer_model

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        predicts_shards(cls)

    def _sample_weight(self, sample_weight: ArrayLike | None, problem: AnyProblem, y: object) -> np.ndarray | None:
        """The weights of examples, checked."""
        raise NotImplementedError

    def _read(self, X: object, **data: object) -> AnyProblem:
        """The problem of new examples."""
        with reading_on(self.n_jobs):
            return self._encoder.scored(self._encoder.problem(as_list(X), **data), self._w)

    def _problem(self, X: object, allowed: object = None, **data: object) -> Any:
        """The problem of new examples, with only those outputs that agree with what is allowed."""
        check_is_fitted(self)
        problem = self._read(X, **data)
        return problem if allowed is None else agreeing(self._encoder, problem, as_known(allowed), "allowed")

    def _problem_with_truth(self, X: object, y: object, **data: object) -> Any:
        """The problem of new examples whose true outputs are known."""
        if isinstance(X, Shards):
            raise TypeError("X must hold the examples of y, not be Shards: score one after the other.")
        if y is None:
            raise TypeError("y must hold the true outputs of X, but it is None.")
        return self._problem(X, y=y, **data)

    @documents_prediction
    def predict(self, X: object, *, allowed: object = None) -> Any:
        """The best output of each example.

        Returns
        -------
        a list or array of outputs like y
        """
        return self._predict(self._problem(X, allowed))

    def _predict(self, problem: AnyProblem) -> Any:
        return self._encoder.decode_all(problem, inference.best_outputs(problem, self._w, self.n_jobs))

    @documents_prediction
    def predict_certified(self, X: object, *, allowed: object = None) -> list[inference.Prediction]:
        """The output that `predict` finds for each example, its score, and a bound of the score of any other.

        Most structures have exact oracles, whose outputs have the highest score. Graphs with cycles may not: then the
        bound is that of a relaxation.

        Returns
        -------
        list of `Prediction`
        """
        problem = self._problem(X, allowed)
        found = inference.certified_outputs(problem, self._w, self.n_jobs)
        return [
            prediction._replace(output=self._encoder.decode(problem, i, prediction.output[np.newaxis])[0])
            for i, prediction in enumerate(found)
        ]

    @documents_prediction
    def predict_topk(self, X: object, k: int, *, allowed: object = None) -> list[tuple[Any, np.ndarray]]:
        """The k best outputs of each example, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        k
            The number of outputs.

        Returns
        -------
        list of pairs: outputs, (k,) array of scores
        """
        return self._predict_topk(self._problem(X, allowed), k)

    def _predict_topk(self, problem: AnyProblem, k: int) -> list[tuple[Any, np.ndarray]]:
        check_has(problem, topk_oracle, "predict_topk")
        check_count("k", k)
        best = inference.best_k_outputs(problem, self._w, int(k), self.n_jobs)
        return [(self._encoder.decode(problem, i, outputs), scores) for i, (outputs, scores) in enumerate(best)]

    @documents_prediction
    def decision_function(self, X: object, *, allowed: object = None) -> Any:
        """Max-marginals: for each part that an output may have, the score of the best output that has it.

        The parts of the prediction have the highest ones, up to ties; differences say how much score it takes to change
        it. What no output may have, such as a label that is ruled out, has minus infinity.

        Returns
        -------
        list with an array per example: (T_i, L) for labels, in the order of `classes_`; (K_i,) for candidates;
        (n_i, m_i + 1) for links, with nodes that have none in the last column; (H_i, W_i, J) for joints;
        (H_i, W_i) for cells, of the best box that contains each, in O(H_i^2 W_i^2) time
        """
        return self._decision_function(self._problem(X, allowed))

    def _decision_function(self, problem: AnyProblem) -> Any:
        check_has(problem, max_marginals, "decision_function")
        return self._encoder.arrange(problem, inference.best_through_parts(problem, self._w, self.n_jobs))

    @documents_prediction
    def predict_marginals(self, X: object, *, allowed: object = None) -> Any:
        """The probabilities of parts under p(y) ~ exp(score(y)): not calibrated unless the model was trained as a CRF.

        Returns
        -------
        list with an array per example: (T_i, L) for labels, in the order of `classes_`; (K_i,) for candidates;
        (H_i, W_i, J) for joints; (H_i, W_i) for cells that may be inside a box, in O(H_i^2 W_i^2) time. For classes,
        one (n, L) array.
        """
        return self._predict_marginals(self._problem(X, allowed))

    def _predict_marginals(self, problem: AnyProblem) -> Any:
        check_has(problem, exp_oracle, "predict_marginals")
        return self._encoder.arrange(problem, inference.marginals(problem, self._w, self.n_jobs)[0])

    def _sample(self, problem: AnyProblem, n_samples: int, random_state: object) -> list[Any]:
        """Independent outputs of each example, drawn from p(y) ~ exp(score(y))."""
        check_has(problem, sample_oracle, "sample")
        check_count("n_samples", n_samples)
        rng = np.random.default_rng(as_seed(random_state))
        drawn = inference.samples(problem, self._w, int(n_samples), rng, self.n_jobs)
        return [self._encoder.decode(problem, i, outputs) for i, outputs in enumerate(drawn)]

    def report(
        self,
        path: Location,
        X: object = None,
        y: object = None,
        *,
        shown: Sequence[object] | None = None,
        others: Mapping[str, Predictor] | None = None,
        title: str | None = None,
        command: str | None = None,
        **data: object,
    ) -> None:
        """Write a page, in one file of HTML that needs no network, on what came of the fit and what is predicted wrong.

        Parameters
        ----------
        path
            The file to write.
        X, y
            Examples as in `fit`, which the model was not trained on: without them there are no scores.
        shown
            What each example looks like. Of sequences, trees and sentences, lists of words; of matchings, pairs of
            lists of words; of candidates, lists of texts. Of boxes and poses, images, (h, w) or (h, w, 3) arrays; of
            graphs, images whose pixels are nodes, row by row, or pairs of an image and an array of the node of each
            pixel. Of others, images or texts.
        others
            Models to compare with on the same examples, by name.
        title
            What to call the model; by default the name of the file.
        command
            What made the model, to be told; by default its `command_`.
        **data
            What else `score` takes, such as lengths.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from maxmargin import ChainSVM
        >>> X, y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "fit.html"
        ...     ChainSVM(random_state=0).fit(X, y).report(path, X, y, shown=[["x", "y"], ["y", "x"]])
        ...     path.read_text()[:15]
        '<!DOCTYPE html>'
        """
        from maxmargin.display.page import write_page  # which few need
        from maxmargin.drawings.model_page import report_model

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together.")
        examples, target = None if X is None else as_list(X), check_writable(path)
        test = None if examples is None or len(examples) == 0 else (examples, y)
        name, made_by = title or target.stem, command or self.command_
        page = report_model(self, test, shown=shown, others=others, data=data, name=name, command=made_by)
        write_page(path, page)

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """How good predictions are, on average: the share of them that are right, unless said otherwise.

        Labels that were not seen in `fit` are never predicted and count as wrong.

        Parameters
        ----------
        X, y
            As in `fit`, with lengths where there are any.
        sample_weight : (n,) weights of the examples
        """
        return self._score(self._problem_with_truth(X, y), sample_weight)

    def _score(self, problem: AnyProblem, sample_weight: ArrayLike | None) -> float:
        weights = self._sample_weight(sample_weight, problem, None)
        return self._encoder.judge(problem, inference.best_outputs(problem, self._w, self.n_jobs)).mean(weights)
