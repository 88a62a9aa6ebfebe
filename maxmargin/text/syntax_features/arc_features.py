"""Features of the arcs of dependency trees: of head and dependent, their neighbours, and what lies between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self, overload

import numpy as np

from maxmargin.arrays.blocks import Blocks, places_in, starts_of
from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist.registry import register
from maxmargin.sklearn_contract import SentenceTransformer
from maxmargin.text.token_features.named_features import FeatureColumns
from maxmargin.text.token_features.tokens import Token, as_sentences, split_tokens

MOST_ARCS = 100_000  # looked up at once
PADS = "<start>", "<root>", "<end>"
DISTANCES = np.array([1, 2, 3, 4, 5, 10])  # the last distance of each bin
UNKNOWN = -1

# Fields of an arc: h and m are head and dependent, w is the word and t the tag; -1 and +1 are neighbours. A template is
# asked for only where the one after the slash is known, which is part of it: most arcs of a sentence have none of them.
WORD_TEMPLATES = ("hw", "mw", "hw mw")
TAG_TEMPLATES = (
    "ht",
    "mt",
    "ht mt",
    "hw ht / hw",
    "mw mt / mw",
    "hw mt / hw",
    "ht mw / mw",
    "hw ht mt / hw mt",
    "ht mw mt / ht mw",
    "hw ht mw / hw mw",
    "hw mw mt / hw mw",
    "hw ht mw mt / hw mw",
    "ht ht+1 mt / ht mt",
    "ht-1 ht mt / ht mt",
    "ht mt-1 mt / ht mt",
    "ht mt mt+1 / ht mt",
    "ht ht+1 mt-1 mt / ht ht+1 mt",
    "ht-1 ht mt-1 mt / ht-1 ht mt",
    "ht ht+1 mt mt+1 / ht ht+1 mt",
    "ht-1 ht mt mt+1 / ht-1 ht mt",
)


@register
@has_parameters
class ArcFeatures(SentenceTransformer):
    """Features of all arcs between the words of sentences, by name, for `DependencySVM` and `DependencyCRF`.

    A token is a word, or a tuple of a word and tags such as its part of speech. An arc has the words and tags of its
    head and dependent, alone and together, those of their neighbours, and the tags between the two; all with the
    direction of the arc, and with its length.

    Parameters
    ----------
    between : bool, default=True
        Whether the tags of words between head and dependent are features.

    References
    ----------
    McDonald, Crammer, Pereira (2005), Online large-margin training of dependency parsers.

    Examples
    --------
    >>> from maxmargin.text import ArcFeatures
    >>> arcs = ArcFeatures(between=False).transform([[("She", "PRON"), ("sings", "VERB")]])
    >>> names = arcs[0][0 * 3 + 2]  # of word 1 with head 2
    >>> [name for name in names if name.startswith("ht mt=")]
    ['ht mt=VERB PRON<', 'ht mt=VERB PRON<1']
    """

    between: bool = parameter(
        "bool", "Whether the tags of words between head and dependent are features.", default=True
    )

    def fit(self, X: object, y: object = None) -> Self:
        """Do nothing: there is nothing to learn.

        Parameters
        ----------
        X, y
            Ignored.
        """
        return self

    def fit_transform(self, X: Iterable[Iterable[Token]], y: object = None) -> WordArcs:
        """As `transform`.

        Parameters
        ----------
        X
            As in `transform`.
        y
            Ignored.
        """
        return self.transform(X)

    def transform(self, X: Iterable[Iterable[Token]]) -> WordArcs:
        """The features of the arcs.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags

        Returns
        -------
        sequence of lists with a list of names for each of the n (n + 1) arcs of a sentence of n words, word by word,
        each from the heads 0 (the root) to n; they are made when they are asked for
        """
        return WordArcs(as_sentences(X), bool(self.between))


class WordArcs(Sequence):
    """The features of the arcs of sentences, made when they are asked for; of all arcs, or of the chosen heads."""

    def __init__(self, sentences: Sequence[Any], between: bool, heads: Sequence[np.ndarray] | None = None) -> None:
        self.sentences, self.between, self.heads = sentences, between, heads

    def __len__(self) -> int:
        return len(self.sentences)

    @overload
    def __getitem__(self, i: int) -> list[list[str]]: ...
    @overload
    def __getitem__(self, i: slice) -> WordArcs: ...
    def __getitem__(self, i: int | slice) -> list[list[str]] | WordArcs:
        if isinstance(i, slice):
            return WordArcs(self.sentences[i], self.between, None if self.heads is None else self.heads[i])
        one = WordArcs([self.sentences[i]], self.between, None if self.heads is None else [self.heads[i]])
        names = _Names()
        block = next(one.find_columns(names))
        known = [*names]
        return [[known[k] for k in row] for row in np.split(block.values, block.starts[1:-1])]

    @property
    def lengths(self) -> np.ndarray:
        """The numbers of words of sentences."""
        return np.array([len(sentence) for sentence in self.sentences], np.int64)

    def look_up(self, columns: FeatureColumns) -> Iterator[list[list[int]]]:
        """The columns of the names of each arc, without those that are not known."""
        for block in self.find_columns(columns):
            yield [row.tolist() for row in np.split(block.values, block.starts[1:-1])]

    def of_heads(self, heads: Sequence[np.ndarray]) -> WordArcs:
        """Those of one arc per word alone, from these heads."""
        return WordArcs(self.sentences, self.between, heads)

    def find_columns(self, columns: FeatureColumns) -> Iterator[Blocks]:
        """The same, a block for each arc: faster, as there are many."""
        waiting: list[Any] = []
        n_waiting = 0
        for i, sentence in enumerate(self.sentences):
            tokens = split_tokens(sentence, i)
            waiting.append((tokens, None if self.heads is None else self.heads[i]))
            n_waiting += len(tokens.words) * (len(tokens.words) + 1)
            if n_waiting > MOST_ARCS:
                yield from _look_up(waiting, self.between, columns)
                waiting, n_waiting = [], 0
        if waiting:
            yield from _look_up(waiting, self.between, columns)


class _Names(dict):
    """Columns of names in the order in which they come."""

    grows = True

    def find(self, names: Sequence[str]) -> list[int]:
        return [self.setdefault(name, len(self)) for name in names]


class _Field(NamedTuple):
    """What each arc has in one place: numbers of strings."""

    numbers: np.ndarray
    strings: list[str]

    def at(self, places: np.ndarray) -> _Field:
        return _Field(self.numbers[places], self.strings)


def _number(strings: Iterable[str]) -> _Field:
    known: dict[str, int] = {}
    numbers = np.fromiter((known.setdefault(string, len(known)) for string in strings), np.int64)
    return _Field(numbers, [*known])


def _look_up(sentences: Sequence[Any], between: bool, columns: FeatureColumns) -> Iterator[Blocks]:
    """The columns of all arcs of some sentences, which are tokens with the heads of interest or None."""
    lengths = np.array([len(tokens.words) for tokens, _ in sentences])
    if all(heads is None for _, heads in sentences):
        n_rows = lengths * (lengths + 1)
        place = places_in(n_rows)
        width = np.repeat(lengths + 1, n_rows)
        word, head = place // width + 1, place % width
    else:
        n_rows = lengths
        word, head = places_in(lengths) + 1, np.concatenate([heads for _, heads in sentences])
    first = np.repeat(starts_of(lengths + 3)[:-1], n_rows) + 1  # where the root of each sentence is, after a start
    arcs = np.flatnonzero(word != head)
    h, m = (first + head)[arcs], (first + word)[arcs]
    texts = _texts([tokens for tokens, _ in sentences])
    found = _Found(_signs(word[arcs] - head[arcs]), columns, len(arcs))
    fields = {"hw": texts[0].at(h), "mw": texts[0].at(m)}
    for template in WORD_TEMPLATES:
        found.add(template, fields)
    for k, tags in enumerate(texts[1:]):
        fields |= {"ht": tags.at(h), "ht-1": tags.at(h - 1), "ht+1": tags.at(h + 1)}
        fields |= {"mt": tags.at(m), "mt-1": tags.at(m - 1), "mt+1": tags.at(m + 1)}
        prefix = "" if k == 0 else f"{k + 1} "
        for template in TAG_TEMPLATES:
            found.add(template, fields, prefix)
        if between:
            found.add_between(tags, h, m, fields, prefix)
    yield from found.blocks(arcs, starts_of(n_rows))


def _texts(sentences: Sequence[Any]) -> list[_Field]:
    """The words of all sentences, padded, then each of their columns of tags."""
    columns = [[(tokens.words, *tokens.tags)[k] for tokens in sentences] for k in range(1 + len(sentences[0].tags))]
    start, root, end = PADS
    return [_number(chain.from_iterable((start, root, *strings, end) for strings in column)) for column in columns]


def _signs(distance: np.ndarray) -> tuple[_Field, _Field]:
    """The direction of arcs, to the left or to the right, and the same with their length."""
    to_right = (distance > 0).astype(np.int64)
    bins = np.searchsorted(DISTANCES, np.abs(distance))
    names = [str(last) for last in DISTANCES] + [f"{DISTANCES[-1]}+"]
    signs = [f"{sign}{name}" for sign in "<>" for name in names]
    return _Field(to_right, ["<", ">"]), _Field(to_right * len(names) + bins, signs)


class _Found:
    """The columns of the names of arcs, template by template."""

    def __init__(self, signs: tuple[_Field, _Field], columns: FeatureColumns, n_arcs: int) -> None:
        self.signs, self.columns = signs, columns
        self.all = np.arange(n_arcs)
        self.known: dict[str, np.ndarray] = {}  # by template, the arcs whose name is known
        self.rows: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def add(self, template: str, fields: dict[str, _Field], prefix: str = "") -> None:
        """Look up the names of a template, with the direction and, where that is known, with the length."""
        template, _, parent = template.partition(" / ")
        rows = self.known.get(prefix + parent, self.known.get(parent, self.all)) if parent else self.all
        parts = [fields[name].at(rows) for name in template.split()]
        self.known[prefix + template] = self.look_up(f"{prefix}{template}", parts, rows)

    def add_between(self, tags: _Field, h: np.ndarray, m: np.ndarray, fields: dict[str, _Field], prefix: str) -> None:
        """Look up the names of tags between head and dependent, each once per arc."""
        counts = np.zeros((len(tags.numbers) + 1, len(tags.strings)), np.int32)
        counts[np.arange(1, len(counts)), tags.numbers] = 1
        np.cumsum(counts, axis=0, out=counts)
        lo, hi = np.minimum(h, m) + 1, np.maximum(h, m)
        rows, tag = np.nonzero(counts[hi] > counts[lo])
        parts = [fields["ht"].at(rows), _Field(tag, tags.strings), fields["mt"].at(rows)]
        self.look_up(f"{prefix}ht between mt", parts, rows)

    def look_up(self, name: str, parts: list[_Field], rows: np.ndarray) -> np.ndarray:
        """Look up names of some rows; return the rows where that with the direction is known."""
        known = self.find(name, [*parts, self.signs[0].at(rows)], rows)
        parts = [part.at(known) for part in parts]
        self.find(name, [*parts, self.signs[1].at(rows[known])], rows[known])
        return rows[known]

    def find(self, name: str, parts: list[_Field], rows: np.ndarray) -> np.ndarray:
        """Note the columns of names where they are known; return the places where they are."""
        keys = np.zeros(len(rows), np.int64)
        size = 1
        for part in parts:
            if size * len(part.strings) >= 2**62:
                distinct, keys = np.unique(keys, return_inverse=True)
                size = len(distinct)
            keys = keys * len(part.strings) + part.numbers
            size *= len(part.strings)
        _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
        *texts, signs = ([part.strings[k] for k in part.numbers[firsts].tolist()] for part in parts)
        names = [f"{name}={' '.join(text)}{sign}" for *text, sign in zip(*texts, signs, strict=True)]
        columns = np.array(self.columns.find(names), np.int32).reshape(-1)[inverse.reshape(-1)]
        known = np.flatnonzero(columns != UNKNOWN)
        self.rows.append(rows[known])
        self.values.append(columns[known])
        return known

    def blocks(self, arcs: np.ndarray, starts: np.ndarray) -> Iterator[Blocks]:
        """The columns of each sentence, whose arcs start there; those from a word to itself have none."""
        rows = np.concatenate(self.rows)
        values = np.concatenate(self.values)[np.argsort(rows, kind="stable")]
        counts = np.zeros(starts[-1], np.int64)
        counts[arcs] = np.bincount(rows, minlength=len(arcs))
        ends = starts_of(counts)
        for lo, hi in pairwise(starts.tolist()):
            yield Blocks(values[ends[lo] : ends[hi]], ends[lo : hi + 1] - ends[lo])
