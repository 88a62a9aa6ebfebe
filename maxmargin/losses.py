"""The losses of an example: one family, told apart by their oracle, their temperature and whether they have a margin.

    loss_i(w) = h {score_i(y) + margin * cost_i(y) over all y} - score_i(y_i)

where h is the maximum, or the maximum smoothed at the level (temperature):

    hinge          h = max, with the margin                             structural SVMs
    smooth hinge   h smoothed by l2 or by entropy, with the margin      tends to the hinge loss as the level -> 0
    log            h smoothed by entropy at the level 1, without margin  conditional random fields

and half of the square of the hinge loss, that is, squared slacks. As l^2 / 2 = max over a >= 0 of {a l - a^2 / 2}, it
is attained at mean parts s_i(y_i) + l {s_i(y) - s_i(y_i)}, with the "entropy" -l^2 / 2: its dual points are mixtures
whose weights need not add up to one, and in its dual their sums a_i cost a_i^2 / 2.

In all of them the gradient is B_i (mu_i - s_i(y_i)), with the mean parts mu_i at which h is attained, and so are duals
and certificates the same (`evaluation`). Solvers ask a loss for its oracle, whether it is smooth and
whether it has a margin; loops ask where it is attained. So a new loss is one class, with a function for `attain`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from maxmargin.arrays.vectors import add_scaled, clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.checks import check_choice, check_count, check_positive, check_share
from maxmargin.persist.registry import register, renaming
from maxmargin.problem import (
    IMPOSSIBLE,
    add_output,
    augment,
    bound_oracle,
    exp_oracle,
    max_oracle,
    score_output,
    scores,
    topk_oracle,
    true_output,
)
from maxmargin.runtime.dispatch import LOSS, generic, helper, implements, supports
from maxmargin.runtime.tables import Attained, Problem, Reals, Scratch
from maxmargin.smoothing import SMOOTHINGS, bound_sorted, has_weight, smooth_sorted

__all__ = ["Loss", "RelaxedLoss", "SquaredLoss", "find_loss"]

ENTROPIES = ("gini", "oriented_trees")
LEAST_LEVEL = 1e-9  # of entropy: potentials are divided by it, and are to stay far from those of impossible parts


@generic(interface=LOSS)
def attain(loss, problem: Problem, i: int, theta: Reals, means: Reals, scratch: Scratch) -> Attained:  # type: ignore[empty-body]
    """Write the mean parts at which h is attained into `means`; leaves theta changed.

    Return h, the true maximum (or h where the oracle does not tell it), h less the entropy of `means`, which is
    <theta, means> where h is exact, and by how much h is above what is attained where it is only an upper bound.
    """


@dataclass(frozen=True)
class Loss:
    """A loss of the family above.

    Parameters
    ----------
    smoothing : None for the maximum, "l2" (by the top-K oracle) or "entropy" (by the exp oracle)
    level : level of smoothing, the temperature
    margin : whether outputs must win by their cost
    max_k : the most outputs that l2 smoothing mixes: the smoothed maximum is exact where these are enough

    Examples
    --------
    >>> from maxmargin import LBFGS, Loss
    >>> from maxmargin.testing import toy_chains
    >>> softened = Loss("entropy", level=0.1)
    >>> LBFGS().solve(toy_chains(), loss=softened).status.name
    'OPTIMAL'
    """

    smoothing: str | None = None
    level: float = 1.0
    margin: bool = True
    max_k: int = 40

    oracle: ClassVar[str]  # the name of the oracle it needs

    def __init_subclass__(cls) -> None:
        register(cls, make=renaming(cls, {"mu": "level"}))  # saved by its fields

    def __new__(cls, smoothing: str | None = None, *args: Any, **options: Any) -> Loss:
        """The class of a loss says how it is attained."""
        check_choice("smoothing", smoothing, (None, *SMOOTHINGS))
        return super().__new__(_KINDS[smoothing] if cls is Loss else cls)

    def __post_init__(self) -> None:
        if type(self) in _KINDS.values() and type(self) is not _KINDS[self.smoothing]:
            raise ValueError("smoothing cannot be replaced: make a new Loss.")
        if not isinstance(self.margin, (bool, np.bool_)):
            raise ValueError(f"margin must be True or False, not {self.margin!r}.")
        check_positive("level", self.level)
        least = LEAST_LEVEL if self.smoothing == "entropy" else 1e-30
        if not least <= self.level <= 1e30:
            raise ValueError(f"level must be between {least:g} and 1e+30, not {self.level:g}.")
        object.__setattr__(self, "level", float(self.level))
        check_count("max_k", self.max_k)

    @property
    def is_smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return self.smoothing is not None

    @property
    def name(self) -> str:
        """What to call it: "hinge", "smooth_hinge" or "log"."""
        if not self.is_smooth:
            return "hinge"
        return "smooth_hinge" if self.margin else "log"

    @property
    def n_best(self) -> int:
        """How many outputs it may ask of the top-K oracle."""
        return 1

    def at(self, level: float) -> Loss:
        """The same loss at another level."""
        return replace(self, level=level)


class MaxLoss(Loss):
    """The maximum itself."""

    oracle = "max"


class BoundedLoss(MaxLoss):
    """The same, of problems whose oracle finds an output and a bound of the maximum."""


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Half of the square of the hinge loss: squared slacks.

    Examples
    --------
    >>> from maxmargin import OneSlack, SquaredLoss
    >>> from maxmargin.testing import toy_chains
    >>> OneSlack().solve(toy_chains(), loss=SquaredLoss()).status.name
    'OPTIMAL'
    """

    oracle = "max"

    @property
    def name(self) -> str:
        return "squared_hinge"


class BoundedSquaredLoss(SquaredLoss):
    """The same, of problems whose oracle finds an output and a bound of the maximum."""


class TopKLoss(Loss):
    """The maximum smoothed by l2."""

    oracle = "topk"

    @property
    def n_best(self) -> int:
        """One more than are to have a weight."""
        return self.max_k + 1


class ExpLoss(Loss):
    """The maximum smoothed by entropy."""

    oracle = "exp"


@dataclass(frozen=True)
class RelaxedLoss(Loss):
    """The loss of a graph over its local polytope, with an entropy that is a sum over nodes and edges (`IDAL`).

    Parameters
    ----------
    level : the temperature, the weight of the entropy: as it tends to 0, the loss tends to the relaxed hinge loss
    margin : whether outputs must win by their cost
    entropy : "gini", or "oriented_trees" for the mean of Gini's entropy over oriented spanning trees, which is nearer
        to that of the graph
    trees : (M, 2) how often these trees have the first, or the second, end of each edge of all graphs, in the order of
        the problem's `ends`, as the child of the other; by default as often as all trees do, drawn alike
    epsilon : of "oriented_trees", the share of a parent's entropy that is taken from that of a pair: with less than 1
        the entropy is strongly concave in the table of every edge

    Examples
    --------
    >>> from maxmargin import RelaxedLoss
    >>> RelaxedLoss(level=0.1).name
    'relaxed'
    """

    entropy: str = "gini"
    trees: np.ndarray | None = field(default=None, compare=False, repr=False)
    epsilon: float = 1.0

    oracle = ""  # none: the maximum over the local polytope is never asked for

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("entropy", self.entropy, ENTROPIES)
        check_share("epsilon", self.epsilon)

    @property
    def is_smooth(self) -> bool:
        """As the entropy is strongly concave."""
        return True

    @property
    def name(self) -> str:
        return "relaxed"


_KINDS: dict[str | None, type[Loss]] = {None: MaxLoss, "l2": TopKLoss, "entropy": ExpLoss}

NAMED = {
    "hinge": Loss(),
    "squared_hinge": SquaredLoss(),
    "smooth_hinge": Loss("l2"),
    "log": Loss("entropy", margin=False),
}


def find_loss(loss: Any) -> Loss:
    """The loss of the given name, "hinge", "squared_hinge", "smooth_hinge" or "log", or `loss` itself if it is one."""
    found = NAMED.get(loss) if isinstance(loss, str) else loss
    if not isinstance(found, Loss):
        raise ValueError(f"loss must be a Loss or one of {', '.join(NAMED)}, not {loss!r}.")
    return found


def attained_on(loss: Loss, problem: Any) -> Loss:
    """The loss as it is attained on a problem: with a bound of the maximum if its oracle need not find that."""
    if type(loss) in _BOUNDED and supports(bound_oracle, problem):
        return _BOUNDED[type(loss)](margin=loss.margin)
    return loss


_BOUNDED: dict[type[Loss], type[Loss]] = {MaxLoss: BoundedLoss, SquaredLoss: BoundedSquaredLoss}


@implements(attain, MaxLoss)
def attain_max(loss, problem, i, theta, means, scratch):
    y = scratch.y[: true_output(problem, i).size]
    max_oracle(problem, i, theta, y, scratch.work)
    top = score_output(problem, i, theta, y)
    clear(means)
    add_output(problem, i, y, 1.0, means)
    return top, top, top, 0.0


@implements(attain, BoundedLoss)
def attain_bound(loss, problem, i, theta, means, scratch):
    y = scratch.y[: true_output(problem, i).size]
    bound = bound_oracle(problem, i, theta, y, scratch.work)
    score = score_output(problem, i, theta, y)
    bound = max(bound, score)
    clear(means)
    add_output(problem, i, y, 1.0, means)
    return bound, bound, bound, bound - score


@implements(attain, SquaredLoss)
def attain_squared(loss, problem, i, theta, means, scratch):
    y = scratch.y[: true_output(problem, i).size]
    max_oracle(problem, i, theta, y, scratch.work)
    score = score_output(problem, i, theta, y)
    return square(problem, i, theta, y, score, score, means)


@implements(attain, BoundedSquaredLoss)
def attain_squared_bound(loss, problem, i, theta, means, scratch):
    y = scratch.y[: true_output(problem, i).size]
    bound = bound_oracle(problem, i, theta, y, scratch.work)
    score = score_output(problem, i, theta, y)
    return square(problem, i, theta, y, score, max(bound, score), means)


@helper
def square(problem, i, theta, y, score, bound, means):
    """What `attain` returns for the squared loss, given an output, its score, and a bound of the highest."""
    truth = score_output(problem, i, theta, true_output(problem, i))
    known = max(score - truth, 0.0)  # that of the truth, where the output is worse
    most = max(bound - truth, 0.0)
    clear(means)
    add_output(problem, i, y, known, means)
    add_output(problem, i, true_output(problem, i), 1 - known, means)
    h = truth + most * most / 2
    top = h if bound >= truth else bound
    return h, top, h + known * known / 2, (most - known) * (most + known) / 2


@implements(attain, TopKLoss)
def attain_topk(loss, problem, i, theta, means, scratch):
    outputs = matrix(scratch.outputs, 0, loss.max_k + 1, true_output(problem, i).size)
    values = scratch.values[: loss.max_k + 1]
    found = topk_oracle(problem, i, theta, outputs, values, loss.level, scratch.work)
    count = min(found, loss.max_k)
    h = smooth_sorted(values, count, loss.level, scratch.shares)
    # Proposition 4: the outputs that were not asked for have no weight if the last one has none.
    is_exact = found == count or not has_weight(values, count, loss.level)
    slack = 0.0 if is_exact else max(bound_sorted(values, count, loss.level) - h, 0.0)
    clear(means)
    mean = 0.0
    for k in range(count):
        if scratch.shares[k] > 0:
            add_output(problem, i, outputs[k], scratch.shares[k], means)
            mean += scratch.shares[k] * values[k]
    return h + slack, values[0], mean + slack, slack


@implements(attain, ExpLoss)
def attain_exp(loss, problem, i, theta, means, scratch):
    if loss.level != 1:
        combine(theta, 1 / loss.level, theta, 0.0)
    h = loss.level * exp_oracle(problem, i, theta, means, scratch.work)
    if loss.level != 1:
        combine(theta, loss.level, theta, 0.0)
    return h, h, inner(theta, means), 0.0


@helper
def potentials(problem, loss, w, i, theta):
    """Theta = B_i' w + margin * cost_i; return the score of the true output, which costs nothing."""
    scores(problem, w, i, theta)
    return add_costs(problem, loss, i, theta)


@helper
def add_costs(problem, loss, i, theta):
    """Theta += margin * cost_i; return the score of the true output."""
    truth = score_output(problem, i, theta, true_output(problem, i))
    if loss.margin:
        augment(problem, i, theta)
    return truth


def _combine(theta: np.ndarray, a: float, other: np.ndarray, b: float) -> None:
    is_impossible = theta < IMPOSSIBLE / 2
    theta *= a
    if b:
        add_scaled(theta, other, b)
    theta[is_impossible] = IMPOSSIBLE


@helper(interpreted=_combine)
def combine(theta, a, other, b):
    """Theta = a theta + b other, for potentials of two weight vectors; impossible parts stay impossible."""
    scale = theta.dtype.type(a)
    shift = theta.dtype.type(b)
    for p in range(theta.size):
        is_impossible = theta[p] < IMPOSSIBLE / 2
        theta[p] = IMPOSSIBLE if is_impossible else scale * theta[p] + shift * other[p]
