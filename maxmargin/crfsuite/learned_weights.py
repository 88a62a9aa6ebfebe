"""What a CRF has learned, as sklearn-crfsuite shows it."""

from __future__ import annotations

import numpy as np

from maxmargin.estimators.chain_models import ChainCRF, ChainSVM

Label = str | int


class LearnedWeights:
    """Weights by the names of attributes and labels."""

    def _fitted(self) -> ChainCRF | ChainSVM:
        """The model behind it."""
        raise NotImplementedError

    @property
    def state_features_(self) -> dict[tuple[str, Label], float]:
        """The weights of pairs of an attribute and a label that are not zero."""
        model = self._fitted()
        table = model.coef_.emissions
        rows, columns = table.nonzero()
        labels = model.classes_[columns].tolist()
        weights = np.asarray(table[rows, columns]).ravel().tolist()
        return dict(zip(zip(model.feature_names_in_[rows].tolist(), labels, strict=True), weights, strict=True))

    @property
    def transition_features_(self) -> dict[tuple[Label, Label], float]:
        """The weights of pairs of two labels, the second of which follows the first, that are not zero."""
        model = self._fitted()
        rows, columns = np.nonzero(model.coef_.transitions)
        pairs = zip(model.classes_[rows].tolist(), model.classes_[columns].tolist(), strict=True)
        return dict(zip(pairs, model.coef_.transitions[rows, columns].tolist(), strict=True))

    @property
    def attributes_(self) -> list[str]:
        """The attributes that have a weight that is not zero."""
        model = self._fitted()
        rows, _ = model.coef_.emissions.nonzero()
        return model.feature_names_in_[np.unique(rows)].tolist()

    @property
    def num_attributes_(self) -> int:
        """Their number."""
        return len(self.attributes_)
