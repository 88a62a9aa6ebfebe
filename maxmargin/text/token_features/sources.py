"""What features of tokens are made of: a class for each sort, which adds its own to the rows of a sentence.

A new one is a class here, or elsewhere, that `WindowFeatures.sources` lists, or those of a class that inherits from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from maxmargin.text.token_features.token_blocks import (
    Code,
    KeyedFeatures,
    Names,
    Rows,
    TokenBlock,
    ValuesOf,
    ngram_keys,
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
        rows: Rows = [[] for _ in block.words]
        rest = iter(rows)
        for tokens in block.sentences:
            self.add([*islice(rest, len(tokens.words))], tokens)
        yield pad_rows(rows)


class Words(Source):
    """The word of a token, its affixes and shape, and the words beside it."""

    def __init__(self, options: Options, code: Code) -> None:
        shapes = ValuesOf(shape) if options["shapes"] else None
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
        self.places = [(n, shift) for n in range(2, options["word_ngrams"] + 1) for shift in range(1 - n, 1)]
        self.is_empty, self.code = not self.places, code

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for place in self.places:
            add_names(rows, ngram_names(tokens.words, *place), self.code)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        names = ((ngram_names(tokens.words, *place) for tokens in block.sentences) for place in self.places)
        yield find_all(names, self.code)


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
                yield self.keyed[k, n].table([*ngram_keys(tags, n)], block)


class TaggedWords(Source):
    """Words together with tags: that of a token with the tags within one place, those beside it with its tag."""

    shifts = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))  # of the word and of the tag

    def __init__(self, options: Options, code: Code) -> None:
        self.is_empty, self.code = not options["tag_words"], code

    def add(self, rows: Rows, tokens: Tokens) -> None:
        lowers = [word.lower() for word in tokens.words] if tokens.tags and not self.is_empty else []
        for k, tags in enumerate(tokens.tags if lowers else (), start=1):
            for shifts in self.shifts:
                add_names(rows, tagged_names(lowers, tags, k, *shifts), self.code)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for k, tags in enumerate(block.tags, start=1):
            lowers = [[word.lower() for word in tokens.words] for tokens in block.sentences]
            both = [*zip(lowers, tags, strict=True)]
            yield find_all(((tagged_names(*each, k, *shifts) for each in both) for shifts in self.shifts), self.code)


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


def word_names(options: Options, shapes: Mapping[str, str] | None) -> Callable[[Sequence[str], int], Iterator[Names]]:
    """What makes the names of features of words: one of all, then another."""
    spell = str if options["cased_affixes"] else str.lower

    def names(words: Sequence[str], shift: int) -> Iterator[Names]:
        yield [f"word={word}" for word in words]
        yield [f"lower={word.lower()}" for word in words]
        if shapes is not None:
            yield [f"shape={shapes[word]}" for word in words]
        spelled = [*map(spell, words)]
        for n in range(1, min(options["affixes"], max(map(len, spelled), default=0)) + 1):
            yield [f"prefix={word[:n]}" if len(word) >= n else None for word in spelled]
            yield [f"suffix={word[-n:]}" if len(word) >= n else None for word in spelled]

    return names


def neighbour_names(shapes: Mapping[str, str] | None) -> Callable[[Sequence[str], int], Iterator[Names]]:
    """What makes the names of features of words that are somewhere beside a token."""

    def names(words: Sequence[str], shift: int) -> Iterator[Names]:
        title = f"lower[{shift:+}]="
        yield [title + word.lower() for word in words]
        if shapes is not None:
            title = f"shape[{shift:+}]="
            yield [title + shapes[word] for word in words]

    return names


def titled(title: str) -> Callable[[Sequence[str], int], Iterator[Names]]:
    """What makes names of keys: with a title and a shift."""

    def names(keys: Sequence[str], shift: int) -> Iterator[Names]:
        whole = f"{title}[{shift:+}]="
        yield [whole + key for key in keys]

    return names


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


def find_all(names: Iterable[Iterable[Names]], code: Code) -> np.ndarray:
    """A table of the columns of names: one column of it for each of `names`, which has those of each sentence."""
    return np.array([code([*chain.from_iterable(each)]) for each in names], np.int32).T


def join_ngrams(values: Sequence[str], n: int) -> Sequence[str]:
    """All sequences of n values."""
    return values if n == 1 else [*map("|".join, zip(*(values[k:] for k in range(n)), strict=False))]


def character_class(code: int) -> str:
    """A for capital letters, a for small ones, 0 for digits, others as they are."""
    character = chr(code)
    return "A" if character.isupper() else "a" if character.islower() else "0" if character.isdigit() else character


CLASSES = ValuesOf(character_class)


def shape(word: str) -> str:
    """The word with its letters and digits as classes, repeated ones once."""
    return "".join(character for character, _ in groupby(word.translate(CLASSES)))
