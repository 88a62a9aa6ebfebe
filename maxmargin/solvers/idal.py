"""The inexact dual augmented Lagrangian method (IDAL): dual ascent clique by clique, and steps of the multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import Loss, RelaxedLoss
from maxmargin.solvers.clique_steps import ascend
from maxmargin.solvers.objective import Certificate
from maxmargin.solvers.relaxed import Relaxation
from maxmargin.solvers.run import Result, Run
from maxmargin.solvers.solver import Solver
from maxmargin.structures.pairwise import PairwiseProblem

STEPS = {"prox": (False, 1), "exact": (False, 30), "line_search": (True, 1)}  # searches?, steps on an edge at most
SAMPLINGS = ("permutation", "uniform")


class Progress(NamedTuple):
    """A row of `RelaxedPoint.progress`, for each row of the trace; values are means over the examples."""

    augmented_dual: float  # D_rho
    augmented_primal: float  # P_rho
    violation: float  # ||A mu||^2

    @property
    def gap(self) -> float:
        """That of the augmented problem at fixed multipliers."""
        return self.augmented_primal - self.augmented_dual


class RelaxedPoint(NamedTuple):
    """Mean parts and multipliers of all graphs, flat, and how they were reached."""

    means: np.ndarray
    multipliers: np.ndarray
    progress: list[Progress]


@dataclass(frozen=True)
class IDAL(Solver):
    """Inexact dual augmented Lagrangian method, for pairwise problems on graphs with cycles.

    It minimises the `RelaxedLoss`, whose maximum is over the local polytope of each graph. No inference is made: a step
    moves the mean parts of one node or edge, at a cost that depends on its features, states and neighbours alone. The
    trace holds certificates for the relaxed objective, at points that satisfy all constraints, and they decide when to
    stop; D_rho, P_rho and ||A mu||^2 are in ``result.dual.progress``. A pass is as many steps as there are nodes and
    edges, and each counts as a call of an oracle.

    Parameters
    ----------
    rho : the smaller, the more it costs to violate the marginalization constraints
    inner : passes between two steps of the multipliers, at first: twice as many, up to `gap_every`, after each
        certificate at which the gap between P_rho and D_rho has not fallen, as it takes enough of them to converge
    steps : how to move a clique: "prox" to the maximum of a lower bound of D_rho that bends alike in all directions,
        "exact" to the maximum of D_rho itself, by several such steps on edges, "line_search" as far as it pays towards
        the maximum of the entropy and the linear part
    sampling : order of the cliques: "permutation" visits each once per pass, "uniform" draws with replacement, as the
        paper does, and converges more slowly
    gap_every : passes between two certificates

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.features import DenseFeatures
    >>> from maxmargin.features.base import Gram
    >>> from maxmargin.solvers.idal import IDAL
    >>> from maxmargin.structures.pairwise import make_pairwise
    >>> none = Gram(np.zeros(0), np.zeros(1, np.int64))
    >>> nodes, edges = DenseFeatures(np.eye(3), none), DenseFeatures(np.ones((3, 1)), none)
    >>> ends = np.array([(0, 1), (1, 2), (2, 0)])  # a triangle
    >>> problem = make_pairwise(nodes, edges, (3, 1), np.array([0, 3]), np.array([0, 3]), ends, np.arange(3) % 2,
    ...                         np.ones(3), n_states=[2])
    >>> IDAL().solve(problem, random_state=0).status.name
    'OPTIMAL'

    References
    ----------
    Hu, Obozinski (2018), SDCA-powered inexact dual augmented Lagrangian method for fast CRF learning, Algorithms 1
    and 2.
    """

    rho: float = 1.0
    inner: float = 0.5
    steps: str = "prox"
    sampling: str = "permutation"
    gap_every: int = 10

    needs_smooth: ClassVar[bool] = True
    takes_smooth: ClassVar[bool] = True
    takes_bounds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)
        check_positive("inner", self.inner)
        check_choice("steps", self.steps, STEPS)
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_count("gap_every", self.gap_every)

    @property
    def default_loss(self) -> Loss:
        return RelaxedLoss()

    def takes(self, loss: Loss) -> bool:
        return isinstance(loss, RelaxedLoss)

    def oracles(self, loss: Loss) -> set[str]:
        return set()

    def _check_oracles(self, problem: Any, loss: Loss) -> None:
        if getattr(problem, "_fields", ())[:5] != PairwiseProblem._fields:  # it may have oracles besides
            raise TypeError(f"{type(self).__name__} needs a PairwiseProblem, not a {type(problem).__name__}.")

    def iterate(self, run: Run) -> Iterator[Certificate]:
        relaxed = Relaxation(run.objective)
        mu, xi, progress = self._start(run, relaxed)
        curvature, rule = self._curvature(relaxed), STEPS[self.steps]
        fixed = relaxed.problem, relaxed.layout, relaxed.strength, self.rho, curvature, *rule, relaxed.scratch
        draws = self._draws(run, relaxed.n_cliques, progress)
        n_steps = 0
        while True:
            found = relaxed.report(mu, xi, self.rho)
            run.count(calls=2 * relaxed.n_cliques)
            progress.append(Progress(found.augmented_dual, found.augmented_primal, found.violation))
            run.dual = RelaxedPoint(mu, xi, progress)
            yield Certificate(found.w.astype(run.w.dtype), found.primal, found.dual)
            n_most = min(n_steps + self.gap_every * relaxed.n_cliques, run.max_passes * relaxed.n_cliques)
            while n_steps < n_most and not (run.interrupted or run.timed_out):
                picks = next(draws)[: int(np.ceil(n_most - n_steps))]
                ascend(*fixed, picks, found.w, mu, found.delta)
                n_steps += picks.size
                run.count(calls=picks.size)
                run.n_steps = n_steps * relaxed.n // relaxed.n_cliques
                # The gradient in the multipliers is A mu, and its Lipschitz constant is rho.
                step = xi - found.delta  # A mu / rho
                xi -= step
                found.delta[:] -= step

    def _draws(self, run: Run, n_cliques: int, progress: list[Progress]) -> Iterator[np.ndarray]:
        """The cliques to visit from one step of the multipliers to the next."""
        size, n_seen = max(1, round(self.inner * n_cliques)), 1
        waiting = np.zeros(0, np.int64)
        while True:
            if len(progress) > n_seen:
                size = size if progress[-1].gap < progress[-2].gap else min(2 * size, self.gap_every * n_cliques)
                n_seen = len(progress)
            while waiting.size < size:
                is_uniform = self.sampling == "uniform"
                more = run.rng.integers(n_cliques, size=n_cliques) if is_uniform else run.rng.permutation(n_cliques)
                waiting = np.concatenate([waiting, more])
            yield waiting[:size]
            waiting = waiting[size:]

    def _start(self, run: Run, relaxed: Relaxation) -> tuple[np.ndarray, np.ndarray, list[Progress]]:
        start = run.start.dual if isinstance(run.start, Result) else run.start
        if start is None:
            return relaxed.uniform(), np.zeros(relaxed.n_multipliers), []
        sizes = relaxed.n_parts, relaxed.n_multipliers
        if not isinstance(start, RelaxedPoint) or (start.means.size, start.multipliers.size) != sizes:
            raise ValueError("start must be the Result of an earlier run on this problem, or its dual point.")
        return start.means.copy(), start.multipliers.copy(), []

    def _curvature(self, relaxed: Relaxation) -> np.ndarray:
        """Of the smooth part of D_rho within a clique, along directions that add up to zero: those of the margins of a
        table are then orthogonal.
        """
        layout = relaxed.layout
        n_first = relaxed.ends_at[:, 1] - relaxed.ends_at[:, 0]
        n_second = relaxed.problem.edges.n_parts[relaxed.problem.edges.kind] // n_first
        across = np.stack([n_second, n_first], axis=1) * (1 / self.rho - 2 * layout.edge_entropy[:, 1:])
        coupling = np.concatenate([relaxed.degree / self.rho, np.maximum(across, 0).max(axis=1)])
        weight = np.concatenate([layout.node_weight, layout.edge_weight])
        return weight * layout.stiffness / relaxed.strength + coupling
