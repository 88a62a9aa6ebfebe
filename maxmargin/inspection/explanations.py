"""Why positions of sequences got their labels: what speaks for each, in comparison with another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import inference
from maxmargin.display.markup import table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.encode.chain_encoder import ChainEncoder, append_biases
from maxmargin.encode.inputs.rows import in_one_matrix, stack_rows
from maxmargin.encode.names.vocabulary import known_by_name
from maxmargin.encode.sentences.transition_rows import read_transitions
from maxmargin.inspection.chain_weights import feature_names, find_chain, node_weights, number_of
from maxmargin.problem import AnyProblem, restrict
from maxmargin.runtime import interpreted
from maxmargin.sklearn_contract import Estimator
from maxmargin.text.token_features.named_features import is_named
from maxmargin.wording import quote

if TYPE_CHECKING:
    from maxmargin.estimators.chain_models import ChainCRF, ChainSVM

AT_ONCE = 32  # sequences
FEW = 20_000  # steps along transitions, for which nothing is compiled


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
    X: Any = x if is_named(x) else [x]
    given: Any = None if edge_features is None else [edge_features]
    return explain_all(model, X, [(0, position, rival)], edge_features=given)[0]


def explain_all(
    model: Estimator,
    X: Any,
    places: Sequence[tuple[int, int, object]],
    *,
    edge_features: Any = None,
    names: Sequence[object] | None = None,
) -> list[Explanation]:
    """What `explain` says of many positions, faster.

    Parameters
    ----------
    model
        A fitted `ChainSVM` or `ChainCRF`.
    X
        Sequences as in `fit`.
    places
        For each the number of its sequence, its position there, and the label to compare with, or None.
    edge_features
        As in `fit`.
    names
        What to call the labels, in the order of ``model.classes_``: those that share a name count as one.

    Examples
    --------
    >>> from maxmargin import ChainCRF
    >>> from maxmargin.inspection import explain_all
    >>> X = [[["the"], ["dog"]], [["dog"], ["runs"]]]
    >>> model = ChainCRF().fit(X, [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> [(found.label, found.rival) for found in explain_all(model, X, [(0, 0, None), (1, 1, "DET")])]
    [('DET', 'NOUN'), ('VERB', 'DET')]
    """
    model, encoder = find_chain(model)
    weights, found = ChainWeights.of(model, encoder), dict[int, Explanation]()
    called = encoder.classes if names is None else np.asarray(names)
    of_portions = defaultdict[int, list[int]](list)
    for k, (i, _, _) in enumerate(places):
        of_portions[i // AT_ONCE].append(k)
    for portion, numbers in of_portions.items():
        which = slice(portion * AT_ONCE, (portion + 1) * AT_ONCE)
        edges = None if edge_features is None else edge_features[which]
        compared = Compared(model, encoder, weights, X[which], edges, called)
        those = [(places[k][0] % AT_ONCE, *places[k][1:]) for k in numbers]
        found.update(zip(numbers, compared.explain(those), strict=True))
    return [found[k] for k in range(len(places))]


class ChainWeights(NamedTuple):
    """The weights of a model of chains, and their names."""

    nodes: Any  # (F + biases, L)
    names: list[str]
    transitions: np.ndarray  # (L, L)
    edges: Any  # (F_edge, L^2), or None
    edge_names: list[str] | None
    trigrams: np.ndarray | None  # (L, L, L)

    @classmethod
    def of(cls, model: ChainSVM | ChainCRF, encoder: ChainEncoder) -> ChainWeights:
        coef, n_labels, named = model.coef_, len(encoder.classes), encoder.edge_vocabulary
        return cls(
            node_weights(model),
            feature_names(encoder),
            np.asarray(coef.transitions, np.float64),
            coef.edges.reshape(encoder.n_edge_features, -1) if encoder.n_edge_features else None,
            named.names if named is not None and not named.n_hashed else None,
            as_dense(coef.trigrams).reshape((n_labels,) * 3) if model.order == 2 else None,
        )


class Compared:
    """Some sequences, their best labellings, and what the best ones with another label at a position lack."""

    def __init__(
        self,
        model: ChainSVM | ChainCRF,
        encoder: ChainEncoder,
        weights: ChainWeights,
        X: object,
        edge_features: object,
        names: np.ndarray,
    ) -> None:
        self.model, self.encoder, self.weights, self.names = model, encoder, weights, names
        named = known_by_name(X, encoder.vocabulary, may_be_empty=True)
        rows = stack_rows(named, None, encoder.n_features_in, may_be_empty=True)
        rows = encoder.stored(in_one_matrix(rows), append_biases)
        width, named = encoder.n_edge_features, encoder.edge_vocabulary
        self.edges = read_transitions(X, edge_features, rows.lengths, named, width)
        self.problem = encoder.problem(X, edge_features=edge_features)
        self.matrix, self.starts = sp.csr_array(rows.matrix), rows.starts
        columns, self.columns = np.unique(self.matrix.indices, return_inverse=True)
        self.table = as_dense(weights.nodes[columns])  # (U, L) of features that are there
        self.best = self.decode(self.problem)

    def decode(self, problem: AnyProblem) -> np.ndarray:
        """The numbers of the best labels of all positions."""
        return inference.best_outputs(problem, self.model._w, self.model.n_jobs).values

    def find_through(self) -> np.ndarray:
        """(N, L) the scores of the best labellings with each label; nothing is compiled for a few positions."""
        n_labels, sizes = len(self.encoder.classes), np.diff(self.starts)
        with interpreted() if self.starts[-1] * n_labels**2 < FEW else nullcontext():
            found = inference.best_through_parts(self.problem, self.model._w, self.model.n_jobs)
        tables = [
            found.values[lo : lo + n * n_labels] for lo, n in zip(found.starts.tolist(), sizes.tolist(), strict=False)
        ]
        return np.concatenate([*tables, np.zeros(0)]).reshape(-1, n_labels)

    def find_seconds(self, rivals: Sequence[tuple[int, int, int | None]]) -> list[np.ndarray | None]:
        """The best labels of sequences with another one at a position, or None; of each sequence one at a time."""
        waiting = defaultdict[int, list[int]](list)
        for k, (i, _, rival) in enumerate(rivals):
            if rival is not None:
                waiting[i].append(k)
        found: list[np.ndarray | None] = [None] * len(rivals)
        while waiting:
            now = [numbers.pop() for numbers in waiting.values()]
            excluded = np.zeros((self.starts[-1], len(self.encoder.classes)), bool)
            for i, t, rival in (rivals[k] for k in now):
                excluded[self.starts[i] + t] = True
                excluded[self.starts[i] + t, rival] = False
            labels = self.decode(restrict(self.problem, self.encoder.exclude(self.problem, excluded)))
            for k in now:
                found[k] = labels[slice(*self.starts[rivals[k][0] :][:2])]
            waiting = defaultdict(list, {i: numbers for i, numbers in waiting.items() if numbers})
        return found

    def explain(self, places: Sequence[tuple[int, int, object]]) -> Iterator[Explanation]:
        """Why each of these has its label."""
        for i, t, _ in places:
            self.check_position(i, t)
        through = self.find_through()
        rivals = [(i, t, self.find_rival(through, int(self.starts[i] + t), rival)) for i, t, rival in places]
        for (i, t, rival), second in zip(rivals, self.find_seconds(rivals), strict=True):
            best = self.best[slice(*self.starts[i:][:2])]
            labelling = self.names[best].tolist()
            if rival is None or second is None:
                yield Explanation(int(t), labelling[t], None, np.inf, labelling, [], [])
                continue
            found = sorted((c for c in self.compare(i, best, second) if c.value), key=lambda c: -abs(c.value))
            margin = sum(c.value for c in found)
            rival_labelling = self.names[second].tolist()
            yield Explanation(int(t), labelling[t], rival_labelling[t], margin, labelling, rival_labelling, found)

    def check_position(self, i: int, t: object) -> None:
        """Raise unless a sequence has the position."""
        length = int(self.starts[i + 1] - self.starts[i])
        if not (isinstance(t, (int, np.integer)) and 0 <= t < length):
            where = f"one from 0 to {length - 1}" if length else "that of an item, but the sequence is empty"
            raise ValueError(f"position must be {where}, not {quote(t)}.")

    def find_rival(self, through: np.ndarray, row: int, rival: object) -> int | None:
        """The number of the label to compare with, the runner-up if none is given; None if no labelling has it."""
        name = self.names[self.best[row]]
        if rival is None:
            may_be = self.names != name
        elif rival == name:
            at = row - int(self.starts[np.searchsorted(self.starts, row, "right") - 1])
            raise ValueError(f"rival must be another label than {quote(rival)}, which position {at} has.")
        else:
            may_be = self.names == self.names[number_of(self.names, rival)]
        scores = np.where(may_be, through[row], -np.inf)
        number = int(np.argmax(scores))
        return None if scores[number] == -np.inf else number

    def compare(self, i: int, best: np.ndarray, second: np.ndarray) -> Iterator[Contribution]:
        """What features, transitions and trigrams add to the score of labels of sequence i over that of others."""
        differ = np.flatnonzero(best != second).tolist()
        for t in differ:
            which = slice(*self.matrix.indptr[self.starts[i] + t :][:2])
            weights = self.table[self.columns[which]]
            values = self.matrix.data[which] * (weights[:, best[t]] - weights[:, second[t]])
            for f, value in zip(self.matrix.indices[which].tolist(), values.tolist(), strict=True):
                yield Contribution(t, self.weights.names[f], value)
        for t in follow(differ, 1, len(best)):
            yield from self.compare_transitions(i, t, tuple(best[t - 1 : t + 1]), tuple(second[t - 1 : t + 1]))
        if self.weights.trigrams is not None:
            for t in follow(differ, 2, len(best)):
                ours, theirs = tuple(best[t - 2 : t + 1]), tuple(second[t - 2 : t + 1])
                value = self.weights.trigrams[ours] - self.weights.trigrams[theirs]
                yield Contribution(t, self.name_change(ours, theirs), float(value))

    def compare_transitions(
        self, i: int, t: int, ours: tuple[int, ...], theirs: tuple[int, ...]
    ) -> Iterator[Contribution]:
        """The same of the transition to position t, and of its features."""
        change = self.name_change(ours, theirs)
        yield Contribution(t, change, float(self.weights.transitions[ours] - self.weights.transitions[theirs]))
        if self.edges is None:
            return
        n_labels, names = len(self.encoder.classes), self.weights.edge_names
        row = sp.csr_array(self.edges.matrix[[self.edges.starts[i] + t - 1]])
        pairs = [a * n_labels + b for a, b in (ours, theirs)]
        weights = as_dense(self.weights.edges[row.indices][:, pairs])
        for f, value in zip(row.indices.tolist(), row.data * (weights[:, 0] - weights[:, 1]), strict=True):
            yield Contribution(t, f"{names[f] if names else f'edge feature {f}'}, {change}", float(value))

    def name_change(self, *labels: tuple[int, ...]) -> str:
        """How labels in a row are called, and others."""
        return ", not ".join(" -> ".join(str(self.encoder.classes[k]) for k in row) for row in labels)


def follow(positions: Sequence[int], n_before: int, length: int) -> list[int]:
    """The positions that have as many before them, and one of these or themselves among those given."""
    return sorted({s for t in positions for s in range(max(t, n_before), min(t + n_before + 1, length))})


def as_dense(table: Any) -> np.ndarray:
    """A table with its zeros, in float64."""
    return np.asarray(table.toarray() if sp.issparse(table) else table, np.float64)
