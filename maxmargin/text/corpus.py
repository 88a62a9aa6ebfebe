"""Sentences that know which document they are of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any, SupportsIndex, TypeVar, overload

from maxmargin.wording import count_of

T = TypeVar("T")


class Corpus(list[Any]):
    """A list of sentences that knows which document each is of; those of a document stand one after the other.

    Readers of files return one where documents begin with a line of -DOCSTART-; slices keep documents.

    Parameters
    ----------
    sentences
        Lists of tokens.
    documents
        For each sentence what its document is called, by anything that can be the key of a dict: sentences in a row
        that say the same are of one document.

    Examples
    --------
    >>> from maxmargin.text import Corpus
    >>> corpus = Corpus([["Ann", "ran"], ["She", "fell"], ["Rain"]], documents=["a", "a", "b"])
    >>> corpus[1:].documents, corpus == [["Ann", "ran"], ["She", "fell"], ["Rain"]]
    (['a', 'b'], True)
    """

    def __init__(self, sentences: Iterable[object], documents: Iterable[Hashable]) -> None:
        super().__init__(sentences)
        self.documents = [*documents]
        if len(self.documents) != len(self):
            raise ValueError(
                f"documents must say for {count_of(len(self), 'sentence')} which document each is of, but has "
                f"{len(self.documents)}."
            )

    @overload
    def __getitem__(self, i: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Corpus: ...
    def __getitem__(self, i: SupportsIndex | slice) -> Any:
        return Corpus(super().__getitem__(i), self.documents[i]) if isinstance(i, slice) else super().__getitem__(i)


def choose(sentences: Sequence[T], which: Iterable[int]) -> list[T]:
    """Some of the sentences, which stay in their documents."""
    if not isinstance(sentences, Corpus):
        return [sentences[i] for i in which]
    which = [*which]
    return Corpus([sentences[i] for i in which], [sentences.documents[i] for i in which])


def document_sizes(sentences: Sequence[object]) -> list[int]:
    """The number of sentences of each document, one after the other; each is one of its own, where none is known."""
    if not isinstance(sentences, Corpus):
        return [1] * len(sentences)
    return [len([*same]) for _, same in groupby(sentences.documents)]
