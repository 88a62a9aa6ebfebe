"""Features of tokens: of words, their parts and neighbours, of parts of speech, and of lists of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby, islice, repeat
from typing import Any, Self

from maxmargin.checks import check_count
from maxmargin.persist.registry import register
from maxmargin.sklearn_contract import Estimator
from maxmargin.text.gazetteers import Gazetteers, Titles
from maxmargin.text.memo import BlockCache, Cache
from maxmargin.text.tokens import split_tokens

BLOCK = 2_000  # sentences whose words are looked up at once
MOST_TOKENS = 100  # of a window, and characters of an affix

Code = Callable[[list[str]], list[Any]]  # what puts columns in the place of names, or leaves them


@register
class WindowFeatures(Estimator):
    """Features of the tokens of sentences, by name, for `ChainCRF`, `ChainSVM` and others.

    A token is a word, or a tuple of a word and tags such as its part of speech. The defaults suit named entities and
    chunks.

    Parameters
    ----------
    window : int, default=2
        The number of tokens on either side whose lower-cased words, shapes and tags are features.
    affixes : int, default=3
        The length of the longest prefix and suffix.
    shapes : bool, default=True
        Shapes of words, in which letters and digits stand for their class, repeated ones once: McCoy-33 is AaAa-0.
    word_ngrams : int, default=2
        The length of the longest sequence of words that a token is part of.
    tag_ngrams : int, default=3
        The length of the longest sequence of tags within the window.
    gazetteers : dict, default=None
        Lists of names, each a string of one or more words: tokens that are part of one have a feature for its list, and
        whether they begin the name or go on with it. Case does not matter; the longest name counts. Lists made of the
        entities in y are cross-fit by `fit_transform`, which pipelines and `Tagger` call: see there.

    Attributes
    ----------
    gazetteers_ : the gazetteers, indexed
    cross_fit_ : list of the titles of those that `fit_transform` has found to be made of the entities in y

    Examples
    --------
    >>> from maxmargin.text import WindowFeatures
    >>> windows = WindowFeatures(window=1, affixes=2, word_ngrams=1, gazetteers={"city": ["New York"]})
    >>> rows = windows.transform([["in", "New", "York"]])
    >>> rows[0][1]  # doctest: +NORMALIZE_WHITESPACE
    ['word=New', 'lower=new', 'shape=Aa', 'prefix=N', 'suffix=w', 'prefix=Ne', 'suffix=ew', 'lower[-1]=in',
     'shape[-1]=a', 'lower[+1]=york', 'shape[+1]=Aa', 'city=begin']

    In a pipeline:

    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import ChainCRF
    >>> tagger = make_pipeline(WindowFeatures(), ChainCRF())
    >>> _ = tagger.fit([["the", "dog"], ["dogs", "bark"]], [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> tagger.predict([["the", "dogs"]])[0].tolist()
    ['DET', 'NOUN']
    """

    def __init__(
        self,
        *,
        window: int = 2,
        affixes: int = 3,
        shapes: bool = True,
        word_ngrams: int = 2,
        tag_ngrams: int = 3,
        gazetteers: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.window = window
        self.affixes = affixes
        self.shapes = shapes
        self.word_ngrams = word_ngrams
        self.tag_ngrams = tag_ngrams
        self.gazetteers = gazetteers

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the arguments and index the gazetteers; there is nothing to learn, and `transform` works without.

        Parameters
        ----------
        X, y : ignored
        """
        self.gazetteers_ = Extractor(self.get_params()).gazetteers
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Windows:
        """The features of the tokens to train on, in which lists that are made of their entities are cross-fit.

        A list knows all entities of the sentences that it was made of, but not those of others, so that a model would
        learn to trust it too much. Of a list whose names are entities in y, a name therefore counts in a sentence only
        if it is an entity elsewhere, in another tenth of the sentences. Other features are those of `transform`.

        Parameters
        ----------
        X : as in `transform`
        y : list of sequences of tags

        Returns
        -------
        as `transform`
        """
        rows = self.fit(X, y).transform(X)
        self.cross_fit_: list[str] = []
        if y is None or not self.gazetteers:
            return rows
        words = [split_tokens(sentence, i)[0] for i, sentence in enumerate(rows.sentences)]
        self.cross_fit_, titles = self.gazetteers_.cross_fit(words, y)
        return Windows(rows.extractor, rows.sentences, titles if self.cross_fit_ else None)

    def leaks(self, X: Any, y: Any, X_dev: Any, y_dev: Any) -> list[str]:
        """What there is to say of lists that know far more entities of y than of held-out sentences."""
        parts = [
            ([split_tokens(tokens, i)[0] for i, tokens in enumerate(x)], tags) for x, tags in ((X, y), (X_dev, y_dev))
        ]
        found = self.gazetteers_.leaks(*parts) if self.gazetteers else {}
        return [message for title, message in found.items() if title not in self.cross_fit_]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing, as pipelines ask all their steps to: features of tokens are no table, whatever is asked for.

        Parameters
        ----------
        transform : ignored
        """
        return self

    def transform(self, X: Any) -> Windows:
        """The features of the tokens.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags

        Returns
        -------
        sequence of lists with a list of names for each token; they are made when they are asked for
        """
        if isinstance(X, str) or not isinstance(X, Iterable):
            raise TypeError(f"X must be a list of sentences, not a {type(X).__name__}.")
        options, extractor = self.get_params(), getattr(self, "_extractor", None)
        if extractor is None or extractor.options != options:
            extractor = self._extractor = Extractor(options, getattr(self, "gazetteers_", None))
        return Windows(extractor, X if isinstance(X, Sequence) else [*X])  # with what it remembers of words


class Windows(Sequence):
    """The features of sentences, made when they are asked for, so that they are never all in memory."""

    def __init__(self, extractor: Extractor, sentences: Sequence[Any], titles: Sequence[Titles] | None = None) -> None:
        self.extractor, self.sentences = extractor, sentences
        self.titles = titles  # of names, for each sentence, in place of those of the gazetteers

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, i: Any) -> Any:
        titles = None if self.titles is None else self.titles[i]
        if isinstance(i, slice):
            return Windows(self.extractor, self.sentences[i], titles)
        return self.extractor(self.sentences[i], i, titles)

    def __iter__(self) -> Iterator[list[list[str]]]:
        return map(self.extractor, self.sentences, count(), self.titles or repeat(None))

    def coded(self, columns: Any) -> Iterator[list[list[int]]]:
        """The same with the columns of the names in their place; faster, as most words and tags come again."""
        extractor = self.extractor.coded(columns)
        sentences, numbers, titles = iter(self.sentences), count(), iter(self.titles or repeat(None))
        while block := [*islice(sentences, BLOCK)]:
            extractor.meet(block)
            yield from map(extractor, block, numbers, titles)


class Extractor:
    """Makes the features of the tokens of a sentence, with the arguments of `WindowFeatures`.

    Parameters
    ----------
    options : these arguments
    gazetteers : indexed, if they are already
    columns : of which `codes` says what to put in place of names, if they are not to be names
    """

    def __init__(
        self,
        options: dict[str, Any],
        gazetteers: Gazetteers | None = None,
        columns: Any = None,
    ) -> None:
        for name, least in (("window", 0), ("affixes", 0), ("word_ngrams", 1), ("tag_ngrams", 1)):
            check_count(name, options[name], least, MOST_TOKENS)
        self.options = options
        self.window, self.affixes, self.shapes = options["window"], options["affixes"], options["shapes"]
        self.word_ngrams, self.tag_ngrams = options["word_ngrams"], options["tag_ngrams"]
        self.gazetteers = Gazetteers(options["gazetteers"] or {}) if gazetteers is None else gazetteers
        self.columns = columns
        code: Code = list if columns is None else columns.codes
        self.code = code
        # None of these refers to the extractor: what they remember is gone as soon as it is.
        shapes = Cache(shape) if self.shapes else None
        self.own = Cache(word_codes(code, self.affixes, shapes))
        shifts = [k for k in range(-self.window, self.window + 1) if k]
        self.neighbours = {k: BlockCache(neighbour_codes(code, k, shapes)) for k in shifts}
        self.absent = Cache(lambda shift: code([f"none[{shift:+}]"]))
        self.tags = Cache(lambda title: Cache(lambda tags: code([f"{title}={tags}"])))
        self._coded: Extractor | None = None

    def coded(self, columns: Any) -> Extractor:
        """The same with columns in place of names; it is remembered, unless the columns are those of a training."""
        if getattr(columns, "grows", False):
            return Extractor(self.options, self.gazetteers, columns)
        if self._coded is None or self._coded.columns is not columns:
            self._coded = Extractor(self.options, self.gazetteers, columns)
        return self._coded

    def meet(self, sentences: Iterable[Any]) -> None:
        """Look up the words of sentences at once; not while columns are added, as words are not in all places."""
        if getattr(self.columns, "grows", False):
            return
        tokens = (token for sentence in sentences if isinstance(sentence, (list, tuple)) for token in sentence)
        first = (token[0] if type(token) is tuple and token else token for token in tokens)
        words = {word for word in first if type(word) is str}
        for names in self.neighbours.values():
            names.meet([word for word in words if word not in names])

    def __reduce__(self) -> Any:
        return Extractor, (self.options, self.gazetteers, self.columns)

    def __call__(self, sentence: Any, i: int, titles: Titles | None = None) -> list[list[Any]]:
        code = self.code
        words, columns = split_tokens(sentence, i)
        rows = [[*self.own[word]] for word in words]
        for shift, names in self.neighbours.items():
            for row, word in beside(rows, words, shift):
                row += names[word]
            for row in rows[:-shift] if shift < 0 else rows[max(len(rows) - shift, 0) :]:
                row += self.absent[shift]
        for n in range(2, self.word_ngrams + 1):
            ngrams = joined(words, n)
            for shift in range(1 - n, 1):
                title = f"words[{shift:+}]="
                for row, ngram in beside(rows, code([title + ngram for ngram in ngrams]), shift):
                    row.append(ngram)
        for k, tags in enumerate(columns, start=1):
            for n in range(1, min(self.tag_ngrams, 2 * self.window + 1) + 1):
                ngrams = joined(tags, n)
                for shift in range(-self.window, self.window - n + 2):
                    names = self.tags[f"tag{k}[{shift:+}]"]
                    for row, ngram in beside(rows, ngrams, shift):
                        row += names[ngram]
        for start, end, found in self.gazetteers.find(words, titles):
            for t in range(start, end):
                rows[t] += code([f"{title}={'begin' if t == start else 'inside'}" for title in found])
        return rows


def word_codes(code: Code, affixes: int, shapes: Mapping[str, str] | None) -> Callable[[str], list[Any]]:
    """What makes the features of a word."""

    def codes(word: str) -> list[Any]:
        names = [f"word={word}", f"lower={word.lower()}"]
        if shapes is not None:
            names.append(f"shape={shapes[word]}")
        for n in range(1, min(affixes, len(word)) + 1):
            names += (f"prefix={word[:n]}", f"suffix={word[-n:]}")
        return code(names)

    return codes


def neighbour_codes(
    code: Code, shift: int, shapes: Mapping[str, str] | None
) -> Callable[[list[str]], Iterable[tuple[Any, ...]]]:
    """What makes the features of words that are somewhere beside a token."""
    title = f"lower[{shift:+}]="
    coded = Cache(lambda shape: code([f"shape[{shift:+}]={shape}"])[0])  # there are far fewer shapes than words

    def codes(words: list[str]) -> Iterable[tuple[Any, ...]]:
        lowers = code([title + word.lower() for word in words])
        return zip(lowers, *([] if shapes is None else [[coded[shapes[word]] for word in words]]), strict=True)

    return codes


def beside(rows: list[list[Any]], values: Sequence[Any], shift: int) -> Iterator[tuple[list[Any], Any]]:
    """Pairs of a row and the value that is `shift` places after it."""
    return zip(rows[max(0, -shift) :], values[max(0, shift) :], strict=False)


def joined(values: Sequence[str], n: int) -> Sequence[str]:
    """All sequences of n values."""
    return values if n == 1 else [*map("|".join, zip(*(values[k:] for k in range(n)), strict=False))]


def character_class(code: int) -> str:
    """A for capital letters, a for small ones, 0 for digits, others as they are."""
    character = chr(code)
    return "A" if character.isupper() else "a" if character.islower() else "0" if character.isdigit() else character


CLASSES = Cache(character_class)


def shape(word: str) -> str:
    """The word with its letters and digits as classes, repeated ones once."""
    return "".join(character for character, _ in groupby(word.translate(CLASSES)))
