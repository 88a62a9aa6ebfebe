"""What features of tokens are made of: a class for each sort, which adds its own to the rows of a sentence.

A new one is a class here, or elsewhere, that `WindowFeatures.sources` lists, or those of a class that inherits from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, repeat
from typing import Any

import numpy as np

from maxmargin.text.token_features.named_features import NO_COLUMN
from maxmargin.text.token_features.token_blocks import (
    Code,
    KeyedFeatures,
    Names,
    Rows,
    TokenBlock,
    ValuesOf,
    beside,
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
        self.code = code
        self.keyed = {
            n: KeyedFeatures(titled("words"), range(1 - n, 1), code, come_again=False)
            for n in range(2, options["word_ngrams"] + 1)
        }

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for n, keyed in self.keyed.items():
            ngrams = join_ngrams(tokens.words, n)
            for shift in keyed.shifts:
                title = f"words[{shift:+}]="
                for row, ngram in beside(rows, self.code([title + ngram for ngram in ngrams]), shift):
                    row.append(ngram)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for n, keyed in self.keyed.items():
            yield keyed.table([*ngram_keys((tokens.words for tokens in block.sentences), n)], block)


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
        if not (tokens.tags and not self.is_empty):
            return
        lowers = [word.lower() for word in tokens.words]
        for k, tags in enumerate(tokens.tags, start=1):
            for word, tag in self.shifts:
                begin, end = max(0, -word, -tag), len(rows) - max(0, word, tag)
                names = tagged_names(lowers, tags, k, word, tag)
                for row, feature in zip(rows[begin:end], self.code(names), strict=False):
                    row.append(feature)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        for k, tags in enumerate(block.tags, start=1):
            lowers = [[word.lower() for word in tokens.words] for tokens in block.sentences]
            for word, tag in self.shifts:
                names = map(tagged_names, lowers, tags, repeat(k), repeat(word), repeat(tag))
                column = np.full((len(block.words), 1), NO_COLUMN, np.int32)
                within = block.within(max(0, -word, -tag), max(0, word, tag))
                column[within, 0] = self.code([*chain.from_iterable(names)])
                yield column


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


def tagged_names(lowers: Sequence[str], tags: Sequence[str], k: int, word: int, tag: int) -> list[str]:
    """The names of words together with tags in column k: `word` and `tag` places after a token that has both."""
    title = f"lower[{word:+}]|tag{k}[{tag:+}]="
    pairs = zip(lowers[max(0, word - tag) :], tags[max(0, tag - word) :], strict=False)
    return [f"{title}{lower}|{value}" for lower, value in pairs]


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
