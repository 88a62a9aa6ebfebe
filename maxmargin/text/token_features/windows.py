"""Features of tokens: of words, their parts and neighbours, of parts of speech, and of lists of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from itertools import count, groupby, islice, repeat
from typing import Any, ClassVar, Self

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.checks import check_count
from maxmargin.parameters import has_parameters
from maxmargin.persist.registry import register
from maxmargin.text.corpus import document_sizes
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.token_features.document_words import DocumentWords, spellings_of
from maxmargin.text.token_features.gazetteers import Gazetteers
from maxmargin.text.token_features.named_features import DenseColumns, FeatureColumns, Sliced
from maxmargin.text.token_features.property_checks import check_own_titles
from maxmargin.text.token_features.sources import (
    ListedNames,
    Options,
    Source,
    TaggedWords,
    TagNgrams,
    WordNgrams,
    Words,
)
from maxmargin.text.token_features.token_blocks import Code, Rows, TokenBlock
from maxmargin.text.token_features.tokens import NOWHERE, Spellings, Titles, Token, as_sentences, split_tokens
from maxmargin.text.token_features.window_options import WindowOptions
from maxmargin.text.token_features.word_properties import (
    CharacterNgrams,
    MatchedPatterns,
    NeighbourAffixes,
    WordClasses,
)

Sentences = Iterable[Iterable[Token]]

BLOCK = 2_000  # sentences whose words are looked up at once
MOST_TOKENS = 100  # of a window, and characters of an affix


@has_parameters
class WindowFeatures(WindowOptions):
    """Features of the tokens of sentences, by name, for `ChainCRF`, `ChainSVM` and others.

    A token is a word, or a tuple of a word and tags such as its part of speech. The defaults suit named entities and
    chunks.

    Attributes
    ----------
    gazetteers_
        The gazetteers, indexed.
    cross_fit_ : list of the titles of those that `fit_transform` has found to be made of the entities in y

    Examples
    --------
    >>> from maxmargin.text import WindowFeatures
    >>> windows = WindowFeatures(window=1, affixes=2, word_ngrams=1, gazetteers={"city": ["New York"]})
    >>> rows = windows.transform([["in", "New", "York"]])
    >>> rows[0][1]  # doctest: +NORMALIZE_WHITESPACE
    ['word=New', 'lower=new', 'shape=Aa', 'prefix=n', 'suffix=w', 'prefix=ne', 'suffix=ew', 'lower[-1]=in',
     'shape[-1]=a', 'lower[+1]=york', 'shape[+1]=Aa', 'city=begin']

    In a pipeline:

    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import ChainCRF
    >>> tagger = make_pipeline(WindowFeatures(), ChainCRF())
    >>> _ = tagger.fit([["the", "dog"], ["dogs", "bark"]], [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> tagger.predict([["the", "dogs"]])[0].tolist()
    ['DET', 'NOUN']
    """

    sources: ClassVar[tuple[type[Source], ...]] = (
        Words,
        WordNgrams,
        TagNgrams,
        TaggedWords,
        ListedNames,
        NeighbourAffixes,
        CharacterNgrams,
        MatchedPatterns,
        WordClasses,
        DocumentWords,
    )

    def fit(self, X: object, y: object = None) -> Self:
        """Check the arguments and index the gazetteers; there is nothing to learn, and `transform` works without.

        Parameters
        ----------
        X, y
            Ignored.
        """
        self._check_options()
        self.gazetteers_ = Gazetteers(self.gazetteers or {}, loose=self.loose_names)
        for name in ("gazetteers", "patterns", "classes"):
            check_own_titles(name, getattr(self, name) or ())
        return self

    def _check_options(self) -> None:
        for argument in fields(self):
            if "least" in argument.metadata:
                value, least = getattr(self, argument.name), argument.metadata["least"]
                check_count(argument.name, value, least, MOST_TOKENS)
            elif argument.metadata.get("check"):
                argument.metadata["check"](argument.name, getattr(self, argument.name))

    def fit_transform(self, X: Sentences, y: LabelSequences | None = None) -> Windows:
        """The features of the tokens to train on, in which lists that are made of their entities are cross-fit.

        A list knows all entities of the sentences that it was made of, but not those of others, so that a model would
        learn to trust it too much. Of a list whose names are entities in y, a name therefore counts in a sentence only
        if it is an entity elsewhere, in another tenth of the sentences. Other features are those of `transform`.

        Parameters
        ----------
        X
            As in `transform`.
        y : list of sequences of tags

        Returns
        -------
        as `transform`
        """
        X = as_sentences(X)
        titles = self.fit(X, y).cross_fit(X, y, len(X))
        return self.transform(X).with_titles(titles)

    def cross_fit(self, X: Sentences, y: LabelSequences | None, n: int) -> Sequence[Titles] | None:
        """Learn which lists are made of the entities in y; the titles of names in each sentence, if that changes any.

        The n sentences are read one after the other: they may be those of all shards.
        """
        self.cross_fit_: list[str] = []
        if y is None or not self.gazetteers:
            return None
        self.cross_fit_, titles = self.gazetteers_.cross_fit(split_words(X), y, n)
        return titles if self.cross_fit_ else None

    def leaks(self, X: Sentences, y: LabelSequences, X_dev: Sentences, y_dev: LabelSequences) -> list[str]:
        """What there is to say of lists that know far more entities of y than of held-out sentences."""
        if not self.gazetteers:
            return []
        messages = self.gazetteers_.leaks((split_words(X), y), (split_words(X_dev), y_dev))
        return [message for title, message in messages.items() if title not in self.cross_fit_]

    def transform(self, X: Sentences) -> Windows:
        """The features of the tokens.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags

        Returns
        -------
        sequence of lists with a list of names for each token; they are made when they are asked for
        """
        X = as_sentences(X)
        options, maker = self.get_params(deep=False), getattr(self, "_maker", None)
        if maker is None or maker.options != options:
            self._check_options()
            gazetteers = (
                self.gazetteers_
                if hasattr(self, "gazetteers_")
                else Gazetteers(self.gazetteers or {}, loose=self.loose_names)
            )
            maker = self._maker = TokenFeatures(self.sources, options, gazetteers)
        spellings = spellings_of([*split_words(X)], document_sizes(X)) if self.elsewhere else None
        return Windows(maker, X, spellings=spellings)  # with what it remembers of words


def remake(**options: Any) -> WindowFeatures:
    """The transformer that a file has the options of; earlier versions had affixes as words are spelled."""
    return WindowFeatures(**{"cased_affixes": True, **options})


register(WindowFeatures, make=remake)


def split_words(sentences: Sentences) -> Iterator[list[str]]:
    """The words of sentences, without their tags."""
    return (split_tokens(sentence, i).words for i, sentence in enumerate(sentences))


class Windows(Sliced[Rows]):
    """The features of sentences, made when they are asked for, so that they are never all in memory."""

    def __init__(
        self,
        maker: TokenFeatures,
        sentences: Sequence[Iterable[Token]],
        titles: Sequence[Titles] | None = None,
        spellings: Sequence[Spellings] | None = None,
    ) -> None:
        self.maker, self.sentences = maker, sentences
        self.titles = titles  # of names, for each sentence, in place of those of the gazetteers
        self.spellings = spellings  # of words in the document of each sentence

    def with_titles(self, titles: Sequence[Titles] | None) -> Self:
        """The same with titles of names, for each sentence, in place of those of the gazetteers; None is these."""
        return self._of(self.sentences, titles, self.spellings)

    def _of(self, sentences: Any, titles: Sequence[Titles] | None, spellings: Sequence[Spellings] | None) -> Self:
        other = copy(self)
        other.sentences, other.titles, other.spellings = sentences, titles, spellings
        return other

    def __len__(self) -> int:
        return len(self.sentences)

    def make_some(self, which: slice) -> Self:
        titles = None if self.titles is None else self.titles[which]
        return self._of(self.sentences[which], titles, None if self.spellings is None else self.spellings[which])

    def make_one(self, i: int) -> Rows:
        titles = None if self.titles is None else self.titles[i]
        return self.maker(self.sentences[i], i, titles, NOWHERE if self.spellings is None else self.spellings[i])

    def __iter__(self) -> Iterator[Rows]:
        return map(self.maker, self.sentences, count(), *self._beside())

    def _beside(self) -> tuple[Iterator[Titles | None], Iterator[Spellings]]:
        """What there is to know of each sentence besides."""
        return iter(self.titles or repeat(None)), iter(self.spellings or repeat(NOWHERE))

    def look_up(self, columns: FeatureColumns) -> Iterator[Rows]:
        """The same with the columns of the names in their place; faster, as most words and tags come again."""
        return map(self.maker.with_columns(columns), self.sentences, count(), *self._beside())

    def column_tables(self, columns: FeatureColumns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same of many sentences at once: a table with the columns of each token, and the lengths of sentences."""
        maker = self.maker.with_columns(columns)
        tokens = map(split_tokens, self.sentences, count(), *self._beside())
        for _, alike in groupby(tokens, lambda sentence: len(sentence.tags)):
            while block := [*islice(alike, BLOCK)]:
                yield maker.table(TokenBlock(block, columns))

    def dense_columns(self) -> DenseColumns | None:
        """The vectors of words, if there are any: those of the same word share a row."""
        vectors, options = self.maker.options["vectors"], self.maker.options
        if vectors is None:
            return None
        sentences, shifts = (
            [*split_words(self.sentences)],
            range(-options["vector_window"], options["vector_window"] + 1),
        )
        numbers: dict[str, int] = {}
        codes = np.array([numbers.setdefault(word, len(numbers)) for words in sentences for word in words], np.int32)
        table, rows = vectors.find([*numbers])
        rows_of_tokens = np.array([*rows, -1], np.int32)[codes]
        starts = starts_of([len(words) for words in sentences])
        which = np.stack([shift_within(rows_of_tokens, starts, shift) for shift in shifts], axis=1)
        places = ["" if shift == 0 else f"[{shift:+}]" for shift in shifts]
        names = [f"vector:{k}{place}" for place in places for k in range(vectors.width)]
        return DenseColumns(names, table, which, options["vector_length"])


def shift_within(values: np.ndarray, starts: np.ndarray, shift: int) -> np.ndarray:
    """The value `shift` places after each, within sentences that begin at `starts`; -1 beyond."""
    places = np.arange(len(values)) + shift
    lengths = np.diff(starts)
    is_within = (places >= np.repeat(starts[:-1], lengths)) & (places < np.repeat(starts[1:], lengths))
    return np.where(is_within, np.append(values, -1)[np.where(is_within, places, -1)], -1).astype(np.int32)


class TokenFeatures:
    """Makes the features of the tokens of a sentence.

    Parameters
    ----------
    sources
        What they are made of.
    options
        The arguments of `WindowFeatures`.
    gazetteers
        Indexed.
    columns
        What to put in place of names, if they are not to be names.
    """

    def __init__(
        self,
        sources: Sequence[type[Source]],
        options: Options,
        gazetteers: Gazetteers,
        columns: FeatureColumns | None = None,
    ) -> None:
        code: Code = list if columns is None else columns.find
        self.arguments, self.options, self.columns = (sources, options, gazetteers), options, columns
        made = [source({**options, "gazetteers": gazetteers}, code) for source in sources]
        self.sources = [source for source in made if not source.is_empty]
        self._with_columns: TokenFeatures | None = None

    def with_columns(self, columns: FeatureColumns) -> TokenFeatures:
        """The same with columns in place of names; it is remembered, unless the columns are those of a training."""
        if columns.grows:
            return TokenFeatures(*self.arguments, columns)
        if self._with_columns is None or self._with_columns.columns is not columns:
            self._with_columns = TokenFeatures(*self.arguments, columns)
        return self._with_columns

    def table(self, block: TokenBlock) -> tuple[np.ndarray, np.ndarray]:
        """The columns of all tokens of a block, which are known, and the lengths of its sentences."""
        tables = [table for source in self.sources for table in source.tables(block)]
        empty = np.zeros((len(block), 0), np.int32)
        return np.concatenate([empty, *tables], axis=1), block.lengths

    def __reduce__(self) -> tuple[type[TokenFeatures], tuple[object, ...]]:
        return TokenFeatures, (*self.arguments, self.columns)

    def __call__(
        self, sentence: Iterable[Token], i: int, titles: Titles | None = None, spellings: Spellings = NOWHERE
    ) -> Rows:
        tokens = split_tokens(sentence, i, titles, spellings)
        rows: Rows = [[] for _ in tokens.words]
        for source in self.sources:
            source.add(rows, tokens)
        return rows
