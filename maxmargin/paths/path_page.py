"""The page of a regularization path, and what notebooks show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin.display.figures import Curve, draw_curves
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.page import Section, make_page

if TYPE_CHECKING:
    from maxmargin.paths.solutions import Path

MOST_BREAKPOINTS = 500  # in the table of a page


def tell_path(path: Path) -> Markup:
    """Why a path ended, how far it goes, and which C is best, in words."""
    reach = f"{len(path):,} breakpoints, C from {path.Cs[0]:.4g} to {path.Cs[-1]:.4g}"
    facts: list[tuple[str, object]] = [
        ("solutions", reach + (", and all larger ones" if path.is_complete else "")),
        ("largest gap", f"{path.gap.max():.3g}"),
        ("passes", f"{path.passes[-1]:.4g}, {path.seconds[-1]:.1f} s"),
    ]
    if len(path.scores):
        warning = ", at an end of the path: others beyond it may be better" if path.is_best_at_end else ""
        facts.append(("best C", f"{path.best_C:.4g}, held-out score {max(path.scores):.4f}{warning}"))
    verdict = tag("p", tag("strong", path.status.name), f": {path.status.value}.", class_="verdict")
    return join([verdict, table((), facts)])


def draw_path(path: Path) -> Markup:
    """Objective and bound, and held-out scores, by C."""
    bounds = [Curve("objective", path.Cs, path.primal, "c0"), Curve("lower bound", path.Cs, path.dual, "c1")]
    drawn = [draw_curves(bounds, "C", "objective", name="Objective and its lower bound by C", log_x=True)]
    if len(path.scores):
        scores = [Curve("held-out score", path.Cs, path.scores, "c2")]
        drawn.append(draw_curves(scores, "C", "score", name="Held-out score by C", log_x=True))
    return join(drawn)


def report_path(path: Path, name: str) -> str:
    """The page of a path, as one text of HTML."""
    if not len(path):
        return make_page(f"Report: {name}", [Section("verdict", "Verdict", tag("p", "The path is empty."))], {})
    step = -(-len(path) // MOST_BREAKPOINTS)
    rows = [path.line(k).split() for k in range(0, len(path), step)]
    note = "All breakpoints." if step == 1 else f"Every {step}th of {len(path):,} breakpoints."
    breakpoints = table(path.header().split()[: len(rows[0])], rows, class_="numbers")
    sections = [
        Section("verdict", "Verdict", tell_path(path)),
        Section("curve", "Solutions by C", draw_path(path)),
        Section("breakpoints", "Breakpoints", join([tag("p", note), breakpoints])),
    ]
    return make_page(f"Report: {name}", sections, {})
