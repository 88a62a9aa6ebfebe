"""Gibbs distributions of all examples by potentials that are linear in weights: theta_i = B_i'W + c cost_i.

They are where the loss smoothed by entropy at the level 1/c is attained at the weights W/c, so a pass of the exp
oracle tells all that solvers on the dual need, which is linear in the mean parts or a sum over the examples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.losses import LEAST_LEVEL, Loss
from maxmargin.persist.registry import register_state
from maxmargin.solvers.frame.run import Run
from maxmargin.trace import Certificate

HIGHEST = 1e15  # a level at which all outputs are alike
WARM_SHARE = 0.1  # of the objective, that the first level of a hinge loss is, at weights to start from


@register_state
class Gibbs(NamedTuple):
    """The distributions alpha ~ exp(<B'W + c cost, s(y)>); averages over the examples, by their weights."""

    W: np.ndarray
    c: float
    v: np.ndarray  # w(alpha)
    cost: float
    entropy: float
    log_z: float  # less the potentials of the true outputs
    exponents: float  # the size of the potentials


def attain_gibbs(run: Run, W: np.ndarray, c: float) -> Gibbs:
    """The point of these potentials, by one pass; c is without a meaning, and 1, for losses without a margin."""
    objective = run.objective
    c = min(c, 1 / LEAST_LEVEL)
    found = run.evaluate(W / c, objective.with_loss(Loss("entropy", 1 / c, objective.loss.margin)))
    run.n_steps += objective.n
    loss = found.value - found.rounding - objective.primal(W / c, 0.0)
    v = found.gradient / -objective.regularization
    return Gibbs(W, c, v, found.cost, c * found.entropy, c * loss, found.size)


def first_level(run: Run, certificate: Certificate) -> float:
    """That of the loss or, for the hinge loss, one to go on at from weights whose certificate is given."""
    return run.objective.loss.entropy_level or max(WARM_SHARE * certificate.primal, LEAST_LEVEL)


def first_gibbs(run: Run, certificate: Certificate) -> Gibbs:
    """The point to begin with: for hinge losses without a start, the uniform distributions."""
    is_uniform = run.start is None and run.objective.loss.is_maximum
    c = 1 / (HIGHEST if is_uniform else first_level(run, certificate))
    return attain_gibbs(run, c * certificate.w.astype(float), c)
