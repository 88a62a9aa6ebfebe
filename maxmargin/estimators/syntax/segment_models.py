"""Structural SVMs and conditional random fields on sequences that are cut into segments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.drawings.span_drawings import SEGMENTS
from maxmargin.encode.sentences.segment_encoder import SegmentEncoder
from maxmargin.estimators.foundation.arguments import EndIntercepts, Likelihood, MaxMargin, Names
from maxmargin.estimators.foundation.fit_options import (
    FitOptions,
    Weights,
    documented_by,
    documents_prediction,
    estimator,
)
from maxmargin.estimators.foundation.predictions import (
    feature_names,
    find_encoder,
    log_likelihood,
    log_likelihoods,
    sample,
    segment_feature_names,
)
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter
from maxmargin.structures.segments.expected_segments import best_expected_segments
from maxmargin.wording import quote

LISTED = (
    "features of whole segments, beside those of rows: for each sequence a list of (start, end, features), where "
    "features are an array or an item by name. Segments that are not listed have none. Predictions then need them, too"
)


class SegmentData(FitOptions, total=False):
    """What sequences can come with in training."""

    segment_features: Annotated[object, LISTED]
    segment_features_dev: Annotated[object, LISTED]
    position_weight: Annotated[object, "list of (T_i,) weights of the rows in the cost"]


@estimator
class SegmentModel(Names, EndIntercepts, StructuredModel):
    """What the models of segments share."""

    max_length: Any = parameter(
        "int or dict of int by label",
        "The most rows of a segment, of all labels or by label; None, or a label that is left out: as many as the "
        "longest such segment in y has. Time grows with it, memory does not.",
        default=None,
    )
    allowed_transitions: Any = parameter(
        "set of pairs of labels or (L, L) boolean array",
        "The labels that segments which follow each other may have; None allows all.",
        default=None,
    )
    only_observed: bool = parameter(
        "bool",
        "Have weights only for those features of rows, by label and by the role of the row in its segment, that occur "
        "in the training examples. Takes less memory and time on text. Rows are then stored sparse.",
        default=False,
    )

    _encoder_type = SegmentEncoder
    _drawing = SEGMENTS

    feature_names_in_ = property(feature_names)
    segment_feature_names_in_ = property(segment_feature_names)

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[SegmentData]) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X
            List of (T_i, F) arrays or sparse matrices; or list or iterator of sequences of items, feature dictionaries
            or lists of names (see `feature_names_in_`).
        y
            List of lists of segments, (start, end, label), which follow each other from row 0 to the last; or of
            sequences of tags, such as B-PER, I-PER and O, each of which is then a segment of its own. Where less is
            known: (start, end) if nothing is, None or a set in place of a label, or of a tag of IOB2; None for all.
        """
        return self._fit(X, y, sample_weight, options)

    def predict(self, X: object, *, segment_features: object = None, allowed: object = None) -> list[Any]:
        return self._predict(self._problem(X, allowed, segment_features=segment_features))

    def predict_topk(
        self, X: object, k: int, *, segment_features: object = None, allowed: object = None
    ) -> list[tuple[Any, np.ndarray]]:
        return self._predict_topk(self._problem(X, allowed, segment_features=segment_features), k)

    @documents_prediction
    def decision_function(
        self, X: object, *, segment_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        """Max-marginals: the score of the best output in which a row begins a segment of a label, or goes on with it.

        Returns
        -------
        list of (T_i, 2, L) arrays
            [t, 0] of segments that begin at row t, [t, 1] of those that go on there, in the order of `classes_`; minus
            infinity where there are none.
        """
        return self._decision_function(self._problem(X, allowed, segment_features=segment_features))

    @documents_prediction
    def predict_marginals(
        self, X: object, *, segment_features: object = None, allowed: object = None
    ) -> list[np.ndarray]:
        """The probabilities, under p(y) ~ exp(score(y)), that each row begins a segment of a label, or goes on with it.

        Returns
        -------
        list of (T_i, 2, L) arrays
            As those of `decision_function`; ``sum(axis=1)`` are the probabilities of labels.
        """
        return self._predict_marginals(self._problem(X, allowed, segment_features=segment_features))

    @documents_prediction
    def predict_posterior(self, X: object, *, segment_features: object = None, allowed: object = None) -> list[Any]:
        """The outputs with the most rows that are right, as expected by the model, of those that are possible.

        A row is right if its label is, and whether it begins a segment; `predict` returns the most probable output as a
        whole.

        Returns
        -------
        list of outputs like y

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import SegmentCRF
        >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 0]]]
        >>> model = SegmentCRF(C=10.0).fit(X, [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b"), (1, 2, "a")]])
        >>> model.predict_posterior(X[:1])
        [[(0, 2, 'a'), (2, 3, 'b')]]
        """
        problem = self._problem(X, allowed, segment_features=segment_features)
        encoder = find_encoder(self)
        is_allowed = encoder.penalty == 0
        return [
            encoder.decode(problem, i, best_expected_segments(table, encoder.longest, is_allowed)[np.newaxis])[0]
            for i, table in enumerate(self._predict_marginals(problem))
        ]

    def segment_probabilities(
        self,
        X: object,
        segments: Sequence[Sequence[tuple[int, int, object]]],
        *,
        segment_features: object = None,
        allowed: object = None,
    ) -> list[np.ndarray]:
        """The probabilities of segments of your choice: that their bounds and labels are right.

        Parameters
        ----------
        X, segment_features
            As in `fit`.
        segments
            For each sequence a list of segments, (start, end, label).
        allowed
            What is known of the outputs, as y in `fit` says it.

        Returns
        -------
        list of arrays, with a number for each segment

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import SegmentCRF
        >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 0]]]
        >>> model = SegmentCRF(C=10.0).fit(X, [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b"), (1, 2, "a")]])
        >>> (sure, unsure), _ = model.segment_probabilities(X, [[(0, 2, "a"), (1, 3, "b")], []])
        >>> bool(sure > 0.5 > unsure)
        True
        """
        encoder = find_encoder(self)
        labels = {label: k for k, label in enumerate(encoder.classes.tolist())}
        spans = [[check_segment(one, i, labels) for one in row] for i, row in enumerate(segments)]
        problem = self._problem(
            X, allowed, segment_features=segment_features, asked=[[s[:2] for s in r] for r in spans]
        )
        means, _ = inference.marginals(problem, self._w, self.n_jobs)
        listed, n_labels, found = problem.listed, len(labels), []
        for i, row in enumerate(spans):
            own = range(listed.starts[i], listed.starts[i + 1])
            numbers = {(int(listed.begin[k]), int(listed.end[k])): k - own.start for k in own}
            at = means.starts[i] + (problem.starts[i + 1] - problem.starts[i]) * problem.n_columns
            places = [at + numbers[begin, end] * n_labels + label for begin, end, label in row]
            found.append(means.values[np.array(places, np.int64)])
        return found

    def score(
        self, X: object, y: object, sample_weight: ArrayLike | None = None, *, segment_features: object = None
    ) -> float:
        return self._score(self._problem_with_truth(X, y, segment_features=segment_features), sample_weight)


def check_segment(segment: object, i: int, labels: dict[object, int]) -> tuple[int, int, int]:
    """A segment of sequence i with the number of its label; its bounds are checked where they are listed."""
    if not isinstance(segment, (tuple, list)) or len(segment) != 3:
        raise TypeError(f"segments[{i}] must be a list of (start, end, label), but holds {quote(segment)}.")
    begin, end, label = segment
    if not isinstance(label, Hashable) or label not in labels:
        raise ValueError(f"segments[{i}] names {quote(label)}, which is not a label that was seen in fit.")
    return begin, end, labels[label]


@estimator
class SegmentSVM(MaxMargin, SegmentModel):
    """Structural SVM that cuts sequences into segments with labels: a max-margin semi-Markov model.

    The score of a segment is that of its rows, of which the first, those that go on and the last have weights of their
    own, of its length, of features that it may have as a whole, and of its label after that of the segment before. The
    best segmentation is found in O(T D L + T L^2) steps for T rows, segments of up to D rows, and L labels. `score` is
    the share of rows that are right, in their label and in whether they begin a segment. Minimises
    (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C), where the
    cost is the number of wrong rows, and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    classes_ : (L,) array
        The labels of segments, sorted; of tags the types, and O.
    scheme_ : str or None
        The scheme of the tags; None of segments.
    coef_ : Bunch
        The weights: ``begin``, ``inside`` and ``end`` (F, L) of the first rows of segments, of those that go on, and of
        the last ones, which are among the former; ``lengths`` (D, L), ``transitions`` (L, L) and, where there are such
        features, ``segments`` (F_segment, L). With `fit_intercept`, ``intercepts`` (3, 3, L) of every row, of the first
        and of the last one of a sequence, in each role. With `only_observed`, those of rows are sparse, and copies.
    n_features_in_ : int
        The number of features F of a row.
    feature_names_in_ : (F,) array
        Their names, if they were given by name, as to `ChainSVM`, and are not hashed.
    segment_feature_names_in_ : (F_segment,) array
        The same of `segment_features`.

    References
    ----------
    Sarawagi, Cohen (2004), Semi-Markov conditional random fields for information extraction.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SegmentSVM
    >>> X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 0]], np.eye(3)[[0, 1]]]
    >>> y = [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "b"), (1, 2, "a")], [(0, 2, "a")]]
    >>> model = SegmentSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([np.eye(3)[[2, 0, 1]]])
    [[(0, 1, 'b'), (1, 3, 'a')]]
    """


@estimator
class SegmentCRF(Likelihood, SegmentModel):
    """Semi-Markov conditional random field: p(y) ~ exp(score(y)) of segmentations with labels.

    Scores are those of `SegmentSVM`. Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda =
    1/(n C), and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    classes_, scheme_, coef_, n_features_in_, feature_names_in_, segment_feature_names_in_
        As those of `SegmentSVM`.

    Examples
    --------
    >>> from maxmargin import SegmentCRF
    >>> X = [[["Ann"], ["Lee"], ["sang"]], [["Bob"], ["ran"]], [["Lee"], ["ran"]]]
    >>> y = [["B-PER", "I-PER", "O"], ["B-PER", "O"], ["B-PER", "O"]]
    >>> model = SegmentCRF(C=10.0).fit(X, y)
    >>> model.predict([[["Bob"], ["Lee"], ["ran"]]])[0].tolist()
    ['B-PER', 'I-PER', 'O']

    Names from a list, as features of segments:

    >>> cities = [[(0, 2, ["city"])], [(0, 1, ["city"])]]
    >>> X = [[["New"], ["York"], ["is"]], [["Rome"], ["is"]]]
    >>> y = [[(0, 2, "LOC"), (2, 3, "O")], [(0, 1, "LOC"), (1, 2, "O")]]
    >>> model = SegmentCRF(C=1000.0).fit(X, y, segment_features=cities)
    >>> model.predict([[["Los"], ["Angeles"], ["is"]]], segment_features=[[(0, 2, ["city"])]])
    [[(0, 2, 'LOC'), (2, 3, 'O')]]
    """

    _trainer = LikelihoodTrainer()

    @documented_by(log_likelihood)
    def log_likelihood(self, X: object, y: object, *, segment_features: object = None) -> np.ndarray:
        return log_likelihoods(self, X, y, segment_features=segment_features)

    @documented_by(sample)
    def sample(
        self,
        X: object,
        n_samples: int = 1,
        random_state: object = None,
        *,
        segment_features: object = None,
        allowed: object = None,
    ) -> list[Any]:
        return self._sample(self._problem(X, allowed, segment_features=segment_features), n_samples, random_state)
