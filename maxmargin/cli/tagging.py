"""`maxmargin evaluate`: how good what a tagger makes of a file is, and whether another one is better."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli import common
from maxmargin.cli.common import STDIN
from maxmargin.cli.tags import check_tags_known, in_scheme
from maxmargin.metrics import (
    Comparison,
    EntityScore,
    Interval,
    MatchScore,
    bootstrap,
    compare_taggings,
    confusion,
    entity_curve,
    entity_report,
    expected_calibration_error,
    match_report,
    sequence_accuracy,
    token_accuracy,
)
from maxmargin.persist.container import MAGIC
from maxmargin.tagger.light_tagger import LightTagger, open_tagger
from maxmargin.text import Document

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger


@dataclass
class Scores:
    """What there is to say of predictions: numbers by name, for JSON, and lines for people."""

    found: dict[str, object]
    lines: list[str]

    def add(self, name: str, value: object, line: str) -> None:
        """One more of both."""
        self.found[name] = value
        self.lines.append(line)

    def add_interval(self, title: str, interval: Interval) -> None:
        """A score with its interval."""
        self.add("interval", interval._asdict(), f"{title}, with an interval of 95 %: {interval}")

    def add_comparison(
        self, comparison: Comparison, first: Path, second: Path, scores: str = "Scores", outputs: str = "tags"
    ) -> None:
        """A comparison of two models, as a table and a sentence."""
        found = {
            name: value._asdict() if isinstance(value, Interval) else value
            for name, value in comparison._asdict().items()
        }
        told = comparison.tell(str(first), str(second), outputs)
        self.add("comparison", found, f"\n{scores}, with intervals of 95 %:\n{told}")

    def tell(self, *, as_json: bool) -> None:
        """Print them."""
        if as_json:
            common.print_json(self.found)
            return
        for line in self.lines:
            common.show(line)


def run_evaluate(
    model: Path,
    given: list[Path],
    format: str | None,
    encoding: str | None,
    shown: Collection[str],
    *,
    precision: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Compare the tags that a tagger gives the sentences of a file, or the trees of a parser, with those in it.

    By scores and what else is to be shown: "confusion", "calibration", "matches", "intervals".
    """
    found_model = open_tagger(model, jobs)
    if common.is_parser(found_model):
        from maxmargin.cli.text_commands.tree_files import run_evaluate_parser

        if precision is not None or not {*shown} <= {"intervals"}:
            raise ValueError("--confusion, --calibration, --matches and --precision are those of tags, not of parsers.")
        how = {"intervals": "intervals" in shown, "as_json": as_json}
        run_evaluate_parser(found_model, model, given, format, encoding, jobs=jobs, **how)
        return
    tagger = common.check_light(found_model, model, jobs)
    others = [path for path in given[:1] if is_model(path)]
    document = common.read_files(given[len(others) :] or [STDIN], tagger.layout, format=format, encoding=encoding)
    check_tags_known(document)
    true = true_tags(document, tagger)
    predicted = predict_all(tagger, document)
    has_entities = tagger.scheme_ is not None
    if ("matches" in shown or precision is not None) and not has_entities:
        raise ValueError("--matches and --precision need tags that spell entities, which those of the tagger do not.")
    of_tags, of_sentences = token_accuracy(true, predicted), sequence_accuracy(true, predicted)
    scores = Scores(
        {"token_accuracy": of_tags, "sentence_accuracy": of_sentences},
        [f"tags: {of_tags:.2%} right; sentences: {of_sentences:.2%} without a mistake"],
    )
    if has_entities:
        report = entity_report(true, predicted)
        of_types = {"overall": report.overall, **report.types}
        scores.found["entities"] = {name: _shares(score) | score._asdict() for name, score in of_types.items()}
        scores.lines.insert(0, str(report))
    if "intervals" in shown and not others:
        title = "F1" if has_entities else "right tags"
        scores.add_interval(title, bootstrap(true, predicted, entities=has_entities))
    if "matches" in shown:
        match = match_report(true, predicted)
        ways = {way: score._asdict() | _shares(score) for way, score in match._asdict().items()}
        scores.add("matches", ways, f"\nEntities that are right in part:\n{match}")
    if others:
        second = common.check_light(open_tagger(others[0], jobs), others[0], jobs)
        comparison = compare_taggings(true, predicted, predict_all(second, document, tagger), entities=has_entities)
        scores.add_comparison(comparison, model, others[0])
    if precision is not None:
        tagger.threshold = None
        entities = [*common.in_batches(document.X, tagger.predict_entities)]
        threshold = entity_curve(true, entities).threshold_for(precision)
        line = f"entities of a probability of {threshold:.4f} have a precision of {precision:.2%} at least"
        scores.add("threshold", threshold, line)
    if "calibration" in shown:
        marginals = [*common.in_batches(document.X, tagger.predict_marginals)]
        error = expected_calibration_error(true, marginals, tagger.classes_)
        scores.add("calibration_error", error, f"expected calibration error of probabilities: {error:.4f}")
    if "confusion" in shown:
        counts = confusion(true, predicted)
        table = {"tags": counts.labels, "counts": counts.counts.tolist()}
        scores.add("confusion", table, f"\nTrue tags in rows, predicted ones in columns:\n{counts}")
    scores.tell(as_json=as_json)
    unknown = sorted({tag for tags in true for tag in tags} - {*tagger.classes_.tolist()})
    if unknown and not as_json:
        common.say(f"Warning: the tagger does not know {', '.join(map(str, unknown))}.")


def is_model(path: Path) -> bool:
    """Whether a file is a model, not one of sentences."""
    if path == STDIN or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def true_tags(document: Document, tagger: Tagger | LightTagger) -> list[list[Any]]:
    """The tags of a document, in the scheme of a tagger."""
    if tagger.scheme_ is None:
        return document.y or []
    mended = in_scheme(document, tagger.scheme_)
    if mended.source != mended.scheme:
        common.say(f"Tags of {document.name} are {mended.source}: they are compared as {mended.scheme}.")
    return mended.y


def predict_all(
    tagger: Tagger | LightTagger, document: Document, like: Tagger | LightTagger | None = None
) -> list[list[object]]:
    """The tags that a tagger gives a document; raises where they are not like those of another tagger."""
    common.same_tokens(document, tagger)
    if like is not None and (tagger.scheme_ is None) != (like.scheme_ is None):
        raise ValueError("Both taggers must have tags that spell entities, or neither.")
    return [*common.in_batches(document.X, tagger.predict)]


def _shares(score: EntityScore | MatchScore) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}
