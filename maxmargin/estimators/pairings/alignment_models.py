"""Structural SVMs and conditional random fields on monotone alignments."""

from __future__ import annotations

from typing import Self, Unpack

from maxmargin.checks import check_cost
from maxmargin.drawings.link_drawings import ALIGNMENTS
from maxmargin.encode.links.alignment_encoder import AlignmentEncoder
from maxmargin.estimators.foundation.arguments import Likelihood, MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.predictions import log_likelihood, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter


@estimator
class AlignmentModel(Precision, StructuredModel):
    """What the models of alignments share."""

    warp: bool = parameter(
        "bool",
        "Whether one sequence is warped onto the other, as in dynamic time warping: every item then has at least one "
        "link. Else each has at most one, and others are deleted, on the left, or inserted, on the right.",
        default=False,
    )

    _encoder_type = AlignmentEncoder
    _drawing = ALIGNMENTS

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on alignments.

        Parameters
        ----------
        X
            List of pairs of sequences, all of one sort: tuples of two strings, or of two lists of strings; tuples of
            two arrays of rows, (m_i, F) and (n_i, F); or the features of all pairs of items, (m_i, n_i, F) arrays or,
            for sparse features, tuples of an (m_i n_i, F) matrix and (m_i, n_i).
        y
            List of alignments. Each is a list of links (left, right); or a string of operations, M for a link, D for a
            left item that is deleted and I for a right one that is inserted or, warped, for links that take the next
            item of both sides, of the left or of the right. Unless warped, also the right item of each left item, or
            -1; in place of one None where it is unknown, or a set of them. Warped, also (m_i, n_i) flags of links that
            there may be. None in place of an alignment of which nothing is known.
        """
        return self._fit(X, y, sample_weight, options)


@estimator
class AlignmentSVM(MaxMargin, AlignmentModel):
    """Structural SVM that aligns two sequences, from left to right: spelling variants, readings, movements.

    The score of an alignment is the sum of the scores of its links, linear in their features, of those of items without
    a link, and of what it takes to make a move (a link, a deleted or an inserted item) after another: opening a gap
    may cost more than going on with it. The features of two strings are whether two symbols are the same, and which
    they are; those of two arrays the squared differences of two rows, and the rows of items without a link. The best of
    all alignments is found in O(m n) steps. `score` is the share of left items whose right item, or that there is none,
    is predicted right or, warped, the mean F1 of links.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : Bunch
        The weights: of `same` symbols and of `pairs`, or of `links`, `deleted` and `inserted` items, (F,) each; of
        `moves`, (3, 3), a move after another in the order M, D, I, with M before the first.
    n_features_in_ : int
        The number of features F of links; of strings 1 and the number of pairs.
    pairs_ : (P, 2) array
        Of strings, the pairs of a left and a right symbol that have a weight, with "" for none.

    References
    ----------
    McCallum, Bellare, Pereira (2005), A conditional random field for discriminatively-trained finite-state string edit
    distance. Lajugie, Garreau, Bach, Arlot (2014), Metric learning for temporal sequence alignment.

    Examples
    --------
    >>> from maxmargin import AlignmentSVM
    >>> X = [("colour", "color"), ("grey", "gray"), ("theatre", "theater"), ("plough", "plow")]
    >>> y = ["MMMMDM", "MMMM", "MMMMMIMD", "MMMMDD"]
    >>> model = AlignmentSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict([("honour", "honor"), ("centre", "center")])
    [array([ 0,  1,  2,  3, -1,  4], dtype=int32), array([ 0,  1,  2,  3,  5, -1], dtype=int32)]
    """

    wrong_cost: float = parameter(
        "float", "Cost of a link that is not in the true alignment.", default=1.0, check=check_cost
    )
    missed_cost: float = parameter("float", "Cost of a true link that is missing.", default=1.0, check=check_cost)


@estimator
class AlignmentCRF(Likelihood, AlignmentModel):
    """Conditional random field that aligns two sequences, from left to right: a pair-CRF with gaps.

    The probability of an alignment is its share of exp(score) among all; `predict_marginals` has those of links.
    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i)}, lambda = 1/(n C), and certifies how far from the
    optimum it can at most be.

    Attributes
    ----------
    coef_, n_features_in_, pairs_
        As those of `AlignmentSVM`.

    Examples
    --------
    Two movements of one kind, the second slower: every row of one is linked to one of the other, or to several.

    >>> import numpy as np
    >>> from maxmargin import AlignmentCRF
    >>> left, right = np.array([[0.0], [1.0], [4.0]]), np.array([[0.1], [0.2], [1.1], [3.9]])
    >>> model = AlignmentCRF(warp=True, C=10.0).fit([(left, right)], [[(0, 0), (0, 1), (1, 2), (2, 3)]])
    >>> model.predict([(right, left)])[0].tolist()
    [[0, 0], [1, 0], [2, 1], [3, 2]]
    >>> model.predict_marginals([(left, left)])[0].argmax(axis=1).tolist()
    [0, 1, 2]
    """

    _trainer = LikelihoodTrainer()

    log_likelihood = log_likelihood
    sample = sample
