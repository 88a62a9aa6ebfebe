"""`maxmargin predict`: what a tagger, or a parser, makes of a file.

It loads little more than NumPy as long as sentences are few: `maxmargin.tagger.light_tagger`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli import common
from maxmargin.cli.common import STDIN
from maxmargin.cli.text_commands.format_options import WRITTEN_ONLY
from maxmargin.tagger.light_tagger import open_tagger
from maxmargin.text.mending import mend_tags
from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS, Layout, find_format
from maxmargin.text.tag_conversion import convert_tags

if TYPE_CHECKING:
    from maxmargin.tagger.light_tagger import LightTagger
    from maxmargin.tagger.word_tagger import Tagger
    from maxmargin.text.sentence_files.documents import Document
    from maxmargin.text.token_features.tokens import Token

NO_PROBABILITIES = "CoNLL-U has no column for probabilities."


def run_predict(
    model: Path,
    given: list[Path],
    output: Path | None,
    format: str | None,
    encoding: str | None,
    probabilities: bool,
    jobs: int = -1,
) -> None:
    """Write the lines of files with the tags that a tagger gives them, as they come."""
    sources = common.find_files(given)
    if output is not None and output.is_file():
        common.keep_apart(output, "output", [model, *sources])
    found = open_tagger(model, jobs)
    if common.is_parser(found):
        from maxmargin.cli.text_commands.tree_files import run_parse

        if probabilities:
            raise ValueError(NO_PROBABILITIES)
        run_parse(found, sources, output, format, encoding, jobs)
        return
    tagger = common.check_light(found, model, jobs)
    to = format if format in WRITTEN_ONLY else None
    format = None if to else format
    texts = format_of_texts(sources, tagger.layout, format)
    if texts is not None:
        from maxmargin.cli.text_commands.raw_text import tag_files

        to = WRITTEN_ONLY[to] if to else texts
        tag_files(tagger, sources, output, source_format=texts, format=to, encoding=encoding)
        return
    if to is not None:
        from maxmargin.cli.text_commands.found_entities import write_found

        write_found(tagger, sources, output, to, encoding)
        return
    scheme: str | None = None
    with common.writing(output) as write:
        how = tagger.layout, format, encoding
        for document in chain.from_iterable(
            common.stream(path, *how, are_whole=tagger.asks_documents) for path in sources
        ):
            if probabilities and document.layout.format == "conllu":
                raise ValueError(NO_PROBABILITIES)
            if not document.X:
                write(document.lines)
                continue
            common.same_tokens(document, tagger)
            tags = tagger.predict(document.X)
            shares = tag_shares(tagger, document.X, tags) if probabilities else None
            scheme = scheme or _own_scheme(tagger, document)
            write(document.tagged(convert_tags(tags, scheme) if scheme else tags, shares))


def format_of_texts(sources: list[Path], layout: Layout | None, format: str | None) -> str | None:
    """The format of files of texts; None if they are files of sentences."""
    named = {find_format(path) for path in sources if path != STDIN} & {*TEXT_FORMATS}
    usual = format or next(iter(named), None) or (layout and layout.format)
    return usual if usual in TEXT_FORMATS else None


def _own_scheme(tagger: Tagger | LightTagger, document: Document) -> str | None:
    """The scheme of the tags of a file or, where there are none, of the file that a tagger was trained on."""
    if tagger.scheme_ is None:
        return None
    usual = (tagger.layout and tagger.layout.scheme) or tagger.scheme_
    try:
        return usual if document.y is None else mend_tags(document.y, prefer=usual).source
    except ValueError:  # the tags that are there are others
        return usual


def tag_shares(
    tagger: Tagger | LightTagger, X: Sequence[Sequence[Token]], y: list[list[object]]
) -> Iterator[list[float]]:
    """The probabilities of tags."""
    index = {tag: k for k, tag in enumerate(tagger.classes_.tolist())}
    for table, tags in zip(tagger.predict_marginals(X), y, strict=True):
        yield table[np.arange(len(tags)), [index[tag] for tag in tags]].round(6).tolist()
