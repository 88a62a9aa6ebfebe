"""`maxmargin predict` and `maxmargin evaluate`: what a tagger makes of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.cli.common import in_batches, load_tagger, located, print_json, read, same_tokens, say
from maxmargin.metrics import (
    confusion,
    entity_report,
    expected_calibration_error,
    sequence_accuracy,
    token_accuracy,
)
from maxmargin.persist import writable
from maxmargin.tagger import Tagger
from maxmargin.text import Document
from maxmargin.text.files import write_lines


def _open(model: Path, source: Path, format: str | None, *, needs_tags: bool) -> tuple[Tagger, Document]:
    tagger = load_tagger(model)
    document = read(source, tagger.layout, format=format, needs_tags=needs_tags)
    same_tokens(document, tagger)
    return tagger, document


def run_predict(model: Path, source: Path, output: Path | None, format: str | None, probabilities: bool) -> None:
    """Write the lines of a file with the tags that a tagger gives them."""
    if output is not None:
        writable(output)
    tagger, document = _open(model, source, format, needs_tags=False)
    if probabilities and document.layout.format == "conllu":
        raise ValueError("CoNLL-U has no column for probabilities.")
    tags = [*in_batches(document.X, tagger.predict)]
    shares = None
    if probabilities:
        index = {tag: k for k, tag in enumerate(tagger.classes_.tolist())}
        tables = in_batches(document.X, tagger.predict_marginals)
        shares = [
            table[np.arange(len(row)), [index[tag] for tag in row]].round(6).tolist()
            for table, row in zip(tables, tags, strict=True)
        ]
    write_lines(sys.stdout if output is None else output, document.tagged(tags, shares))


def run_evaluate(
    model: Path, source: Path, format: str | None, *, with_confusion: bool, calibration: bool, as_json: bool
) -> None:
    """Compare the tags that a tagger gives the sentences of a file with those in it."""
    tagger, document = _open(model, source, format, needs_tags=True)
    truth, predicted = document.y, [*in_batches(document.X, tagger.predict)]
    found: dict[str, Any] = {
        "token_accuracy": token_accuracy(truth, predicted),
        "sentence_accuracy": sequence_accuracy(truth, predicted),
    }
    report = None
    if tagger.scheme_ is not None:
        with located(document):
            report = entity_report(truth, predicted)
        scores = {"overall": report.overall, **report.types}
        found["entities"] = {
            name: {"precision": score.precision, "recall": score.recall, "f1": score.f1, **score._asdict()}
            for name, score in scores.items()
        }
    if calibration:
        marginals = [*in_batches(document.X, tagger.predict_marginals)]
        found["calibration_error"] = expected_calibration_error(truth, marginals, tagger.classes_)
    if with_confusion:
        counts = confusion(truth, predicted)
        found["confusion"] = {"tags": counts.labels, "counts": counts.counts.tolist()}
    if as_json:
        print_json(found)
        return
    if report is not None:
        print(report)
    print(f"tags: {found['token_accuracy']:.2%} right; sentences: {found['sentence_accuracy']:.2%} without a mistake")
    if calibration:
        print(f"expected calibration error of probabilities: {found['calibration_error']:.4f}")
    if with_confusion:
        print(f"\nTrue tags in rows, predicted ones in columns:\n{counts}")
    unknown = sorted({tag for tags in truth or [] for tag in tags} - {*tagger.classes_.tolist()})
    if unknown:
        say(f"Warning: the tagger does not know {', '.join(map(str, unknown))}.")
