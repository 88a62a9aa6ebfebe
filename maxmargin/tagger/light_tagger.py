"""A tagger by NumPy alone, for a few sentences: all that compiles, and trains, would take longer to load than they do.

It reads the file of a `Tagger`, makes the same features, adds up the same weights in the same order, and finds the best
tags by the same rules (`maxmargin.structures.chains.chain_dp`). What it does not know it leaves to the whole tagger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from maxmargin.encode.names.name_columns import NOWHERE, Columns
from maxmargin.persist import Location, container, load_open
from maxmargin.persist.values import Reader
from maxmargin.structures.chains.numpy_paths import best_path, marginals
from maxmargin.tagger.text_tagger import TextTagger
from maxmargin.text.document_tags import with_votes
from maxmargin.text.entity_chances import Chances, ScoredEntity, continuations
from maxmargin.text.inner_tags import DEPENDS, find_meetings, merge_columns, outer_classes
from maxmargin.text.schemes import find_entities, spell_entities
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.text.token_features.named_features import find_dense
from maxmargin.text.token_features.tokens import Token

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger

# Nanoseconds, about: of a token, and of each pair of labels there; those of all sentences that it takes, which are less
# than what it takes to load the whole tagger.
TOKEN, PAIR, PAIR_SUM, MOST = 30_000, 3, 30, 300_000_000


def open_tagger(path: Location, n_jobs: int | None = -1) -> Tagger | LightTagger:
    """What tags the first sentences soonest: a `LightTagger` where the model is one of those that it knows.

    It tags many sentences on so many threads.
    """
    file = open(path, "rb")  # noqa: SIM115  (it stays open: another model may take its place meanwhile)
    with suppress(Exception):  # whatever is wrong, the whole tagger says it
        return LightTagger(file, path, n_jobs)
    with file:
        return load_open(file, path)


class LightChain(NamedTuple):
    """The weights of a model of sequences: of feature f, weights[starts[f]:starts[f + 1]] of the labels there."""

    classes: np.ndarray
    columns: Columns
    has_bias: bool
    weights: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    transitions: np.ndarray  # (L, L)
    penalty: np.ndarray  # (L, L) of transitions that are excluded
    end_penalty: np.ndarray  # (2, L)
    dense: np.ndarray  # (D, L) weights of dense columns, times their factor

    @classmethod
    def of(cls, encoder: dict[str, Any], w: np.ndarray, read: Reader) -> LightChain:
        """Of the parts of a `ChainEncoder` in a file, and all weights."""
        known = _parts(encoder["vocabulary"], "Vocabulary")
        if known["n_hashed"] is not None or known.get("n_rare") or encoder.get("n_edge_features"):
            raise NotImplementedError
        columns, classes, penalty, ends = (
            Columns(known["names"]),
            read(encoder["classes"]),
            read(encoder["penalty"]),
            read(encoder["end_penalty"]),
        )
        n_features, n_labels = len(columns) + 3 * encoder["has_bias"], len(classes)
        if encoder["node_pairs"] is None:
            starts = n_labels * np.arange(n_features + 1)
            labels, pairs = np.tile(np.arange(n_labels), n_features), np.arange(n_labels**2)
        else:
            node_pairs, edge_pairs = (_parts(encoder[name], "Pairs") for name in ("node_pairs", "edge_pairs"))
            starts, labels = read(node_pairs["start"]).astype(np.int64), read(node_pairs["labels"])
            pairs = read(edge_pairs["labels"])
        n_dense = known.get("n_dense") or 0
        first = starts[len(columns) - n_dense]
        dense = w[first : first + n_dense * n_labels].reshape(n_dense, n_labels) * (known.get("dense_factor") or 1.0)
        cut, transitions = len(labels), np.zeros(n_labels**2, w.dtype)
        transitions[pairs] = w[cut:]
        is_whole = len(starts) == n_features + 1 and starts[0] == 0 and starts[-1] == cut and len(w) == cut + len(pairs)
        if not (is_whole and (np.diff(starts) >= 0).all() and (labels < n_labels).all() and np.isfinite(w).all()):
            raise ValueError
        if penalty.shape != (n_labels, n_labels) or ends.shape != (2, n_labels):
            raise ValueError
        transitions = transitions.reshape(n_labels, n_labels) + penalty
        given = w[:cut], starts, labels, transitions, penalty, ends, dense
        return cls(classes, columns, encoder["has_bias"], *given)

    def best_labels(self, nodes: np.ndarray) -> np.ndarray | None:
        """The labels of the best score; None where all are excluded."""
        if not len(nodes):
            return np.zeros(0, np.int64)
        y = best_path(nodes, self.transitions)
        is_excluded = self.penalty[y[:-1], y[1:]].any() or self.end_penalty[(0, 1), y[[0, -1]]].any()
        return None if is_excluded else y

    def score(self, rows: list[list[int]]) -> np.ndarray:
        """The potentials of (position, label) of tokens with these columns."""
        if self.has_bias and rows:  # of every token, of the first and of the last one
            bias = len(self.columns)
            rows = [[*row, bias] for row in rows]
            rows[0].append(bias + 1)
            rows[-1].append(bias + 2)
        columns = np.fromiter(chain.from_iterable(map(sorted, rows)), np.int64)
        positions = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        positions, columns = positions[columns != NOWHERE], columns[columns != NOWHERE]
        begins, sizes = self.starts[columns], self.starts[columns + 1] - self.starts[columns]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        met = np.repeat(begins, sizes) + within
        nodes = np.zeros((len(rows), len(self.classes)), self.weights.dtype)
        np.add.at(nodes, (np.repeat(positions, sizes), self.labels[met]), self.weights[met])
        if len(rows) <= 1:
            nodes[:1] += self.end_penalty.min(axis=0)
        else:
            nodes[0] += self.end_penalty[0]
            nodes[-1] += self.end_penalty[1]
        return nodes

    def score_dense(self, table: np.ndarray, which: np.ndarray) -> np.ndarray:
        """What dense columns add to the potentials of tokens: the rows `which`, (T, K), of a table, or none."""
        rows = np.append(table, np.zeros_like(table[:1]), axis=0)[which] if len(table) else np.zeros((*which.shape, 0))
        return rows.reshape(len(which), -1) @ self.dense


class Unsure(Exception):
    """Raised where the whole tagger has to say what is wrong."""


class LightStage:
    """What `Tagger` predicts, of a model that was read by NumPy alone; raises if it is none that it knows.

    Parameters
    ----------
    tagger
        The parts of the tagger in a file.
    read
        Reads them.
    """

    threshold: float | None = None

    def __init__(self, tagger: dict[str, Any], read: Reader) -> None:
        fitted = dict(tagger["fitted"]["dict"])
        name, model = fitted["model"]["object"]
        if name not in ("ChainCRF", "ChainSVM"):
            raise NotImplementedError
        learned = dict(model["fitted"]["dict"])
        self.scheme: str | None = fitted["scheme"]
        self.inside: str | None = fitted.get("inside")
        self.threshold = tagger.get("threshold")
        self.first = None if fitted.get("first") is None else LightStage(_parts(fitted["first"], "Tagger"), read)
        self.features: Any = read(fitted["features"])
        self.chain = LightChain.of(_parts(learned["_encoder"], "ChainEncoder"), read(learned["_w"]), read)

    @property
    def classes(self) -> np.ndarray:
        """The tags, sorted."""
        return self.chain.classes if self.inside is None else outer_classes(self._names, self.scheme or "")

    @property
    def _names(self) -> list[Any]:
        return self.chain.classes.tolist()

    def predict(self, X: Sequence[Sequence[Token]]) -> list[list[Any]]:
        """The tags of sentences."""
        if self.threshold is not None:
            found = zip(self.predict_entities(X), map(len, X), strict=True)
            return [spell_entities(entities, n, self.scheme or "") for entities, n in found]
        tags = [self._best_tags(nodes) for nodes in self._score(X)]
        return tags if self.inside is None else convert_tags(tags, self.scheme or "")

    def predict_marginals(self, X: Sequence[Sequence[Token]]) -> list[np.ndarray]:
        """The probabilities of the tags of each word."""
        tables = (self._marginals(nodes) for nodes in self._score(X))
        if self.inside is None:
            return [shares for shares, _ in tables]
        scheme = self.scheme or ""
        meetings = find_meetings(self._names) @ [len(self.chain.classes), 1] if scheme in DEPENDS else None
        return [
            merge_columns(shares, self._names, scheme, None if meetings is None else pairs[:, meetings])
            for shares, pairs in tables
        ]

    def predict_entities(self, X: Sequence[Sequence[Token]]) -> list[list[ScoredEntity]]:
        """The entities of sentences, each with its probability, those below the threshold left out."""
        names, least = tuple(self._names), self.threshold or 0.0
        steps, found = continuations(names) @ [len(names), 1], []
        for nodes in self._score(X):
            (entities,) = find_entities([self._best_tags(nodes)])
            shares, pairs = self._marginals(nodes)
            chances = zip(entities, Chances(names, shares, pairs[:, steps]).of(entities), strict=True)
            found.append([ScoredEntity(*entity, chance) for entity, chance in chances if chance >= least])
        return found

    def _score(self, X: Sequence[Sequence[Token]]) -> Iterator[np.ndarray]:
        """The potentials of (position, tag) of each sentence."""
        features = self.features.transform(X if self.first is None else with_votes(X, self.first.predict(X)))
        dense, begin = find_dense(features), 0
        for rows in features.look_up(self.chain.columns):
            nodes = self.chain.score(rows)
            if dense is not None:
                nodes += self.chain.score_dense(dense.table, dense.which[begin : begin + len(rows)])
                begin += len(rows)
            yield nodes

    def _best_tags(self, nodes: np.ndarray) -> list[Any]:
        y = self.chain.best_labels(nodes)
        if y is None:
            raise Unsure
        return self.chain.classes[y].tolist()

    def _marginals(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities of tags, and those of every two neighbours, (T - 1, L L)."""
        self._best_tags(nodes)
        shares, pairs = marginals(nodes, self.chain.transitions)
        return shares, pairs.reshape(len(pairs), len(self.chain.classes) ** 2)


class LightTagger(TextTagger):
    """A tagger by NumPy alone until there is much to do; raises if its model is none that `LightStage` knows.

    Parameters
    ----------
    file
        The model, open.
    path
        Its name.
    n_jobs
        The number of threads of the whole tagger.
    """

    def __init__(self, file: BinaryIO, path: Location, n_jobs: int | None = -1) -> None:
        content, arrays = container.read(file)
        read, tagger = Reader(arrays), _parts(content, "Tagger")
        self.file, self.path, self.n_jobs = file, os.fspath(path), n_jobs
        self.light = LightStage(tagger, read)
        self.layout: Layout | None = read(tagger["layout"])
        self.scheme_, self.threshold = self.light.scheme, self.light.threshold
        self.classes_ = self.light.classes
        self.asks_documents = self.light.first is not None or bool(getattr(self.light.features, "elsewhere", False))
        self.spent = 0

    @cached_property
    def whole(self) -> Tagger:
        """The tagger itself."""
        with self.file:
            return load_open(self.file, self.path)._set_jobs(self.n_jobs)

    def predict(self, X: Sequence[Sequence[Token]]) -> list[list[Any]]:
        """The tags of sentences; those of the whole tagger, once there are many."""
        return self._ask("predict", X, PAIR)

    def predict_marginals(self, X: Sequence[Sequence[Token]]) -> list[np.ndarray]:
        """The probabilities of the tags of each word."""
        return self._ask("predict_marginals", X, PAIR_SUM)

    def predict_entities(self, X: Sequence[Sequence[Token]]) -> list[list[ScoredEntity]]:
        """The entities of sentences, each with its probability."""
        return self._ask("predict_entities", X, PAIR_SUM)

    def _ask(self, name: str, X: Sequence[Sequence[Token]], pair: int) -> Any:
        """What a method returns that takes so much time for each pair of labels."""
        n_labels = len(self.light.chain.classes)
        self.spent += sum(map(len, X)) * (TOKEN + pair * n_labels**2)
        tagger: Any = self.whole if "whole" in vars(self) or self.spent > MOST else self.light
        tagger.threshold = self.threshold
        try:
            return getattr(tagger, name)(X)
        except Unsure:
            return getattr(self.whole, name)(X)


def _parts(node: Any, name: str) -> dict[str, Any]:
    """The parts of an object in a file, which must be of this class."""
    found, parts = node["object"]
    if found != name:
        raise NotImplementedError
    return parts
