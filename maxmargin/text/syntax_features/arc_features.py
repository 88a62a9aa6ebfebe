"""Features of the arcs of dependency trees: of head and dependent, their neighbours, and what lies between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist.registry import register
from maxmargin.text.sentence_files.conllu import Sentence
from maxmargin.text.syntax_features import word_pairs
from maxmargin.text.syntax_features.word_pairs import Field, FoundNames, PairFeatures, WordPairs
from maxmargin.text.token_features.named_features import FeatureColumns
from maxmargin.text.token_features.tokens import Token, Tokens, as_sentences

# Fields of an arc: h and m are head and dependent, w is the word and t the tag; -1 and +1 are neighbours.
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
class ArcFeatures(PairFeatures):
    """Features of all arcs between the words of sentences, by name, for `DependencySVM` and `DependencyCRF`.

    A token is a word, or a tuple of a word and tags such as its part of speech. An arc has the words and tags of its
    head and dependent, alone and together, those of their neighbours, and the tags between the two, and how often these
    are there; all with the direction of the arc, and with its length.

    Parameters
    ----------
    between : bool, default=True
        Whether the tags of words between head and dependent are features.
    columns : tuple of str, default=("form", "upos")
        Which columns of CoNLL-U are the word and its tags, where sentences are those of `read_conllu`.

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
    columns: tuple[str, ...] = parameter(
        "tuple of str",
        "Which columns of CoNLL-U are the word and its tags, where sentences are those of `read_conllu`.",
        default=("form", "upos"),
    )

    def transform(self, X: Iterable[Iterable[Token] | Sentence]) -> WordArcs:
        """The features of the arcs.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags, or those of `read_conllu`

        Returns
        -------
        sequence of lists with a list of names for each of the n (n + 1) arcs of a sentence of n words, word by word,
        each from the heads 0 (the root) to n; they are made when they are asked for
        """
        sentences = [
            sentence.tokens(*self.columns) if isinstance(sentence, Sentence) else sentence
            for sentence in as_sentences(X)
        ]
        return WordArcs(sentences, bool(self.between))


class WordArcs(WordPairs):
    """The features of the arcs of sentences, word by word, each from the heads 0, the root, to n."""

    def __init__(self, sentences: Sequence[object], between: bool) -> None:
        super().__init__(sentences)
        self.between = between

    @staticmethod
    def count_pairs(lengths: np.ndarray) -> np.ndarray:
        return lengths * (lengths + 1)

    def find_pairs(
        self, columns: FeatureColumns, sentences: Sequence[Tokens], rows: np.ndarray, n_rows: np.ndarray
    ) -> FoundNames:
        lengths = np.array([len(tokens.words) for tokens in sentences])
        word, head = np.divmod(rows, np.repeat(lengths + 1, n_rows))
        distance = word + 1 - head
        arcs = np.flatnonzero(distance)  # those from a word to itself have no names
        first = np.repeat(starts_of(lengths + 3)[:-1], n_rows) + 1  # where the root of each sentence is, after a start
        h, m = (first + head)[arcs], (first + word + 1)[arcs]
        direction = Field((distance[arcs] > 0).astype(np.int64), ["<", ">"])
        found = FoundNames(columns, (direction, word_pairs.bin_distances(distance[arcs], "<>")), arcs)
        texts = word_pairs.number_columns(sentences, ("<start>", "<root>"), ("<end>",))
        fields = {"hw": texts[0].at(h), "mw": texts[0].at(m)}
        for template in WORD_TEMPLATES:
            found.add(template, fields)
        for k, tags in enumerate(texts[1:]):
            fields |= {"ht": tags.at(h), "ht-1": tags.at(h - 1), "ht+1": tags.at(h + 1)}
            fields |= {"mt": tags.at(m), "mt-1": tags.at(m - 1), "mt+1": tags.at(m + 1)}
            prefix = "" if k == 0 else f"{k + 1} "
            for template in TAG_TEMPLATES:
                found.add(template, fields, prefix)
            if self.between:
                add_between(found, tags, h, m, fields, prefix)
        return found


def add_between(
    found: FoundNames, tags: Field, h: np.ndarray, m: np.ndarray, fields: dict[str, Field], prefix: str
) -> None:
    """Look up the names of tags between head and dependent, each once per arc, and of how often they are there."""
    counts = np.zeros((len(tags.numbers) + 1, len(tags.strings)), np.int32)
    counts[np.arange(1, len(counts)), tags.numbers] = 1
    np.cumsum(counts, axis=0, out=counts)
    lo, hi = np.minimum(h, m) + 1, np.maximum(h, m)
    rows, tag = np.nonzero(counts[hi] > counts[lo])
    head, inside, dependent = fields["ht"].at(rows), Field(tag, tags.strings), fields["mt"].at(rows)
    often = Field(np.minimum((counts[hi] - counts[lo])[rows, tag], 3).astype(np.int64) - 1, ["1", "2", "3+"])
    found.look_up(f"{prefix}ht between mt", [head, inside, dependent], rows)
    found.look_up(f"{prefix}ht between count", [head, inside, often], rows)
    found.look_up(f"{prefix}between count mt", [inside, often, dependent], rows)
