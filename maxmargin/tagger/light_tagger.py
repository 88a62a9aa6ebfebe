"""A tagger by NumPy alone, for a few sentences: all that compiles, and trains, would take longer to load than they do.

It reads the file of a `Tagger`, makes the same features, adds up the same weights in the same order, and finds the best
tags by the same rules (`maxmargin.structures.chains.chain_dp`). What it does not know it leaves to the whole tagger.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from maxmargin.encode.names.name_columns import NOWHERE, Columns
from maxmargin.persist import Location, container, load_open
from maxmargin.persist.values import Reader
from maxmargin.structures.chains.numpy_paths import best_path
from maxmargin.text.schemes import convert_tags
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.text.token_features.tokens import Token
from maxmargin.text.token_features.windows import WindowFeatures

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger

# Nanoseconds, about: of a token, and of each pair of labels there; those of all sentences that it takes, which are less
# than what it takes to load the whole tagger.
TOKEN, PAIR, MOST = 30_000, 3, 300_000_000


def open_tagger(path: Location, n_jobs: int | None = -1) -> Tagger | LightTagger:
    """What tags the first sentences soonest: a `LightTagger` where the model is one of those that it knows.

    It tags many sentences on so many threads.
    """
    file = open(path, "rb")  # noqa: SIM115  (it stays open: another model may take its place meanwhile)
    with suppress(Exception):  # whatever is wrong, the whole tagger says it
        return LightTagger(file, path, n_jobs)
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
    penalty: np.ndarray  # (L, L) of transitions that are forbidden
    end_penalty: np.ndarray  # (2, L)

    @classmethod
    def of(cls, encoder: dict[str, Any], w: np.ndarray, read: Reader) -> LightChain:
        """Of the parts of a `ChainEncoder` in a file, and all weights."""
        known = _parts(encoder["vocabulary"], "Vocabulary")
        if (
            known["n_hashed"] is not None
            or known.get("n_dense")
            or known.get("n_rare")
            or encoder.get("n_edge_features")
        ):
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
        cut, transitions = len(labels), np.zeros(n_labels**2, w.dtype)
        transitions[pairs] = w[cut:]
        is_whole = len(starts) == n_features + 1 and starts[0] == 0 and starts[-1] == cut and len(w) == cut + len(pairs)
        if not (is_whole and (np.diff(starts) >= 0).all() and (labels < n_labels).all() and np.isfinite(w).all()):
            raise ValueError
        if penalty.shape != (n_labels, n_labels) or ends.shape != (2, n_labels):
            raise ValueError
        transitions = transitions.reshape(n_labels, n_labels) + penalty
        return cls(classes, columns, encoder["has_bias"], w[:cut], starts, labels, transitions, penalty, ends)

    def best_labels(self, rows: list[list[int]]) -> np.ndarray | None:
        """The best labels of the tokens with these columns; None where all are forbidden."""
        nodes = self.score(rows)
        y = best_path(nodes, self.transitions)
        is_forbidden = self.penalty[y[:-1], y[1:]].any() or self.end_penalty[(0, 1), y[[0, -1]]].any()
        return None if is_forbidden else self.classes[y]

    def score(self, rows: list[list[int]]) -> np.ndarray:
        """The potentials of (position, label)."""
        if self.has_bias:  # of every token, of the first and of the last one
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
        if len(rows) == 1:
            nodes[0] += self.end_penalty.min(axis=0)
        else:
            nodes[0] += self.end_penalty[0]
            nodes[-1] += self.end_penalty[1]
        return nodes


class LightTagger:
    """What `Tagger` predicts, of a model that was read by NumPy alone; raises if it is none that it knows.

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
        fitted = dict(tagger["fitted"]["dict"])
        model = fitted["model"]["object"]
        learned = dict(model[1]["fitted"]["dict"])
        if model[0] not in ("ChainCRF", "ChainSVM") or fitted.get("first") is not None:
            raise NotImplementedError
        if tagger.get("threshold") is not None:
            raise NotImplementedError
        if _parts(fitted["features"], "WindowFeatures").get("vectors") is not None:
            raise NotImplementedError
        self.file, self.path, self.n_jobs = file, os.fspath(path), n_jobs
        self.features: WindowFeatures = read(fitted["features"])
        self.layout: Layout | None = read(tagger["layout"])
        self.scheme_: str | None = fitted["scheme"]
        self.inside_: str | None = fitted.get("inside")
        self.chain = LightChain.of(_parts(learned["_encoder"], "ChainEncoder"), read(learned["_w"]), read)
        self.asks_documents = self.features.elsewhere
        self.spent = 0

    @cached_property
    def whole(self) -> Tagger:
        """The tagger itself."""
        return load_open(self.file, self.path)._set_jobs(self.n_jobs)

    def predict(self, X: Sequence[Sequence[Token]]) -> list[list[Any]]:
        """The tags of sentences; those of the whole tagger, once there are many."""
        self.spent += sum(map(len, X)) * (TOKEN + PAIR * len(self.chain.classes) ** 2)
        if "whole" in vars(self) or self.spent > MOST:
            return self.whole.predict(X)
        rows: Any = self.features.transform(X).look_up(self.chain.columns)
        found = [self.chain.best_labels(row) if len(row) else self.chain.classes[:0] for row in rows]
        if any(labels is None for labels in found):
            return self.whole.predict(X)  # which says what is wrong
        tags = [labels.tolist() for labels in found if labels is not None]
        return tags if self.inside_ is None else convert_tags(tags, self.scheme_ or "")


def _parts(node: Any, name: str) -> dict[str, Any]:
    """The parts of an object in a file, which must be of this class."""
    found, parts = node["object"]
    if found != name:
        raise NotImplementedError
    return parts
