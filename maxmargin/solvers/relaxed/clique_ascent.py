"""What the solvers of relaxed objectives share: ascent clique by clique, and steps of the multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin.checks import check_cost, check_count, check_positive
from maxmargin.losses import BaseLoss, RelaxedLoss
from maxmargin.persist.registry import register_state
from maxmargin.solvers.frame.run import Result, Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.relaxed.clique_steps import PROX, Ascent, ascend
from maxmargin.solvers.relaxed.neighborhoods import Neighborhoods, find_neighborhoods
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation, Report
from maxmargin.structures.graphs.graph_problem import LabelledGraphs
from maxmargin.trace import Certificate, Status
from maxmargin.wording import name_type


@register_state
class RelaxedPoint(NamedTuple):
    """Mean parts and multipliers of all graphs, flat."""

    means: np.ndarray
    multipliers: np.ndarray


@register_state
class Pace(NamedTuple):
    """What can change from one certificate to the next."""

    rho: float
    inner: float  # passes between two steps of the multipliers
    lowest: float = np.inf  # inner gap since the last change
    n_waited: int = 0  # certificates since then


@dataclass(frozen=True)
class CliqueAscent(Solver):
    """Base of the solvers that raise D_rho by steps on nodes and edges (`maxmargin.solvers.relaxed.relaxed_objective`).

    A pass visits all cliques, in sets of neighbours whose order is random. It counts as a call of an oracle for each.
    The trace has D_rho, P_rho, ``inner gap``, which is their difference, ``violation``, which is ||A mu||^2, and rho.

    Parameters
    ----------
    rho
        The smaller, the more it costs to violate the marginalization constraints.
    gap_every
        Passes between two certificates.
    eps
        Stop as well where P_rho - D_rho and ||A mu||^2 are at most this.
    """

    rho: float | None = 1.0
    gap_every: int = 10
    eps: float = 0.0

    needs_smooth = takes_smooth = resumes = True
    takes_bounds = False
    has_multipliers: ClassVar[bool] = True
    adapts_rho: ClassVar[bool] = False  # if it is None

    def __post_init__(self) -> None:
        if self.rho is not None or not self.adapts_rho:
            check_positive("rho", self.rho)
        check_count("gap_every", self.gap_every)
        check_cost("eps", self.eps)

    @property
    def rule(self) -> tuple[int, int]:
        """How to move a clique, and how often in a row an edge."""
        return PROX, 1

    @property
    def default_loss(self) -> BaseLoss:
        return RelaxedLoss()

    def takes(self, loss: BaseLoss) -> bool:
        return isinstance(loss, RelaxedLoss)

    def oracles(self, loss: BaseLoss) -> set[str]:
        return set()

    def _check_oracles(self, problem: object, loss: BaseLoss) -> None:
        if not isinstance(getattr(problem, "graphs", None), LabelledGraphs):  # it may have oracles besides
            raise TypeError(f"{self.known_as} needs a GraphProblem, not {name_type(problem)}.")

    def iterate(self, run: Run) -> Iterator[Certificate]:
        relaxed = Relaxation(run.objective)
        sets = self.sets(relaxed)
        state = run.take_up(lambda: self.begin(run, relaxed))
        mu, xi = run.dual
        while True:
            if state.found is not None:
                self._ascend(run, state, relaxed, sets)
            state.found = found = relaxed.report(mu, xi, state.pace.rho)
            run.count(calls=2 * relaxed.n_cliques)
            if self._is_enough(found, run):
                run.verdict = Status.SURROGATE
            yield Certificate(found.w.astype(run.w.dtype), found.primal, found.dual, found.columns(state.pace.rho))

    def begin(self, run: Run, relaxed: Relaxation) -> State:
        """What goes from one certificate to the next."""
        run.dual = RelaxedPoint(*self._start(run, relaxed))
        return State(pace=self.first_pace(relaxed), n_visits=0, found=None)

    def _ascend(self, run: Run, state: State, relaxed: Relaxation, sets: Neighborhoods) -> None:
        """Passes over all cliques, up to the next certificate."""
        found, n_sets = state.found, len(sets.starts) - 1
        state.pace = pace = self.adapt(state.pace, found, relaxed)
        mu, xi = run.dual
        delta = xi - found.residual / pace.rho
        curvature = relaxed.curvature(pace.rho)
        n_more = int(np.ceil(min(self.gap_every * n_sets, run.limits.max_passes * n_sets - state.n_visits)))
        visits = self.draw(run.rng, n_sets, n_more)
        often = self.multiplier_steps(pace.inner, np.arange(state.n_visits, state.n_visits + n_more), n_sets)
        point = Ascent(found.w, mu, delta, xi, relaxed.n_lambda, pace.rho, curvature, relaxed.scratch)
        at = relaxed.problem, relaxed.terms, sets, point
        for lo, hi in run.slices(n_more):
            self.visit(state, at, visits[lo:hi], often[lo:hi])
            run.count(calls=int(np.diff(sets.starts)[visits[lo:hi]].sum()))
            state.n_visits += hi - lo
        run.n_steps = -(-state.n_visits * relaxed.n // n_sets)

    def first_pace(self, relaxed: Relaxation) -> Pace:
        """The pace until the second certificate."""
        return Pace(self.rho or relaxed.balanced_rho(), 1.0)

    def adapt(self, pace: Pace, found: Report, relaxed: Relaxation) -> Pace:
        """The pace until the next certificate."""
        return pace

    def sets(self, relaxed: Relaxation) -> Neighborhoods:
        """The sets of cliques to visit."""
        return find_neighborhoods(relaxed.graphs)

    def draw(self, rng: np.random.Generator, n_sets: int, n_more: int) -> np.ndarray:
        """Which sets to visit next."""
        return np.concatenate([rng.permutation(n_sets) for _ in range(-(-n_more // n_sets))])[:n_more]

    def visit(self, state: State, at: tuple[object, ...], visits: np.ndarray, often: np.ndarray) -> None:
        """Move the cliques of these sets, and step multipliers as `multiplier_steps` has it."""
        ascend(*at, *self.rule, visits, often)

    def multiplier_steps(self, inner: float, visits: np.ndarray, n_sets: int) -> np.ndarray:
        """How often to step the multipliers of a set in these visits, counted from the first of all."""
        if not self.has_multipliers:
            return np.zeros(visits.size, np.int64)
        return np.where((visits // n_sets + 1) % max(1, round(inner)) == 0, max(1, round(1 / inner)), 0)

    def _is_enough(self, found: Report, run: Run) -> bool:
        """Whether D_rho is maximised, and A mu is zero, if that is what the multipliers are for."""
        if self.has_multipliers:
            return max(found.inner_gap, found.violation) <= self.eps
        return found.inner_gap <= max(self.eps, run.target(found.augmented_primal))

    def _start(self, run: Run, relaxed: Relaxation) -> tuple[np.ndarray, np.ndarray]:
        start = run.start.dual if isinstance(run.start, Result) else run.start
        tells_weights = isinstance(start, np.ndarray) and start.shape == (relaxed.n_weights,)  # and so no mean parts
        if start is None or tells_weights:
            return self.first_means(relaxed), np.zeros(relaxed.n_multipliers)
        sizes = relaxed.n_parts, relaxed.n_multipliers
        if not isinstance(start, RelaxedPoint) or (start.means.size, start.multipliers.size) != sizes:
            raise ValueError("start must be the Result of an earlier run on this problem, or its dual point.")
        return start.means.copy(), self.has_multipliers * start.multipliers

    def first_means(self, relaxed: Relaxation) -> np.ndarray:
        """Where to start from unless told otherwise."""
        return relaxed.uniform()
