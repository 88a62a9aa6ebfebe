"""The inexact dual augmented Lagrangian method (IDAL): dual ascent clique by clique, and steps of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.checks import check_choice, check_positive
from maxmargin.solvers.relaxed.clique_ascent import CliqueAscent, Pace
from maxmargin.solvers.relaxed.clique_steps import ALL, CONJUGATE, PROX
from maxmargin.solvers.relaxed.neighborhoods import Neighborhoods, single_cliques
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation, Report

STEPS = {"prox": (PROX, 1), "exact": (PROX, 30), "line_search": (CONJUGATE, 1)}
LOW, HIGH = 0.3, 0.9  # shares of the inner gap in the duality gap, outside of which rho adapts
LEAST = 0.1  # of the first rho: near the optimum the inner gap is of second order, and its share tends to 0
PATIENCE = 2  # certificates to wait for a lower inner gap
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class IDAL(CliqueAscent):
    """Inexact dual augmented Lagrangian method, for problems on graphs with cycles.

    It minimises the `RelaxedLoss`, whose maximum is over the local polytope of each graph. No inference is made: a step
    moves the mean parts of one node or edge, at a cost that depends on its features, states and neighbours alone. The
    trace holds certificates for the relaxed objective, at points that satisfy all constraints, and they decide when to
    stop. Its further columns are D_rho, P_rho, their difference, the inner gap, ||A mu||^2, the violation, and rho. A
    pass moves every node and edge once, in sets of neighbours whose order is random, and each counts as a call of an
    oracle.

    ``IDAL(rho=1.0, order="uniform", multipliers="global", eps=1e-3)`` is the method as published, with the constants
    of its experiments.

    Parameters
    ----------
    rho
        The smaller, the more it costs to violate the marginalization constraints. By default it adapts: at first these
        costs bend D_rho as much as the rest does, then rho falls to as little as a tenth where the inner gap is but a
        small part of the duality gap, as the multipliers are to blame then, and rises where it is nearly all.
    eps
        Stop as well where the inner gap and the violation are at most this.
    inner
        Passes between two steps of the multipliers, at first: twice as many, up to `gap_every`, whenever the inner gap
        has not fallen for some certificates, as it takes enough of them to converge.
    steps
        How to move a clique: "prox" to the maximum of a lower bound of D_rho that bends alike in all directions,
        "exact" to the maximum of D_rho itself, by several such steps on edges, "line_search" as far as it pays towards
        the maximum of the entropy and the linear part.
    order
        "neighbors", or "uniform": single nodes and edges, each drawn at random from all.
    multipliers
        "local", where those of the edges of a set are stepped when it is visited, or "global": those of all edges at
        once, every `inner` passes, which are then never doubled.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Graph, GraphSVM
    >>> from maxmargin.solvers.relaxed.idal import IDAL
    >>> triangle = Graph(np.eye(3), edges=[(0, 1), (1, 2), (2, 0)])
    >>> svm = GraphSVM(loss="relaxed", solver=IDAL(), random_state=0).fit([triangle], [["a", "b", "a"]])
    >>> svm.status_.name
    'OPTIMAL'

    References
    ----------
    Hu, Obozinski (2018), SDCA-powered inexact dual augmented Lagrangian method for fast CRF learning, Algorithms 1
    and 2.
    """

    rho: float | None = None
    inner: float = 0.5
    steps: str = "prox"
    order: str = "neighbors"
    multipliers: str = "local"

    adapts_rho: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("inner", self.inner)
        check_choice("steps", self.steps, STEPS)
        check_choice("order", self.order, ("neighbors", "uniform"))
        check_choice("multipliers", self.multipliers, ("local", "global"))

    @property
    def rule(self) -> tuple[int, int]:
        return STEPS[self.steps]

    def sets(self, relaxed: Relaxation) -> Neighborhoods:
        return single_cliques(relaxed.graphs) if self.order == "uniform" else super().sets(relaxed)

    def draw(self, rng: np.random.Generator, n_sets: int, n_more: int) -> np.ndarray:
        return rng.integers(n_sets, size=n_more) if self.order == "uniform" else super().draw(rng, n_sets, n_more)

    def multiplier_steps(self, inner: float, visits: np.ndarray, n_sets: int) -> np.ndarray:
        if self.multipliers == "local":
            return super().multiplier_steps(inner, visits, n_sets)
        return np.where((visits + 1) % max(1, round(inner * n_sets)) == 0, ALL, 0)

    def first_pace(self, relaxed: Relaxation) -> Pace:
        return Pace(self.rho or relaxed.balanced_rho(), self.inner)

    def adapt(self, pace: Pace, found: Report, relaxed: Relaxation) -> Pace:
        rho, inner = pace.rho, pace.inner
        if self.rho is None:
            share = max(found.inner_gap, 0.0) / max(found.primal - found.dual, TINY)
            if share < LOW:
                rho = max(rho * max(np.sqrt(share / (2 * LOW)), 0.2), LEAST * relaxed.balanced_rho())
            elif share > HIGH:
                rho = min(2 * rho, relaxed.balanced_rho())
        if rho != pace.rho or self.multipliers == "global":
            return Pace(rho, inner)
        if found.inner_gap < pace.lowest:
            return Pace(rho, inner, found.inner_gap)
        if pace.n_waited < PATIENCE:
            return pace._replace(n_waited=pace.n_waited + 1)
        return Pace(rho, min(2 * inner, self.gap_every))
