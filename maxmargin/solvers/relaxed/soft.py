"""Soft marginalization constraints: dual ascent clique by clique without multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maxmargin.solvers.relaxed.clique_ascent import CliqueAscent
from maxmargin.solvers.relaxed.clique_steps import VERTEX


@dataclass(frozen=True)
class SoftSDCA(CliqueAscent):
    """Prox steps on D_rho, clique by clique, where violated marginalization constraints cost but need not vanish.

    As `maxmargin.solvers.relaxed.idal.IDAL` with all multipliers zero. What it maximises is D_rho, not the dual of the
    `RelaxedLoss`: certificates are for the latter all the same, and their gap does not tend to 0. It stops where
    P_rho - D_rho does, with the status SURROGATE.

    Parameters
    ----------
    eps
        Stop where P_rho - D_rho is at most this, or the share `tol` of P_rho.

    Examples
    --------
    >>> from maxmargin.solvers.relaxed.soft import SoftSDCA
    >>> SoftSDCA(rho=0.1)
    SoftSDCA(rho=0.1, gap_every=10, eps=0.0)

    References
    ----------
    Hu, Obozinski (2018), SDCA-powered inexact dual augmented Lagrangian method for fast CRF learning, section 7.
    """

    has_multipliers: ClassVar[bool] = False


@dataclass(frozen=True)
class SoftBCFW(SoftSDCA):
    """Block-coordinate Frank-Wolfe steps on D_rho, clique by clique: towards a vertex, with a line search.

    It maximises what `SoftSDCA` maximises, and stops as that does.

    Examples
    --------
    >>> from maxmargin.solvers.relaxed.soft import SoftBCFW
    >>> SoftBCFW(rho=0.1)
    SoftBCFW(rho=0.1, gap_every=10, eps=0.0)

    References
    ----------
    Meshi, Srebro, Hazan (2015), Efficient training of structured SVMs via soft constraints.
    """

    @property
    def rule(self) -> tuple[int, int]:
        return VERTEX, 1
