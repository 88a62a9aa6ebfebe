"""Extragradient with Bregman projections (Taskar et al. 2006) on the saddle point of weights and dual points.

The hinge loss is a maximum over dual points, so training is to find the saddle point of

    min over w, max over alpha of (lambda/2) ||w||^2 + <cost, alpha> - lambda <w, w(alpha)>.

From a point x a step goes to u and, by the slopes there, to the next point: with k = lambda rho eta,

    w_u = (w_x + k w(alpha_x)) / (1 + k)          theta_u = theta_x + eta theta(w_x)
    w_x <- (w_x + k w(alpha_u)) / (1 + k)         theta_x <- theta_x + eta theta(w_u)

where alpha ~ exp(theta) are the Bregman projections by entropy, which take the exp oracle: Euclidean ones, to the
polytopes of chains or trees, are out of reach. Potentials stay of the form B'W + c cost, so that nothing is kept per
example (`gibbs`). The averages of w_u and alpha_u, weighted by eta, come close to the saddle point at the rate 1/t as
long as

    eta lambda {<w_u - w_x, w(alpha_u) - w(alpha_x')> - <w(alpha_u) - w(alpha_x), w_u - w_x'>}
        <= (||w_x' - w_u||^2 + ||w_u - w_x||^2) / (2 rho) + KL(alpha_x' || alpha_u) + KL(alpha_u || alpha_x)

for the next point x': steps are halved until it holds, and grow otherwise. rho makes up for the different scales of
weights and distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_count
from maxmargin.losses import BaseLoss
from maxmargin.persist.registry import register_state
from maxmargin.solvers.exponentiated.gibbs import Gibbs, attain_gibbs, first_gibbs, first_level
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.lower_bound import Certifier
from maxmargin.trace import Certificate, Status

LONGER = 1.2  # than the last step
SHORTEST = 1e-12  # of the last step, tried before giving up


@dataclass(frozen=True)
class Extragradient(Solver):
    """Extragradient steps on weights and dual point at once, with entropic projections, for the hinge loss.

    Parameters
    ----------
    gap_every
        Steps, of two passes each, between two certificates.

    References
    ----------
    Taskar, Lacoste-Julien, Jordan (2006), Structured prediction, dual extragradient and Bregman projections.

    Examples
    --------
    >>> from maxmargin import Extragradient
    >>> from maxmargin.testing import toy_chains
    >>> Extragradient().solve(toy_chains(), tol=0.1).status.name
    'OPTIMAL'
    """

    gap_every: int = 5

    needs_margin = resumes = takes_kernels = takes_portions = True
    takes_bounds = False

    def __post_init__(self) -> None:
        check_count("gap_every", self.gap_every)

    def oracles(self, loss: BaseLoss) -> set[str]:
        return {"max", "exp"}

    def needs_norms(self, loss: BaseLoss) -> bool:
        return False

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: State(certifier=Certifier(run), first=None, saddle=None))
        if state.first is None:
            yield state.certifier.certify_start(state)
        if state.saddle is None:
            state.saddle = Saddle(run, state.first)
        while True:
            for _ in range(self.gap_every):
                if not run.must_stop:
                    state.saddle.step()
            yield state.certifier.certify(*state.saddle.average())


@register_state
class Saddle:
    """The state of the steps from certified weights on, and the average of the points u so far."""

    def __init__(self, run: Run, certificate: Certificate) -> None:
        self.run, self.regularization, self.origin = run, run.objective.regularization, run.objective.origin
        self.w = certificate.w.astype(float)
        self.alpha = first_gibbs(run, certificate)
        spread = max(self.alpha.entropy, 1e-300)
        self.rho = max(certificate.primal, 1e-300) / (self.regularization * spread)
        self.eta = 1 / first_level(run, certificate)
        self.total, self.sum_w, self.sum_v, self.sum_cost = 0.0, 0 * self.w, 0 * self.w, 0.0
        self.exponents = 0.0  # the largest so far

    def _move(self, slope_w: np.ndarray, slope_alpha: np.ndarray) -> tuple[np.ndarray, Gibbs]:
        """The point to which the slopes at (slope_w, alpha), given as the weights of theta and w(alpha), lead."""
        k = self.regularization * self.rho * self.eta
        alpha = attain_gibbs(self.run, self.alpha.W + self.eta * slope_w, self.alpha.c + self.eta)
        return (self.w + k * slope_alpha) / (1 + k), alpha

    def step(self) -> None:
        """The first step that is short enough, halved from the last one on."""
        shortest = SHORTEST * self.eta
        inner, length = self.run.objective.layout.inner, self.run.objective.layout.squared_length
        while not self.run.must_stop:
            middle, u = self._move(self.w, self.alpha.v)
            w, alpha = self._move(middle, u.v)
            twist = inner(middle - self.w, u.v - alpha.v) - inner(u.v - self.alpha.v, middle - w)
            away = (length(w - middle) + length(middle - self.w)) / (2 * self.rho)
            away += self._divergence(alpha, u) + self._divergence(u, self.alpha)
            if self.eta * self.regularization * twist <= away:
                self.total += self.eta
                self.sum_w += self.eta * middle
                self.sum_v += self.eta * u.v
                self.sum_cost += self.eta * u.cost
                self.exponents = max(self.exponents, u.exponents)
                self.w, self.alpha = w, alpha
                self.eta *= LONGER
                return
            self.eta /= 2
            if self.eta < shortest:
                self.run.verdict = Status.STALLED

    def _divergence(self, p: Gibbs, q: Gibbs) -> float:
        """KL(p || q)."""
        v = p.v - self.origin
        rise = (p.c - q.c) * p.cost - self.regularization * self.run.objective.layout.inner(p.W - q.W, v)
        return max(rise - p.log_z + q.log_z, 0.0)

    def average(self) -> tuple[np.ndarray, float, float]:
        """The average weights, the value of the average dual point and the size of its exponents."""
        if not self.total:
            return self.w, self.run.objective.least, 0.0
        dual = self.run.objective.dual_value(self.sum_cost / self.total, self.sum_v / self.total)
        return self.sum_w / self.total, dual, self.exponents
