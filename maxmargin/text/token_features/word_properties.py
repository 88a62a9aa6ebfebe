"""Sources of what is known of words by themselves: their affixes, characters and classes, and patterns they match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from maxmargin.text.token_features import sources
from maxmargin.text.token_features.sources import Options, Properties, Property, Source
from maxmargin.text.token_features.token_blocks import Code, KeyedFeatures, NamesOf, Rows, TokenBlock, Values, ValuesOf
from maxmargin.text.token_features.tokens import Tokens

SHORTEST = 2  # sequence of characters that is a feature


class WordProperties(Source):
    """Properties of the words of tokens, and of those beside them, at these shifts."""

    def __init__(self, properties: Properties, shifts: Sequence[int], code: Code) -> None:
        self.keyed = KeyedFeatures(property_names(properties), shifts, code)
        self.is_empty = not shifts

    def add(self, rows: Rows, tokens: Tokens) -> None:
        self.keyed.add(rows, tokens.words)

    def tables(self, block: TokenBlock) -> Iterator[np.ndarray]:
        yield self.keyed.table(block.words, block)


def property_names(properties: Properties) -> NamesOf:
    """What makes the names of features of words that are `shift` places after a token."""

    def names(words: Sequence[str], shift: int) -> Iterator[tuple[str, Values]]:
        place = f"[{shift:+}]" if shift else ""
        found = [[f"{title}{place}={value}" for title, value in properties(word)] for word in words]
        return (("", values) for values in zip_longest(*found))

    return names


def window_shifts(options: Options) -> range:
    """The places of a window, the token's own included."""
    return range(-options["window"], options["window"] + 1)


class NeighbourAffixes(WordProperties):
    """Prefixes and suffixes of the words beside a token."""

    def __init__(self, options: Options, code: Code) -> None:
        shifts = [k for k in window_shifts(options) if k and options["near_affixes"]]
        super().__init__(sources.affixes_by(options, "near_affixes"), shifts, code)


class CharacterNgrams(WordProperties):
    """Sequences of characters in a word, whose ends are marked."""

    def __init__(self, options: Options, code: Code) -> None:
        longest = options["char_ngrams"]
        shifts = [0] if longest else []
        super().__init__(lambda word: [("chars", ngram) for ngram in ngrams_of(f"<{word}>", longest)], shifts, code)


def ngrams_of(text: str, longest: int) -> dict[str, None]:
    """The sequences of two or more characters, each once, in their order."""
    sizes = range(SHORTEST, longest + 1)
    return dict.fromkeys(text[k : k + n] for n in sizes for k in range(len(text) - n + 1))


class MatchedPatterns(WordProperties):
    """Regular expressions that words match as a whole."""

    def __init__(self, options: Options, code: Code) -> None:
        patterns = {title: re.compile(text) for title, text in (options["patterns"] or {}).items()}

        def properties(word: str) -> list[Property]:
            return [(title, "matched") for title, pattern in patterns.items() if pattern.fullmatch(word)]

        super().__init__(properties, window_shifts(options) if patterns else (), code)


class WordClasses(WordProperties):
    """Classes of words, and the beginnings of those that are paths in a tree, such as Brown's."""

    def __init__(self, options: Options, code: Code) -> None:
        tables, lengths = options["classes"] or {}, options["class_prefixes"]
        parts: Mapping[str, list[Property]] = ValuesOf(
            lambda name: [("", name), *((str(n), name[:n]) for n in lengths if n < len(name))]
        )
        paths = {title for title, table in tables.items() if are_paths(table.values())}

        def properties(word: str) -> list[Property]:
            found = []
            for title, table in tables.items():
                name = table.get(word) or table.get(word.lower())
                if name is not None:
                    found += [(title + size, part) for size, part in (parts[name] if title in paths else [("", name)])]
            return found

        super().__init__(properties, window_shifts(options) if tables else (), code)


def are_paths(names: Iterable[str]) -> bool:
    """Whether classes are paths in a binary tree: strings of 0 and 1."""
    return all(name.strip("01") == "" for name in set(names))
