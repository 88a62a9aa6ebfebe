"""Predictions that some models have and others have not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from maxmargin import inference
from maxmargin.encode.names.vocabulary import Vocabulary
from maxmargin.estimators.foundation.fit_options import documents_prediction
from maxmargin.estimators.foundation.fitting import as_known, as_list
from maxmargin.problem import IMPOSSIBLE, AnyProblem, exp_oracle, restrict, topk_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.runtime.reach import Generic
from maxmargin.sklearn_contract import check_is_fitted
from maxmargin.structures.graphs.elimination_plan import NONE, TreewidthError

if TYPE_CHECKING:
    from maxmargin.encode.inputs.base_encoder import Encoder
    from maxmargin.estimators.foundation.predictor import Predictor
    from maxmargin.estimators.foundation.structured_model import StructuredModel


class Unavailable:
    """A method that a model has not got: as if it were not there, but for the reason in the error."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.reason}.")


def find_encoder(model: StructuredModel) -> Any:
    """The encoder of a fitted model, which knows what its weights are."""
    check_is_fitted(model)
    return model._encoder


def check_has(problem: AnyProblem, function: Generic, method: str) -> None:
    """Raise unless a problem implements what a method needs."""
    if supports(function, problem):
        return
    if hasattr(problem, "groups"):
        raise TypeError(f"{method} takes what is known of single nodes, and no tags or boxes.")
    if hasattr(problem, "plan"):
        i = int(np.argmax(problem.plan.which == NONE))
        raise TreewidthError(f"{method} needs graphs of small treewidth, but that of X[{i}] is too large.")
    if function is topk_oracle:
        needed = "a method k_best or outputs of the model, or topk_oracle of a problem"
        raise TypeError(f"{method} needs the K best outputs: {needed}.")
    raise TypeError(f"{method} needs {function.__name__} of the problem, which {type(problem).__name__} lacks.")


def agreeing(encoder: Encoder, problem: AnyProblem, known: object, name: str) -> AnyProblem:
    """A problem with only those outputs that agree with what is known of them, `name` in messages."""
    if not supports(restrict, problem):
        raise TypeError(f"{name} must be None: outputs of a {type(problem).__name__} cannot be ruled out.")
    return encoder.agreeing(problem, known, name)


def log_likelihood(self: StructuredModel, X: object, y: object) -> np.ndarray:
    """Log p(y_i | x_i) of an output of each example under p(y) ~ exp(score(y)): minus infinity if it is ruled out.

    Parameters
    ----------
    X, y
        As in `fit`, with lengths where there are any; where y says less than one output, it is the probability of all
        that agree with it.

    Returns
    -------
    (n,) array
    """
    return log_likelihoods(self, X, y)


@documents_prediction
def sample(
    self: Predictor, X: object, n_samples: int = 1, random_state: object = None, *, allowed: object = None
) -> list[Any]:
    """Independent outputs of each example, drawn from p(y) ~ exp(score(y)).

    Parameters
    ----------
    n_samples
        The number of outputs of each example.
    random_state : int, RandomState or Generator, default=None
        Seed of the draws.

    Returns
    -------
    list with n_samples outputs like y for each example: a list, or one array of them, such as (n_samples, T_i) labels

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainCRF
    >>> model = ChainCRF().fit([np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]])
    >>> model.sample([np.eye(2)], n_samples=5, random_state=0)[0].shape
    (5, 2)
    """
    return self._sample(self._problem(X, allowed), n_samples, random_state)


def log_likelihoods(model: StructuredModel, X: object, y: object, **data: object) -> np.ndarray:
    """Log p(y_i | x_i) of outputs, or of all outputs that agree with what is known."""
    encoder, y = find_encoder(model), as_known(y)
    if encoder.is_partial(y):
        return known_log_likelihoods(model, X, y, **data)
    problem = model._problem_with_truth(X, y, **data)
    check_has(problem, exp_oracle, "log_likelihood")
    encoder.check_seen(problem)
    return inference.log_likelihoods(problem, model._w, model.n_jobs)


def known_log_likelihoods(model: StructuredModel, X: object, known: object, **data: object) -> np.ndarray:
    """The logarithms of the probabilities of all outputs that agree with what is known of them."""
    problem = model._problem(X, **data)
    check_has(problem, exp_oracle, "log_likelihood")
    both = agreeing(model._encoder, problem, known, "y"), problem
    check_has(both[0], exp_oracle, "log_likelihood")
    some, every = (inference.marginals(part, model._w, model.n_jobs)[1] for part in both)
    return np.where(some < IMPOSSIBLE / 2, -np.inf, np.minimum(some - every, 0.0))


def known_marginals(model: StructuredModel, X: object, allowed: object = None) -> tuple[Any, np.ndarray]:
    """The probabilities of labels of nodes, or those of a relaxation, and which of them are exact."""
    problem = model._problem(X, allowed)
    means, is_exact = inference.known_marginals(problem, model._w, model.n_jobs)
    return model._encoder.arrange(problem, means), is_exact


@documents_prediction
def edge_probabilities(self: StructuredModel, X: object, *, allowed: object = None) -> list[np.ndarray]:
    """The probabilities of the labels of both nodes of each edge, as `predict_marginals` has those of single nodes.

    Returns
    -------
    list of (E_i, L, L) arrays
        Edges as they are in X: labels of the first node in rows, of trees the parent, those of the second one in
        columns, in the order of `classes_`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import TreeCRF
    >>> X = [(np.eye(3), [(0, 1), (0, 2)]), (np.eye(3)[[0, 1]], [(0, 1)])]
    >>> model = TreeCRF(C=10.0).fit(X, [["a", "b", "c"], ["a", "b"]])
    >>> pairs = model.edge_probabilities(X)[0]
    >>> pairs.shape, np.allclose(pairs[1].sum(axis=0), model.predict_marginals(X)[0][2])
    ((2, 3, 3), True)
    """
    encoder, examples = find_encoder(self), as_list(X)
    examples = [*examples] if isinstance(examples, Iterator) else examples
    problem = self._problem(examples, allowed, **encoder.of_edges)
    means, _ = inference.known_marginals(problem, self._w, self.n_jobs)
    edges = [np.asarray(example[1], np.int64).reshape(-1, 2) for example in examples]
    return encoder.arrange_edges(problem, means, edges)


def feature_names(self: StructuredModel) -> np.ndarray:
    """The names of the features, if they have any and are not hashed."""
    return _names_in(getattr(find_encoder(self), "vocabulary", None), "feature_names_in_")


def edge_feature_names(self: StructuredModel) -> np.ndarray:
    """The names of the features of transitions, if they have any and are not hashed."""
    return _names_in(getattr(find_encoder(self), "edge_vocabulary", None), "edge_feature_names_in_")


def segment_feature_names(self: StructuredModel) -> np.ndarray:
    """The names of the features of segments, if they have any and are not hashed."""
    return _names_in(getattr(find_encoder(self), "segment_vocabulary", None), "segment_feature_names_in_")


def _names_in(vocabulary: Vocabulary | None, name: str) -> np.ndarray:
    if vocabulary is None or vocabulary.n_hashed is not None:
        raise AttributeError(f"{name} is only there for features that were given by name, not hashed.")
    return np.array(vocabulary.names, object)
