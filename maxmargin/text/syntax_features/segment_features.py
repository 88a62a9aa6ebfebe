"""Features of segments as wholes, beside those of their tokens: what is in them, at their ends, and around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self

from maxmargin.checks import check_count
from maxmargin.parameters import has_parameters, parameter
from maxmargin.persist.registry import register
from maxmargin.text.schemes import find_entities
from maxmargin.text.token_features.gazetteers import Gazetteers
from maxmargin.text.token_features.sources import collapse, shape
from maxmargin.text.token_features.token_blocks import ValuesOf
from maxmargin.text.token_features.tokens import Titles, Tokens, as_sentences, split_tokens
from maxmargin.text.token_features.windows import Sentences, WindowFeatures, Windows

MOST_WORDS = 3  # of a segment whose words are a feature, one after the other
BEFORE, AFTER = "BOS", "EOS"  # where there is no token
COLLAPSED = ValuesOf(collapse)

Span = tuple[int, int]
Listed = list[tuple[int, int, list[str]]]  # segments of a sentence, and their features


@has_parameters
class SegmentFeatures(WindowFeatures):
    """Features of tokens, those of `WindowFeatures`, and of whole segments, by name, for `SegmentCRF` and `SegmentSVM`.

    A segment has the tags of its tokens in a row, those at its ends, and those around it, both with its length; where
    tokens are words alone, their shapes. Short ones have their words, and names from a gazetteer its title. Only names
    that segments in y have, other than those outside of entities, are features.

    Attributes
    ----------
    gazetteers_, cross_fit_
        As those of `WindowFeatures`.
    segment_names_ : set of str
        The names that segments can have.

    Examples
    --------
    >>> from maxmargin import SegmentCRF, Tagger
    >>> from maxmargin.text import SegmentFeatures
    >>> features = SegmentFeatures(window=0, gazetteers={"city": ["New York"]}, min_segments=1)
    >>> features.transform([["in", "New", "York"]]).segment_features()[0][-2]
    (1, 3, ['in=Aa Aa', 'ends=Aa Aa 2', 'around=a EOS 2', 'words=new york', 'city=whole'])

    In a tagger:

    >>> X, y = [["in", "New", "York"], ["Ann", "ran"]], [["O", "B-LOC", "I-LOC"], ["B-PER", "O"]]
    >>> tagger = Tagger(features=features, model=SegmentCRF()).fit(X, y)
    >>> tagger.predict([["New", "York", "ran"]])
    [['B-LOC', 'I-LOC', 'O']]
    """

    longest_segment: int = parameter("int", "The most tokens of a segment that has features.", default=6, least=1)
    min_segments: int = parameter(
        "int", "The number of segments in y that must have a feature.", default=2, check=check_count
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the names that segments in y have.

        Parameters
        ----------
        X
            As in `transform`.
        y : list of lists of tags that spell entities, or of segments, (start, end, label)
            Without them all names are features.
        """
        super().fit(X, y)
        self.segment_names_: frozenset[str] | None = None
        if y is not None:
            self.segment_names_ = self._find_names(X, y)
        return self

    def _find_names(self, X: Sentences, y: Sequence[object]) -> frozenset[str]:
        rows, counts = self.transform(X), Counter[str]()
        for i, true in enumerate(true_spans(y)):
            counts.update(name for begin, end, names in rows.list_segments(i) if (begin, end) in true for name in names)
        return frozenset(name for name, n in counts.items() if n >= self.min_segments)

    def fit_transform(self, X: Sentences, y: Any = None) -> ListedWindows:
        """The features to train on, in which gazetteers that are made of y are cross-fit, as in `WindowFeatures`.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        as `transform`
        """
        rows = super().fit_transform(as_sentences(X), y)
        assert isinstance(rows, ListedWindows)
        return rows

    def transform(self, X: Sentences) -> ListedWindows:
        """The features of tokens, which know those of segments.

        Parameters
        ----------
        X : list of sentences, lists of words or of tuples of a word and tags

        Returns
        -------
        sequence of lists with a list of names for each token, made when they are asked for; its `segment_features` are
        those of segments, as `SegmentCRF.fit` takes them
        """
        rows = super().transform(X)
        gazetteers = rows.maker.arguments[2]
        return ListedWindows(rows, gazetteers, self.longest_segment, getattr(self, "segment_names_", None))

    def _pack(self) -> dict[str, object]:
        names = getattr(self, "segment_names_", None)
        return {**self.get_params(deep=False), "segment_names": None if names is None else sorted(names)}


def remake(segment_names: object, **options: Any) -> SegmentFeatures:
    """The transformer that a file has the options and the names of."""
    features = SegmentFeatures(**options)
    if segment_names is not None:
        if not isinstance(segment_names, list) or not all(isinstance(name, str) for name in segment_names):
            raise TypeError("the names of features of segments are none")
        features.segment_names_ = frozenset(segment_names)
    return features


register(SegmentFeatures, get=SegmentFeatures._pack, make=remake)


class ListedWindows(Windows):
    """The features of the tokens of sentences, and of their segments of up to so many tokens."""

    def __init__(self, rows: Windows, gazetteers: Gazetteers, longest: int, known: frozenset[str] | None) -> None:
        super().__init__(rows.maker, rows.sentences, rows.titles, rows.spellings)
        self.gazetteers, self.longest = gazetteers, longest
        self.known = known  # the names that are features; None for all

    def segment_features(self) -> list[Listed]:
        """The segments of each sentence that have features, with these."""
        return [self.list_segments(i) for i in range(len(self))]

    def list_segments(self, i: int) -> Listed:
        """Those of one sentence."""
        titles = None if self.titles is None else self.titles[i]
        found = name_segments(split_tokens(self.sentences[i], i, titles), self.gazetteers, self.longest)
        if self.known is None:
            return [*found]
        kept = ((begin, end, [name for name in names if name in self.known]) for begin, end, names in found)
        return [(begin, end, names) for begin, end, names in kept if names]


def name_segments(tokens: Tokens, gazetteers: Gazetteers, longest: int) -> Iterator[tuple[int, int, list[str]]]:
    """All segments of up to so many tokens, with the names of their features."""
    lower = [word.lower() for word in tokens.words]
    spelled = [*map(gazetteers.spell, tokens.words)] if gazetteers.longest else []
    columns = tokens.tags or [tuple(map(partial(shape, COLLAPSED), tokens.words))]
    marked = [("" if k == 0 else f"{k + 1} ", marks, (BEFORE, *marks, AFTER)) for k, marks in enumerate(columns)]
    for begin in range(len(lower)):
        for end in range(begin + 1, min(begin + longest, len(lower)) + 1):
            names = []
            for prefix, marks, padded in marked:
                names.append(f"{prefix}in={' '.join(marks[begin:end])}")
                names.append(f"{prefix}ends={marks[begin]} {marks[end - 1]} {end - begin}")
                names.append(f"{prefix}around={padded[begin]} {padded[end + 1]} {end - begin}")
            if end - begin <= MOST_WORDS:
                names.append(f"words={' '.join(lower[begin:end])}")
            if spelled:
                names += [f"{title}=whole" for title in find_titles(spelled[begin:end], gazetteers, tokens.titles)]
            yield begin, end, names


def find_titles(spelled: Sequence[str], gazetteers: Gazetteers, instead: Titles | None) -> Sequence[str]:
    """The titles of the lists that a name is in."""
    name = gazetteers.joint.join(spelled)
    if not (spelled[0] and spelled[-1]):
        return ()
    return instead[name] if instead is not None and name in instead else gazetteers.titles.get(name, ())


def true_spans(y: Sequence[Any]) -> list[set[Span]]:
    """Where the entities that tags spell begin and end, or segments that are given."""
    are_segments = any(isinstance(entry, (tuple, list)) for row in y if row is not None for entry in row)
    found = y if are_segments else find_entities(y)
    return [{(entry[0], entry[1]) for entry in row or ()} for row in found]
