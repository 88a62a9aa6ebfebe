"""What the classifiers of the rows of a matrix share: scikit-learn's checks and tags."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.checks import check_unmasked
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.encode.inputs.example_checks import check_last_characters, check_sparse
from maxmargin.estimators.foundation.arguments import Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, estimator
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.parameters import parameter
from maxmargin.problem import AnyProblem
from maxmargin.supervision.weak import Learned

if TYPE_CHECKING:
    from sklearn.utils import Tags


@estimator
class RowClassifier(Precision, StructuredModel):
    """A scikit-learn classifier of the rows of a matrix."""

    fit_intercept: bool = parameter(
        "bool", "Add a constant to the scores of each class or label, regularized like the other weights.", default=True
    )

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.input_tags.two_d_array = True
        return tags

    def partial_fit(  # type: ignore[override]
        self,
        X: object,
        y: object,
        classes: object = None,
        sample_weight: ArrayLike | None = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Go on from a fitted model with further examples, as `StructuredModel.partial_fit` does.

        Parameters
        ----------
        X, y, sample_weight, options
            As in `fit`.
        classes
            As scikit-learn has it, but without a use: later examples may have other classes.

        Returns
        -------
        self
        """
        return super().partial_fit(X, y, sample_weight, **options)

    def _check_rows(self, X: object, *y: object, **options: object) -> Any:
        """The rows, and what goes with them in training, as scikit-learn checks them."""
        from sklearn.utils.validation import validate_data  # slow to import

        for name, values in zip("Xy", (X, *y), strict=False):  # before scikit-learn converts them
            check_unmasked(name, values)
        if sp.issparse(X):
            check_sparse(X, "X")
        if y and isinstance(y[0], list):
            check_last_characters(y[0], "y")
        return validate_data(self, X, *y, accept_sparse="csr", dtype=(np.float64, np.float32), **options)

    def _check_targets(self, y: np.ndarray) -> None:
        """Raise unless the targets, which scikit-learn has checked, are such as it can learn."""

    def _learn(self, X: object, y: object, *, multi_output: bool = False, **data: Any) -> Learned:
        model = copy(self)  # a failed fit changes nothing
        rows, targets = model._check_rows(X, y, multi_output=multi_output, reset="former" not in data)
        self._check_targets(targets)
        return super()._learn(rows, targets, feature_names=vars(model).get("feature_names_in_"), **data)

    def _set_weights(self, encoder: Encoder, w: np.ndarray) -> None:
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        super()._set_weights(encoder, w)

    def _read(self, X: object, **data: object) -> AnyProblem:
        return self._encoder.scored(self._encoder.problem(self._check_rows(X, reset=False), **data), self._w)
