"""Tokens: words, or tuples of a word and tags, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from maxmargin.wording import name_type, quote

Sentence = TypeVar("Sentence")
Token = str | tuple[str, ...]
Titles = Mapping[str, Sequence[str]]  # of the lists that a name is in, as `Gazetteers` spell it
Spellings = Counter[tuple[str, str]]  # how often a word, in lower case, is spelled how in a document

NOWHERE: Spellings = Counter()


class Tokens(NamedTuple):
    """The tokens of a sentence: its words and its columns of tags, and what there is to know besides.

    That is titles of names in place of those of gazetteers, and the spellings of words in its document.
    """

    words: list[str]
    tags: list[tuple[str, ...]]
    titles: Titles | None = None
    spellings: Spellings = NOWHERE


def as_sentences(X: Iterable[Sentence]) -> Sequence[Sentence]:
    """The sentences of an argument X, which are checked to be many, in a sequence."""
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list of sentences, not {name_type(X)}.")
    return X if isinstance(X, Sequence) else [*X]


def split_tokens(
    sentence: Iterable[Token], i: int, titles: Titles | None = None, spellings: Spellings = NOWHERE
) -> Tokens:
    """The tokens of sentence i, which are checked."""
    if isinstance(sentence, str) or not isinstance(sentence, Iterable):
        raise TypeError(f"X[{i}] must be a list of tokens, not {quote(sentence)}.")
    tokens: list[Any] = [*sentence]
    types = {*map(type, tokens)}
    if types == {str}:
        return Tokens(tokens, [], titles, spellings)
    if types != {tuple} or len({*map(len, tokens)}) > 1 or not are_strings(tokens):
        tokens = [check_token(token, t, i) for t, token in enumerate(tokens)]
        for t, token in enumerate(tokens):
            if len(token) != len(tokens[0]):
                raise ValueError(
                    f"X[{i}] has {len(token)} strings at position {t}, but {len(tokens[0])} at position 0."
                )
    words, *columns = zip(*tokens, strict=True) if tokens else ((),)
    return Tokens([*words], columns, titles, spellings)


def are_strings(tokens: list[tuple[str, ...]]) -> bool:
    """Whether tuples hold strings only, and at least one."""
    try:
        "".join(chain.from_iterable(tokens))
    except TypeError:
        return False
    return bool(tokens[0])


def check_token(token: Token, t: int, i: int) -> tuple[str, ...]:
    """A token as a tuple; raises unless it is a string, or a tuple of strings."""
    parts = (token,) if isinstance(token, str) else token
    if isinstance(parts, (tuple, list)) and parts and all(isinstance(part, str) for part in parts):
        return tuple(parts)
    raise TypeError(f"X[{i}] has {quote(token)} at position {t}, but a token must be a string or a tuple of strings.")
