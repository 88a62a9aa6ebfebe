"""`maxmargin predict`: what a tagger makes of a file.

It loads little more than NumPy as long as sentences are few: `maxmargin.tagger.light_tagger`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli.common import STDIN, check_tagger, find_files, keep_apart, load_tagger, same_tokens, stream, writing
from maxmargin.tagger.light_tagger import LightTagger, open_tagger
from maxmargin.text.mending import mend_tags
from maxmargin.text.schemes import convert_tags
from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS, Layout, find_format

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger
    from maxmargin.text.sentence_files.documents import Document
    from maxmargin.text.token_features.windows import Sentences


def run_predict(
    model: Path, given: list[Path], output: Path | None, format: str | None, encoding: str | None, probabilities: bool
) -> None:
    """Write the lines of files with the tags that a tagger gives them, as they come."""
    sources = find_files(given)
    if output is not None and output.is_file():
        keep_apart(output, "output", [model, *sources])
    tagger = load_tagger(model) if probabilities else load_quickly(model)
    texts = format_of_texts(sources, tagger.layout, format)
    if texts is not None:
        from maxmargin.cli.text_commands.raw_text import run_tag

        run_tag(model, given, output, source_format=texts, format=texts, encoding=encoding)
        return
    scheme: str | None = None
    with writing(output) as write:
        how = tagger.layout, format, encoding
        for document in chain.from_iterable(stream(path, *how, are_whole=tagger.asks_documents) for path in sources):
            if probabilities and document.layout.format == "conllu":
                raise ValueError("CoNLL-U has no column for probabilities.")
            if not document.X:
                write(document.lines)
                continue
            same_tokens(document, tagger)
            tags = tagger.predict(document.X)
            shares = None if isinstance(tagger, LightTagger) or not probabilities else _shares(tagger, document.X, tags)
            scheme = scheme or _own_scheme(tagger, document)
            write(document.tagged(convert_tags(tags, scheme) if scheme else tags, shares))


def format_of_texts(sources: list[Path], layout: Layout | None, format: str | None) -> str | None:
    """The format of files of texts; None if they are files of sentences."""
    named = {find_format(path) for path in sources if path != STDIN} & {*TEXT_FORMATS}
    usual = format or next(iter(named), None) or (layout and layout.format)
    return usual if usual in TEXT_FORMATS else None


def load_quickly(path: Path) -> Tagger | LightTagger:
    """The tagger in a file, for a few sentences if it can be."""
    tagger = open_tagger(path)
    return tagger if isinstance(tagger, LightTagger) else check_tagger(tagger, path)


def _own_scheme(tagger: Tagger | LightTagger, document: Document) -> str | None:
    """The scheme of the tags of a file or, where there are none, of the file that a tagger was trained on."""
    if tagger.scheme_ is None:
        return None
    usual = (tagger.layout and tagger.layout.scheme) or tagger.scheme_
    try:
        return usual if document.y is None else mend_tags(document.y, prefer=usual).source
    except ValueError:  # the tags that are there are others
        return usual


def _shares(tagger: Tagger, X: Sentences, y: list[list[object]]) -> Iterator[list[float]]:
    """The probabilities of tags."""
    index = {tag: k for k, tag in enumerate(tagger.classes_.tolist())}
    for table, tags in zip(tagger.predict_marginals(X), y, strict=True):
        yield table[np.arange(len(tags)), [index[tag] for tag in tags]].round(6).tolist()
