"""Solutions for many strengths of the regularization: what `maxmargin.regularization_path` returns."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.display.notebook import show_in_notebook
from maxmargin.display.page import write_page
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.fitting import complete
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.panels import new_axes, stack_panels
from maxmargin.paths.path_page import draw_path, report_path, tell_path
from maxmargin.persist.files import Location, check_writable
from maxmargin.solvers.block_coordinate.path_steps import Breakpoint
from maxmargin.trace import Certificate, Status, Trace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FIGURES = "primal", "dual", "gap", "passes", "oracle_calls", "seconds"


class Path:
    """Solutions for every lambda = 1/(n C) from infinity, or from lambda_max, down to `lambdas[-1]`.

    Attributes
    ----------
    lambdas, Cs
        (K,) the breakpoints; the weights of breakpoint k hold from lambdas[k] down to lambdas[k + 1].
    primal, dual, gap
        (K,) the certificate of each breakpoint.
    passes, oracle_calls
        (K,) passes over the examples and calls of the oracle at each breakpoint.
    scores
        (K,) scores on the held-out data, if given.
    is_complete
        Whether the last weights are good for every smaller lambda, too.
    status
        OPTIMAL if every breakpoint reached its accuracy, else why not; ESTIMATED for heuristic paths.
    """

    def __init__(
        self, n: int, is_grid: bool, model: StructuredModel | None = None, encoder: Encoder | None = None
    ) -> None:
        self.is_complete = False
        self.interrupted = False
        self.scores: Any = []
        self._n = n
        self._is_grid = is_grid
        self._model, self._encoder = model, encoder
        self._rows: list[Any] = []
        self._points: list[Breakpoint] = []
        self._above: tuple[np.ndarray, ...] | None = None  # w(mu) of the first one before it is clipped, and the bounds

    def add(self, point: Breakpoint, above: tuple[np.ndarray, ...] | None = None) -> None:
        """Append a breakpoint; the first one tells, too, what w(mu) is above it, and the bounds."""
        self._above = above or self._above
        is_mostly_zero = np.count_nonzero(point.w) < 0.4 * point.w.size
        self._rows.append(sp.csr_array(point.w[np.newaxis]) if is_mostly_zero else point.w)
        self._points.append(point._replace(w=np.empty(0), v=np.empty(0), point=None))  # type: ignore[arg-type]

    def _column(self, name: str) -> np.ndarray:
        return np.array([getattr(point, name) for point in self._points])

    lambdas = property(lambda self: self._column("regularization"))
    Cs = property(lambda self: 1.0 / (self._n * self.lambdas))
    primal = property(lambda self: self._column("primal"))
    dual = property(lambda self: self._column("dual"))
    gap = property(lambda self: np.maximum(self.primal - self.dual, 0.0))
    passes = property(lambda self: self._column("passes"))
    oracle_calls = property(lambda self: self._column("oracle_calls"))
    seconds = property(lambda self: self._column("seconds"))

    @property
    def status(self) -> Status:
        """Why the path ended."""
        if self.interrupted:
            return Status.INTERRUPTED
        return next((p.status for p in self._points if p.status is not Status.OPTIMAL), Status.OPTIMAL)

    def __len__(self) -> int:
        return len(self._points)

    def weights(self, k: int) -> np.ndarray:
        """The weights of breakpoint k."""
        row = self._rows[k]
        return row.toarray()[0] if sp.issparse(row) else row

    def w_at(self, regularization: float) -> np.ndarray:
        """The weights for any lambda on the path.

        Parameters
        ----------
        regularization
            lambda = 1/(n C).
        """
        lambdas = self.lambdas
        if not regularization > 0:
            raise ValueError(f"regularization must be positive, not {regularization}.")
        if regularization > lambdas[0] and not self._is_grid:
            if self._above is None:
                raise ValueError(f"The path begins at lambda = {lambdas[0]:.3g}, below {regularization:.3g}.")
            v, lower, upper = self._above
            return np.clip(lambdas[0] / regularization * v, lower, upper).astype(self.weights(0).dtype)
        if regularization < lambdas[-1] and not self.is_complete:
            raise ValueError(f"The path ends at lambda = {lambdas[-1]:.3g}, above {regularization:.3g}.")
        return self.weights(self._index(regularization))

    def model_at(self, regularization: float) -> Any:
        """The estimator with the weights for lambda, ready to predict.

        Its trace has one row, the certificate of the breakpoint whose weights they are.
        """
        if self._model is None or self._encoder is None:
            raise TypeError("This path was computed for a problem: it has weights, but no estimator.")
        model = copy(self._model)
        model.C = 1.0 / (self._n * regularization)
        point, trace = self._points[self._index(regularization)], Trace()
        trace.append(**{name: getattr(point, name) for name in FIGURES if name != "gap"})
        certificate = Certificate(self.w_at(regularization), point.primal, point.dual)
        return complete(model, self._encoder, trace, point.status, certificate, self._n)

    def _index(self, regularization: float) -> int:
        """The breakpoint whose weights hold at a lambda."""
        return max(int(np.searchsorted(-self.lambdas, -regularization, side="right")) - 1, 0)

    @property
    def best_lambda(self) -> float:
        """The lambda of the highest held-out score; the largest of several."""
        if not len(self.scores):
            raise AttributeError("The path has no scores: pass X_dev and y_dev.")
        return float(self.lambdas[int(np.argmax(self.scores))])

    @property
    def best_C(self) -> float:
        """1/(n lambda) of the highest held-out score."""
        return 1.0 / (self._n * self.best_lambda)

    @property
    def is_best_at_end(self) -> bool:
        """Whether the best of several breakpoints is the first or the last: others beyond it may be better."""
        return len(self) > 1 and self.best_lambda in (self.lambdas[0], self.lambdas[-1])

    @staticmethod
    def header() -> str:
        """The column titles of the table."""
        return f"{'breakpoint':>10}  {'lambda':>10}  {'C':>10}  {'primal':>12}  {'gap':>9}  {'passes':>7}  {'score':>7}"

    def line(self, k: int = -1) -> str:
        """Row k of the table."""
        score = f"{self.scores[k]:7.4f}" if len(self.scores) else f"{'':7}"
        number = k % len(self)
        return (
            f"{number:10d}  {self.lambdas[k]:10.3e}  {self.Cs[k]:10.3e}  {self.primal[k]:12.6f}  {self.gap[k]:9.1e}  "
            f"{self.passes[k]:7.3g}  {score}"
        )

    def __str__(self) -> str:
        return "\n".join([self.header(), *(self.line(k) for k in range(len(self)))])

    def __repr__(self) -> str:
        if not len(self):
            return "Path(empty)"
        best = f", best C {self.best_C:.3g}" if len(self.scores) else ""
        return f"Path({len(self)} breakpoints, C from {self.Cs[0]:.3g} to {self.Cs[-1]:.3g}{best}, {self.status.name})"

    def _repr_html_(self) -> str:
        return show_in_notebook(tell_path(self), draw_path(self)) if len(self) else show_in_notebook(repr(self))

    def report(self, path: Location, *, title: str | None = None) -> None:
        """Write a page on the path, in one file of HTML that needs no network.

        Parameters
        ----------
        path
            The file to write.
        title
            What to call it; by default the name of the file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from maxmargin import ChainSVM, regularization_path
        >>> path = regularization_path(ChainSVM(), [[[1.0], [0.0]]], [["a", "b"]], eps=0.5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path.report(Path(folder) / "path.html")
        ...     (Path(folder) / "path.html").read_text()[:15]
        '<!DOCTYPE html>'
        """
        target = check_writable(path)
        write_page(path, report_path(self, title or target.stem))

    def to_frame(self) -> pd.DataFrame:
        """The path as a pandas DataFrame, one row per breakpoint (pandas is not a dependency of the library)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Path.to_frame() needs pandas: pip install pandas.") from error
        names = {"lambda": "lambdas", "C": "Cs"} | {name: name for name in FIGURES}
        columns = {title: getattr(self, name) for title, name in names.items()}
        columns["status"] = [point.status.name for point in self._points]
        return pd.DataFrame(columns | ({"score": np.array(self.scores)} if len(self.scores) else {}))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the bounds of the objective and, if there are any, below them the scores against C.

        They are drawn in the place of the Matplotlib axes `ax`, or on new ones; returns the axes of the objective.
        """
        ax = new_axes("Path.plot()", (6, 4)) if ax is None else ax
        values, *held_out = stack_panels(ax, [1] * (1 + bool(len(self.scores))), "C")
        values.step(self.Cs, self.primal, where="post", color="C0", label="objective")
        values.fill_between(self.Cs, self.dual, self.primal, step="post", color="C0", alpha=0.3, label="gap")
        values.set_xscale("log")
        values.set_ylabel("objective")
        values.legend()
        for panel in held_out:
            panel.step(self.Cs, self.scores, where="post", color="C1")
            panel.axvline(self.best_C, color="C1", linestyle=":")
            panel.set_ylabel("held-out score")
        return values
