"""Structural SVMs and conditional random fields that place joints on grids, held together by springs."""

from __future__ import annotations

from typing import Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_count, check_positive
from maxmargin.drawings.image_drawings import POSES
from maxmargin.encode.pose_encoder import DeformableEncoder
from maxmargin.estimators.foundation.arguments import Likelihood, MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, documented_by, estimator
from maxmargin.estimators.foundation.fitting import as_known
from maxmargin.estimators.foundation.predictions import find_encoder, known_log_likelihoods, log_likelihood, sample
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.trainers import LikelihoodTrainer
from maxmargin.parameters import parameter


class PoseData(FitOptions, total=False):
    """What poses can come with in training."""

    joint_weight: Annotated[
        ArrayLike | None, "(n, J) weights of the joints in the cost, such as 0 for those that are not visible"
    ]


@estimator
class DeformableModel(Precision, StructuredModel):
    """What the models of poses share."""

    edges: Any = parameter(
        "list of pairs of joints",
        "The edges of the skeleton, parent and child of each: a tree or a forest. Joints without edges are placed "
        "independently.",
        default=(),
    )
    n_types: int = parameter("int", "Clusters of ways from parent to child.", default=1, check=check_count)
    reference: Any = parameter(
        "pair of joints",
        "The distance of these two joints in the true pose is r; None is a quarter of the diagonal of the pose's box.",
        default=None,
    )
    min_stiffness: float = parameter(
        "float",
        "The smallest value of the quadratic weights w1 and w3: positive, for predictions in linear time.",
        default=0.01,
        check=check_positive,
    )
    image_types: bool = parameter(
        "bool",
        "Whether the type of an edge scores by the features of its parent's cell, too, with weights of its own.",
        default=False,
    )
    both_ways: bool = parameter(
        "bool",
        "Whether an edge has a spring in each direction, with types of its own; with ``image_types`` both ends have a "
        "say. Messages take ``n_types`` times as long.",
        default=False,
    )

    _encoder_type = DeformableEncoder
    _drawing = POSES

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on images and poses.

        Parameters
        ----------
        X
            List of (H_i, W_i, F) arrays: the features of each cell.
        y
            List of (J, 2) arrays: x (column) and y (row) of each joint, rounded to cells; NaN, or None in a list of
            joints, where it is unknown, and None where the whole pose is.
        """
        return self._fit(X, y, sample_weight, options)

    def _named_bounds(self, encoder: DeformableEncoder) -> dict[str, object]:
        least = np.array([self.min_stiffness, -np.inf, self.min_stiffness, -np.inf])
        return {"springs": (np.broadcast_to(least, (*encoder.anchor.shape[:2], 4)), None)}


@estimator
class DeformableSVM(MaxMargin, DeformableModel):
    """Structural SVM for poses: finds the cells of joints in grids of features, with springs between joints.

    A joint scores by the features of its cell, with weights of its own. An edge of the skeleton scores
    -(w1 u^2 + w2 u + w3 v^2 + w4 v), where (u, v) is the way from parent to child beyond its mean in training, in units
    of its spread there. With several types, ways are clustered, and each type has its own mean, weights and bias.
    With ``image_types=True`` and ``both_ways=True`` it is the model of Chen and Yuille (2014), Articulated pose
    estimation by a graphical model with image dependent pairwise relations.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. The cost is the mean over joints of min(1, d^2 / r^2),
    d the distance from the joint's true position; `score` is 1 minus the mean cost of predictions.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``unary`` (F, J), ``springs`` (A, K, 4), in the order w1 to w4, ``types`` (A, K), and with
        ``image_types`` those of types by features, ``image_types`` (F, A, K). A is the number of edges or, with
        ``both_ways``, twice that: from parents to children, then back.
    anchor_, scale_ : (A, K, 2), (A, 2) arrays
        The mean ways from parent to child of each type, or back, in x and y, and their spread, in cells.
    n_joints_, n_features_in_ : int
        The numbers of joints J and of features F.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DeformableSVM
    >>> rng = np.random.default_rng(0)
    >>> y = [np.array([[x, 2], [x + 2, 3]]) for x in (0, 1, 2, 3)]  # two joints: x and y of each
    >>> X = [rng.normal(size=(5, 6, 2)) for _ in y]
    >>> for grid, pose in zip(X, y):
    ...     grid[pose[:, 1], pose[:, 0]] += 4 * np.eye(2)
    >>> model = DeformableSVM(edges=[(0, 1)], random_state=0).fit(X, y)
    >>> model.predict(X)[0].tolist()
    [[0, 2], [2, 3]]
    """

    @documented_by(DeformableModel.fit)
    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[PoseData]) -> Self:
        return self._fit(X, y, sample_weight, options)


@estimator
class DeformableCRF(Likelihood, DeformableModel):
    """Conditional random field for poses: probabilities of the cells of joints in grids, with springs between joints.

    The probability of a pose, with a type of each edge, is its share of exp(score) among all, scored as by
    `DeformableSVM`; that of a pose alone is the sum over types, which are hidden in predictions. Sums over all poses of
    H x W cells take O(HW (H + W)) steps for each edge and type. `score` is that of `DeformableSVM`.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i {-log p(y_i, types_i)}, lambda = 1/(n C), and certifies how far
    from the optimum it can at most be.

    Attributes
    ----------
    coef_, anchor_, scale_, n_joints_, n_features_in_
        As those of `DeformableSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import DeformableCRF
    >>> rng = np.random.default_rng(0)
    >>> y = [np.array([[x, 2], [x + 2, 3]]) for x in (0, 1, 2, 3)]  # two joints: x and y of each
    >>> X = [rng.normal(size=(5, 6, 2)) for _ in y]
    >>> for grid, pose in zip(X, y):
    ...     grid[pose[:, 1], pose[:, 0]] += 4 * np.eye(2)
    >>> model = DeformableCRF(edges=[(0, 1)]).fit(X, y)
    >>> shares = model.predict_marginals(X)[0]  # (5, 6, 2), of each cell and joint
    >>> shares.sum(axis=(0, 1)).round(4).tolist()
    [1.0, 1.0]
    >>> bool(shares[2, 0, 0] > 0.5)
    True
    """

    _trainer = LikelihoodTrainer()

    @documented_by(log_likelihood)
    def log_likelihood(self, X: object, y: object) -> np.ndarray:
        find_encoder(self)
        return known_log_likelihoods(self, X, as_known(y))  # types are hidden

    sample = sample
