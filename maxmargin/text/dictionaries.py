"""Dictionaries as annotation: of sentences that nobody has tagged, the names in lists are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from maxmargin.checks import check_share
from maxmargin.text.schemes import OUTSIDE
from maxmargin.text.token_features.gazetteers import Gazetteers
from maxmargin.text.token_features.windows import Sentences, split_words


def tag_names(X: Sentences, lists: Mapping[str, Iterable[str]], *, outside: float | None = None) -> list[list[object]]:
    """Tag the names in lists, in IOB2, and leave all other tags unknown, or likely to be O.

    A name is found where its words are spelled as in a list; of several that overlap it is the longest that begins
    first. The tags of a name in several lists are sets, one tag for each of these or, with `outside`, as likely ones.

    Parameters
    ----------
    X : list of sentences, lists of words or of tuples of a word and tags
    lists
        Dict of lists of names, by the type of the entities that they name.
    outside
        The probability that a word of no name is outside of all entities, from 0 to 1: its tag is a dict, in which all
        other tags share the rest. None leaves it unknown.

    Returns
    -------
    list of lists of tags, sets of tags, and None or dicts of probabilities

    Examples
    --------
    >>> from maxmargin.text import tag_names
    >>> lists = {"LOC": ["New York", "Paris"], "PER": ["Ann"]}
    >>> tag_names([["Ann", "left", "New", "York"]], lists)
    [['B-PER', None, 'B-LOC', 'I-LOC']]
    >>> tag_names([["Ann", "left"]], {"PER": ["Ann"]}, outside=0.75)
    [['B-PER', {'O': 0.75, 'B-PER': 0.125, 'I-PER': 0.125}]]
    """
    names = Gazetteers(lists)
    if outside is not None:
        check_share("outside", outside)
    spelled = {(title, *name.split()) for title, listed in lists.items() for name in listed}
    tags = [f"{prefix}-{title}" for title in lists for prefix in "BI"]
    rest = None if outside is None else {OUTSIDE: outside, **dict.fromkeys(tags, (1 - outside) / len(tags))}

    def tag(words: Sequence[str]) -> list[object]:
        found: list[object] = [rest] * len(words)
        for start, end, titles in names.find(words):
            types = [title for title in titles if (title, *words[start:end]) in spelled]
            for t in range(start, end if types else start):
                options = [f"{'B' if t == start else 'I'}-{title}" for title in types]
                several = {*options} if rest is None else dict.fromkeys(options, 1 / len(options))
                found[t] = options[0] if len(options) == 1 else several
        return found

    return [tag(words) for words in split_words(X)]
