"""The page of a tagger: verdict, curve, scores, sentences, weights, probabilities, data; other taggers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin.display.figures import Curve, draw_curves, draw_table
from maxmargin.display.fit_summary import show_curve, tell_verdict
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section, make_page
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.inspection import strongest_features
from maxmargin.metrics import bootstrap, compare_taggings, entity_report, token_accuracy
from maxmargin.metrics.calibration import reliability
from maxmargin.metrics.entity_curves import entity_curve
from maxmargin.report.entity_errors import ALL, ERRORS, count_errors
from maxmargin.report.tagged_sentences import (
    MOST_EXPLAINED,
    ReportedTagger,
    Tagged,
    can_explain,
    choose_sentences,
    describe_sentences,
    predict_alike,
    tag_sentences,
)
from maxmargin.text.data_health import check_data

N_FEATURES = 15  # of each tag, that are shown at first; the search looks at more
N_SEARCHED = 200
N_POINTS = 200  # of the curve of thresholds
Examples = tuple[Sequence[Any], Sequence[Sequence[Any]]]


def report_tagger(
    tagger: ReportedTagger,
    test: Examples | None,
    *,
    train: Examples | None = None,
    others: Mapping[str, ReportedTagger] | None = None,
    name: str = "tagger",
    command: str | None = None,
) -> str:
    """The page of a fitted tagger, as one text of HTML.

    Parameters
    ----------
    tagger
        A fitted `Tagger`.
    test
        Sentences and tags that it was not trained on, if there are any.
    train
        What it was trained on, for what both have in common.
    others
        Other taggers to compare with on the same sentences, by name.
    name
        What to call it.
    command
        What made it, to be told.
    """
    tagged = None if test is None or not any(map(len, test[0])) else tag_sentences(tagger, *test)
    compared = {}
    if tagged is not None:
        compared = {title: predict_alike(title, other, tagger, tagged) for title, other in (others or {}).items()}
    facts: list[tuple[str, object]] = [
        ("tags", f"{len(tagger.classes_):,}" + (f", {tagger.scheme_}" if tagger.scheme_ else ""))
    ]
    if command is not None:
        facts.append(("command", tag("code", command)))
    sections = [tell_verdict(tagger.model_, tell_held_out(tagger, tagged), facts), show_curve(tagger.trace_)]
    data: dict[str, Any] = {"classes": [str(tag) for tag in tagger.classes_.tolist()], "others": [*compared]}
    if tagged is not None:
        shown, n_worst = choose_sentences(tagged)
        sections += [show_scores(tagger, tagged), show_sentences(tagger, len(shown), n_worst, len(tagged.X))]
        if compared:
            sections.append(compare(tagger, tagged, compared))
        data["sentences"] = describe_sentences(tagger, tagged, shown, [*compared.values()])
    if isinstance(tagger.model_, ChainCRF | ChainSVM):
        sections.append(show_weights(tagger))
        data["features"] = strongest_by_tag(tagger)
    if tagged is not None:
        sections.append(show_probabilities(tagger, tagged, data))
    known = {
        title: part for title, part in (("train", train), ("test", test)) if part is not None and any(map(len, part[0]))
    }
    if known:
        sections.append(Section("data", "Data", check_data(known).tabulate()))
    return make_page(f"Report: {name}", sections, data)


def tell_held_out(tagger: ReportedTagger, tagged: Tagged | None) -> object:
    """The score on held-out sentences, with its interval."""
    if tagged is None:
        return "There are no held-out sentences: nothing is known of sentences it was not trained on."
    is_spelled = tagger.scheme_ is not None
    interval = bootstrap(tagged.y, tagged.predicted, entities=is_spelled)
    what = "F1 of entities" if is_spelled else "Share of right tags"
    return join([f"{what} on {len(tagged.X):,} held-out sentences: ", tag("strong", interval), "."])


def show_scores(tagger: ReportedTagger, tagged: Tagged) -> Section:
    """Scores by type, with errors that lead to their sentences; or the share of right tags."""
    if tagger.scheme_ is None:
        share = token_accuracy(tagged.y, tagged.predicted)
        return Section("scores", "Scores", tag("p", f"{100 * share:.2f} % of all tags are right."))
    report, errors = entity_report(tagged.y, tagged.predicted), count_errors(tagged.judged)
    rows = []
    for kind, score in [(ALL, report.overall), *report.types.items()]:
        lead = {"type": "button", "class_": "leads", "data_type": "" if kind == ALL else kind}
        counts = [(error, errors[kind][error]) for error in ERRORS]
        buttons = [tag("button", f"{n:,}", data_error=error, **lead) if n else "0" for error, n in counts]
        shares = [f"{100 * share:.2f}" for share in (score.precision, score.recall, score.f1)]
        rows.append([kind, *shares, f"{score.n_true:,}", f"{score.n_predicted:,}", f"{score.n_right:,}", *buttons])
    titles = ("type", "precision", "recall", "F1", "true", "found", "right", *ERRORS)
    note = tag("p", "A number of errors leads to its sentences. Errors of type concern both types.")
    return Section("scores", "Scores", join([table(titles, rows, class_="numbers"), note]))


def show_sentences(tagger: ReportedTagger, n_shown: int, n_worst: int, n_all: int) -> Section:
    """The browser of sentences, which the script fills."""
    which = f"All {n_all:,} sentences."
    if n_shown < n_all:
        rest = f"{n_shown - n_worst:,} of the other {n_all - n_worst:,}"
        which = f"The {n_worst:,} sentences that surprise the tagger most, and {rest}."
    why = f" and, of {MOST_EXPLAINED} words, the wrong ones first, why" if can_explain(tagger) else ""
    note = tag(
        "p",
        f"{which} True tags stand above the words, predicted ones below, over a bar as long as they are probable. "
        f"Choose a word to see its likeliest tags{why}.",
    )
    choice = tag(
        "p",
        tag(
            "label",
            "Errors ",
            tag(
                "select",
                tag("option", "all sentences", value=""),
                tag("option", "any error", value="*"),
                *(tag("option", error, value=error) for error in ERRORS),
                id="error",
            ),
        ),
        tag("label", "Type ", tag("select", tag("option", "any", value=""), id="type")),
        tag("label", "Words ", Markup('<input id="words" type="search" autocomplete="off">')),
        tag("span", "", id="count", role="status"),
        class_="choice",
    )
    place = tag(
        "div",
        tag("ol", "", id="found"),
        tag("aside", "", id="why", aria_live="polite", aria_label="Why", tabindex=0),
        class_="browser",
    )
    more = tag("button", "Show more", type="button", id="more")
    return Section("sentences", "Sentences", join([note, choice, place, more]))


def show_weights(tagger: ReportedTagger) -> Section:
    """Transitions as a heat map, and the strongest features of each tag, which the script fills in."""
    model = tagger.model_
    names = [str(tag) for tag in model.classes_.tolist()]
    values = np.where(model._encoder.penalty == 0, np.asarray(model.coef_.transitions, float), np.nan)
    heat = draw_table(names, values, name="Weights of transitions", row_title="from", column_title="to")
    search = tag(
        "p", tag("label", "Features ", Markup('<input id="feature" type="search" autocomplete="off">')), class_="choice"
    )
    features = tag("div", "", id="features", class_="cards")
    parts = [
        tag("h3", "Transitions"),
        tag("div", heat, class_="scroll", tabindex=0),
        tag("h3", "Strongest features"),
        search,
        features,
    ]
    return Section("weights", "Weights", join(parts))


def strongest_by_tag(tagger: ReportedTagger) -> list[list[object]]:
    """The features of the largest weights of each tag of the model."""
    classes = tagger.model_.classes_.tolist()
    found = [strongest_features(tagger.model_, tag, N_SEARCHED) for tag in classes]
    return [
        [str(tag), N_FEATURES, [[one.of[:100], round(one.weight, 4)] for one in row]]
        for tag, row in zip(classes, found, strict=True)
    ]


def show_probabilities(tagger: ReportedTagger, tagged: Tagged, data: dict[str, object]) -> Section:
    """How far probabilities can be believed, and what a threshold of those of entities does."""
    known = {*tagged.classes}
    rows = [(y, p) for y, p in zip(tagged.y, tagged.marginals, strict=True) if len(y) and known.issuperset(y)]
    parts = []
    if rows:
        found = reliability([y for y, _ in rows], [p for _, p in rows], tagged.classes)
        curves = [
            Curve("as it should be", np.array([0, 1]), np.array([0, 1]), "c3"),
            Curve("share of right tags", found.confidence, found.accuracy, "c0"),
        ]
        parts += [
            tag("h3", "Calibration"),
            draw_curves(curves, "probability of the predicted tag", "share", name="Calibration of tags"),
        ]
    if tagger.scheme_ is not None:
        curve = entity_curve(tagged.y, tagger.predict_entities(tagged.X))
        which = np.unique(np.linspace(0, len(curve.thresholds) - 1, N_POINTS).astype(int))[: len(curve.thresholds)]
        data["curve"] = [[round(float(column[k]), 4) for column in curve] for k in which]
        drawn = [
            Curve("precision", curve.thresholds, curve.precision, "c0"),
            Curve("recall", curve.thresholds, curve.recall, "c1"),
        ]
        slider = tag(
            "p",
            tag(
                "label",
                "Least probability of an entity ",
                Markup('<input id="threshold" type="range" min="0" max="1" step="0.01" value="0">'),
            ),
            tag("output", "", id="at", for_="threshold"),
            class_="choice",
        )
        parts += [
            tag("h3", "Precision and coverage of entities"),
            draw_curves(drawn, "least probability", "share", name="Precision and recall by threshold"),
            slider,
        ]
    return Section("probabilities", "Probabilities", join(parts))


def compare(tagger: ReportedTagger, tagged: Tagged, compared: Mapping[str, Sequence[Sequence[object]]]) -> Section:
    """Other taggers beside this one: differences with intervals, and who has what right alone."""
    rows = []
    for name, predicted in compared.items():
        found = compare_taggings(tagged.y, predicted, tagged.predicted, entities=tagger.scheme_ is not None)
        alone = [0, 0]
        for y, mine, its in zip(tagged.y, tagged.predicted, predicted, strict=True):
            for truth, a, b in zip(y, mine, its, strict=True):
                alone[0] += a == truth != b
                alone[1] += b == truth != a
        buttons = [
            tag("button", f"{n:,}", type="button", class_="leads", data_error=kind, data_type=name) if n else "0"
            for n, kind in zip(alone, ("only this", "only other"), strict=True)
        ]
        rows.append((name, found.second, found.first, found.difference, f"{found.p_value:.3f}", *buttons))
    titles = ("beside", "this tagger", "the other", "difference", "p", "tags right here only", "right there only")
    return Section("comparison", "Comparison", table(titles, rows, class_="numbers"))
