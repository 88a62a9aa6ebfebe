"""Exact probabilities of entities: of their bounds and type at once, by a model of the tags that spell them.

An entity goes on from a tag to the next if `goes_on` says so, as conlleval reads tags, and else ends there. So the tags
of tokens i to j are exactly an entity if the first of them does not go on what is before, each one in between goes on,
and the one after the last does not. Given p(y_t) and p(y_t, y_{t+1}) of a chain, the sum over all tags of its type is
a product of small matrices along its tokens, in any scheme:

    v_i(b) = p(y_i = b) - sum over a that b goes on of p(y_{i-1} = a, y_i = b)
    v_{t+1}(b) = sum over a that b goes on of v_t(a) p(y_{t+1} = b | y_t = a)
    p(entity) = sum over a of v_j(a) (1 - sum over b that go on a of p(y_{j+1} = b | y_j = a))
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from maxmargin.text.schemes import OUTSIDE, Entity


class ScoredEntity(NamedTuple):
    """An entity and its probability: its first token, the one after its last, its type.

    Examples
    --------
    >>> from maxmargin import Tagger
    >>> tagger = Tagger().fit([["Ann", "ran"], ["Bob", "sat"]], [["B-PER", "O"], ["B-PER", "O"]])
    >>> (entity,), = tagger.predict_entities([["Ann", "sat"]])
    >>> entity.type, entity.end, entity.probability > 0.5
    ('PER', 1, True)
    """

    start: int
    end: int
    type: str
    probability: float


def goes_on(before: str, tag: str) -> bool:
    """Whether a tag goes on the entity of the tag before it, as conlleval reads both."""
    (first, _, type_), (prefix, _, other) = before.partition("-"), tag.partition("-")
    return prefix not in {*"BSU", OUTSIDE} and first not in {*"ELSU", OUTSIDE} and type_ == other


@cache
def continuations(tags: tuple[str, ...]) -> np.ndarray:
    """The transitions in which an entity goes on: (K, 2) numbers of tags."""
    pairs = [(a, b) for a, before in enumerate(tags) for b, tag in enumerate(tags) if goes_on(before, tag)]
    return np.array(pairs, np.int64).reshape(-1, 2)


@cache
def tags_of_type(tags: tuple[str, ...], type_: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the tags of a type, of the continuations between them, and the tags before and after in these."""
    own = np.array([k for k, tag in enumerate(tags) if tag != OUTSIDE and tag.partition("-")[2] == type_], np.int64)
    pairs = continuations(tags)
    chosen = np.flatnonzero(np.isin(pairs[:, 0], own))
    before, after = np.searchsorted(own, pairs[chosen]).T
    return own, chosen, before, after


class Chances(NamedTuple):
    """What a chain says of the tags of a sentence: their probabilities, and those of the transitions that go on."""

    tags: tuple[str, ...]
    marginals: np.ndarray  # (T, L)
    transitions: np.ndarray  # (T - 1, K), of the `continuations` of the tags

    def of(self, entities: Iterable[Entity]) -> list[float]:
        """The probability of each of the entities."""
        return [self._of(*entity) for entity in entities]

    def _of(self, start: int, end: int, type_: str) -> float:
        own, chosen, rows, columns = tags_of_type(self.tags, type_)
        shares = self.marginals[start:end, own]

        def steps(t: int) -> np.ndarray:
            """p(y_t = a, y_{t+1} = b) where b goes on a."""
            table = np.zeros((len(own), len(own)))
            if 0 <= t < len(self.transitions):
                table[rows, columns] = self.transitions[t, chosen]
            return table

        def condition(t: int) -> np.ndarray:
            """p(y_{t+1} = b | y_t = a) where b goes on a."""
            table, total = steps(t), shares[t - start][:, np.newaxis]
            return np.divide(table, total, out=np.zeros_like(table), where=total > 0)

        reach = shares[0] - steps(start - 1).sum(axis=0)
        for t in range(start, end - 1):
            reach = reach @ condition(t)
        return float(np.clip(reach @ (1 - condition(end - 1).sum(axis=1)), 0.0, 1.0))
