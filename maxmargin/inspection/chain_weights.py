"""The weights of a model of chains as inspections look at them: by the numbers of features and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.encode.chain_encoder import BIASES, ChainEncoder
from maxmargin.sklearn_contract import Estimator, check_is_fitted
from maxmargin.wording import name_type, quote

if TYPE_CHECKING:
    from maxmargin.estimators.chain_models import ChainCRF, ChainSVM


def is_chain(model: Any) -> bool:
    """Whether a fitted model is a `ChainSVM` or a `ChainCRF`: one of sequences whose features have weights."""
    return isinstance(getattr(model, "_encoder", None), ChainEncoder) and "emissions" in model.coef_


def find_chain(model: Estimator) -> tuple[ChainSVM | ChainCRF, ChainEncoder]:
    """A model of chains that was fitted, and its encoder; that of a `Tagger`, or of a `crfsuite.CRF`, is within."""
    chain: Any = getattr(model, "model_", model)
    check_is_fitted(chain)
    if not is_chain(chain):
        raise TypeError(f"model must be a ChainSVM or a ChainCRF, not {name_type(chain)}.")
    return chain, chain._encoder


def number_of(classes: np.ndarray, label: object) -> int:
    """The number of a label among the classes."""
    labels = classes.tolist()
    if label not in labels:
        raise ValueError(f"{quote(label)} is not a label of the model, which has {quote(labels)}.")
    return labels.index(label)


def node_weights(model: ChainSVM | ChainCRF) -> np.ndarray | sp.csr_array:
    """(F + biases, L) the weights of features and of biases."""
    emissions, biases = model.coef_.emissions, [model.coef_[name] for name in BIASES if name in model.coef_]
    if sp.issparse(emissions):
        return sp.vstack([emissions, sp.csr_array(np.stack(biases))], format="csr") if biases else emissions
    return np.vstack([emissions, *biases])


def feature_names(encoder: ChainEncoder) -> list[str]:
    """The names of all features and, after these, of biases."""
    vocabulary, width = encoder.vocabulary, encoder.n_features_in
    if vocabulary is None or vocabulary.n_hashed is not None:
        names = [f"feature {f}" for f in range(width)]
    else:
        names = vocabulary.names
    return [*names, *(f"({name})" for name in BIASES)]
