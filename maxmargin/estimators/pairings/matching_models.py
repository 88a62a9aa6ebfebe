"""Structural SVMs on matchings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Self, Unpack

import numpy as np

from maxmargin import inference
from maxmargin.checks import check_cost
from maxmargin.data.sharding import Shards
from maxmargin.drawings.link_drawings import LINKS
from maxmargin.encode.links.matching_encoder import MatchingEncoder
from maxmargin.estimators.foundation.arguments import MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.fitting import as_list
from maxmargin.estimators.foundation.predictions import Unavailable
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter
from maxmargin.problem import AnyProblem

FEW = 0.5  # of the true links, that predictions have: fewer are worth a warning
N_THRESHOLDS = 100  # that are tried, at most


class MatchingData(FitOptions, total=False):
    """What matchings can come with in training."""

    link_weight: Annotated[object, "list of (n_i, m_i) factors of `wrong_cost`, such as 0 for links that do no harm"]


@estimator
class MatchingSVM(MaxMargin, Precision, StructuredModel):
    """Structural SVM that links left and right nodes, each with at most one other: a max-margin bipartite matching.

    The score of a matching is the sum of the scores of its links, which are linear in the features of the pairs; nodes
    without a link add nothing, so a constant feature decides how readily nodes are linked. `score` is the share of left
    nodes whose right node, or that there is none, is predicted right.

    Where the features tell too little, the lowest loss is that of a model which links next to nothing, however certain
    its optimum: `choose_threshold` makes use of what it has learned all the same.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    threshold_ : float
        The score of a left node without a link, which its links must beat: zero, unless `choose_threshold` finds
        another one.
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

    wrong_cost: float = parameter(
        "float", "Cost of a link that is not in the true matching.", default=1.0, check=check_cost
    )
    missed_cost: float = parameter("float", "Cost of a true link that is missing.", default=1.0, check=check_cost)
    complete: bool = parameter(
        "bool",
        "Whether every left node has a link: there must be at least as many right nodes. With as many, matchings are "
        "permutations.",
        default=False,
    )

    _encoder_type = MatchingEncoder
    _drawing = LINKS

    predict_marginals = Unavailable("sums over all matchings are out of reach")

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[MatchingData]) -> Self:
        """Train on matchings.

        Parameters
        ----------
        X
            List of (n_i, m_i, F) arrays, the features of all pairs of a left and a right node; or, for sparse features,
            of tuples of an (n_i m_i, F) matrix, whose row v m_i + z is that of the pair (v, z), and of (n_i, m_i).
        y
            List of (n_i,) arrays with the right node of each left node, or -1; or of lists of links (left, right). In
            place of a right node None where it is unknown, or a set of nodes; None in place of a whole matching.
        """
        self._fit(X, y, sample_weight, options)
        if not isinstance(X, Shards):
            self._warn_of_few_links(X, y)
        return self

    def _warn_of_few_links(self, X: object, y: object) -> None:
        if self._encoder.is_partial(y):
            return
        problem = self._problem_with_truth(X, y)
        both = problem.supervision.matches, self._matches(problem)
        n_true, n_found = (int((matches >= 0).sum()) for matches in both)
        if n_found < FEW * n_true:
            warnings.warn(
                f"Of the left nodes in the training data {n_true} are linked, but the model links {n_found}: its "
                "features tell true links from others too rarely. choose_threshold makes it link more readily.",
                stacklevel=3,
            )

    def _matches(self, problem: AnyProblem) -> np.ndarray:
        return inference.best_outputs(problem, self._w, self.n_jobs).values

    def choose_threshold(self, X: object, y: object, scoring: Callable[[object, object], float] | None = None) -> Self:
        """Choose `threshold_`, the score that a link must beat, by how good predictions are: on held-out data, if any.

        The hinge loss counts the best wrong link of a node against its true one. Where that wins for most nodes,
        weights of the lowest loss score all links below zero, and the model links nothing; a higher `missed_cost` need
        not help. What it has learned of the order of links is good all the same.

        Parameters
        ----------
        X, y
            As in `fit`.
        scoring
            A function of y and predictions, the higher the better; by default the F1 of links.

        Returns
        -------
        the model, whose predictions have the threshold from then on

        Examples
        --------
        >>> import numpy as np
        >>> from maxmargin import MatchingSVM
        >>> rng = np.random.default_rng(0)
        >>> y = [np.where(rng.random(6) < 0.6, np.arange(6), -1) for _ in range(20)]
        >>> X = [np.dstack([1.5 * np.diag(t >= 0) + rng.normal(size=(6, 6)), np.ones((6, 6))]) for t in y]
        >>> model = MatchingSVM(random_state=0).fit(X, y)  # warns of few links
        >>> few = sum((match >= 0).sum() for match in model.predict(X))
        >>> more = sum((match >= 0).sum() for match in model.choose_threshold(X, y).predict(X))
        >>> bool(2 * few < more)
        True
        """
        if self._encoder.complete:
            raise ValueError("choose_threshold is for models whose left nodes may have no link: complete is True.")
        problem, links = self._problem_with_truth(X, y), np.unique(self._encoder.best_links(as_list(X), self._w))
        if not links.size:
            raise ValueError("X must hold at least one pair of nodes.")
        steps = np.unique(np.quantile(links, np.linspace(0, 1, N_THRESHOLDS)))
        between = [links[0] - 1, *(steps[1:] + steps[:-1]) / 2, links[-1] + 1]

        def merit(threshold: float) -> float:
            found = problem._replace(threshold=threshold)
            if scoring is not None:
                return scoring(y, self._predict(found))
            matches = self._matches(found)
            n_right = int(((matches == problem.supervision.matches) & (matches >= 0)).sum())
            return 2 * n_right / max(int((matches >= 0).sum() + (problem.supervision.matches >= 0).sum()), 1)

        best = max(sorted([0.0, *map(float, between)], key=abs), key=merit)  # among equals the least change
        self._set_weights(replace(self._encoder, threshold=best), self._w)
        return self
