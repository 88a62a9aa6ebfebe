"""Excessive gap reduction (*EGR*, Algorithms 1 and 2): the plain hinge loss at the rate 1/k^2.

J_level is the objective smoothed by entropy, relative to the uniform distributions alpha_0: with d(alpha) = (1/n) sum_i
weight_i KL(alpha_i || uniform), whose largest value is R = (1/n) sum_i weight_i log |Y_i|,

    J_level(w) = (lambda/2) ||w||^2 + max over alpha of {(1/n) sum_i weight_i <theta_i, alpha_i> - level d(alpha)},

attained at alpha_level(w) ~ exp(theta(w) / level), with the potentials theta(w) = B'w + cost. Weights w_k and dual
points alpha_k are kept such that J_level(w_k) <= D(alpha_k), the excessive gap, while level falls: as F <= J_level +
level R, the duality gap is then at most level R. A step with a share tau is

    alpha^ = (1 - tau) alpha_k + tau beta_k                beta_k = alpha_level(w_k)
    w_k+1 = (1 - tau) w_k + tau w(alpha^)                  level_k+1 = (1 - tau) level_k
    alpha_k+1 = (1 - tau) alpha_k + tau alpha~             alpha~ ~ beta_k exp(tau / level_k+1 theta(w(alpha^))).

The Bregman projection alpha~ has the potentials theta(w_k) / level_k + tau / level_k+1 theta(w(alpha^)), which are, as
theta is affine in w, theta(w_k+1) / level_k+1: alpha~ is the beta_k+1 that the next step needs. So a step takes one
pass of the exp oracle, which tells J_level at the new weights, too. Of dual points it needs w(.) and the costs only,
which are linear: nothing is kept per example, though the mixtures alpha_k are no Gibbs distributions.

Theorem 2 holds as long as tau^2 L <= (1 - tau) level, where L bounds how the dual bends beside KL, which is 1-strongly
convex in the 1-norm of each alpha_i:

    (lambda/2) ||w(delta)||^2 <= (L/2) (1/n) sum_i weight_i ||delta_i||_1^2,    L = 1/(lambda n) sum_i weight_i r_i^2,

if 2 r_i >= ||B_i (s_i(y) - s_i(y'))|| for all outputs y and y'; at most the paper's (1/lambda) max ||psi_i(y)||^2. The
largest such tau makes level fall at least as fast as the paper's 2/(k + 3), so that level_k <= 6 L / ((k + 1) (k + 2))
where level_1 = L. But where a run comes by the dual bends far less: the adaptive variant tries smaller L, and takes
steps back that lose the excessive gap.

Other weights to start from are of use where J_level is not above the best dual value on the line from the true outputs
to alpha_level(w), at some level: then the run begins there. Else it begins at w(alpha_0), where it is so at level = L.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin.losses import LEAST_LEVEL, BaseLoss, Loss
from maxmargin.persist.registry import register_state
from maxmargin.problem import REACH, squared_diameters
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.exponentiated.gibbs import HIGHEST
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import Certifier
from maxmargin.trace import Certificate, Status

EASIER, HARDER = 0.9, 2.0  # what L is multiplied by after a step, and after one that was taken back
SEARCH = 4.0  # ratio of the levels that are tried for the first step
DIGITS_LOST = 1e3  # by which rounding errors of potentials may grow at the lowest level


@dataclass(frozen=True)
class ExcessiveGap(Solver):
    """Excessive gap reduction: accelerated in primal and dual, with the exp oracle, on the plain hinge loss.

    Parameters
    ----------
    adaptive
        Try smaller constants than those for which the rate is proven, and take steps back that lose the excessive gap;
        False needs problems that tell their `squared_diameters`.

    References
    ----------
    Zhang, Saha, Vishwanathan (2011), Accelerated training of max-margin Markov networks with kernels, Algorithm 2.
    Nesterov (2005), Excessive gap technique in nonsmooth convex minimization.

    Examples
    --------
    >>> from maxmargin import ExcessiveGap
    >>> from maxmargin.testing import toy_chains
    >>> ExcessiveGap().solve(toy_chains(), tol=0.1).status.name
    'OPTIMAL'
    """

    adaptive: bool = True

    needs_margin = resumes = takes_kernels = takes_portions = True
    takes_bounds = False
    default_passes: ClassVar[int] = 10_000

    def __post_init__(self) -> None:
        if not isinstance(self.adaptive, (bool, np.bool_)):
            raise ValueError(f"adaptive must be True or False, not {self.adaptive!r}.")

    def oracles(self, loss: BaseLoss) -> set[str]:
        return {"max", "exp"}

    def needs_norms(self, loss: BaseLoss) -> bool:
        return False

    def iterate(self, run: Run) -> Iterator[Certificate]:
        most = largest_curvature(run.objective)
        if not (self.adaptive or most < HIGHEST):
            name = type(run.objective.problem.problem).__name__
            raise TypeError(f"ExcessiveGap(adaptive=False) needs squared_diameters, which {name} does not have.")
        state = run.take_up(lambda: State(certifier=Certifier(run), first=None, smoothed=None))
        if state.first is None:
            yield state.certifier.certify_start(state)
        while True:
            if state.smoothed is None:
                self._begin(run, state, most)
            else:
                self._step(run, state, most)
            if run.verdict is not None:
                return
            point, smoothed = state.point, state.smoothed
            yield state.certifier.certify(point.w, smoothed.dual_value(point.alpha), smoothed.exponents)

    def _begin(self, run: Run, state: State, most: float) -> None:
        """The first point, from the certificate of the start."""
        state.smoothed = smoothed = Smoothed(run)
        if np.abs(smoothed.uniform.v).max(initial=0) > REACH:  # where there is next to no regularization
            run.verdict = Status.STALLED
            return
        first = abs(state.first.primal) / smoothed.range if smoothed.range > 0 else HIGHEST
        level = min(first, most) if self.adaptive else most
        state.point = smoothed.start(state.first.w.astype(float), level, most)
        state.L = state.point.level if self.adaptive else most
        state.least = max(LEAST_LEVEL, DIGITS_LOST * float(np.finfo(run.w.dtype).eps) * first)

    def _step(self, run: Run, state: State, most: float) -> None:
        """A step that keeps the excessive gap; unless the level is too low for that, or the run is to end."""
        if state.point.level <= state.least and not run.must_stop:
            run.verdict = Status.STALLED
        while not run.must_stop:
            tried = state.smoothed.step(state.point, state.L)
            if self.adaptive and not tried.is_excessive and most > state.L:
                state.L = min(HARDER * state.L, most)
                continue
            state.point = tried
            state.L *= EASIER if self.adaptive else 1
            return


def largest_curvature(objective: Objective) -> float:
    """The constant L of the dual, or the highest level, beyond which nothing changes, where it is not known."""
    if not supports(squared_diameters, objective.problem):
        return HIGHEST
    return min(objective.mean_of(squared_diameters) / 4 / objective.regularization, HIGHEST)


@register_state
class Means(NamedTuple):
    """What the dual value of a point alpha depends on."""

    v: np.ndarray  # w(alpha)
    cost: float

    def mix(self, other: Means, share: float) -> Means:
        """(1 - share) alpha + share other."""
        return Means((1 - share) * self.v + share * other.v, (1 - share) * self.cost + share * other.cost)


@register_state
class Point(NamedTuple):
    """Weights and a dual point, with an excessive gap at a level."""

    level: float
    w: np.ndarray
    alpha: Means
    beta: Means  # alpha_level(w)
    is_excessive: bool  # whether J_level(w) <= D(alpha), but for rounding


@register_state
class Smoothed:
    """The objective of a run, smoothed by entropy relative to the uniform distributions.

    Parameters
    ----------
    run
        The run, whose passes are counted.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.objective = run, run.objective
        self.regularization = run.objective.regularization
        self.range = 0.0  # R
        self.exponents = 0.0  # the largest size of scores in exponents so far
        self.true = Means(run.objective.origin, 0.0)
        self.uniform, value, _ = self._attain(np.zeros(run.w.size), HIGHEST)
        self.range = value / HIGHEST

    def _attain(self, w: np.ndarray, level: float) -> tuple[Means, float, float]:
        """alpha_level(w), J_level(w), and what its comparison with a dual value may be rounded by."""
        found = self.run.evaluate(w, self.objective.with_loss(Loss("entropy", level)))
        self.run.n_steps += self.objective.n
        self.exponents = max(self.exponents, found.size)
        beta = Means(found.gradient / -self.regularization, found.cost)
        rounding = found.rounding + 10 * float(np.finfo(self.run.w.dtype).eps) * level * self.range
        return beta, found.value - found.rounding - level * self.range, rounding

    def dual_value(self, alpha: Means) -> float:
        """D(alpha)."""
        return self.objective.dual_value(alpha.cost, alpha.v)

    def start(self, w: np.ndarray, first: float, most: float) -> Point:
        """The first point: at the given weights, or at those of the uniform distributions, from the first level on.

        J_level falls as level rises, to a limit that tells whether there is a level for the given weights.
        """
        center = self.uniform.v
        limit = self.dual_value(self.uniform) + self.regularization / 2 * self.objective.layout.squared_length(
            w - center
        )
        for at in [w, center] if limit < self.dual_value(self.true) else [center]:
            level = first
            while True:
                beta, value, rounding = self._attain(at, level)
                away = beta.v - self.true.v
                square = self.regularization * self.objective.layout.inner(away, away)
                slope = beta.cost - self.regularization * self.objective.layout.inner(self.true.v, away)
                share = min(max(slope / square, 0.0), 1.0) if square > 0 else 1.0
                alpha = self.true.mix(beta, share)
                point = Point(level, at, alpha, beta, value <= self.dual_value(alpha) + rounding)
                if point.is_excessive or level >= most or self.run.must_stop:
                    break
                level = min(SEARCH * level, most)
            if point.is_excessive or self.run.must_stop:
                break
        return point

    def step(self, point: Point, L: float) -> Point:
        """A step with the largest share tau for which tau^2 L <= (1 - tau) level."""
        tau = 2 / (1 + np.sqrt(1 + 4 * L / point.level))
        level = max((1 - tau) * point.level, LEAST_LEVEL)
        w = (1 - tau) * point.w + tau * point.alpha.mix(point.beta, tau).v
        beta, value, rounding = self._attain(w, level)
        alpha = point.alpha.mix(beta, tau)
        return Point(level, w, alpha, beta, value <= self.dual_value(alpha) + rounding)
