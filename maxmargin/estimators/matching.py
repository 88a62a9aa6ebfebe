"""Structural SVMs on matchings."""

from __future__ import annotations

from typing import Any, Self, Unpack

from maxmargin.checks import check_cost
from maxmargin.encode.matching import MatchingEncoder
from maxmargin.estimators.families import SVM, ArrayModel, WithMaxMarginals
from maxmargin.estimators.parameters import FitOptions, documents_fit, estimator, parameter


@estimator
class MatchingSVM(SVM, WithMaxMarginals, ArrayModel):
    """Structural SVM that links left and right nodes, each with at most one other: a max-margin bipartite matching.

    The score of a matching is the sum of the scores of its links, which are linear in the features of the pairs; nodes
    without a link add nothing, so a constant feature decides how readily nodes are linked. `score` is the share of left
    nodes whose right node, or that there is none, is predicted right.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    n_features_in_ : int
        The number of features F.

    References
    ----------
    Taskar, Lacoste-Julien, Klein (2005), A discriminative matching approach to word alignment.

    Examples
    --------
    Two left and three right nodes, one feature: how much a pair is alike.

    >>> import numpy as np
    >>> from maxmargin import MatchingSVM
    >>> alike = np.array([[0.1, 0.9, 0.3], [0.8, 0.7, -0.2]])
    >>> X, y = [alike[:, :, None], -alike[:, :, None]], [[1, 0], [-1, 2]]
    >>> model = MatchingSVM(C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X)
    [array([1, 0], dtype=int32), array([-1,  2], dtype=int32)]
    """

    wrong_cost: float = parameter("float", "Cost of a link that is not in the true matching.", default=1.0)
    missed_cost: float = parameter("float", "Cost of a true link that is missing.", default=1.0)

    @documents_fit
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, link_weight: Any = None, **options: Unpack[FitOptions]
    ) -> Self:
        """Train on matchings.

        Parameters
        ----------
        X : list of (n_i, m_i, F) arrays, the features of all pairs of a left and a right node; or, for sparse features,
            of tuples of an (n_i m_i, F) matrix, whose row v m_i + z is that of the pair (v, z), and of (n_i, m_i)
        y : list of (n_i,) arrays with the right node of each left node, or -1; or of lists of links (left, right)
        link_weight : list of (n_i, m_i) factors of `wrong_cost`, such as 0 for links that do no harm
        """
        return self._fit(X, y, sample_weight, {"link_weight": link_weight}, **options)

    def _learn(self, X: Any, y: Any, **data: Any) -> tuple[MatchingEncoder, Any]:
        costs = {"wrong_cost": self.wrong_cost, "missed_cost": self.missed_cost}
        for name, value in costs.items():
            check_cost(name, value)
        return MatchingEncoder.learn(X, y, dtype=self.dtype, **costs, **data)
