"""The page of a model: verdict, curve, scores and a browser of examples, the worst first; other models beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import inference
from maxmargin.display.fit_summary import show_curve, tell_verdict
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section, make_page
from maxmargin.drawings.outcomes import Drawing, Outcome, lead_to
from maxmargin.drawings.weight_drawings import list_features, show_weights
from maxmargin.inspection.chain_weights import is_chain
from maxmargin.metrics.resampling import Interval, bootstrap_means, compare_means

MOST_WORST, MOST_OTHERS = 60, 40  # examples that are drawn
MOST_LETTERS = 5e6  # of markup that these have together


class Outcomes(NamedTuple):
    """Examples with what a model makes of them, and the merits of each, summed, with their weights."""

    examples: list[Outcome]
    sums: np.ndarray
    weights: np.ndarray
    best: float  # the highest merit there can be

    @property
    def merits(self) -> np.ndarray:
        """(n,) how good each prediction is; that of an example without parts is NaN."""
        return np.divide(self.sums, self.weights, out=np.full(len(self.sums), np.nan), where=self.weights > 0)

    @property
    def is_wrong(self) -> np.ndarray:
        """(n,) which predictions could be better."""
        return self.merits < self.best


def judge_model(
    model: Any, X: Any, y: Any, shown: Sequence[Any] | None, data: Mapping[str, Any], drawing: Drawing | None = None
) -> Outcomes:
    """What a model makes of examples whose outputs are known; with what its drawing asks for, if there is one."""
    problem = model._problem_with_truth(X, y, **data)
    outputs = inference.best_outputs(problem, model._w, model.n_jobs)
    found, n = model._encoder.decode_all(problem, outputs), len(outputs.starts) - 1
    merits = model._encoder.judge(problem, outputs)
    known = [None] * n if drawing is None or drawing.ask is None else drawing.ask(model, problem)
    true = [*model._as_predicted(y.toarray() if hasattr(y, "toarray") else y, data)]
    inputs = X if len(X) == n and not hasattr(X, "tocsr") else [None] * n
    looks = [None] * n if shown is None else shown
    if len(looks) != n:
        raise ValueError(f"shown must hold one item for each of {n} examples, not {len(looks)}.")
    labels: list[Any] = []
    if drawing is not None:
        present = {label for output in [*true, *found] for label in drawing.labels_of(output)}
        labels = sorted(
            present | {*np.ravel(getattr(model, "classes_", ())).tolist()}, key=lambda one: (str(type(one)), one)
        )
    rows = zip(inputs, true, found, looks, known, strict=True)
    examples = [Outcome(i, x, a, b, seen, labels, more, model) for i, (x, a, b, seen, more) in enumerate(rows)]
    sums, weights = merits.by_example(n)
    return Outcomes(examples, sums, weights, merits.best)


def judge_other(
    title: str, model: object, test: tuple[object, object], data: Mapping[str, object], judged: Outcomes
) -> Outcomes:
    """What another model makes of the same examples; raises where it is one for others, or is scored in another way."""
    try:
        found = judge_model(model, *test, None, data)
    except (TypeError, ValueError) as error:
        raise ValueError(f"others[{title!r}] cannot be compared: {error}") from error
    if not np.array_equal(found.weights, judged.weights):
        raise ValueError(f"others[{title!r}] cannot be compared: its predictions are scored in another way.")
    return found


def report_model(
    model: Any,
    test: tuple[Any, Any] | None,
    *,
    shown: Sequence[Any] | None = None,
    others: Mapping[str, Any] | None = None,
    data: Mapping[str, Any],
    name: str,
    command: str | None = None,
) -> str:
    """The page of a fitted model, as one text of HTML; see `StructuredModel.report`."""
    drawing: Drawing = model._drawing
    judged = None if test is None else judge_model(model, *test, shown, data, drawing)
    facts = [] if command is None else [("command", tag("code", command))]
    sections = [tell_verdict(model, tell_held_out(judged), facts), show_curve(model.trace_)]
    if judged is not None and test is not None:
        beside = {title: judge_other(title, other, test, data, judged) for title, other in (others or {}).items()}
        tables = drawing.tell(judged.examples)
        if tables:
            sections.append(Section("scores", "Scores", tell_leads(join(tables))))
        if beside:
            sections.append(compare_models(judged, beside))
        sections.append(show_examples(drawing, judged, beside))
    features = {}
    if is_chain(model):
        sections.append(show_weights(model))
        features["features"] = list_features(model)
    return make_page(f"Report: {name}", sections, features)


def tell_held_out(judged: Outcomes | None) -> object:
    """The score on held-out examples, with its interval."""
    if judged is None:
        return "There are no held-out examples: nothing is known of examples it was not trained on."
    interval = tell_interval(bootstrap_means(judged.sums, judged.weights))
    return join([f"Score on {len(judged.sums):,} held-out examples: ", tag("strong", interval), "."])


def tell_interval(interval: Interval) -> str:
    """A score, and where 95 % of its draws are."""
    return f"{interval.value:.4f} ({interval.low:.4f} to {interval.high:.4f})"


def compare_models(judged: Outcomes, beside: Mapping[str, Outcomes]) -> Section:
    """Other models beside this one: differences with intervals, and how often either is better."""
    rows = []
    for name, other in beside.items():
        found = compare_means(other.sums, judged.sums, judged.weights)
        intervals = [tell_interval(one) for one in (found.second, found.first, found.difference)]
        better, worse = judged.merits > other.merits, judged.merits < other.merits
        numbers = [
            lead_to(f"{way} than {name}", int(n)) for way, n in (("better", better.sum()), ("worse", worse.sum()))
        ]
        rows.append((name, *intervals, f"{found.p_value:.3f}", *numbers))
    titles = ("beside", "this model", "the other", "difference", "p", "better here", "better there")
    return Section("comparison", "Comparison", tell_leads(table(titles, rows, class_="numbers")))


def tell_leads(body: Markup) -> Markup:
    """A part of the page, with a sentence on buttons if it has any."""
    told = tag("p", "Numbers in buttons lead to those of the examples below that they count.")
    return join([body, told]) if "data-fault" in body else body


def choose_examples(judged: Outcomes) -> tuple[list[int], int]:
    """The examples to show, the worst first, and how many of them are the worst: others are a sample."""
    order = np.argsort(judged.merits, kind="stable")
    worst, rest = order[:MOST_WORST], order[MOST_WORST:]
    sample = rest[:: max(1, len(rest) // MOST_OTHERS)][:MOST_OTHERS]
    return [*worst.tolist(), *sample.tolist()], len(worst)


def show_examples(drawing: Drawing, judged: Outcomes, beside: Mapping[str, Outcomes]) -> Section:
    """The browser of examples."""
    shown, n_worst = choose_examples(judged)
    n_all, merits, is_wrong = len(judged.sums), judged.merits, judged.is_wrong
    items: list[Markup] = []
    for i in shown:
        if sum(map(len, items)) > MOST_LETTERS:
            break
        example, names = judged.examples[i], []
        for name, other in beside.items():
            names += [f"better than {name}"] * bool(merits[i] > other.merits[i])
            names += [f"worse than {name}"] * bool(merits[i] < other.merits[i])
        names += drawing.faults(example)
        about = [f"X[{i}]", f"score {merits[i]:.3f}" if judged.weights[i] else "nothing to score"]
        about += [f"{name} {other.merits[i]:.3f}" for name, other in beside.items() if judged.weights[i]]
        items.append(
            tag(
                "li",
                tag("div", ", ".join(about), class_="about"),
                drawing.draw(example),
                data_wrong="yes" if is_wrong[i] else None,
                data_faults="\n".join(names) or None,
            )
        )
    which = f"All {n_all:,} examples, the worst first."
    if len(items) < n_all:
        n_worst = min(n_worst, len(items))
        which = f"The {n_worst:,} worst examples, and {len(items) - n_worst:,} of the other {n_all - n_worst:,}."
    if len(items) < len(shown):
        which += " More would make the page too large."
    choice = tag(
        "p",
        tag("label", tag("input", type="checkbox", id="wrong"), " wrong ones only"),
        tag("label", "Text ", tag("input", type="search", id="text", autocomplete="off")),
        tag("button", "Show all", type="button", id="all", hidden=True),
        tag("span", "", id="count", role="status"),
        class_="choice",
    )
    note = tag("p", f"{which} {drawing.note}")
    return Section("examples", "Examples", join([note, choice, tag("ol", *items, id="drawn", class_="examples")]))
