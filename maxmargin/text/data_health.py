"""What is wrong, or odd, about tagged sentences, before anybody trains on them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from maxmargin.display.markup import Markup, table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.text.document_tags import word_of
from maxmargin.text.mending import mend_tags, spells_entities
from maxmargin.text.partial_tags import have_partial, is_partial
from maxmargin.text.schemes import OUTSIDE, find_entities
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.text.token_features.tokens import Token
from maxmargin.wording import quote

ERROR, WARNING, NOTE = "error", "warning", "note"
SHOWN = 3  # examples of a finding
RARE = 5  # fewer entities of a type, or tokens of a tag, are too few to learn from
LONG = 200  # tokens of a sentence
SHORT = 4  # tokens of sentences that may well be there twice
# Controls, what cannot be seen, halves of surrogate pairs, private ones, the mark of what could not be decoded; and
# UTF-8 that was read as Latin-1.
ODD = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff\ufeff\ufffd]"
)
GARBLED = re.compile("[\xc2\xc3][\x80-\xbf]|\xe2\x80[\x90-\xbf]")

Part = tuple[Sequence[Sequence[Any]], Sequence[Sequence[Any]]]
Where = Callable[[str, int, int], str]


class Finding(NamedTuple):
    """Something odd about data.

    Attributes
    ----------
    level
        "error": what no model should be trained or scored on; "warning": what makes scores worse, or too good;
        "note": what is good to know.
    part
        The name of the data.
    what
        In words.
    n
        How often.
    examples
        The first few.
    """

    level: str
    part: str
    what: str
    n: int
    examples: list[str]


class DataHealth(NamedTuple):
    """What `check_data` has found, the worst first; printed as a table."""

    findings: list[Finding]

    def count(self, level: str) -> int:
        """How many findings there are of a level."""
        return sum(finding.level == level for finding in self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "nothing odd was found"
        width = max(len(finding.part) for finding in self.findings)
        lines = []
        for level, part, what, n, examples in self.findings:
            lines.append(f"{level:8} {part:{width}} {n:8,}  {what}")
            lines += [f"{'':{width + 20}}{example}" for example in examples]
        return "\n".join(lines)

    def tabulate(self) -> Markup:
        """The findings as a table of a page."""
        if not self.findings:
            return tag("p", "Nothing odd was found.")
        titles = ("level", "data", "number", "what", "such as")
        rows = [
            (tag("span", level, class_=level), part, f"{n:,}", what, "; ".join(examples))
            for level, part, what, n, examples in self.findings
        ]
        return table(titles, rows)

    def _repr_html_(self) -> str:
        return show_in_notebook(self.tabulate())


def check_data(data: Mapping[str, Part], where: Where | None = None) -> DataHealth:
    """Look for what is wrong, or odd, about tagged sentences.

    Tags that break the rules of their scheme or are none, sentences without tokens, the same sentence with other tags,
    sentences that are there twice or in several parts, tags that only later parts have, or of another scheme there, odd
    characters, names that have several types, rare tags, long sentences.

    Parameters
    ----------
    data
        Sentences and their tags, by what they are called, such as "train" and "test"; the first are those to train on.
    where
        From the name of a part, a sentence and a token to where it is, for examples; by default these numbers.

    Returns
    -------
    DataHealth

    Examples
    --------
    >>> from maxmargin.text import check_data
    >>> train = [["Ann", "ran"], ["Rome", "fell"]], [["B-PER", "O"], ["O", "I-LOC"]]
    >>> found = check_data({"train": train})
    >>> print(found.findings[0].what, found.findings[0].examples)
    tags that break the rules of IOB2 ["train[1] goes from 'O' to 'I-LOC' at position 1"]
    """
    place = where or (lambda part, i, t: f"{part}[{i}]")
    found = [finding for name, part in data.items() for finding in _alone(name, *part, place)]
    found += _together(data, place)
    levels = [ERROR, WARNING, NOTE]
    return DataHealth(sorted(found, key=lambda finding: levels.index(finding.level)))


def _alone(name: str, X: Sequence[Sequence[Token]], y: Sequence[Sequence[object]], where: Where) -> Iterator[Finding]:
    """What is odd about one part."""

    def find(level: str, what: str, examples: Sequence[str], count: int | None = None) -> Iterator[Finding]:
        if examples:
            yield Finding(level, name, what, len(examples) if count is None else count, [*examples[:SHOWN]])

    if not any(map(len, X)):
        yield Finding(ERROR, name, "no sentence with a token", len(X), [])
        return
    yield from find(
        WARNING, "sentences without tokens", [where(name, i, 0) for i, tokens in enumerate(X) if not len(tokens)]
    )
    words = [[word_of(token) for token in tokens] for tokens in X]
    is_spelled = spells_entities(y)
    if is_spelled and not have_partial(y):
        mended = mend_tags(y)
        faults = [f"{where(name, fault.sequence, fault.position)} {_short(fault.fault)}" for fault in mended.faults]
        yield from find(ERROR, f"tags that break the rules of {mended.source}", faults)
        yield from _names(find, words, convert_tags(mended.y, "IOB2"))
    counts = Counter(tag for tags in y for tag in tags if not is_partial(tag))
    if not is_spelled:
        rare = sorted(((n, tag) for tag, n in counts.items() if n < RARE), key=str)
        yield from find(NOTE, f"tags of fewer than {RARE} tokens", [f"{tag}: {n}" for n, tag in rare])
    seen: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(words):
        if len(row) >= SHORT:
            seen[tuple(row)].append(i)
    again = [(row, places) for row, places in seen.items() if len(places) > 1]
    differ = [(row, places) for row, places in again if any([*y[a]] != [*y[b]] for a, b in pairwise(places))]
    yield from find(WARNING, "sentences that have other tags elsewhere", [_both(name, *one, where) for one in differ])
    extra = sum(len(places) - 1 for _, places in again)
    yield from find(NOTE, "sentences that are there already", [_both(name, *one, where) for one in again], extra)
    odd = [
        f"{where(name, i, t)}: {quote(word)}"
        for i, row in enumerate(words)
        for t, word in enumerate(row)
        if not word.strip() or ODD.search(word) or GARBLED.search(word)
    ]
    yield from find(WARNING, "tokens with odd characters", odd)
    long = [f"{where(name, i, 0)}: {len(row):,}" for i, row in enumerate(words) if len(row) > LONG]
    yield from find(NOTE, f"sentences of more than {LONG} tokens", long)


def _names(find: Callable[..., Iterator[Finding]], words: list[list[str]], y: list[list[str]]) -> Iterator[Finding]:
    """What is odd about the entities of sentences."""
    types: Counter[str] = Counter()
    readings: dict[str, Counter[str]] = defaultdict(Counter)
    for row, entities in zip(words, find_entities(y), strict=True):
        for start, end, type_ in entities:
            types[type_] += 1
            readings[" ".join(row[start:end])][type_] += 1
    rare = sorted((n, type_) for type_, n in types.items() if n < RARE)
    yield from find(NOTE, f"types of fewer than {RARE} entities", [f"{type_}: {n}" for n, type_ in rare])
    missed = Counter(_count_untagged(words, y, readings)).most_common()
    told = [f"{quote(name)}: {_tell(readings[name])}, none {n}" for name, n in missed]
    yield from find(NOTE, "names of several words that are elsewhere no entity", told)
    several = [(name, counts) for name, counts in readings.items() if len(counts) > 1]
    several.sort(key=lambda pair: -pair[1].most_common()[1][1])
    yield from find(
        NOTE, "names that have several types", [f"{quote(name)}: {_tell(counts)}" for name, counts in several]
    )


def _count_untagged(words: list[list[str]], y: list[list[str]], names: Iterable[str]) -> dict[str, int]:
    """How often names of several words are no part of an entity."""
    known = {tuple(name.split(" ")) for name in names}
    lengths: dict[tuple[str, ...], set[int]] = defaultdict(set)  # of names, by their first two words
    for parts in known:
        if len(parts) > 1:
            lengths[parts[:2]].add(len(parts))
    found: Counter[str] = Counter()
    for row, tags in zip(words, y, strict=True):
        for t, first in enumerate(pairwise(row)):
            for n in lengths.get(first, ()):
                parts = tuple(row[t : t + n])
                if parts in known and len(parts) == n and all(tag == OUTSIDE for tag in tags[t : t + n]):
                    found[" ".join(parts)] += 1
    return found


def _together(data: Mapping[str, Part], where: Where) -> Iterator[Finding]:
    """What parts have in common, and what only some of them have."""
    sentences = {
        name: {tuple(word_of(token) for token in tokens): i for i, tokens in enumerate(X) if len(tokens) >= SHORT}
        for name, (X, _) in data.items()
    }
    known_scheme = None
    for k, (name, (_, y)) in enumerate(data.items()):
        scheme = _scheme(y, known_scheme)
        if not k:
            known, known_scheme = _kinds(y), scheme
            first = name
            continue
        if scheme is not None and known_scheme is not None and scheme != known_scheme:
            what = f"tags of {scheme}, which are of {known_scheme} in {first}"
            yield Finding(WARNING, name, what, sum(map(len, y)), [])
        for other in [*data][:k]:
            shared = [row for row in sentences[name] if row in sentences[other]]
            if shared:
                share = len(shared) / len(sentences[name])
                examples = [f"{where(name, sentences[name][row], 0)}: {_cut(row)}" for row in shared[:SHOWN]]
                yield Finding(WARNING, name, f"sentences that are in {other}, too ({share:.1%})", len(shared), examples)
        missing = sorted(_kinds(y) - known, key=str)
        if missing:
            what = f"tags or types that are not in {first}, and are never predicted"
            yield Finding(WARNING, name, what, len(missing), [str(kind) for kind in missing[:SHOWN]])


def _kinds(y: Sequence[Sequence[object]]) -> set[object]:
    """The types of entities, or the tags."""
    tags = {tag for row in y for tag in row if not is_partial(tag)}
    if not spells_entities(y):
        return tags
    return {str(tag).partition("-")[2] for tag in tags if "-" in str(tag)}


def _scheme(y: Sequence[Sequence[object]], prefer: str | None) -> str | None:
    """The scheme that fits tags best, the one preferred if it fits as well; None of tags that spell no entities."""
    is_spelled = spells_entities(y) and not have_partial(y)
    return mend_tags(y, prefer=prefer).source if is_spelled else None


def _both(name: str, row: tuple[str, ...], places: list[int], where: Where) -> str:
    return f"{where(name, places[0], 0)} and {where(name, places[1], 0)}: {_cut(row)}"


def _cut(row: Sequence[str]) -> str:
    return quote(" ".join(row))


def _tell(counts: Counter[str]) -> str:
    return ", ".join(f"{type_} {n}" for type_, n in counts.most_common())


def _short(fault: str) -> str:
    return fault.partition(", which ")[0]
