"""Models of sequences: from rows of features to a chain problem, and from weights to predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from maxmargin import inference
from maxmargin.encode.chain import (
    BIASES,
    append_biases,
    chain_problem,
    check_feasible,
    check_gold_allowed,
    observed_pairs,
    transition_penalties,
)
from maxmargin.encode.features import row_features
from maxmargin.encode.rows import (
    Rows,
    as_stored,
    check_labels_given,
    check_sample_weight,
    encode_labels,
    encode_truth,
    flatten_labels,
    is_better_sparse,
    split,
    stack_rows,
)
from maxmargin.estimators.base import StructuredModel, Task, check_k
from maxmargin.estimators.bounds import bounds_by_name
from maxmargin.runtime.blocks import Blocks
from maxmargin.solvers.held_out import HeldOut
from maxmargin.structures.observed_chain import Pairs


class SequenceModel(StructuredModel):
    """What the models of sequences share: their data, weights and predictions.

    Besides the arguments of `StructuredModel`, subclasses have fit_bias, allowed_transitions and patience.
    """

    bounds: Any = None
    only_observed = False

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        X_dev: Any = None,
        y_dev: Any = None,
        lengths_dev: Any = None,
    ) -> Any:
        """Train on sequences.

        Parameters
        ----------
        X : list of (T_i, F) arrays or sparse matrices, or one stacked (N, F) matrix together with `lengths`
        y : list of sequences of labels, integers or strings; with `lengths` also one flat sequence
        sample_weight : (n,) weights of the sequences' losses
        lengths : the numbers of rows of the sequences in a stacked X
        X_dev, y_dev, lengths_dev : held-out sequences like X, y and lengths, on which the weights of each certificate
            are scored: those of the highest score are kept, and the fit stops when `patience` runs out

        Returns
        -------
        self
        """
        task = self._encode(X, y, sample_weight, lengths=lengths)
        self._set_weights(self._solve(self._with_held_out(task, X_dev, y_dev, lengths_dev)))
        return self

    def _with_held_out(self, task: Task, X: Any, y: Any, lengths: Any) -> Task:
        """The task, with weights scored on held-out sequences if there are any."""
        if (X is None) != (y is None):
            raise ValueError("X_dev and y_dev must be given together.")
        if X is None:
            return task
        problem, rows = self._new_sequences(task.fitted, X, lengths, "X_dev")
        check_labels_given(y, "y_dev")
        flat = flatten_labels(y, rows, is_stacked=lengths is not None, name="y_dev")
        labels = encode_labels(flat, task.fitted["classes_"], rows, "y_dev", "is not a label in y")

        def score(w: np.ndarray) -> float:
            return np.mean(inference.best_outputs(problem, w, self.n_jobs).values == labels)

        return task._replace(options={**task.options, "held_out": HeldOut(score, self.patience)})

    def _encode(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, position_weight: Any = None
    ) -> Task:
        """Check all input, keep what predictions need, and put the optimization problem together."""
        self._check_parameters()
        rows = stack_rows(X, lengths, dtype=self.dtype)
        check_labels_given(y)
        flat = flatten_labels(y, rows, is_stacked=lengths is not None)
        weights = check_sample_weight(sample_weight, len(rows.lengths))
        classes = np.unique(flat)
        labels = encode_labels(flat, classes, rows)
        penalty = transition_penalties(self.allowed_transitions, classes, self.dtype)
        check_feasible(penalty, rows.lengths)
        check_gold_allowed(labels, penalty, rows, classes)
        costs, scales = self._costs(rows, labels, classes, position_weight)
        width, stores_sparse = rows.matrix.shape[1], self.only_observed or is_better_sparse(rows)
        lower, upper = self._bound_weights(width, len(classes))

        rows = as_stored(rows, stores_sparse)
        is_hinge = self._find_loss().smoothing is None
        stored = append_biases(rows) if self.fit_bias else rows
        features, n_features = row_features(stored, self.dtype, with_grams=is_hinge), stored.matrix.shape[1]
        pairs = observed_pairs(features, rows, n_features, labels, len(classes)) if self.only_observed else None
        problem = chain_problem(features, rows, n_features, labels, costs, scales, penalty, pairs)
        start = self._last_point() if self._can_continue(rows, classes, penalty, pairs) else None
        fitted = {
            "classes_": classes,
            "n_features_in_": width,
            "_penalty": penalty,
            "_lengths": rows.lengths,
            "_stores_sparse": stores_sparse,
            "_with_bias": self.fit_bias,
            "_pairs": pairs,
        }
        return Task(problem, weights, start, lower, upper, fitted)

    def _set_weights(self, w: np.ndarray) -> None:
        self._w = w
        named = self._name_weights if self._pairs is None else self._name_observed
        self.coef_ = named(w, self.n_features_in_, len(self.classes_))

    def _costs(self, rows: Rows, labels: np.ndarray, classes: np.ndarray, position_weight: Any) -> tuple[Any, Any]:
        """The costs of labels, by true label, and the weights of positions."""
        return np.zeros((len(classes), len(classes))), np.zeros(len(labels))

    def _can_continue(self, rows: Rows, classes: np.ndarray, penalty: np.ndarray, pairs: Pairs | None) -> bool:
        """Whether a warm start is asked for and the last fit was on sequences like these."""
        return (
            self.warm_start
            and hasattr(self, "_w")
            and np.array_equal(self._lengths, rows.lengths)
            and np.array_equal(self.classes_, classes)
            and np.array_equal(self._penalty, penalty)
            and self.n_features_in_ == rows.matrix.shape[1]
            and (pairs is None) == (self._pairs is None)
            and all(np.array_equal(a, b) for a, b in zip(pairs or (), self._pairs or (), strict=True))
        )

    def _bound_weights(self, width: int, n_labels: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        n_weights = (width + n_labels + (len(BIASES) if self.fit_bias else 0)) * n_labels
        return bounds_by_name(self.bounds, n_weights, lambda w: self._name_weights(w, width, n_labels))

    def _name_weights(self, w: np.ndarray, width: int, n_labels: int) -> Bunch:
        table = w.reshape(-1, n_labels)
        named = Bunch(emissions=table[:width], transitions=table[-n_labels:])
        if self.fit_bias:
            named.update(zip(BIASES, table[width : width + len(BIASES)], strict=True))
        return named

    def _name_observed(self, w: np.ndarray, width: int, n_labels: int) -> Bunch:
        start, labels, sources, targets = self._pairs
        table = sp.csr_array((w[: labels.size], labels, start), (len(start) - 1, n_labels))
        named = Bunch(emissions=table[:width], transitions=np.zeros((n_labels, n_labels), w.dtype))
        named.transitions[sources, targets] = w[labels.size :]
        if self._with_bias:
            named.update(zip(BIASES, table[width:].toarray(), strict=True))
        return named

    def _sequences(self, X: Any, lengths: Any) -> tuple[Any, Rows]:
        check_is_fitted(self)
        return self._new_sequences(self.__dict__, X, lengths)

    @staticmethod
    def _new_sequences(fitted: Mapping[str, Any], X: Any, lengths: Any, name: str = "X") -> tuple[Any, Rows]:
        """The problem of new sequences for a model with these attributes; labels and costs are never looked at."""
        width, penalty, with_bias = fitted["n_features_in_"], fitted["_penalty"], fitted["_with_bias"]
        rows = as_stored(stack_rows(X, lengths, width, penalty.dtype, name=name), fitted["_stores_sparse"])
        check_feasible(penalty, rows.lengths, name)
        stored = append_biases(rows) if with_bias else rows
        features, n_features = row_features(stored, penalty.dtype), stored.matrix.shape[1]
        n_labels, n_tokens = len(penalty), int(rows.offsets[-1])
        no_labels, no_costs, scales = np.zeros(n_tokens, np.int32), np.zeros((n_labels, n_labels)), np.zeros(n_tokens)
        return chain_problem(features, rows, n_features, no_labels, no_costs, scales, penalty, fitted["_pairs"]), rows

    def predict(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """The best labelling of each sequence.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i,) arrays of labels
        """
        problem, rows = self._sequences(X, lengths)
        return split(self.classes_[inference.best_outputs(problem, self._w, self.n_jobs).values], rows)

    def predict_topk(self, X: Any, k: int, *, lengths: Any = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """The k best labellings of each sequence, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        X, lengths : as in `fit`
        k : the number of labellings

        Returns
        -------
        list of pairs: (k, T_i) array of labels, (k,) array of scores

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import ChainSVM
        >>> model = ChainSVM(C=10.0, fit_bias=False).fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
        >>> labels, scores = model.predict_topk([np.eye(2)], k=2)[0]
        >>> labels[0].tolist(), bool(scores[0] > scores[1])
        (['a', 'b'], True)
        """
        k = check_k(k)
        problem, _ = self._sequences(X, lengths)
        return [(self.classes_[y], scores) for y, scores in inference.best_k_outputs(problem, self._w, k, self.n_jobs)]

    def decision_function(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """Max-marginals: the score of the best labelling that has label l at position t.

        The label of the highest one at each position is that of `predict`, up to ties; differences say how much score
        it takes to change it.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays
        """
        problem, rows = self._sequences(X, lengths)
        return self._node_parts(inference.best_through_parts(problem, self._w, self.n_jobs), rows)

    def predict_marginals(self, X: Any, *, lengths: Any = None) -> list[np.ndarray]:
        """The probabilities of the labels at each position.

        They are those of p(y) ~ exp(score(y)): estimates of probabilities if the model was trained as a CRF.

        Parameters
        ----------
        X, lengths : as in `fit`

        Returns
        -------
        list of (T_i, L) arrays, columns in the order of `classes_`
        """
        problem, rows = self._sequences(X, lengths)
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        return self._node_parts(means, rows)

    def _node_parts(self, parts: Blocks, rows: Rows) -> list[np.ndarray]:
        """The (T_i, L) parts of positions and labels."""
        n_labels = len(self.classes_)
        return [
            parts.values[start : start + length * n_labels].reshape(length, n_labels)
            for start, length in zip(parts.start[:-1], rows.lengths, strict=True)
        ]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """The share of labels predicted right; those that were not seen in `fit` cannot be.

        Parameters
        ----------
        X, y, lengths : as in `fit`
        sample_weight : (n,) weights of the sequences
        """
        problem, rows = self._sequences(X, lengths)
        check_labels_given(y)
        flat = flatten_labels(y, rows, is_stacked=lengths is not None)
        labels = encode_truth(flat, self.classes_)
        weights = check_sample_weight(sample_weight, len(rows.lengths))
        per_token = None if weights is None else np.repeat(weights, rows.lengths)
        predicted = inference.best_outputs(problem, self._w, self.n_jobs).values
        return float(np.average(predicted == labels, weights=per_token))
