"""What a model of sequences has learned, and why a position got its label."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import inference
from maxmargin.checks import check_count
from maxmargin.display.markup import table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.encode.chain_encoder import BIASES, ChainEncoder, append_biases
from maxmargin.encode.inputs.rows import in_one_matrix, stack_rows
from maxmargin.encode.sentences.transition_rows import read_transitions, with_constant
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.foundation.predictions import find_encoder
from maxmargin.runtime import interpreted
from maxmargin.sklearn_contract import Estimator, check_is_fitted
from maxmargin.text.token_features.named_features import is_named
from maxmargin.wording import quote


class Weight(NamedTuple):
    """The weight of a feature for a label, or of a transition from one label to another."""

    of: str
    label: Any
    weight: float


class Contribution(NamedTuple):
    """What a feature, or a transition, adds to the score of a labelling over that of its rival.

    Attributes
    ----------
    position
        Where; of a transition, that of its second label.
    of
        The name of the feature, or both transitions, such as "O -> B-PER, not O -> O".
    value
        How much.
    """

    position: int
    of: str
    value: float


class Explanation(NamedTuple):
    """Why a position has a label and not another.

    Attributes
    ----------
    position
        The position.
    label
        Its label in the predicted labelling.
    rival
        The other label; the runner-up, whose best labelling comes closest, unless another was asked for; None if no
        labelling that is allowed has it.
    margin
        How much higher the score of the predicted labelling is than that of the best labelling with the rival.
    labelling, rival_labelling
        Both.
    contributions : list of `Contribution`, the largest first, which add up to the margin
    """

    position: int
    label: Any
    rival: Any
    margin: float
    labelling: list[Any]
    rival_labelling: list[Any]
    contributions: list[Contribution]

    def __str__(self) -> str:
        if self.rival is None:
            return f"{self.label}: nothing else is allowed"
        first = f"{self.label} and not {self.rival}: by {self.margin:.4g}"
        return "\n".join([first, *(f"{c.value:+10.4f}  {c.of}  (position {c.position})" for c in self.contributions)])

    def _repr_html_(self) -> str:
        if self.rival is None:
            return show_in_notebook(tag("p", self))
        told = tag("p", tag("strong", self.label), f" and not {self.rival}: by {self.margin:.4g}")
        rows = [(f"{c.value:+.4f}", c.of, c.position) for c in self.contributions]
        return show_in_notebook(told, table(("adds", "what", "position"), rows))


def strongest_features(model: Estimator, label: object, k: int = 10) -> list[Weight]:
    """The features that speak most for a label, or most against it.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    label
        One of its `classes_`.
    k
        The number of features.

    Returns
    -------
    list of `Weight`, the largest in absolute value first; those of weight 0 are left out

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import strongest_features
    >>> model = ChainCRF(fit_intercept=False).fit([[["the"], ["dog"]], [["dog"]]], [["DET", "NOUN"], ["NOUN"]])
    >>> [(found.of, found.weight > 0) for found in strongest_features(model, "NOUN")]
    [('dog', True), ('the', False)]
    """
    check_count("k", k)
    model, encoder = _find_chain(model)
    table = _node_weights(model)[:, [_number(encoder, label)]]
    column = (table.toarray() if sp.issparse(table) else np.asarray(table))[:, 0]
    order = np.argsort(-np.abs(column), kind="stable")[:k]
    names = _feature_names(encoder, order)
    return [Weight(name, label, float(column[f])) for name, f in zip(names, order, strict=True) if column[f]]


def strongest_transitions(model: Estimator, k: int | None = None) -> list[tuple[Any, Any, float]]:
    """The weights of transitions, the largest in absolute value first.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    k
        How many; all by default.

    Returns
    -------
    list of tuples of a label, the one that follows it, and the weight; those that are ruled out, or 0, are left out

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import strongest_transitions
    >>> model = ChainCRF().fit([[["the"], ["dog"]], [["a"], ["cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> strongest_transitions(model, 1)[0][:2]
    ('DET', 'NOUN')
    """
    model, encoder = _find_chain(model)
    table = model.coef_.transitions
    rows, columns = np.nonzero((table != 0) & (encoder.penalty == 0))
    order = np.argsort(-np.abs(table[rows, columns]), kind="stable")[:k]
    classes = encoder.classes
    return [
        (classes[a].item(), classes[b].item(), float(table[a, b]))
        for a, b in zip(rows[order], columns[order], strict=True)
    ]


def explain(
    model: Estimator, x: object, position: int, rival: object = None, *, edge_features: object = None
) -> Explanation:
    """Why a position has its label: what speaks for it, and against it, in comparison with another one.

    The predicted labelling is compared with the best one that has the rival at this position. They may differ
    elsewhere, too; then features of other positions contribute, as do transitions.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    x
        A sequence, as in `fit`; or `maxmargin.text.NamedFeatures` of one.
    position
        Which position, from 0.
    rival
        The label to compare with; by default the runner-up.
    edge_features
        Of the transitions of the sequence, where the model has weights for such.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import explain
    >>> model = ChainCRF().fit([[["the"], ["dog"]], [["dog"], ["runs"]]], [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> found = explain(model, [["the"], ["dog"]], 0)
    >>> found.label, found.rival, found.margin > 0
    ('DET', 'NOUN', True)
    >>> "the" in [contribution.of for contribution in found.contributions if contribution.value > 0]
    True
    """
    model, encoder = _find_chain(model)
    X: Any = x if is_named(x) else [x]
    rows = in_one_matrix(stack_rows(encoder.by_name(X), None, encoder.n_features_in))
    rows = encoder.stored(rows, append_biases)
    length, classes = rows.matrix.shape[0], encoder.classes
    if not (isinstance(position, (int, np.integer)) and 0 <= position < length):
        raise ValueError(f"position must be one from 0 to {length - 1}, not {quote(position)}.")
    given: Any = {"edge_features": None if edge_features is None else [edge_features]}
    weights = _node_weights(model)
    edge_rows, edge_weights = _edges(model, encoder, X, given["edge_features"], length)
    best = np.searchsorted(classes, model.predict(X, **given)[0])
    if rival is None:
        through = _best_through(encoder.problem(X, **given), model._w, position, len(classes))
        through[best[position]] = -np.inf
        other = int(np.argmax(through))
    else:
        other = _number(encoder, rival)
        if other == best[position]:
            raise ValueError(f"rival must be another label than {quote(rival)}, which position {position} has.")
    labelling = classes[best].tolist()
    second = None if other == best[position] else _best_with(model, X, given, length, position, classes[other].item())
    if second is None:
        return Explanation(int(position), labelling[position], None, np.inf, labelling, [], [])
    found = _of_features(encoder, rows.matrix, weights, best, second)
    found += _of_transitions(encoder, edge_rows, edge_weights, best, second)
    found += _of_trigrams(model, classes, best, second)
    return Explanation(
        int(position),
        labelling[position],
        classes[other].item(),
        sum(contribution.value for contribution in found),
        labelling,
        classes[second].tolist(),
        sorted((c for c in found if c.value), key=lambda c: -abs(c.value)),
    )


def _best_with(
    model: ChainSVM | ChainCRF, X: Any, given: Any, length: int, position: int, label: object
) -> np.ndarray | None:
    """The numbers of the best labels with one of them given; None where no labelling that is allowed has it."""
    known: list[Any] = [None] * length
    known[position] = {label}
    try:
        found = model.predict(X, allowed=[known], **given)[0]
    except ValueError:
        return None
    return np.searchsorted(model.classes_, found)


def _find_chain(model: Estimator) -> tuple[ChainSVM | ChainCRF, ChainEncoder]:
    """A model of chains that was fitted, and its encoder; that of a `Tagger`, or of a `crfsuite.CRF`, is within."""
    chain = getattr(model, "model_", model)
    check_is_fitted(chain)
    if not isinstance(chain, ChainSVM | ChainCRF):
        raise TypeError(f"model must be a ChainSVM or a ChainCRF, not a {type(chain).__name__}.")
    return chain, find_encoder(chain)


def _edges(
    model: ChainSVM | ChainCRF, encoder: ChainEncoder, X: object, edge_features: object, length: int
) -> tuple[sp.csr_array, object]:
    """(T - 1, 1 + F_edge) the features of transitions, the constant one first, and their weights, of as many rows."""
    rows = read_transitions(X, edge_features, np.array([length]), encoder.edge_vocabulary, encoder.n_edge_features)
    constant = model.coef_.transitions.reshape(1, -1)
    if rows is None:
        return sp.csr_array(np.ones((length - 1, 1))), constant
    table = model.coef_.edges.reshape(encoder.n_edge_features, -1)
    both = sp.vstack([sp.csr_array(constant), table], format="csr") if sp.issparse(table) else [constant, table]
    return sp.csr_array(with_constant(rows).matrix), both if sp.issparse(table) else np.vstack(both)


def _as_dense(table: Any) -> np.ndarray:
    return np.asarray(table.toarray() if sp.issparse(table) else table, np.float64)


def _best_through(problem: Any, w: np.ndarray, position: int, n_labels: int) -> np.ndarray:
    """(L,) the scores of the best labellings with each label there; nothing is compiled for a single sequence."""
    with interpreted():
        found = inference.best_through_parts(problem, w)
    return found.values[position * n_labels : (position + 1) * n_labels].astype(np.float64)


def _number(encoder: ChainEncoder, label: object) -> int:
    labels = encoder.classes.tolist()
    if label not in labels:
        raise ValueError(f"{quote(label)} is not a label of the model, which has {quote(labels)}.")
    return labels.index(label)


def _node_weights(model: ChainSVM | ChainCRF) -> Any:
    """(F + biases, L) the weights of features and of biases."""
    emissions, biases = model.coef_.emissions, [model.coef_[name] for name in BIASES if name in model.coef_]
    if sp.issparse(emissions):
        return sp.vstack([emissions, sp.csr_array(np.stack(biases))], format="csr") if biases else emissions
    return np.vstack([emissions, *biases])


def _feature_names(encoder: ChainEncoder, which: np.ndarray) -> list[str]:
    """The names of features and, after these, of biases."""
    vocabulary, width = encoder.vocabulary, encoder.n_features_in
    names = None if vocabulary is None or vocabulary.n_hashed is not None else vocabulary.names
    return [
        f"({BIASES[f - width]})" if f >= width else names[f] if names is not None else f"feature {f}"
        for f in which.tolist()
    ]


def _of_features(
    encoder: ChainEncoder, matrix: Any, weights: Any, best: np.ndarray, second: np.ndarray
) -> list[Contribution]:
    where = np.flatnonzero(best != second)
    if not len(where):
        return []
    chosen = sp.csr_array(matrix[where])
    positions, rows = np.repeat(where, np.diff(chosen.indptr)), _as_dense(weights[chosen.indices])
    each = np.arange(len(positions))
    values = chosen.data * (rows[each, best[positions]] - rows[each, second[positions]])
    named = zip(positions.tolist(), _feature_names(encoder, chosen.indices), values.tolist(), strict=True)
    return [Contribution(*one) for one in named]


def _of_transitions(
    encoder: ChainEncoder, rows: sp.csr_array, weights: Any, best: np.ndarray, second: np.ndarray
) -> list[Contribution]:
    found, classes = [], encoder.classes
    named = (
        None if encoder.edge_vocabulary is None or encoder.edge_vocabulary.n_hashed else encoder.edge_vocabulary.names
    )
    for t in range(1, len(best)):
        pairs = (best[t - 1], best[t]), (second[t - 1], second[t])
        if pairs[0] == pairs[1]:
            continue
        ours, theirs = (" -> ".join(str(classes[k]) for k in pair) for pair in pairs)
        columns = [a * len(classes) + b for a, b in pairs]
        row = rows[[t - 1]]
        for f, x in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            values = _as_dense(weights[[f]])[0, columns]
            of = "" if f == 0 else f"{named[f - 1] if named else f'edge feature {f - 1}'}, "
            found.append(Contribution(t, f"{of}{ours}, not {theirs}", x * float(values[0] - values[1])))
    return found


def _of_trigrams(
    model: ChainSVM | ChainCRF, classes: np.ndarray, best: np.ndarray, second: np.ndarray
) -> list[Contribution]:
    if model.order == 1:
        return []
    table, found = _as_dense(model.coef_.trigrams).reshape((len(classes),) * 3), []
    for t in range(2, len(best)):
        three = tuple(best[t - 2 : t + 1]), tuple(second[t - 2 : t + 1])
        if three[0] != three[1]:
            ours, theirs = (" -> ".join(str(classes[k]) for k in labels) for labels in three)
            found.append(Contribution(t, f"{ours}, not {theirs}", float(table[three[0]] - table[three[1]])))
    return found
