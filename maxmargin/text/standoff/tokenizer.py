"""From text to sentences of tokens, each by its first character and the one after its last.

The rules are few, and made for languages that put blanks between words. They split as the Penn Treebank does, which
most tagged English is like: "Ann's" is two tokens, as are "don't" (do n't) and "(Rome". Words with hyphens, numbers
such as 1,000.5, addresses, U.S. and a few abbreviations such as Mr. are one. A sentence ends after ., !, ? or the like,
and quotes or brackets that are closed there, if what follows a blank begins with no small letter; and at a blank line.
Abbreviations that the rules do not know end sentences too early, and languages without blanks have one token per
phrase: pass a tokenizer of your own, or that of spaCy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from maxmargin.wording import quote

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Span = tuple[int, int]
Sentences = list[list[Span]]
Tokenizer = Callable[[str], Iterable[Iterable[Span]]]

ABBREVIATIONS = "Mr|Mrs|Ms|Dr|Prof|Sen|Rep|Gov|Gen|Col|Lt|Capt|Rev|St|Jr|Sr|Inc|Ltd|Co|Corp|vs|No|Jan|Feb|Aug|Sept|Oct"
SIGNS = (  # that are no part of words: ASCII's, Latin-1's, general and CJK punctuation, pictures
    r"!-/:-@\[-^`{-~\xa1-\xa9\xab-\xb1\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2010-\u2027\u2030-\u205e\u2600-\u27bf\u3000-\u303f"
    r"\uff01-\uff0f\uff1a-\uff20\U0001f000-\U0001faff"
)
WORD = rf"[^\s{SIGNS}]"
APOSTROPHE = r"['\u2019]"
CLITIC = r"(?:s|re|ve|ll|d|m)(?!\w)"
TOKEN = re.compile(
    rf"""(?:https?://|www\.)[^\s<>"]*[\w/]|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+  # addresses
    |(?:[^\W\d_]\.){{2,}}|(?<!\w)(?:{ABBREVIATIONS})\.(?=\s)|(?<!\w)[A-Z]\.(?=\s+[A-Z])
    |\d+(?:[.,:]\d+)+|n{APOSTROPHE}t(?!\w)|{WORD}+?(?=n{APOSTROPHE}t(?!\w))|{APOSTROPHE}{CLITIC}
    |[@\#]?{WORD}+(?:-{WORD}+|{APOSTROPHE}(?!{CLITIC}|t(?!\w)){WORD}+)*
    |\.\.+|--+|\S""",
    re.VERBOSE,
)
ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]+")
CLOSING = {*"\"'\u201d\u2019\xbb)]}", "''"}


def tokenize(text: str) -> Sentences:
    """Split a text into sentences of tokens, by a few rules.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of sentences, lists of tokens: the first character, and the one after the last

    Examples
    --------
    >>> from maxmargin.text import tokenize
    >>> text = "Dr. Lee isn't here. She's in the U.S. (since 1,998.5)!"
    >>> for sentence in tokenize(text):
    ...     print([text[start:end] for start, end in sentence])
    ['Dr.', 'Lee', 'is', "n't", 'here', '.']
    ['She', "'s", 'in', 'the', 'U.S.', '(', 'since', '1,998.5', ')', '!']
    """
    sentences: Sentences = []
    sentence: list[Span] = []
    has_ended, end = False, 0
    for found in TOKEN.finditer(text):
        token, between = found[0], text[end : found.start()]
        is_apart = has_ended and between and not token[0].islower()
        if sentence and (is_apart or between.count("\n") > 1):
            sentences.append(sentence)
            sentence = []
        has_ended = bool(ENDS.fullmatch(token)) or (has_ended and token in CLOSING)
        sentence.append(found.span())
        end = found.end()
    return [*sentences, sentence] if sentence else sentences


def tokenize_lines(text: str) -> Sentences:
    """As `tokenize`, with each line a sentence."""
    return _by_lines(text, TOKEN)


def split_blanks(text: str) -> Sentences:
    """Tokens are what is between blanks, sentences are lines."""
    return _by_lines(text, re.compile(r"\S+"))


def _by_lines(text: str, token: re.Pattern[str]) -> Sentences:
    lines = re.finditer(r"[^\n]+", text)
    found = [[match.span() for match in token.finditer(text, *line.span())] for line in lines]
    return [sentence for sentence in found if sentence]


def spacy_tokenizer(language: str) -> Tokenizer:
    """The tokenizer of a language in spaCy, with its rules for sentences."""
    try:
        import spacy
    except ImportError:
        raise ValueError('The tokenizer of spaCy needs spaCy: pip install "maxmargin[spacy]".') from None
    try:
        pipeline = spacy.blank(language)
    except ImportError:
        raise ValueError(f"tokenizer must name a language of spaCy, such as 'spacy:en', not {language!r}.") from None
    pipeline.add_pipe("sentencizer")
    return lambda text: sentences_of_doc(pipeline(text))


def words_of_doc(doc: Doc) -> Iterator[list[Token]]:
    """The tokens of the sentences of a document of spaCy, but for those that are blank."""
    for part in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        tokens = [token for token in part if not token.is_space]
        if tokens:
            yield tokens


def sentences_of_doc(doc: object) -> Iterator[list[Span]]:
    """The sentences of a document of spaCy, by characters."""
    for tokens in words_of_doc(doc):
        yield [(token.idx, token.idx + len(token.text)) for token in tokens]


NAMED: dict[str, Tokenizer] = {"rules": tokenize, "lines": tokenize_lines, "blanks": split_blanks}


def find_tokenizer(tokenizer: str | Tokenizer | None) -> Tokenizer:
    """A tokenizer by its name, "rules" by default, or as it is."""
    if callable(tokenizer):
        return tokenizer
    name = "rules" if tokenizer is None else tokenizer
    if name in NAMED:
        return NAMED[name]
    family, _, language = str(name).partition(":")
    if family != "spacy":
        raise ValueError(
            f"tokenizer must be {', '.join(NAMED)}, spacy:LANGUAGE, or a function of a text, not {quote(tokenizer)}."
        )
    return spacy_tokenizer(language or "en")


def tokens_of(text: str, tokenizer: Tokenizer, name: str) -> Sentences:
    """The sentences of tokens of a text, by a tokenizer that may be anybody's, checked."""
    sentences = [[*sentence] for sentence in tokenizer(text)]
    check_tokens(sentences, text, name)
    return [sentence for sentence in sentences if sentence]


def check_tokens(sentences: Sequence[Sequence[Span]], text: str, name: str) -> None:
    """Raise unless tokens are parts of a text, one after the other."""
    last = 0
    for token in (token for sentence in sentences for token in sentence):
        start, end = token
        if not last <= start < end <= len(text):
            raise ValueError(
                f"{name}: a token from {start} to {end} is none that begins after {last} and ends before {len(text)}."
            )
        last = end
