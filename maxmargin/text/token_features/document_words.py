"""How words are spelled elsewhere in their document: what a capital at the beginning of a sentence does not tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, repeat

from maxmargin.text.token_features.sources import Options, Source
from maxmargin.text.token_features.token_blocks import Code, Feature, Rows
from maxmargin.text.token_features.tokens import Spellings, Tokens


class DocumentWords(Source):
    """Whether a word is capitalized, or not, elsewhere in its document: within a sentence, where it counts."""

    def __init__(self, options: Options, code: Code) -> None:
        self.is_empty = not options["elsewhere"]
        self.code: Mapping[str, Sequence[Feature]] = {
            name: code([f"elsewhere={name}"]) for name in (("capital", "small") if options["elsewhere"] else ())
        }

    def add(self, rows: Rows, tokens: Tokens) -> None:
        for t, (row, word) in enumerate(zip(rows, tokens.words, strict=True)) if self.code else ():
            for name, features in self.code.items():
                if tokens.spellings[name, word.lower()] > (t > 0 and spelling(word) == name):
                    row += features


def spelling(word: str) -> str:
    """How a word is spelled."""
    return "capital" if word[:1].isupper() else "small" if word[:1].islower() else "other"


def count_spellings(sentences: Iterable[Sequence[str]]) -> Spellings:
    """How often the words of a document are spelled how, first words of sentences left out."""
    return Counter((spelling(word), word.lower()) for words in sentences for word in words[1:])


def spellings_of(sentences: Sequence[Sequence[str]], sizes: Iterable[int]) -> list[Spellings]:
    """Those of the document of each sentence, documents being so many sentences each."""
    rest, found = iter(sentences), list[Spellings]()
    for size in sizes:
        found += repeat(count_spellings(islice(rest, size)), size)
    return found
