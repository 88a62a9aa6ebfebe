"""The page of a tagger: verdict, curve, scores, sentences, weights, probabilities, data; other taggers beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.fit_summary import show_curve, tell_verdict
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section, make_page
from maxmargin.drawings.label_drawings import draw_calibration
from maxmargin.drawings.weight_drawings import list_features, show_weights
from maxmargin.metrics import bootstrap, compare_taggings, entity_report, token_accuracy
from maxmargin.metrics.entity_curves import EntityCurve, entity_curve
from maxmargin.report.entity_errors import ALL, ERRORS, count_errors
from maxmargin.report.tagged_sentences import (
    ReportedTagger,
    Tagged,
    can_explain,
    choose_sentences,
    describe_sentences,
    kinds_of_errors,
    predict_alike,
    tag_sentences,
)
from maxmargin.text.data_health import check_data

N_STEPS = 100  # of the slider of thresholds
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
        alone = {title: tags_right_alone(tagged, predicted) for title, predicted in compared.items()}
        kinds = [*kinds_of_errors(tagged.judged).values(), *({*side} for sides in alone.values() for side in sides)]
        shown = choose_sentences(tagged, kinds)
        sections += [show_scores(tagger, tagged, shown), show_sentences(tagger, len(shown), len(tagged.X))]
        if compared:
            sections.append(compare(tagger, tagged, compared, alone, shown))
        data |= describe_sentences(tagger, tagged, shown, [*compared.values()])
    if can_explain(tagger):
        sections.append(show_weights(tagger.model_))
        data["features"] = list_features(tagger.model_)
    else:
        said = tag("p", "Weights are shown of models of chains; this one is of segments.")
        sections.append(Section("weights", "Weights", said))
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


def show_scores(tagger: ReportedTagger, tagged: Tagged, shown: Sequence[int]) -> Section:
    """Scores by type, with errors that lead to their sentences, of those shown; or the share of right tags."""
    if tagger.scheme_ is None:
        share = token_accuracy(tagged.y, tagged.predicted)
        return Section("scores", "Scores", tag("p", f"{100 * share:.2f} % of all tags are right."))
    report, errors = entity_report(tagged.y, tagged.predicted), count_errors(tagged.judged)
    there = count_errors([tagged.judged[i] for i in shown])
    rows = []
    for kind, score in [(ALL, report.overall), *report.types.items()]:
        of_type = "" if kind == ALL else kind
        leads = [lead_to(error, of_type, errors[kind][error], there[kind][error]) for error in ERRORS]
        shares = [f"{100 * share:.2f}" for share in (score.precision, score.recall, score.f1)]
        rows.append([kind, *shares, f"{score.n_true:,}", f"{score.n_predicted:,}", f"{score.n_right:,}", *leads])
    titles = ("type", "precision", "recall", "F1", "true", "found", "right", *ERRORS)
    note = tag("p", "A number of errors leads to its sentences. Errors of type concern both types.")
    return Section("scores", "Scores", join([table(titles, rows, class_="numbers"), note]))


def lead_to(error: str, of_type: str, n: int, n_shown: int) -> Markup:
    """How often there is an error; the number leads to the sentences that have it, or says how many are shown."""
    if not n:
        return Markup("0")
    button = tag("button", f"{n:,}", type="button", class_="leads", data_error=error, data_type=of_type)
    return button if n == n_shown else join([button, tag("div", f"{n_shown:,} shown", class_="about")])


def show_sentences(tagger: ReportedTagger, n_shown: int, n_all: int) -> Section:
    """The browser of sentences, which the script fills."""
    which = f"All {n_all:,} sentences."
    if n_shown < n_all:
        which = (
            f"{n_shown:,} of {n_all:,} sentences: those that surprise the tagger most, some of each kind of error, and "
            "a sample of the others."
        )
    why = " and why it was tagged so" if can_explain(tagger) else ""
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


def show_probabilities(tagger: ReportedTagger, tagged: Tagged, data: dict[str, object]) -> Section:
    """How far probabilities can be believed, and what a threshold of those of entities does."""
    drawn = draw_calibration(tagged.y, tagged.marginals, tagged.classes)
    parts = [tag("h3", "Calibration"), *drawn] if drawn else []
    if tagger.scheme_ is not None:
        curve = entity_curve(tagged.y, tagger.predict_entities(tagged.X))
        data["curve"] = [shares_at(curve, step / N_STEPS) for step in range(N_STEPS + 1)]
        curves = [
            Curve("precision", curve.thresholds, curve.precision, "c0"),
            Curve("recall", curve.thresholds, curve.recall, "c1"),
        ]
        slider = tag(
            "p",
            tag(
                "label",
                "Least probability of an entity ",
                Markup(f'<input id="threshold" type="range" min="0" max="1" step="{1 / N_STEPS}" value="0">'),
            ),
            tag("output", "", id="at", for_="threshold"),
            class_="choice",
        )
        parts += [
            tag("h3", "Precision and coverage of entities"),
            draw_curves(curves, "least probability", "share", name="Precision and recall by threshold"),
            slider,
        ]
    return Section("probabilities", "Probabilities", join(parts))


def shares_at(curve: EntityCurve, least: float) -> list[float] | None:
    """Precision and recall of entities that are as probable as that; None if none is."""
    n = int(np.count_nonzero(curve.thresholds >= least))
    return [round(float(column[n - 1]), 6) for column in curve[1:]] if n else None


def tags_right_alone(tagged: Tagged, predicted: Sequence[Sequence[object]]) -> tuple[Counter[int], Counter[int]]:
    """How many tags of each sentence the tagger has right and another one has not, and the reverse."""
    alone = Counter[int](), Counter[int]()
    for i, (y, mine, its) in enumerate(zip(tagged.y, tagged.predicted, predicted, strict=True)):
        for truth, a, b in zip(y, mine, its, strict=True):
            if a == truth != b:
                alone[0][i] += 1
            elif b == truth != a:
                alone[1][i] += 1
    return alone


def compare(
    tagger: ReportedTagger,
    tagged: Tagged,
    compared: Mapping[str, Sequence[Sequence[object]]],
    alone: Mapping[str, Sequence[Counter[int]]],
    shown: Sequence[int],
) -> Section:
    """Other taggers beside this one: differences with intervals, and who has what right alone."""
    rows = []
    for name, predicted in compared.items():
        found = compare_taggings(tagged.y, predicted, tagged.predicted, entities=tagger.scheme_ is not None)
        leads = [
            lead_to(kind, name, counts.total(), sum(counts[i] for i in shown))
            for counts, kind in zip(alone[name], ("only this", "only other"), strict=True)
        ]
        rows.append((name, found.second, found.first, found.difference, f"{found.p_value:.3f}", *leads))
    titles = ("beside", "this tagger", "the other", "difference", "p", "tags right here only", "right there only")
    return Section("comparison", "Comparison", table(titles, rows, class_="numbers"))
