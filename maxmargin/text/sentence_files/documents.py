"""Files of sentences in any format: what is in them, on which line, and how to write them again with other tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from maxmargin.garbage import no_garbage_collection
from maxmargin.text.corpus import Corpus
from maxmargin.text.partial_tags import replace_unknown
from maxmargin.text.sentence_files.columns import parse_columns
from maxmargin.text.sentence_files.conllu import parse_conllu
from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS, Layout, find_format, several, simplest
from maxmargin.text.sentence_files.json_lines import parse_json_lines
from maxmargin.text.sentence_files.line_files import FileToRead, Lines, Parsed, gather, name_of
from maxmargin.text.sentence_files.tagged_lines import first_lines, tag_columns, tag_records
from maxmargin.wording import count_of, quote


@dataclass(frozen=True)
class Document:
    """The sentences of a file.

    Attributes
    ----------
    name
        Of the file.
    layout
        Where it has its tokens and tags.
    X : list of sentences, lists of words or tuples
    y
        List of lists of tags; None if it has none.
    numbers
        For each sentence the numbers of the lines of its tokens, or that of the line it is in.
    lines
        All lines, unless they were not to be kept.
    first
        The number of the first of these lines.
    """

    name: str
    layout: Layout
    X: list[list[Any]]
    y: list[list[Any]] | None
    numbers: list[Sequence[int]]
    lines: list[str]
    first: int = 1

    def where(self, i: int, t: int = 0) -> str:
        """The file and the line of token t of sentence i."""
        numbers = self.numbers[i]
        return f"{self.name}, line {numbers[min(t, len(numbers) - 1)]}"

    def tagged(
        self, y: Iterable[Sequence[str]], probabilities: Iterable[Sequence[float]] | None = None
    ) -> Iterator[str]:
        """The lines with other tags: in one more column, in that of y (CoNLL-U), or in a field of JSON lines.

        That field is y or, where there are tags there already, "predicted". Probabilities of the tags, if given, are in
        a column of their own, or in the field "probabilities"; CoNLL-U has no place for them. Lines that begin
        documents repeat their last column, as conlleval wants as many columns in all lines.
        """
        columns: list[Any] = [y, *([] if probabilities is None else [probabilities])]
        places, lines = [number - self.first for number in chain.from_iterable(self.numbers)], [*self.lines]
        if self.layout.format != "json":
            columns = [chain.from_iterable(column) for column in columns]
        tagged = tag_columns if self.layout.format == "columns" else tag_records
        for k, line in zip(places, tagged(self.layout, [lines[k] for k in places], *columns), strict=True):
            lines[k] = line
        for k in first_lines(lines, places) if self.layout.format == "columns" else ():
            last: list[Any] = [[lines[k].split()[-1]], *([] if probabilities is None else [[1.0]])]
            (lines[k],) = tag_columns(self.layout, [lines[k]], *last)
        yield from lines


@dataclass(frozen=True)
class JoinedDocument(Document):
    """The sentences of several files, one after the other."""

    sources: tuple[Document, ...] = ()

    def where(self, i: int, t: int = 0) -> str:
        for source in self.sources:
            if i < len(source.X):
                return source.where(i, t)
            i -= len(source.X)
        return self.name


def join_documents(documents: Sequence[Document]) -> Document:
    """The sentences of files of one layout, as if they were in one file; their documents stay apart."""
    if len(documents) == 1:
        return documents[0]
    first = documents[0]
    X: Any = [sentence for document in documents for sentence in document.X]
    if any(isinstance(document.X, Corpus) for document in documents):
        parts = [getattr(document.X, "documents", range(len(document.X))) for document in documents]
        X = Corpus(X, [(k, part) for k, named in enumerate(parts) for part in named])
    y = None if any(each.y is None for each in documents) else [tags for each in documents for tags in each.y or ()]
    numbers = [lines for document in documents for lines in document.numbers]
    name = f"{first.name} and {count_of(len(documents) - 1, 'other file')}"
    return JoinedDocument(name, first.layout, X, y, numbers, [], 1, tuple(documents))


def read_document(
    source: FileToRead,
    layout: Layout | None = None,
    *,
    needs_tags: bool = True,
    keeps_lines: bool = True,
    name: str | None = None,
) -> Document:
    r"""Read a file of sentences.

    Parameters
    ----------
    source : path or open file
    layout
        Where it has its tokens and tags; by default that of its format, which the end of its name tells. That of an
        earlier document demands as many columns as that had or, where tags are missing, those of the tokens.
    needs_tags
        Whether a file without tags is an error.
    keeps_lines
        Whether to keep its lines, so that they can be written again with other tags.
    name
        What messages call the file; by default its own name.

    Returns
    -------
    Document

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import read_document
    >>> document = read_document(io.StringIO("He B-NP\nran B-VP\n"))
    >>> document.X, document.y, document.layout.width
    ([['He', 'ran']], [['B-NP', 'B-VP']], 2)
    >>> [*document.tagged([["B-NP", "O"]])]
    ['He B-NP B-NP', 'ran B-VP O']
    """
    layout = layout or Layout(find_format(name_of(source)))
    if layout.format in TEXT_FORMATS:
        from maxmargin.text.standoff.text_documents import read_text_document  # which is made of this

        return read_text_document(source, layout, needs_tags=needs_tags, name=name)
    reader = _Reader(source, layout, needs_tags, name)
    with no_garbage_collection:
        if not keeps_lines:
            return reader.document([sentence for sentence in reader.parsed() if sentence is not None], [], 1)
        *_, document = reader.documents(most=None)
        return document


def stream_documents(
    source: FileToRead,
    layout: Layout | None = None,
    *,
    most: int = 2_000,
    name: str | None = None,
    are_whole: bool = False,
) -> Iterator[Document]:
    r"""Read a file of sentences, tagged or not, a part at a time: what never ends can be tagged as it comes.

    A part has `most` sentences at most, and of a pipe those that are there: none waits for the next one. Each line is
    in one of the parts, the last of which may have no sentences; numbers of lines are those in the file. A file of
    texts is one part.

    Parameters
    ----------
    source, layout, name
        As in `read_document`.
    most
        The largest number of sentences of a part.
    are_whole
        Whether documents, where lines of -DOCSTART- begin any, are in one part each, however large: the last one waits
        for its end.

    Yields
    ------
    Document

    Examples
    --------
    >>> import io
    >>> from maxmargin.text import stream_documents
    >>> parts = stream_documents(io.StringIO("He\n\nran\n"), Layout(x=0, y=1, width=2), most=1)
    >>> [(part.X, part.where(0)) for part in parts]
    [([['He']], 'the stream, line 1'), ([['ran']], 'the stream, line 3')]
    """
    layout = layout or Layout(find_format(name_of(source)))
    if layout.format in TEXT_FORMATS:
        return iter([read_document(source, layout, needs_tags=False, name=name)])
    return _Reader(source, layout, False, name).documents(most, are_whole=are_whole)


def cut_document(source: FileToRead, layout: Layout | None, most: int, *, needs_tags: bool) -> Iterator[Document]:
    """Read a file of sentences, `most` of them at a time, without its lines; documents are in one part each.

    Other than `stream_documents`, it waits until a part is full.
    """
    layout = layout or Layout(find_format(name_of(source)))
    if layout.format in TEXT_FORMATS:
        yield read_document(source, layout, needs_tags=needs_tags)
        return
    reader = _Reader(source, layout, needs_tags, None)
    sentences: list[Parsed] = []
    for sentence in reader.parsed():
        if sentence is None:
            continue
        may_cut = not sentence.document or sentence.document != sentences[-1].document if sentences else False
        if len(sentences) >= most and may_cut:
            yield reader.document(sentences, [], 1)
            sentences = []
        sentences.append(sentence)
    if sentences:
        yield reader.document(sentences, [], 1)


class _Reader:
    """Reads the sentences of a file; arguments are those of `read_document`."""

    def __init__(self, source: FileToRead, layout: Layout, needs_tags: bool, name: str | None) -> None:
        self.layout = layout
        self.needs_tags = needs_tags
        self.lines = Lines(source, self.layout.encoding, name)
        self.parsed = {"columns": self._columns, "conllu": self._conllu, "json": self._json}[self.layout.format]

    def documents(self, most: int | None, *, are_whole: bool = False) -> Iterator[Document]:
        """The sentences in parts of `most` at most, each with its lines; without `most`, all of them in one.

        If documents of the file are to be whole, a part goes on to the end of its last one.
        """
        lines = self.lines.kept = []  # those that are in no part yet
        sentences: list[Parsed] = []
        first, end = 1, 0

        def take() -> Document:
            nonlocal sentences, first
            part = self.document(sentences, lines[: end + 1 - first], first)
            del lines[: end + 1 - first]
            sentences, first = [], end + 1
            return part

        for sentence in self.parsed():
            if sentence is not None:
                is_full = most is not None and len(sentences) >= most
                if are_whole and is_full and sentence.document != sentences[-1].document:
                    yield take()
                sentences.append(sentence)
                end = self.lines.number
            may_cut = sentences and most is not None and not (are_whole and sentences[-1].document)
            if may_cut and (sentence is None or len(sentences) == most):
                yield take()
        if lines:
            yield self.document(sentences, lines, first)

    def document(self, sentences: list[Parsed], lines: list[str], first: int) -> Document:
        """The document of some sentences and lines."""
        has_tags = all(sentence.tags is not None for sentence in sentences)
        tags: Any = [sentence.tags for sentence in sentences]
        y: Any = replace_unknown(tags, self.layout.unknown) if has_tags else None
        if self.layout.format == "conllu" and not any(tag != "_" for tags in y for tag in tags):
            if self.needs_tags:
                raise ValueError(f"{self.lines.name} has no tags in its column {self.layout.y!r}.")
            y = None
        numbers = [sentence.numbers for sentence in sentences]
        return Document(self.lines.name, self.layout, gather(sentences), y, numbers, lines, first)

    def _columns(self) -> Iterator[Parsed | None]:
        name, needs_tags, layout = self.lines.name, self.needs_tags, self.layout

        def choose(width: int, number: int) -> tuple[int | Sequence[int], int | None]:
            whole = layout.width or (width if needs_tags or width > 1 else 2)  # one column is that of words
            y = _column(layout.y, whole, name)
            x = [k for k in range(whole) if k != y] if layout.x is None else several(layout.x)
            if not x:
                raise ValueError(f"{name} has one column only: tokens need one, and tags another.")
            x = [_column(k, whole, name) for k in x]
            self.layout = replace(layout, x=simplest(x), y=y, width=whole)
            if width == whole:
                return simplest(x), y
            partial = {len(x), *range(max(x) + 1, y + 1)} - {whole}  # without tags: the tokens alone, or all up to them
            if needs_tags or width not in partial:
                others = "" if needs_tags else f" or, without tags, {' or '.join(map(str, sorted(partial)))}"
                self.lines.fail(number, f"it has {count_of(width, 'column')}, but {whole}{others} were expected")
            return simplest(x if width > max(x) else [*range(width)]), None

        return parse_columns(self.lines, layout.separator, layout.comments, choose)

    def _conllu(self) -> Iterator[Parsed | None]:
        x, y, document = self.layout.x, self.layout.y, 0
        for found in parse_conllu(self.lines):
            if found is None:
                yield None
                continue
            sentence, numbers = found
            document += any(comment.split()[:1] == ["newdoc"] for comment in sentence.comments)
            tokens: Any = sentence.tokens(*x) if isinstance(x, tuple) else sentence.column(x)
            yield Parsed(tokens, sentence.column(y), numbers, document)

    def _json(self) -> Iterator[Parsed | None]:
        x, y = self.layout.x, self.layout.y
        n_parts = 0  # of the first token
        for found in parse_json_lines(self.lines, x, y, self.needs_tags):
            if found is None:
                yield None
                continue
            record, number = found
            tokens = [tuple(token) if isinstance(token, list) else token for token in record[x]]
            for token in tokens:
                parts = token if isinstance(token, tuple) else (token,)
                if not parts or not all(isinstance(part, str) for part in parts):
                    self.lines.fail(number, f"tokens must be strings or lists of strings, not {quote(token)}")
                n_parts = n_parts or len(parts)
                if len(parts) != n_parts:
                    self.lines.fail(number, f"{quote(token)} has {len(parts)} strings, but the first token {n_parts}")
            if tokens or not self.needs_tags:  # nothing is learned from a sentence without tokens
                yield Parsed(tokens, record.get(y), [number])


def _column(k: int, width: int, name: str) -> int:
    if not -width <= k < width:
        raise ValueError(f"Column {k} was asked for, but {name} has {width}, from 0 to {width - 1}.")
    return k % width
