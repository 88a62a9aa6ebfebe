"""Features of tokens: of words, their parts and neighbours, of parts of speech, and of lists of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, groupby, islice
from typing import Any, Self

from maxmargin.checks import check_count, shown
from maxmargin.estimator import Estimator
from maxmargin.persist.registry import register
from maxmargin.text.gazetteers import Gazetteers

BLOCK = 2_000  # sentences whose words are looked up at once
MOST_KEPT = 100_000  # words, or tags, whose features are remembered

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
        whether they begin the name or go on with it. Case does not matter; the longest name counts.

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
        """`fit`, then `transform`."""
        return self.fit(X, y).transform(X)

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

    def __init__(self, extractor: Extractor, sentences: Sequence[Any]) -> None:
        self.extractor, self.sentences = extractor, sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Windows(self.extractor, self.sentences[i])
        return self.extractor(self.sentences[i], i)

    def __iter__(self) -> Iterator[list[list[str]]]:
        return map(self.extractor, self.sentences, range(len(self)))

    def coded(self, columns: Any) -> Iterator[list[list[int]]]:
        """The same with the columns of the names in their place; faster, as most words and tags come again."""
        extractor = self.extractor.coded(columns)
        sentences, numbers = iter(self.sentences), count()
        while block := [*islice(sentences, BLOCK)]:
            extractor.meet(block)
            yield from map(extractor, block, numbers)


class Cache(dict):
    """Values of a function, kept: the features of most words and tags are needed again and again.

    When there are too many, all are forgotten.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __missing__(self, key: Any) -> Any:
        if len(self) >= MOST_KEPT:
            self.clear()
        value = self[key] = self.function(key)
        return value


class BlockCache(Cache):
    """The same of a function of lists, which is faster for many keys at once."""

    def __missing__(self, key: Any) -> Any:
        self.meet([key])
        return self[key]

    def meet(self, keys: Sequence[Any]) -> None:
        """Remember the values of keys."""
        if len(self) + len(keys) > MOST_KEPT:
            self.clear()
        self.update(zip(keys, self.function(keys), strict=True))


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
            check_count(name, options[name], least)
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

    def __call__(self, sentence: Any, i: int) -> list[list[Any]]:
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
        for start, end, titles in self.gazetteers.find(words):
            for t in range(start, end):
                rows[t] += code([f"{title}={'begin' if t == start else 'inside'}" for title in titles])
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


def split_tokens(sentence: Any, i: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """The words of a sentence and its columns of tags."""
    if isinstance(sentence, str) or not isinstance(sentence, Iterable):
        raise TypeError(f"X[{i}] must be a list of tokens, not {shown(sentence)}.")
    tokens = [*sentence]
    kinds = {*map(type, tokens)}
    if kinds == {str}:
        return tokens, []
    if kinds != {tuple} or len({*map(len, tokens)}) > 1 or not are_strings(tokens):
        tokens = [check_token(token, t, i) for t, token in enumerate(tokens)]
        for t, token in enumerate(tokens):
            if len(token) != len(tokens[0]):
                raise ValueError(
                    f"X[{i}] has {len(token)} strings at position {t}, but {len(tokens[0])} at position 0."
                )
    words, *columns = zip(*tokens, strict=True) if tokens else ((),)
    return [*words], columns


def are_strings(tokens: list[tuple[Any, ...]]) -> bool:
    """Whether tuples hold strings only, and at least one."""
    try:
        "".join(chain.from_iterable(tokens))
    except TypeError:
        return False
    return bool(tokens[0])


def check_token(token: Any, t: int, i: int) -> tuple[str, ...]:
    """A token as a tuple; raises unless it is a string, or a tuple of strings."""
    parts = (token,) if isinstance(token, str) else token
    if isinstance(parts, (tuple, list)) and parts and all(isinstance(part, str) for part in parts):
        return tuple(parts)
    raise TypeError(f"X[{i}] has {shown(token)} at position {t}, but a token must be a string or a tuple of strings.")


def character_class(code: int) -> str:
    """A for capital letters, a for small ones, 0 for digits, others as they are."""
    character = chr(code)
    return "A" if character.isupper() else "a" if character.islower() else "0" if character.isdigit() else character


CLASSES = Cache(character_class)


def shape(word: str) -> str:
    """The word with its letters and digits as classes, repeated ones once."""
    return "".join(character for character, _ in groupby(word.translate(CLASSES)))
