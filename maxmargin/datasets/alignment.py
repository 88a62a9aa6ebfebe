"""Pairs of sentences in two languages, with links between words that mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from maxmargin.datasets.data_files import find_file

Links = set[tuple[int, int]]


class SentencePair(NamedTuple):
    """A sentence and its translation; links are pairs of a source and a target word, counted from 0."""

    source: list[str]
    target: list[str]
    sure: Links  # what must be linked
    possible: Links  # what may be linked, the sure links among them


def load_word_alignment(languages: str = "enfr", folder: str | Path | None = None) -> list[SentencePair]:
    """Read aligned sentences: 447 English-French pairs of the Canadian Hansards or 248 Romanian-English ones.

    Parameters
    ----------
    languages : {"enfr", "roen"}, default="enfr"
        The language of the source, then that of the target.
    folder : path, default=None
        The folder that contains ``word_alignment/enfr.src-tgt`` and ``word_alignment/enfr.gold``, by default that of
        the environment variable MAXMARGIN_DATA.

    Returns
    -------
    list of SentencePair

    References
    ----------
    Och, Ney (2000), A comparison of alignment models for statistical machine translation. Mihalcea, Pedersen (2003), An
    evaluation exercise for word alignment.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.datasets import load_word_alignment
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = pathlib.Path(folder, "word_alignment")
    ...     root.mkdir()
    ...     _ = (root / "enfr.src-tgt").write_text("the house ||| la maison")
    ...     _ = (root / "enfr.gold").write_text("1-1 2-2 2p1")
    ...     pair, = load_word_alignment(folder=folder)
    >>> pair.target, sorted(pair.sure), sorted(pair.possible)
    (['la', 'maison'], [(0, 0), (1, 1)], [(0, 0), (1, 0), (1, 1)])
    """
    if languages not in ("enfr", "roen"):
        raise ValueError(f"languages must be enfr or roen, not {languages!r}.")
    sentences, links = (
        find_file(f"word_alignment/{languages}.{part}", folder).read_text(encoding="utf-8").splitlines()
        for part in ("src-tgt", "gold")
    )
    return [_read_pair(*lines) for lines in zip(sentences, links, strict=True)]


def _read_pair(sentences: str, links: str) -> SentencePair:
    source, target = (side.split() for side in sentences.split("|||"))
    sure, possible = (
        {(int(a) - 1, int(b) - 1) for a, mark, b in (link.partition(mark) for link in links.split()) if mark}
        for mark in "-p"
    )
    return SentencePair(source, target, sure, sure | possible)
