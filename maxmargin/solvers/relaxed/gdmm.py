"""The greedy direction method of multipliers (GDMM): steps among few active parts, and steps of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_choice
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.relaxed.clique_ascent import CliqueAscent
from maxmargin.solvers.relaxed.clique_steps import GREEDY, ascend_active
from maxmargin.solvers.relaxed.neighborhoods import Neighborhoods, whole_graphs
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation


@dataclass(frozen=True)
class GDMM(CliqueAscent):
    """Greedy direction method of multipliers, for problems on graphs with cycles.

    It minimises the `RelaxedLoss` as `IDAL` does, with its trace and certificates, but starts
    from the true outputs and keeps the mean parts sparse: a step on a node or edge activates its part of the largest
    gradient and is a prox step among the active ones; parts that become zero are active no longer. The multipliers are
    stepped once per pass. Made for the hinge loss, it is at its best where the temperature is low.

    Parameters
    ----------
    active
        "parts" as above, or "factors": at first no node and no edge is active, in each pass that one of each graph
        joins whose step promises most, and all active ones are moved by prox steps.

    Examples
    --------
    >>> from maxmargin.solvers.relaxed.gdmm import GDMM
    >>> GDMM(rho=0.1)
    GDMM(rho=0.1, gap_every=10, eps=0.0, active='parts')

    References
    ----------
    Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon (2016), Dual decomposed learning with factorwise oracles for structural
    SVMs of large output domain.
    """

    active: str = "parts"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("active", self.active, ("parts", "factors"))

    @property
    def rule(self) -> tuple[int, int]:
        return GREEDY, 1

    def first_means(self, relaxed: Relaxation) -> np.ndarray:
        return relaxed.true_means()

    def sets(self, relaxed: Relaxation) -> Neighborhoods:
        return whole_graphs(relaxed.graphs) if self.active == "factors" else super().sets(relaxed)

    def begin(self, run: Run, relaxed: Relaxation) -> State:
        state = super().begin(run, relaxed)
        state.is_active = np.zeros(relaxed.n_cliques, np.bool_)
        return state

    def visit(self, state: State, at: tuple[object, ...], visits: np.ndarray, often: np.ndarray) -> None:
        if self.active == "parts":
            super().visit(state, at, visits, often)
        else:
            ascend_active(*at, visits, state.is_active)
