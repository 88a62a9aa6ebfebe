"""`maxmargin evaluate`: how good what a tagger makes of a file is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maxmargin.cli.common import in_batches, load_tagger, print_json, read_files, same_tokens, say, show
from maxmargin.cli.tags import check_tags_known, in_scheme
from maxmargin.metrics import (
    confusion,
    entity_report,
    expected_calibration_error,
    sequence_accuracy,
    token_accuracy,
)


def run_evaluate(
    model: Path,
    given: list[Path],
    format: str | None,
    encoding: str | None,
    *,
    with_confusion: bool,
    calibration: bool,
    as_json: bool,
) -> None:
    """Compare the tags that a tagger gives the sentences of a file with those in it."""
    tagger = load_tagger(model)
    document = read_files(given, tagger.layout, format=format, encoding=encoding)
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
