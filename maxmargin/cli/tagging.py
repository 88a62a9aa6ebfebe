"""`maxmargin predict` and `maxmargin evaluate`: what a tagger makes of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.cli.common import (
    in_batches,
    keep_apart,
    load_tagger,
    print_json,
    read,
    same_tokens,
    say,
    show,
    stream,
    writing,
)
from maxmargin.cli.tags import check_tags_known, in_scheme
from maxmargin.metrics import (
    confusion,
    entity_report,
    expected_calibration_error,
    sequence_accuracy,
    token_accuracy,
)
from maxmargin.tagger import Tagger
from maxmargin.text import Document, convert_tags, mend_tags
from maxmargin.text.token_features.windows import Sentences


def run_predict(
    model: Path, source: Path, output: Path | None, format: str | None, encoding: str | None, probabilities: bool
) -> None:
    """Write the lines of a file with the tags that a tagger gives them, as they come."""
    if output is not None and output.is_file():
        keep_apart(output, "output", [model, source])
    tagger = load_tagger(model)
    scheme: str | None = None
    with writing(output) as write:
        for document in stream(source, tagger.layout, format, encoding, are_whole=tagger.asks_documents):
            if probabilities and document.layout.format == "conllu":
                raise ValueError("CoNLL-U has no column for probabilities.")
            if not document.X:
                write(document.lines)
                continue
            same_tokens(document, tagger)
            tags = tagger.predict(document.X)
            shares = _shares(tagger, document.X, tags) if probabilities else None
            scheme = scheme or _own_scheme(tagger, document)
            write(document.tagged(convert_tags(tags, scheme) if scheme else tags, shares))


def _own_scheme(tagger: Tagger, document: Document) -> str | None:
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


def run_evaluate(
    model: Path,
    source: Path,
    format: str | None,
    encoding: str | None,
    *,
    with_confusion: bool,
    calibration: bool,
    as_json: bool,
) -> None:
    """Compare the tags that a tagger gives the sentences of a file with those in it."""
    tagger = load_tagger(model)
    document = read(source, tagger.layout, format=format, encoding=encoding)
    same_tokens(document, tagger)
    check_tags_known(document)
    true, predicted = document.y, [*in_batches(document.X, tagger.predict)]
    if tagger.scheme_ is not None:
        mended = in_scheme(document, tagger.scheme_)
        true = mended.y
        if mended.source != mended.scheme:
            say(f"Tags of {document.name} are {mended.source}: they are compared as {mended.scheme}.")
    found: dict[str, Any] = {
        "token_accuracy": token_accuracy(true, predicted),
        "sentence_accuracy": sequence_accuracy(true, predicted),
    }
    report = None
    if tagger.scheme_ is not None:
        report = entity_report(true, predicted)
        scores = {"overall": report.overall, **report.types}
        found["entities"] = {
            name: {"precision": score.precision, "recall": score.recall, "f1": score.f1, **score._asdict()}
            for name, score in scores.items()
        }
    if calibration:
        marginals = [*in_batches(document.X, tagger.predict_marginals)]
        found["calibration_error"] = expected_calibration_error(true, marginals, tagger.classes_)
    if with_confusion:
        counts = confusion(true, predicted)
        found["confusion"] = {"tags": counts.labels, "counts": counts.counts.tolist()}
    if as_json:
        print_json(found)
        return
    if report is not None:
        show(report)
    show(f"tags: {found['token_accuracy']:.2%} right; sentences: {found['sentence_accuracy']:.2%} without a mistake")
    if calibration:
        show(f"expected calibration error of probabilities: {found['calibration_error']:.4f}")
    if with_confusion:
        show(f"\nTrue tags in rows, predicted ones in columns:\n{counts}")
    unknown = sorted({tag for tags in true or [] for tag in tags} - {*tagger.classes_.tolist()})
    if unknown:
        say(f"Warning: the tagger does not know {', '.join(map(str, unknown))}.")
