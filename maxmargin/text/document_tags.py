"""How the same word is tagged in its document: what the second of two taggers knows of the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from maxmargin.text.corpus import Corpus, choose, document_sizes
from maxmargin.text.schemes import is_tag
from maxmargin.text.token_features.tokens import Token

FOLDS = 5  # parts of the documents, each of which is tagged by a tagger trained on the others


def with_votes(X: Sequence[Iterable[Token]], y: Iterable[Sequence[str]]) -> list[list[Token]]:
    """The sentences with one more column: what the word is tagged most often in its document, by its type or tag."""
    rest, found = iter(zip(X, y, strict=True)), list[list[Token]]()
    for size in document_sizes(X):
        part = [*islice(rest, size)]
        votes: dict[str, Counter[str]] = {}
        for sentence, tags in part:
            for token, tag in zip(sentence, tags, strict=True):
                votes.setdefault(word_of(token), Counter())[type_of(tag)] += 1
        most = {word: counts.most_common(1)[0][0] for word, counts in votes.items()}
        found += [[(*parts_of(token), most[word_of(token)]) for token in sentence] for sentence, _ in part]
    return Corpus(found, X.documents) if isinstance(X, Corpus) else found


def split_votes(X: Sequence[Any]) -> tuple[Any, list[list[tuple[str, str]]]]:
    """Sentences as they were before `with_votes`, and their words with their votes."""
    before = [[token[0] if len(token) == 2 else token[:-1] for token in sentence] for sentence in X]
    votes = [[(token[0], token[-1]) for token in sentence] for sentence in X]
    return Corpus(before, X.documents) if isinstance(X, Corpus) else before, votes


def word_of(token: Token) -> str:
    """The word of a token."""
    return token if isinstance(token, str) else token[0]


def parts_of(token: Token) -> tuple[str, ...]:
    """The word and the tags of a token."""
    return (token,) if isinstance(token, str) else tuple(token)


def type_of(tag: str) -> str:
    """The type of an entity, of its tag; other tags as they are."""
    prefix, dash, type_ = tag.partition("-")
    return type_ if dash and is_tag(prefix) and prefix else tag


def folds_of(X: Sequence[object]) -> list[tuple[list[int], list[int]]]:
    """Sentences to train on and those to tag, a few times, so that each is tagged once; documents are whole."""
    sizes = document_sizes(X)
    if len(sizes) < 2:
        raise ValueError("two_stages needs two documents, or two sentences without, at least: X has one.")
    fold = [k % FOLDS for k, size in enumerate(sizes) for _ in range(size)]
    everyone = range(min(FOLDS, len(sizes)))
    return [
        ([i for i, other in enumerate(fold) if other != k], [i for i, other in enumerate(fold) if other == k])
        for k in everyone
    ]


def cross_tag(tagger: Any, X: Sequence[object], y: Sequence[object]) -> list[list[str]]:
    """The tags that taggers give sentences that they were not trained on."""
    found: list[Any] = [None] * len(X)
    for kept, held in folds_of(X):
        tagger.fit(choose(X, kept), [y[i] for i in kept])
        for i, tags in zip(held, tagger.predict(choose(X, held)), strict=True):
            found[i] = tags
    return found
