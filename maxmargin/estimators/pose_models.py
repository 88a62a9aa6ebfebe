"""Structural SVMs that place joints on grids, held together by springs."""

from __future__ import annotations

from typing import Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_count, check_positive
from maxmargin.encode.pose_encoder import DeformableEncoder
from maxmargin.estimators.foundation.arguments import MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, estimator
from maxmargin.estimators.foundation.predictions import Unavailable
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter


class PoseData(FitOptions, total=False):
    """What poses can come with in training."""

    joint_weight: Annotated[
        ArrayLike | None, "(n, J) weights of the joints in the cost, such as 0 for those that are not visible"
    ]


@estimator
class DeformableSVM(MaxMargin, Precision, StructuredModel):
    """Structural SVM for poses: finds the cells of joints in grids of features, with springs between joints.

    A joint scores by the features of its cell, with weights of its own. An edge of the skeleton scores
    -(w1 u^2 + w2 u + w3 v^2 + w4 v), where (u, v) is the way from parent to child beyond its mean in training, in units
    of its spread there. With several types, ways are clustered, and each type has its own mean, weights and bias.

    Minimises (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost(y_i, y) + score(y) - score(y_i)}, lambda = 1/(n C),
    and certifies how far from the optimum it can at most be. The cost is the mean over joints of min(1, d^2 / r^2),
    d the distance from the joint's true position; `score` is 1 minus the mean cost of predictions.

    Attributes
    ----------
    coef_ : Bunch
        The weights: ``unary`` (F, J), ``springs`` (E, K, 4), in the order w1 to w4, and ``types`` (E, K).
    anchor_, scale_ : (E, K, 2), (E, 2) arrays
        The mean ways from parent to child of each type, in x and y, and their spread, in cells.
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

    _encoder_type = DeformableEncoder

    predict_marginals = Unavailable("sums over all poses are out of reach")

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[PoseData]) -> Self:
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

    def _named_bounds(self, encoder: DeformableEncoder) -> dict[str, Any]:
        least = np.array([self.min_stiffness, -np.inf, self.min_stiffness, -np.inf])
        return {"springs": (np.broadcast_to(least, (*encoder.anchor.shape[:2], 4)), None)}
