"""What came of a fit: its verdict in words, and the curves of its objective, bound and held-out score."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section

if TYPE_CHECKING:
    from maxmargin.trace import Trace


def tell_fit(model: Any) -> list[Markup]:
    """Why the fit of a model stopped, and what is proven of its weights."""
    proven = f"What is proven of its weights: {model.certificate_}."
    return [
        tag("p", tag("strong", model.status_.name), f": {model.status_.value}.", class_="verdict"),
        tag("p", proven if np.isfinite(model.certificate_.primal) else model.certificate_),
    ]


def tell_training(model: Any) -> list[tuple[str, object]]:
    """The facts of a model and of its training, by name."""
    trace = model.trace_
    seconds = f"{trace.seconds[-1]:.1f} s, {trace.passes[-1]:.4g} passes, " if len(trace) else ""
    return [
        ("model", f"{type(model).__name__}, C = {model.C:g}"),
        ("weights", f"{model._w.size:,}"),
        ("training", f"{seconds}seed {model.random_state}"),
    ]


def tell_verdict(model: object, held_out: object, more: Iterable[tuple[str, object]] = ()) -> Section:
    """What came of the fit of a model, in words: its status, its certificate, what is known of held-out examples."""
    facts = table((), [*tell_training(model), *more])
    return Section("verdict", "Verdict", join([*tell_fit(model), tag("p", held_out), facts]))


def draw_trace(trace: Trace) -> list[Markup]:
    """Objective and bound, and the held-out score, if there is one, by passes."""
    curves = [
        Curve("objective", trace.passes, trace.primal, "c0"),
        Curve("lower bound", trace.passes, trace.dual, "c1"),
    ]
    title = "Objective and its lower bound by passes"
    drawn = [draw_curves(curves, "passes", "objective", name=title, log_x=True, log_y=True)]
    if trace.has_dev_scores:
        scores = [Curve("held-out score", trace.passes, trace.dev_score, "c2")]
        drawn.append(draw_curves(scores, "passes", "score", name="Held-out score by passes", log_x=True))
    return drawn


def show_curve(trace: Trace) -> Section:
    """Objective, bound and held-out score while a model was trained."""
    note = tag("p", "The optimum lies between the two curves: where they meet, training is over.")
    return Section("curve", "Training", join([note, *draw_trace(trace)]))
