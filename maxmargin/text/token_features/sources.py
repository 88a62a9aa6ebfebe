"""What features of tokens are made of: a class for each sort, which adds its own to the rows of a sentence.

A new one is a class here, or elsewhere, that `WindowFeatures.sources` lists, or those of a class that inherits from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any

import numpy as np

from maxmargin.text.token_features.token_blocks import (
    Code,
    KeyedFeatures,
    Names,
    NamesOf,
    Rows,
    TokenBlock,
    Values,
    ValuesOf,
    pad_rows,
)
from maxmargin.text.token_features.tokens import Tokens

Options = Mapping[str, Any]  # the arguments of the transformer, by name
Property = tuple[str, str]  # its title and its value
Properties = Callable[[str], Iterable[Property]]  # those of a word


class Source(ABC):
    """Features of one sort; what it remembers must not refer to it, so that it is gone as soon as the source is.

    Parameters
    ----------
    options
        The arguments of the transformer, by name; gazetteers are indexed.
    code
        What to put in place of names.
    """

    is_empty = False  # whether options are such that it never has any

    @abstractmethod
    def __init__(self, options: Options, code: Code) -> None: ...

    @abstractmethod
    def add(self, rows: Rows, tokens: Tokens) -> None:
        """Add features to the row of each token."""

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        """The columns of the features of many tokens, in the rows of a table or of several: what `add` adds."""
        rows: Rows = [[] for _ in range(len(block))]
        rest = iter(rows)
        for tokens in block.sentences:
            self.add([*islice(rest, len(tokens.words))], tokens)
        yield pad_rows(rows)


class Words(Source):
    """The word of a token, its affixes and shape, and the words beside it."""

    def __init__(self, options: Options, code: Code) -> None:
        # What is known of shapes goes away with the columns of a training: strings that stay keep memory around them.
        shapes = ValuesOf(partial(shape, ValuesOf(collapse))) if options["shapes"] else None
        shifts = [k for k in range(-options["window"], options["window"] + 1) if k]
        self.keyed = (
            KeyedFeatures(word_names(options, shapes), [0], code),
            KeyedFeatures(neighbour_names(shapes), shifts, code, absent=lambda shift: f"none[{shift:+}]"),
        )

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for keyed in self.keyed:
            keyed.add(rows, tokens.words)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for keyed in self.keyed:
            yield keyed.table(block.words, block)


class WordNgrams(Source):
    """Sequences of words that a token is part of."""

    def __init__(self, options: Options, code: Code) -> None:
        sizes = range(2, options["word_ngrams"] + 1)
        self.places = [(n, shift) for n in sizes for shift in range(1 - n, 1)]
        self.is_empty, self.code = not self.places, code
        self.keyed = {n: KeyedFeatures(titled("words"), range(1 - n, 1), code) for n in sizes}

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for place in self.places:
            add_names(rows, ngram_names(tokens.words, *place), self.code)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for n, keyed in self.keyed.items():
            yield keyed.table(block.ngrams(block.words, n), block)


class TagNgrams(Source):
    """Tags of tokens in the window, and sequences of them."""

    def __init__(self, options: Options, code: Code) -> None:
        window = options["window"]
        self.longest = min(options["tag_ngrams"], 2 * window + 1)
        self.keyed: Mapping[tuple[int, int], KeyedFeatures] = ValuesOf(
            lambda kind: KeyedFeatures(titled(f"tag{kind[0]}"), range(-window, window - kind[1] + 2), code)
        )

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for k, tags in enumerate(tokens.tags, start=1):
            for n in range(1, self.longest + 1):
                self.keyed[k, n].add(rows, join_ngrams(tags, n))

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for k, tags in enumerate(block.tags, start=1):
            for n in range(1, self.longest + 1):
                yield self.keyed[k, n].table(block.ngrams(tags, n), block)


class TaggedWords(Source):
    """Words together with tags: that of a token with the tags within one place, those beside it with its tag."""

    shifts = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))  # of the word and of the tag

    def __init__(self, options: Options, code: Code) -> None:
        self.is_empty, self.code = not options["tag_words"], code
        self.keyed: Mapping[tuple[int, int], KeyedFeatures] = ValuesOf(lambda kind: pair_features(*kind, code))

    def add(self, rows: Rows, tokens: Tokens) -> None:
        lowers = [word.lower() for word in tokens.words] if tokens.tags and not self.is_empty else []
        for k, tags in enumerate(tokens.tags if lowers else (), start=1):
            for shifts in self.shifts:
                add_names(rows, tagged_names(lowers, tags, k, *shifts), self.code)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        lowers = block.words.map(str.lower)
        for k, tags in enumerate(block.tags, start=1):
            for beside in (0, -1, 1):
                yield self.keyed[k, beside].table(block.pairs(lowers, tags, beside), block)


class ListedNames(Source):
    """Names in lists, and whether a token begins one or goes on with it."""

    def __init__(self, options: Options, code: Code) -> None:
        self.gazetteers, self.code = options["gazetteers"], code
        self.is_empty = not self.gazetteers.longest

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for start, end, titles in self.gazetteers.find(tokens.words, tokens.titles):
            for t in range(start, end):
                rows[t] += self.code([f"{title}={'begin' if t == start else 'inside'}" for title in titles])


def affixes_by(options: Options, longest: str) -> Properties:
    """What finds the prefixes and suffixes of a word, the longest being of the length that this option has."""
    spell = str if options["cased_affixes"] else str.lower

    def affixes_of(word: str) -> list[Property]:
        word = spell(word)
        lengths = range(1, min(options[longest], len(word)) + 1)
        return [found for n in lengths for found in (("prefix", word[:n]), ("suffix", word[-n:]))]

    return affixes_of


def word_names(options: Options, shapes: Mapping[str, str] | None) -> NamesOf:
    """What makes the names of features of words: titles and values, one of all, then another."""
    spell = str if options["cased_affixes"] else str.lower

    def names(words: Sequence[str], shift: int) -> Iterator[tuple[str, Values]]:
        yield "word=", words
        yield "lower=", [*map(str.lower, words)]
        if shapes is not None:
            yield "shape=", [*map(shapes.__getitem__, words)]
        spelled = [*map(spell, words)]
        for n in range(1, min(options["affixes"], max(map(len, spelled), default=0)) + 1):
            yield "prefix=", [word[:n] if len(word) >= n else None for word in spelled]
            yield "suffix=", [word[-n:] if len(word) >= n else None for word in spelled]

    return names


def neighbour_names(shapes: Mapping[str, str] | None) -> NamesOf:
    """What makes the names of features of words that are somewhere beside a token."""

    def names(words: Sequence[str], shift: int) -> Iterator[tuple[str, Values]]:
        yield f"lower[{shift:+}]=", [*map(str.lower, words)]
        if shapes is not None:
            yield f"shape[{shift:+}]=", [*map(shapes.__getitem__, words)]

    return names


def titled(title: str) -> NamesOf:
    """What makes names of keys: with a title and a shift."""
    return lambda keys, shift: iter([(f"{title}[{shift:+}]=", keys)])


def pair_features(k: int, beside: int, code: Code) -> KeyedFeatures:
    """Features of words with a tag of column k that is `beside` them: of the tokens that have the one or the other."""
    shifts = [0, -beside] if beside else [0]
    return KeyedFeatures(
        lambda keys, shift: iter([(f"lower[{shift:+}]|tag{k}[{beside + shift:+}]=", keys)]), shifts, code
    )


def ngram_names(words: Sequence[str], n: int, shift: int) -> Names:
    """For each token the name of n words, the first of which is `shift` places after it; None beyond the sentence."""
    title = f"words[{shift:+}]="
    return placed([title + ngram for ngram in join_ngrams(words, n)], -shift, len(words))


def tagged_names(lowers: Sequence[str], tags: Sequence[str], k: int, word: int, tag: int) -> Names:
    """For each token the name of a word with a tag of column k, so many places after it; None beyond the sentence."""
    title = f"lower[{word:+}]|tag{k}[{tag:+}]="
    pairs = zip(lowers[max(0, word - tag) :], tags[max(0, tag - word) :], strict=False)
    return placed([f"{title}{lower}|{value}" for lower, value in pairs], max(0, -word, -tag), len(lowers))


def placed(names: list[str], begin: int, n: int) -> Names:
    """Names in a list of n, from one place on."""
    return [*[None] * begin, *names, *[None] * n][:n]


def add_names(rows: Rows, names: Names, code: Code) -> None:
    """Add a feature to each row that has a name."""
    having = [row for row, name in zip(rows, names, strict=True) if name is not None]
    for row, feature in zip(having, code([name for name in names if name is not None]), strict=True):
        row.append(feature)


def join_ngrams(values: Sequence[str], n: int) -> Sequence[str]:
    """All sequences of n values."""
    return values if n == 1 else [*map("|".join, zip(*(values[k:] for k in range(n)), strict=False))]


def character_class(code: int) -> str:
    """A for capital letters, a for small ones, 0 for digits, others as they are."""
    character = chr(code)
    return "A" if character.isupper() else "a" if character.islower() else "0" if character.isdigit() else character


CLASSES = ValuesOf(character_class)


def collapse(text: str) -> str:
    """The text with what is repeated once."""
    return "".join(character for character, _ in groupby(text))


def shape(collapsed: Mapping[str, str], word: str) -> str:
    """The word with its letters and digits as classes, repeated ones once, as they are known."""
    return collapsed[word.translate(CLASSES)]
