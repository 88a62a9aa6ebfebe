"""What a fit leaves behind: the trace of its certificates and the reason it stopped."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.display.markup import tag
from maxmargin.panels import new_axes, stack_panels
from maxmargin.persist.registry import register, register_state

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@register
class Status(enum.Enum):
    """Why a solver stopped.

    Examples
    --------
    >>> from maxmargin import MulticlassSVM, Status
    >>> MulticlassSVM().fit([[0.0], [1.0]], ["a", "b"]).status_ is Status.OPTIMAL
    True
    """

    OPTIMAL = "the duality gap reached tol"
    MAX_PASSES = "max_passes were made before the duality gap reached tol"
    TIMEOUT = "time_limit ran out before the duality gap reached tol"
    INTERRUPTED = "the fit was interrupted before the duality gap reached tol"
    DIVERGED = "the objective was not finite; the weights are the last good ones"
    SEPARATED = "a pass over the examples made no mistake"
    HELD_OUT = "the weights of the highest held-out score were kept, whose duality gap is above tol"
    EARLY_STOPPED = "the held-out score has not risen for as many certificates as patience allows"
    STALLED = "the solver can make no further progress in this precision"
    ESTIMATED = "the last known block gaps add up to less than tol; no exact certificate was asked for"
    INEXACT = "the oracle is not exact, and does not tell whether the duality gap is within tol"
    STATIONARY = "with completions as they are, no weights are better by more than tol; with others, some may be"
    SURROGATE = "a surrogate of the objective was minimised, whose optimum has a duality gap above tol"
    ELSEWHERE = "the weights are from a file of another program, and nothing is proven of them"

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        """By its value, as other ways to write objects than pickle ask for it."""
        return Status, (self.value,)


NO_WEIGHTS = np.empty(0)


@register_state
@dataclass(frozen=True)
class Certificate:
    """What is proven of weights: a solver yields one now and then, a fit ends with one.

    It unpacks to its objective and bound, and is equal to another one of the same.

    Attributes
    ----------
    w
        The weights; none in a model, which has them in its own form.
    primal
        Their objective.
    dual
        A lower bound of the lowest objective there is; where `is_local`, with the outputs completed as they are.
    extras
        What else a solver has to show in the trace, by name.
    is_local
        Whether the bound is that of a convex objective which touches theirs at these weights, as where outputs are
        known in part: then they are stationary up to the gap, but others may be better.
    gap
        Primal - dual: they are at most this far from the optimum, where `is_local` from that of these completions.

    Examples
    --------
    >>> from maxmargin.trace import NO_WEIGHTS, Certificate
    >>> primal, dual = certificate = Certificate(NO_WEIGHTS, 2.0, 1.5)
    >>> certificate.gap
    0.5
    >>> print(certificate)
    objective 2, at most 0.5 (25 % of it) above the optimum
    """

    w: np.ndarray = field(repr=False, compare=False)
    primal: float
    dual: float
    extras: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    is_local: bool = field(default=False, repr=False, compare=False)

    def __iter__(self) -> Iterator[float]:
        return iter((self.primal, self.dual))

    @property
    def gap(self) -> float:
        """How far from the optimum, where `is_local` from that of these completions, the weights can at most be."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective; infinite where nothing is known of that."""
        if np.isinf(self.primal):
            return np.inf
        return self.gap / abs(self.primal) if self.primal else 0.0

    def __str__(self) -> str:
        if np.isinf(self.primal):
            return f"objective not known, optimum at least {self.dual:.6g}"
        share = f"{100 * self.relative_gap:.3g} % of it"
        if self.is_local:
            return f"objective {self.primal:.6g}, stationary up to {self.gap:.2g} ({share})"
        return f"objective {self.primal:.6g}, at most {self.gap:.2g} ({share}) above the optimum"


def _bounds_of(certificate: Certificate) -> dict[str, object]:
    is_local = {"is_local": True} if certificate.is_local else {}
    return {"primal": certificate.primal, "dual": certificate.dual, **is_local}


# A model's file has its weights elsewhere, and the name that earlier versions gave to certificates without any.
register(Certificate, name="Certified", get=_bounds_of, make=partial(Certificate, NO_WEIGHTS))


TITLES = ("passes", "oracle calls", "seconds", "primal", "dual", "gap", "relative")  # of what is printed
COLUMNS = ("passes", "oracle_calls", "seconds", "primal", "dual", "gap", "cache_hits", "cache_misses", "dev_score")


@register
@dataclass(repr=False)
class Trace:
    """One row per certificate.

    Attributes
    ----------
    passes
        Passes over the training examples.
    oracle_calls
        Calls of the oracle so far, those of the certificates included.
    seconds
        Wall-clock time so far.
    primal
        The lowest objective found so far; that of the weights a fit returns is in its `certificate_`.
    dual
        The highest lower bound found so far.
    gap
        Primal - dual; the weights of the lowest objective are at most this far from the optimum.
    cache_hits, cache_misses
        Steps so far for which a cached output saved a call of the oracle, or did not.
    dev_score
        The score of the weights on held-out data, NaN where there is none.
    extras
        Further columns that some solvers have, by name, such as those of `maxmargin.solvers.relaxed.idal.IDAL`.
    notes
        What else is to be said, such as the choices of an automatic solver.

    Examples
    --------
    >>> from maxmargin.trace import Trace
    >>> trace = Trace()
    >>> trace.append(passes=1, oracle_calls=20, seconds=0.5, primal=2.0, dual=1.5)
    >>> trace.gap
    array([0.5])
    >>> print(trace)
      passes  oracle calls   seconds         primal           dual        gap  relative
           1            20       0.5       2.000000       1.500000    5.0e-01   2.5e-01
    """

    rows: list[tuple[float, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    extras: dict[str, list[float]] = field(default_factory=dict)

    def append(
        self,
        *,
        passes: float,
        oracle_calls: int,
        seconds: float,
        primal: float,
        dual: float,
        cache_hits: int = 0,
        cache_misses: int = 0,
        dev_score: float = np.nan,
        extras: Mapping[str, float] = MappingProxyType({}),
        is_local: bool = False,
    ) -> None:
        """Add a certificate; the best primal and dual values so far are kept, but no dual that is of one row alone."""
        if self.rows:
            primal = min(primal, self.rows[-1][3])
            dual = dual if is_local else max(dual, self.rows[-1][4])
        gap = max(primal - dual, 0.0)
        self.rows.append((passes, oracle_calls, seconds, primal, dual, gap, cache_hits, cache_misses, dev_score))
        for name, value in extras.items():
            self.extras.setdefault(name, []).append(value)

    def last(self, name: str) -> float:
        """The last entry of a column, without making an array of it."""
        return self.rows[-1][COLUMNS.index(name)]

    def _column(self, name: str) -> np.ndarray:
        return np.array([row[COLUMNS.index(name)] for row in self.rows])

    passes = property(lambda self: self._column("passes"))
    oracle_calls = property(lambda self: self._column("oracle_calls").astype(np.int64))
    seconds = property(lambda self: self._column("seconds"))
    primal = property(lambda self: self._column("primal"))
    dual = property(lambda self: self._column("dual"))
    gap = property(lambda self: self._column("gap"))
    cache_hits = property(lambda self: self._column("cache_hits").astype(np.int64))
    cache_misses = property(lambda self: self._column("cache_misses").astype(np.int64))
    dev_score = property(lambda self: self._column("dev_score"))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def has_dev_scores(self) -> bool:
        """Whether there was held-out data."""
        return bool(self.rows) and not np.isnan(self.rows[-1][-1])

    def header(self) -> str:
        """The column titles of the table."""
        titles = "{:>8}  {:>12}  {:>8}  {:>13}  {:>13}  {:>9}  {:>8}".format(*TITLES)
        held_out = ["held out"] if self.has_dev_scores else []
        return "  ".join([titles, *(f"{name:>10}" for name in [*held_out, *self.extras])])

    def line(self, k: int = -1) -> str:
        """Row k of the table."""
        passes, calls, seconds, primal, dual, gap, *_ = self.rows[k]
        relative = Certificate(NO_WEIGHTS, primal, dual).relative_gap
        numbers = f"{passes:8.4g}  {calls:12d}  {seconds:8.1f}  {primal:13.6f}  {dual:13.6f}"
        held_out = [f"{self.rows[k][-1]:10.6f}"] if self.has_dev_scores else []
        extras = [f"{column[k]:10.3g}" for column in self.extras.values()]
        return "  ".join([numbers, f"{gap:9.1e}", f"{relative:8.1e}", *held_out, *extras])

    def __str__(self) -> str:
        return "\n".join([self.header(), *(self.line(k) for k in range(len(self))), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from maxmargin.display.fit_summary import draw_trace  # which few need
        from maxmargin.display.notebook import show_in_notebook, show_rows

        titles = [*TITLES, *(["held out"] if self.has_dev_scores else []), *self.extras]
        rows = show_rows(titles, [self.line(k).split() for k in range(len(self))])
        return show_in_notebook(
            *(draw_trace(self) if len(self) else ()), rows, *(tag("p", note) for note in self.notes)
        )

    def to_frame(self) -> pd.DataFrame:
        """The trace as a pandas DataFrame (pandas is not a dependency of the library)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Trace.to_frame() needs pandas: pip install pandas.") from error
        names = COLUMNS if self.has_dev_scores else COLUMNS[:-1]
        return pd.DataFrame({**{name: getattr(self, name) for name in names}, **self.extras})

    def plot(self, ax: Axes | None = None, x: str = "passes") -> Axes:
        """Plot the duality gap on a logarithmic axis; below it the objective and its lower bound, and held-out scores.

        Parameters
        ----------
        ax
            Matplotlib axes, in whose place the panels are drawn, new ones by default.
        x
            "passes", "oracle_calls" or "seconds".

        Returns
        -------
        The axes of the gap.
        """
        if x not in ("passes", "oracle_calls", "seconds"):
            raise ValueError(f'x must be "passes", "oracle_calls" or "seconds", not {x!r}.')
        ax, across = new_axes("Trace.plot()", (6, 5)) if ax is None else ax, getattr(self, x)
        gaps, values, *held_out = stack_panels(ax, [1] * (2 + self.has_dev_scores), x.replace("_", " "))
        gaps.semilogy(across, np.maximum(self.gap, 1e-16), marker="o", markersize=3, color="C3")
        gaps.set_ylabel("duality gap")
        values.plot(across, self.primal, color="C0", label="primal")
        values.plot(across, self.dual, color="C2", label="dual")
        values.set_ylabel("objective")
        values.legend()
        for panel in held_out:
            panel.plot(across, self.dev_score, marker="o", markersize=3, color="C1")
            panel.set_ylabel("held-out score")
        return gaps
