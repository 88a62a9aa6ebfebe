"""Brackets of the Penn Treebank: sentences with their constituents, such as ``(S (NP (PRP She)) (VP (VBZ sings)))``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Self

from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, write_lines

JOINT = "::"  # between the labels of constituents of the same words, the outer one first
ROOTS = "", "ROOT", "TOP"  # labels of what is around a sentence
TRACE = "-NONE-"  # the tag of what is not said
FUNCTION = re.compile(r"(?<=.)[-=].*")  # what follows a label, as in NP-SBJ-1
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}
NOT_CLOSED = -1

LabelledSpan = tuple[int, int, str]  # from, to, and the label


class Constituents(NamedTuple):
    """A sentence with its constituents.

    Attributes
    ----------
    tokens
        Pairs of a word and its tag.
    brackets
        Triples of start, end and label, with words counted from 0, and ends excluded, as in slices; from the top down,
        left before right, the outer one first where two are of the same words.

    Examples
    --------
    >>> from maxmargin.text import Constituents
    >>> tree = Constituents([("Stop", "VB")], [(0, 1, "TOP"), (0, 1, "S"), (0, 1, "VP")])
    >>> print(tree)
    (TOP (S (VP (VB Stop))))
    >>> tree.spans
    [(0, 1, 'S::VP')]
    """

    tokens: list[tuple[str, str]]
    brackets: Sequence[LabelledSpan] = ()

    @property
    def spans(self) -> list[LabelledSpan]:
        """Its tree for models, without what is around it: labels of the same words are joined to one."""
        joined: dict[tuple[int, int], list[str]] = {}
        for start, end, label in self.brackets[self._n_around :]:
            joined.setdefault((start, end), []).append(label)
        return [(start, end, JOINT.join(labels)) for (start, end), labels in joined.items()]

    def with_spans(self, spans: Iterable[LabelledSpan]) -> Self:
        """The same with another tree, as models predict them; what is around the sentence stays."""
        nested = sorted(spans, key=lambda span: (span[0], -span[1]))
        brackets = [(start, end, part) for start, end, label in nested for part in label.split(JOINT)]
        return self._replace(brackets=[*self.brackets[: self._n_around], *brackets])

    @property
    def _n_around(self) -> int:
        first = self.brackets[:1]
        return sum(label in ROOTS and (start, end) == (0, len(self.tokens)) for start, end, label in first)

    def simplified(self) -> Self:
        """Without what is not said, such as traces, and without what labels say of functions: NP for NP-SBJ-1."""
        kept = [tag != TRACE for _, tag in self.tokens]
        before = [sum(kept[:k]) for k in range(len(kept) + 1)]
        brackets = [(before[start], before[end], FUNCTION.sub("", label)) for start, end, label in self.brackets]
        tokens = [token for token, is_said in zip(self.tokens, kept, strict=True) if is_said]
        return self._replace(tokens=tokens, brackets=[bracket for bracket in brackets if bracket[0] < bracket[1]])

    def __str__(self) -> str:
        whole = 0, len(self.tokens)
        is_whole = len(self.tokens) == 1 or any(bracket[:2] == whole for bracket in self.brackets)
        opened: dict[int, str] = {}
        closed: dict[int, str] = {}
        for start, end, label in self.brackets if is_whole else ((*whole, ""), *self.brackets):
            opened[start] = f"{opened.get(start, '')}({label} "
            closed[end] = f"{closed.get(end, '')})"
        return " ".join(
            f"{opened.get(k, '')}({escape(tag)} {escape(word)}){closed.get(k + 1, '')}"
            for k, (word, tag) in enumerate(self.tokens)
        )


def escape(text: str) -> str:
    """A word without brackets of its own."""
    for bracket, name in ESCAPES.items():
        text = text.replace(bracket, name)
    return text


def read_brackets(source: FileToRead, *, encoding: str = "utf-8") -> list[Constituents]:
    """Read the trees of a file of brackets, in any number of lines each.

    Parameters
    ----------
    source, encoding
        As those of `read_columns`.

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_brackets
    >>> read_brackets(io.StringIO("( (S (NP-SBJ (PRP She)) (VP (VBZ sings))))"))[0].simplified().spans
    [(0, 2, 'S'), (0, 1, 'NP'), (1, 2, 'VP')]
    """
    return [*parse_brackets(Lines(source, encoding))]


def parse_brackets(lines: Lines) -> Iterator[Constituents]:
    """The trees, one by one."""
    tokens: list[tuple[str, str]] = []
    brackets: list[LabelledSpan] = []
    waiting: list[tuple[int, int]] = []  # brackets that are open, and their lines
    word = ""
    n_found = 0
    for number, line in lines:
        for piece in re.findall(r"\(|\)|[^\s()]+", line or ""):
            if piece == "(":
                if word:
                    lines.fail(number, f"{word!r} stands beside a bracket, but words need one of their own, with a tag")
                waiting.append((len(brackets), number))
                brackets.append((len(tokens), NOT_CLOSED, ""))
            elif not waiting:
                what = "a bracket is closed that was not opened" if piece == ")" else f"{piece!r} is in no bracket"
                lines.fail(number, what)
            elif piece != ")":
                at, _ = waiting[-1]
                start, end, label = brackets[at]
                if word or start < len(tokens):
                    lines.fail(number, f"{piece!r} stands beside others, but words need a bracket of their own")
                if label:
                    word = piece
                else:
                    brackets[at] = start, end, piece
            else:
                at, _ = waiting.pop()
                start, _, label = brackets[at]
                if word:
                    tokens.append((word, label))
                    brackets.pop()
                    word = ""
                elif start == len(tokens):
                    lines.fail(number, f"the bracket {label!r} has no words")
                else:
                    brackets[at] = start, len(tokens), label
                if not waiting:
                    n_found += 1
                    yield Constituents(tokens, brackets)
                    tokens, brackets = [], []
    if waiting:
        lines.fail(waiting[-1][1], "a bracket is opened that is not closed")
    lines.check_any(n_found, "tree")


def write_brackets(target: FileToWrite, trees: Iterable[Constituents]) -> None:
    """Write trees to a file of brackets, one per line; brackets that are words are written -LRB- and -RRB-.

    Parameters
    ----------
    target : path or open text file
    trees : list of Constituents

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import Constituents, write_brackets
    >>> tree = Constituents([("She", "PRP"), ("sings", "VBZ")])
    >>> write_brackets(sys.stdout, [tree.with_spans([(0, 2, "S"), (0, 1, "NP")])])
    (S (NP (PRP She)) (VBZ sings))
    """
    write_lines(target, map(_line, trees))


def _line(tree: Constituents) -> str:
    for text in (*chain(*tree.tokens), *(label for _, _, label in tree.brackets)):
        if re.search(r"\s", text):
            raise ValueError(f"{text!r} cannot stand in brackets: words, tags and labels must have no blanks.")
    if not all(chain(*tree.tokens)):
        raise ValueError(f"{tree.tokens!r} cannot stand in brackets: words and tags must not be empty.")
    return str(tree)
