"""What notebooks show: figures and tables in a style of their own, and models with what came of their fits."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from maxmargin.display.fit_summary import tell_fit, tell_training
from maxmargin.display.markup import Markup, join, table, tag

MOST_ROWS = 10  # of a table in a notebook


def show_in_notebook(*parts: object) -> str:
    """Parts of a page as a notebook shows them: their style touches nothing else there."""
    style = resources.files(__package__).joinpath("notebook.css").read_text("utf-8")
    return tag("div", tag("style", Markup(style)), *parts, class_="maxmargin")


def show_rows(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """The last rows of a table of numbers, and how many there are."""
    shown = table(titles, rows[-MOST_ROWS:], class_="numbers")
    return shown if len(rows) <= MOST_ROWS else join([tag("p", f"The last {MOST_ROWS} of {len(rows):,} rows:"), shown])


def show_model(model: object) -> str:
    """A model as scikit-learn shows it, in a diagram, with what came of its fit, if it has one."""
    from sklearn.utils import estimator_html_repr

    diagram, fitted = Markup(estimator_html_repr(model)), getattr(model, "model_", model)
    if not hasattr(fitted, "status_"):
        return diagram
    return join([diagram, Markup(show_in_notebook(*tell_fit(fitted), table((), tell_training(fitted))))])


def offer_model(model: object, **options: object) -> dict[str, str]:
    """A model as text, and as a page where scikit-learn is set to show diagrams."""
    from sklearn import get_config

    shown = {"text/plain": repr(model)}
    return shown | {"text/html": show_model(model)} if get_config()["display"] == "diagram" else shown
