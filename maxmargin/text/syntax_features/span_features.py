"""Features of the spans of constituents: of their first and last words, and of those before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.parameters import has_parameters
from maxmargin.persist.registry import register
from maxmargin.text.syntax_features import word_pairs
from maxmargin.text.syntax_features.word_pairs import Field, FoundNames, PairFeatures, WordPairs
from maxmargin.text.token_features.named_features import FeatureColumns
from maxmargin.text.token_features.tokens import Token, Tokens, as_sentences

# Fields of a span: f and l are its first and last word, b and a those before and after; w is the word, t the tag, and
# -1 and +1 are neighbours. With the length, "ft ft+1 lt-1 lt" has all tags of up to four words.
WORD_TEMPLATES = ("fw", "lw", "bw", "aw", "fw lw / fw", "bw fw / fw", "lw aw / lw", "bw aw / bw")
TAG_TEMPLATES = (
    "ft",
    "lt",
    "bt",
    "at",
    "ft lt",
    "bt at",
    "bt ft",
    "lt at",
    "fw lt / fw",
    "ft lw / lw",
    "bw ft / bw",
    "lt aw / aw",
    "bt fw / fw",
    "lw at / lw",
    "bt ft lt / ft lt",
    "ft lt at / ft lt",
    "ft ft+1 lt / ft lt",
    "ft lt-1 lt / ft lt",
    "bt ft lt at / bt ft lt",
    "ft ft+1 lt-1 lt / ft ft+1 lt",
    "bt ft ft+1 / bt ft",
    "lt-1 lt at / lt at",
    "fw lt at / fw lt",
    "bt ft lw / ft lw",
)


@register
@has_parameters
class SpanFeatures(PairFeatures):
    """Features of all spans of the words of sentences, by name, for `SpanSVM` and `SpanCRF`.

    A token is a word, or a tuple of a word and tags such as its part of speech. A span has its first and last words
    and tags, those before and after it, and tags next to these; alone and together, and all with its length, too. What
    all spans have, "span=", is there to say how rare a label is.

    Examples
    --------
    >>> from maxmargin.text import SpanFeatures
    >>> spans = SpanFeatures().transform([[("She", "PRON"), ("sings", "VERB")]])
    >>> [name for name in spans[0][1] if name.startswith("ft lt=")]  # of the words 0 to 2, after those 0 to 1
    ['ft lt=PRON VERB', 'ft lt=PRON VERB 2']
    """

    def transform(self, X: Iterable[Iterable[Token]]) -> WordSpans:
        """The features of the spans.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags

        Returns
        -------
        sequence of lists with a list of names for each of the n (n + 1) / 2 spans of a sentence of n words, by where
        they start, then by where they end; they are made when they are asked for
        """
        return WordSpans(as_sentences(X))


class WordSpans(WordPairs):
    """The features of the spans of sentences, by where they start, then by where they end."""

    @staticmethod
    def count_pairs(lengths: np.ndarray) -> np.ndarray:
        return lengths * (lengths + 1) // 2

    def find_pairs(
        self, columns: FeatureColumns, sentences: Sequence[Tokens], rows: np.ndarray, n_rows: np.ndarray
    ) -> FoundNames:
        lengths = np.array([len(tokens.words) for tokens in sentences])
        ends = np.concatenate([np.stack(np.triu_indices(n)) for n in lengths], axis=1)
        begin, last = ends[:, rows + np.repeat(starts_of(self.count_pairs(lengths))[:-1], n_rows)]
        first = np.repeat(starts_of(lengths + 4)[:-1], n_rows) + 2  # where the words of each sentence start
        f, e = first + begin, first + last
        size = last - begin + 1
        distance = word_pairs.bin_distances(size)
        distance = Field(distance.numbers, [f" {name}" for name in distance.strings])
        found = FoundNames(columns, (Field(np.zeros_like(size), [""]), distance), np.arange(len(rows)))
        found.look_up("span", [], found.all)
        texts = word_pairs.number_columns(sentences, ("<start>",) * 2, ("<end>",) * 2)
        words = texts[0]
        fields = {"fw": words.at(f), "lw": words.at(e), "bw": words.at(f - 1), "aw": words.at(e + 1)}
        for template in WORD_TEMPLATES:
            found.add(template, fields)
        for k, tags in enumerate(texts[1:]):
            fields |= {"ft": tags.at(f), "lt": tags.at(e), "bt": tags.at(f - 1), "at": tags.at(e + 1)}
            fields |= {"ft+1": tags.at(f + 1), "lt-1": tags.at(e - 1)}
            for template in TAG_TEMPLATES:
                found.add(template, fields, "" if k == 0 else f"{k + 1} ")
        return found
