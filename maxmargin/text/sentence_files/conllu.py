"""CoNLL-U: words with lemma, parts of speech, features and syntax, as in Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Self

from maxmargin.checks import check_choice
from maxmargin.text.sentence_files.line_files import FileToRead, FileToWrite, Lines, write_lines
from maxmargin.wording import count_of


class Word(NamedTuple):
    """A line of CoNLL-U; "_" stands for what is not given. Ids such as 3-4 and 8.1 are of no word of their own."""

    id: str
    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"
    head: str = "_"
    deprel: str = "_"
    deps: str = "_"
    misc: str = "_"


class Sentence(NamedTuple):
    """A sentence of CoNLL-U.

    Attributes
    ----------
    lines
        All lines, as `Word`; those of ranges and of words that are not written, too.
    comments
        What is said about the sentence, without "#".
    """

    lines: list[Word]
    comments: Sequence[str] = ()

    @property
    def words(self) -> list[Word]:
        """The words."""
        return [word for word in self.lines if word.id.isdecimal()]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of the head of a word and the word, counted from 0: the edges of a `Tree`."""
        heads = [(int(word.head) - 1, k) for k, word in enumerate(self.words) if word.head.isdecimal()]
        return [(head, k) for head, k in heads if head >= 0]

    @property
    def arcs(self) -> list[tuple[int, str]]:
        """The head of each word, counted from 1 with 0 for the root, and the label of the arc: a tree of models."""
        for word in self.words:
            if not word.head.isdecimal():
                raise ValueError(f"Word {word.id}, {word.form!r}, has the head {word.head!r}, not a number.")
        return [(int(word.head), word.deprel) for word in self.words]

    def with_arcs(self, arcs: Iterable[int | tuple[int, str]]) -> Self:
        """The same with another tree: pairs of a head and a label, or heads, whose arcs have no label."""
        pairs = [arc if isinstance(arc, tuple) else (arc, "_") for arc in arcs]
        heads, labels = zip(*pairs, strict=True) if pairs else ((), ())
        return self.with_column("head", map(str, heads)).with_column("deprel", labels)

    def column(self, name: str) -> list[str]:
        """One column of the words, such as "form" or "upos"."""
        check_choice("column", name, Word._fields)
        return [getattr(word, name) for word in self.words]

    def tokens(self, *names: str) -> list[tuple[str, ...]]:
        """Tuples of some columns of each word, such as "form" and "upos": tokens of models."""
        return [*zip(*map(self.column, names), strict=True)]

    def with_column(self, name: str, values: Iterable[str]) -> Self:
        """The same with another column of the words."""
        new = iter(values := [str(value) for value in values])
        if len(values) != len(self.words):
            raise ValueError(f"values must hold {len(self.words)} strings, one per word, but holds {len(values)}.")
        lines = [word._replace(**{name: next(new)}) if word.id.isdecimal() else word for word in self.lines]
        return self._replace(lines=lines)


def read_conllu(source: FileToRead, *, encoding: str = "utf-8") -> list[Sentence]:
    r"""Read the sentences of a CoNLL-U file.

    Parameters
    ----------
    source, encoding
        As those of `read_columns`.

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_conllu
    >>> lines = "1 He he PRON _ _ 2 nsubj _ _", "2 ran run VERB _ _ 0 root _ _"
    >>> sentence = read_conllu(io.StringIO("\n".join(lines).replace(" ", "\t")))[0]
    >>> sentence.column("form"), sentence.column("upos"), sentence.edges
    (['He', 'ran'], ['PRON', 'VERB'], [(1, 0)])
    >>> sentence.arcs
    [(2, 'nsubj'), (0, 'root')]
    """
    return [found[0] for found in parse_conllu(Lines(source, encoding)) if found is not None]


def parse_conllu(lines: Lines) -> Iterator[tuple[Sentence, list[int]] | None]:
    """The sentences with the numbers of the lines of their words, one by one; None where there may be none for long."""
    words: list[Word] = []
    comments: list[str] = []
    places: list[int] = []
    n_found = 0
    for number, line in chain(lines, [(0, "")]):
        if line is None:
            yield None
        elif not line.strip():
            if places:
                n_found += 1
                yield Sentence(words, comments), places
            words, comments, places = [], [], []
        elif line.startswith("#"):
            comments.append(line[1:].strip())
        else:
            fields = line.split("\t")
            if len(fields) != len(Word._fields):
                lines.fail(
                    number,
                    f"it has {count_of(len(fields), 'column')}, but CoNLL-U has {len(Word._fields)}, between tabs",
                )
            if fields[0].isdecimal():
                places.append(number)
                if fields[0] != str(len(places)):
                    lines.fail(number, f"the id is {fields[0]}, but {len(places)} comes next")
            words.append(Word(*fields))
    lines.check_any(n_found, "sentence")


def write_conllu(target: FileToWrite, sentences: Iterable[Sentence]) -> None:
    r"""Write sentences to a CoNLL-U file.

    Parameters
    ----------
    target : path or open text file
    sentences : list of Sentence

    Examples
    --------
    >>> import sys
    >>> from maxmargin.text import Sentence, Word, write_conllu
    >>> tagged = Sentence([Word("1", "Stop")]).with_column("upos", ["VERB"])
    >>> write_conllu(sys.stdout, [tagged])  # doctest: +NORMALIZE_WHITESPACE
    1 Stop _ VERB _ _ _ _ _ _
    <BLANKLINE>
    """
    write_lines(target, (line for i, sentence in enumerate(sentences) for line in lines_of(sentence, i)))


def lines_of(sentence: Sentence, i: int) -> Iterator[str]:
    """The lines of sentence i in a file, with a blank one at the end."""
    yield from (f"# {comment}" for comment in sentence.comments)
    for word in sentence.lines:
        for name, field in zip(Word._fields, word, strict=True):
            if not field or re.search("[\t\r\n]", field):
                wanted = "a string without tabs and line ends, not empty"
                raise ValueError(f"Word {word.id} of sentence {i} has the {name} {field!r}, but it must be {wanted}.")
        yield "\t".join(word)
    yield ""
