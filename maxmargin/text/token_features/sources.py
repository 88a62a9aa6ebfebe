"""What features of tokens are made of: a class for each sort, which adds its own to the rows of a sentence.

A new one is a class here, or elsewhere, that `WindowFeatures.sources` lists, or those of a class that inherits from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from maxmargin.text.token_features.remembered import ValuesOf, ValuesOfLists
from maxmargin.text.token_features.tokens import Tokens

Options = Mapping[str, Any]  # the arguments of the transformer, by name
Feature = str | int  # a name, or its column
Rows = list[list[Feature]]
Code = Callable[[Sequence[str]], Sequence[Feature]]  # puts columns in the place of names, or leaves them
Property = tuple[str, str]  # its title and its value
Properties = Callable[[str], Iterable[Property]]  # those of a word
Value = TypeVar("Value")


class Source(ABC):
    """Features of one sort; what it remembers must not refer to it, so that it is gone as soon as the source is.

    Parameters
    ----------
    options
        The arguments of the transformer, by name; gazetteers are indexed.
    code
        What to put in place of names.
    """

    @abstractmethod
    def __init__(self, options: Options, code: Code) -> None: ...

    @abstractmethod
    def add(self, rows: Rows, tokens: Tokens) -> None:
        """Add features to the row of each token."""

    def meet(self, words: Collection[str]) -> None:  # noqa: B027
        """Look up many words at once, if that is faster."""


class Words(Source):
    """The word of a token, its affixes and shape, and the words beside it."""

    def __init__(self, options: Options, code: Code) -> None:
        shapes = ValuesOf(shape) if options["shapes"] else None
        self.own = ValuesOf(word_features(code, affixes_by(options, "affixes"), shapes))
        shifts = [k for k in range(-options["window"], options["window"] + 1) if k]
        self.neighbours = {k: ValuesOfLists(neighbour_features(code, k, shapes)) for k in shifts}
        self.absent: Mapping[int, Sequence[Feature]] = ValuesOf(lambda shift: code([f"none[{shift:+}]"]))

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for row, word in zip(rows, tokens.words, strict=True):
            row += self.own[word]
        for shift, features in self.neighbours.items():
            for row, word in beside(rows, tokens.words, shift):
                row += features[word]
            for row in rows[:-shift] if shift < 0 else rows[max(len(rows) - shift, 0) :]:
                row += self.absent[shift]

    def meet(self, words: Collection[str]) -> None:
        for features in self.neighbours.values():
            features.meet([word for word in words if word not in features])


class WordNgrams(Source):
    """Sequences of words that a token is part of."""

    def __init__(self, options: Options, code: Code) -> None:
        self.longest, self.code = options["word_ngrams"], code

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for n in range(2, self.longest + 1):
            ngrams = join_ngrams(tokens.words, n)
            for shift in range(1 - n, 1):
                title = f"words[{shift:+}]="
                for row, ngram in beside(rows, self.code([title + ngram for ngram in ngrams]), shift):
                    row.append(ngram)


class TagNgrams(Source):
    """Tags of tokens in the window, and sequences of them."""

    def __init__(self, options: Options, code: Code) -> None:
        self.window, self.longest = options["window"], min(options["tag_ngrams"], 2 * options["window"] + 1)
        self.features: Mapping[str, Mapping[str, Sequence[Feature]]] = ValuesOf(
            lambda title: ValuesOf(lambda tags: code([f"{title}={tags}"]))
        )

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for k, tags in enumerate(tokens.tags, start=1):
            for n in range(1, self.longest + 1):
                ngrams = join_ngrams(tags, n)
                for shift in range(-self.window, self.window - n + 2):
                    features = self.features[f"tag{k}[{shift:+}]"]
                    for row, ngram in beside(rows, ngrams, shift):
                        row += features[ngram]


class TaggedWords(Source):
    """Words together with tags: that of a token with the tags within one place, those beside it with its tag."""

    shifts = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))  # of the word and of the tag

    def __init__(self, options: Options, code: Code) -> None:
        self.is_wanted, self.code = options["tag_words"], code

    def add(self, rows: Rows, tokens: Tokens) -> None:
        if not (self.is_wanted and tokens.tags):
            return
        lowers = [word.lower() for word in tokens.words]
        for k, tags in enumerate(tokens.tags, start=1):
            for word, tag in self.shifts:
                title = f"lower[{word:+}]|tag{k}[{tag:+}]="
                begin, end = max(0, -word, -tag), len(rows) - max(0, word, tag)
                names = [f"{title}{lowers[t + word]}|{tags[t + tag]}" for t in range(begin, end)]
                for row, feature in zip(rows[begin:end], self.code(names), strict=False):
                    row.append(feature)


class ListedNames(Source):
    """Names in lists, and whether a token begins one or goes on with it."""

    def __init__(self, options: Options, code: Code) -> None:
        self.gazetteers, self.code = options["gazetteers"], code

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


def word_features(
    code: Code, affixes_of: Properties, shapes: Mapping[str, str] | None
) -> Callable[[str], Sequence[Feature]]:
    """What makes the features of a word."""

    def features(word: str) -> Sequence[Feature]:
        names = [f"word={word}", f"lower={word.lower()}"]
        if shapes is not None:
            names.append(f"shape={shapes[word]}")
        return code([*names, *map("=".join, affixes_of(word))])

    return features


def neighbour_features(
    code: Code, shift: int, shapes: Mapping[str, str] | None
) -> Callable[[Sequence[str]], Iterable[tuple[Feature, ...]]]:
    """What makes the features of words that are somewhere beside a token."""
    title = f"lower[{shift:+}]="
    # There are far fewer shapes than words.
    of_shape: Mapping[str, Feature] = ValuesOf(lambda shape: code([f"shape[{shift:+}]={shape}"])[0])

    def features(words: Sequence[str]) -> Iterable[tuple[Feature, ...]]:
        lowers = code([title + word.lower() for word in words])
        return zip(lowers, *([] if shapes is None else [[of_shape[shapes[word]] for word in words]]), strict=True)

    return features


def beside(rows: Rows, values: Sequence[Value], shift: int) -> Iterator[tuple[list[Feature], Value]]:
    """Pairs of a row and the value that is `shift` places after it."""
    return zip(rows[max(0, -shift) :], values[max(0, shift) :], strict=False)


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
