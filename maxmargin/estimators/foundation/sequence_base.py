"""What all models of sequences share: arguments of `fit` and of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.drawings.label_drawings import LABELS
from maxmargin.encode.inputs.lone import best_labels
from maxmargin.estimators.foundation.arguments import EndIntercepts, SoftmaxMargin
from maxmargin.estimators.foundation.fit_options import (
    FitOptions,
    Weights,
    documented_by,
    documents_prediction,
    estimator,
)
from maxmargin.estimators.foundation.predictions import find_encoder, log_likelihood, log_likelihoods, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter
from maxmargin.sklearn_contract import check_is_fitted
from maxmargin.structures.chains.numpy_paths import best_expected

LENGTHS = "the numbers of rows of the sequences in a stacked X or X_dev"
EDGES = (
    "features of transitions, beside those of positions: list with a (T_i - 1, F_edge) matrix per sequence, or a list "
    "of T_i - 1 items by name, of what is between each position and the next; of `ChainSVM` and `ChainCRF`. "
    "Predictions then need them, too"
)


class SequenceData(FitOptions, total=False):
    """What sequences can come with in training."""

    lengths: Annotated[ArrayLike | None, LENGTHS]
    lengths_dev: Annotated[ArrayLike | None, LENGTHS]
    position_weight: Annotated[object, "list of (T_i,) weights of the positions in the cost"]
    transition_cost: Annotated[
        ArrayLike | None,
        "(L, L) what each transition costs, besides labels, from the first label (row) to the second, in the order of "
        "`classes_`, wherever it is predicted in a sequence that has it nowhere by what is known",
    ]
    edge_features: Annotated[object, EDGES]
    edge_features_dev: Annotated[object, EDGES]


@estimator
class SequenceModel(EndIntercepts, StructuredModel):
    """What the models of sequences share."""

    _drawing = LABELS
    allowed_transitions: Any = parameter(
        'set of pairs of labels, (L, L) boolean array or "observed"',
        "The transitions a labelling may use, from the first label (row) to the second (column), or those that occur "
        "in y; None allows all. Where few of many labels may follow each other, time grows with the number of these.",
        default=None,
    )

    constraints: str | None = parameter(
        '{"auto", "bio", "iobes", "bilou", "iob1", "ioe1", "ioe2"}',
        'The scheme of the tags in y, found there by "auto": labellings that break its rules, in transitions, at the '
        "beginning or at the end, are ruled out in training and predictions. Those of y must keep to them.",
        default=None,
    )

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[SequenceData]) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X
            List of (T_i, F) arrays or sparse matrices, or one stacked (N, F) matrix together with `lengths`; or list or
            iterator of sequences of items, feature dictionaries or lists of names (see `feature_names_in_`).
        y
            List of sequences of labels, integers or strings; with `lengths` also one flat sequence. Where less is
            known of a position: None, a set of labels, or their probabilities, in a dictionary or in the order of
            `classes_`.
        """
        return self._fit(X, y, sample_weight, options)

    def _as_predicted(self, y: Any, data: Mapping[str, Any]) -> object:
        is_flat = data.get("lengths") is not None and np.ndim(y[0]) == 0
        return np.split(np.asarray(y), np.cumsum(data["lengths"])[:-1]) if is_flat else y

    def predict(
        self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        check_is_fitted(self)
        labels = best_labels(self._encoder, X, self._w) if lengths is edge_features is allowed is None else None
        if labels is not None:
            return [labels]
        return self._predict(self._problem(X, allowed, lengths=lengths, edge_features=edge_features))

    def predict_topk(
        self,
        X: object,
        k: int,
        *,
        lengths: ArrayLike | None = None,
        edge_features: object = None,
        allowed: object = None,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        return self._predict_topk(self._problem(X, allowed, lengths=lengths, edge_features=edge_features), k)

    def decision_function(
        self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        return self._decision_function(self._problem(X, allowed, lengths=lengths, edge_features=edge_features))

    def predict_marginals(
        self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        return self._predict_marginals(self._problem(X, allowed, lengths=lengths, edge_features=edge_features))

    @documents_prediction
    def predict_transitions(
        self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        """The probabilities of the labels of every two neighbours, as `predict_marginals` has those of single ones.

        Returns
        -------
        list of (T_i - 1, L, L) arrays
            Those of position t in rows, those of position t + 1 in columns, in the order of `classes_`.

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainCRF
        >>> model = ChainCRF().fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> pairs = model.predict_transitions([np.eye(2)])[0]
        >>> pairs.shape, np.allclose(pairs[0].sum(axis=1), model.predict_marginals([np.eye(2)])[0][0])
        ((1, 2, 2), True)
        """
        n_labels = len(find_encoder(self).classes)
        problem = self._problem(X, allowed, lengths=lengths, edge_features=edge_features)
        found = inference.transitions(problem, self._w, np.arange(n_labels**2), self.n_jobs)
        return [table.reshape(-1, n_labels, n_labels) for table in found]

    @documents_prediction
    def predict_posterior(
        self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        """The labellings with the most labels that are right, as expected by the model, of those that are possible.

        `predict` returns the most probable labelling as a whole. This one is made of probable labels, and keeps to
        `constraints` and `allowed_transitions`, as that does.

        Returns
        -------
        list of (T_i,) arrays of labels

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainCRF
        >>> model = ChainCRF().fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> model.predict_posterior([np.eye(2)])
        [array(['a', 'b'], dtype='<U1')]
        """
        encoder = find_encoder(self)
        given: Any = {"lengths": lengths, "edge_features": edge_features, "allowed": allowed}
        tables = self.predict_marginals(X, **given)
        is_allowed = encoder.penalty == 0, encoder.end_penalty == 0
        return [encoder.classes[best_expected(table, *is_allowed)] for table in tables]

    def score(
        self,
        X: object,
        y: object,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        edge_features: object = None,
    ) -> float:
        return self._score(self._problem_with_truth(X, y, lengths=lengths, edge_features=edge_features), sample_weight)


@estimator
class SequenceCRF(SoftmaxMargin, SequenceModel):
    """What conditional random fields of sequences share."""

    _trainer = LikelihoodTrainer()

    @documented_by(log_likelihood)
    def log_likelihood(
        self, X: object, y: object, *, lengths: ArrayLike | None = None, edge_features: object = None
    ) -> np.ndarray:
        return log_likelihoods(self, X, y, lengths=lengths, edge_features=edge_features)

    def confidence(self, X: object, *, lengths: ArrayLike | None = None, edge_features: object = None) -> np.ndarray:
        """The probability p(y_i | x_i) of the predicted labelling of each sequence as a whole.

        That of another labelling is exp of its `log_likelihood`; those of single labels are the `predict_marginals`.
        A long sequence has very many labellings that differ in a few places, so that even the best is improbable.

        Parameters
        ----------
        X, lengths, edge_features
            As in `fit`.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainCRF
        >>> model = ChainCRF(C=100.0).fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> unclear = np.array([[0.5, 0.5], [0.5, 0.5]])
        >>> sure, unsure = model.confidence([np.eye(2), unclear])
        >>> bool(sure > 0.9 > unsure)
        True
        """
        problem = self._problem(X, lengths=lengths, edge_features=edge_features)
        predicted = inference.best_outputs(problem, self._w, self.n_jobs)
        return np.exp(inference.log_likelihoods(problem, self._w, self.n_jobs, predicted))

    @documented_by(sample)
    def sample(
        self,
        X: object,
        n_samples: int = 1,
        random_state: object = None,
        *,
        lengths: ArrayLike | None = None,
        edge_features: object = None,
        allowed: object = None,
    ) -> list[np.ndarray]:
        problem = self._problem(X, allowed, lengths=lengths, edge_features=edge_features)
        return self._sample(problem, n_samples, random_state)
