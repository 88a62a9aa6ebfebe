"""Lists of names, such as cities, and where they are in sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from unicodedata import normalize

from maxmargin.text.mending import mend_tags
from maxmargin.text.schemes import LabelSequences, find_entities
from maxmargin.text.token_features.tokens import Titles
from maxmargin.wording import name_type

Tagged = tuple[Iterable[Sequence[str]], LabelSequences]  # words and tags of sentences

FOLDS = 10  # parts of the training data, each of which knows lists made of it by what the others have
LEAST = 20  # names of a list that can be told to be made of training data
MOST = 0.9  # of them are entities there
PIECE = re.compile(r"\w+|[^\w\s]")  # what may be a token of a name
LEAK, UNLIKELY = 2.0, 0.05  # times the share of held-out entities that a list may have of others, if it has as many


class Gazetteers:
    """Names of one or more words, by the lists that they are in; case does not matter.

    Parameters
    ----------
    lists
        Dict of lists of names by title.
    loose
        Whether names are alike whose letters and digits are, without their accents.
    """

    def __init__(self, lists: Mapping[str, Iterable[str]], *, loose: bool = False) -> None:
        self.spell, self.joint = (letters_of, "") if loose else (str.lower, " ")  # a word; what is between two words
        if not isinstance(lists, Mapping):
            raise TypeError(f"gazetteers must be a dict with lists of names, not {name_type(lists)}.")
        self.titles: dict[str, list[str]] = {}
        self.longest = 0  # number of tokens
        for title, names in lists.items():
            names = [] if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
            if not names or not all(isinstance(name, str) and name.strip() for name in names):
                raise ValueError(f"gazetteers[{title!r}] must be a list of names, strings that are not blank.")
            for name in dict.fromkeys(self.name_of(name.split()) for name in names):
                self.titles.setdefault(name, []).append(title)
            split: Callable[[str], list[str]] = PIECE.findall if loose else str.split
            self.longest = max(self.longest, *(len(split(name)) for name in names))

    def name_of(self, words: Iterable[str]) -> str:
        """The name that words make, as these lists spell it."""
        return self.joint.join(map(self.spell, words))

    def find(self, words: Iterable[str], instead: Titles | None = None) -> Iterator[tuple[int, int, Sequence[str]]]:
        """First word, end and titles of names, the longest that begins at a word that is not part of the one before.

        `instead` has other titles, or none, for some names.
        """
        spelled = [*map(self.spell, words)] if self.longest else []
        start = 0
        while start < len(spelled):
            end, titles = self._longest_at(start, spelled, instead or {})
            if titles:
                yield start, end, titles
            start = end

    def _longest_at(self, start: int, spelled: Sequence[str], instead: Titles) -> tuple[int, Sequence[str]]:
        """The end and the titles of the longest name from a word on, or the next word and none."""
        if spelled[start]:
            for end in range(min(start + self.longest, len(spelled)), start, -1):
                name = self.joint.join(spelled[start:end])
                titles = instead[name] if name in instead else self.titles.get(name)
                if titles and spelled[end - 1]:
                    return end, titles
        return start + 1, ()

    def cross_fit(
        self, sentences: Iterable[Sequence[str]], y: LabelSequences, n: int
    ) -> tuple[list[str], Sequence[Titles]]:
        """The lists that are made of the entities in y, and for each of n sentences the titles that other parts leave.

        Such a list knows every entity of the sentences it is made of, but not those of others: a model that is trained
        on it learns that what is not in the list is no entity. So a name of these lists counts in a tenth of the
        sentences only if it is an entity in another tenth, too.
        """
        fold = [i * FOLDS // n for i in range(n)]
        folds: dict[str, set[int]] = {}  # which have a name as an entity
        for i, name in entity_names(sentences, y, self.name_of):
            folds.setdefault(name, set()).add(fold[i])
        sizes, overlaps = Counter(self._all_titles(self.titles)), Counter(self._all_titles(folds))
        made = [title for title, n in sizes.items() if n >= LEAST and overlaps[title] >= MOST * n]
        instead: list[dict[str, list[str]]] = [{} for _ in range(FOLDS)]
        for name, where in folds.items():
            if len(where) == 1 and name in self.titles:
                instead[min(where)][name] = [title for title in self.titles[name] if title not in made]
        return made, [instead[k] for k in fold]

    def leaks(self, train: Tagged, held_out: Tagged) -> dict[str, str]:
        """What there is to say of lists with far more of the entities to train on than of others, by title."""
        names = [[name for _, name in entity_names(*part, self.name_of)] for part in (train, held_out)]
        if min(map(len, names)) < LEAST:
            return {}
        counts = [Counter(self._all_titles(part)) for part in names]
        shares = {
            title: [found[title] / len(part) for found, part in zip(counts, names, strict=True)] for title in counts[0]
        }
        return {
            title: f"The list {title!r} has {own:.0%} of the entities to train on, but {other:.0%} of those held out: "
            "if it was made of the former, the model trusts it too much."
            for title, (own, other) in shares.items()
            if own > LEAK * max(other, UNLIKELY)
        }

    def _all_titles(self, names: Iterable[str]) -> Iterator[str]:
        return chain.from_iterable(self.titles.get(name, ()) for name in names)


def entity_names(
    sentences: Iterable[Sequence[str]], y: LabelSequences, name_of: Callable[[Iterable[str]], str]
) -> Iterator[tuple[int, str]]:
    """The entities of sentences, by number and name; none, where tags spell none."""
    try:
        found = find_entities(mend_tags(y).y)
    except ValueError:
        return
    for i, (words, entities) in enumerate(zip(sentences, found, strict=False)):
        for start, end, _ in entities:
            yield i, name_of(words[start:end])


@lru_cache(1 << 16)
def letters_of(word: str) -> str:
    """The letters and digits of a word, whatever their case and accents."""
    return "".join(filter(str.isalnum, normalize("NFKD", word.casefold())))
