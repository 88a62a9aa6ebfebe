"""The greedy direction method of multipliers (GDMM): steps among few active parts, and steps of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.solvers.clique_ascent import CliqueAscent
from maxmargin.solvers.clique_steps import GREEDY
from maxmargin.solvers.relaxed import Relaxation


@dataclass(frozen=True)
class GDMM(CliqueAscent):
    """Greedy direction method of multipliers, for pairwise problems on graphs with cycles.

    It minimises the `RelaxedLoss` as `maxmargin.solvers.idal.IDAL` does, with its trace and certificates, but starts
    from the true outputs and keeps the mean parts sparse: a step on a node or edge activates its part of the largest
    gradient and is a prox step among the active ones; parts that become zero are active no longer. The multipliers are
    stepped once per pass. Made for the hinge loss, it is at its best where the temperature is low.

    Parameters
    ----------
    rho : the smaller, the more it costs to violate the marginalization constraints
    gap_every : passes between two certificates
    eps : stop as well where P_rho - D_rho and ||A mu||^2 are at most this

    Examples
    --------
    >>> from maxmargin.solvers.gdmm import GDMM
    >>> GDMM(rho=0.1)
    GDMM(rho=0.1, gap_every=10, eps=0.0)

    References
    ----------
    Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon (2016), Dual decomposed learning with factorwise oracles for structural
    SVMs of large output domain.
    """

    @property
    def rule(self) -> tuple[int, int]:
        return GREEDY, 1

    def first_means(self, relaxed: Relaxation) -> np.ndarray:
        return relaxed.truth()
