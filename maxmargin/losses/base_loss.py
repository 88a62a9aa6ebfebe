"""What all losses have in common: what solvers ask of them, and where loops attain them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.vectors import add_scaled
from maxmargin.checks import check_positive
from maxmargin.persist.registry import register, renaming
from maxmargin.problem import IMPOSSIBLE, AnyProblem
from maxmargin.runtime.dispatch import LOSS, generic, helper, implements, supports
from maxmargin.runtime.tables import Attained, Problem, Reals, Scratch

LEAST_LEVEL = 1e-9  # of entropy: potentials are divided by it, and are to stay far from those of impossible parts
LARGEST_LEVEL = 1e30

Class = TypeVar("Class", bound=type)


@generic(interface=LOSS)
def attain(self, problem: Problem, i: int, theta: Reals, means: Reals, scratch: Scratch) -> Attained:  # type: ignore[empty-body]
    """Write the mean parts at which h is attained into `means`; leaves theta changed.

    Return h, the true maximum (or h where the oracle does not tell it), h less the entropy of `means`, which is
    <theta, means> where h is exact, and by how much h is above what is attained where it is only an upper bound.
    """


@generic
def attain_at(self, problem, i, theta, y, score, bound, means):
    """As `attain`, of losses that are attained at one output: that of the given score; none has more than `bound`."""


def attains(cls: Class) -> Class:
    """Let loops call the methods `attain` and `attain_at` of a class, which are compiled; a decorator."""
    for function in (attain, attain_at):
        if hasattr(cls, function.__name__):
            implements(function, cls)(getattr(cls, function.__name__))
    return cls


class BaseLoss:
    """Base of all losses: a frozen dataclass that says what it needs, with the method by which loops attain it.

    That is `attain` or, where the oracle is that of the maximum and its output tells all, `attain_at`: then bounds of
    the maximum and outputs that are kept do in place of the oracle's. They are written in the subset of Python that
    Numba compiles, and see the fields that are numbers.

    Examples
    --------
    >>> from maxmargin.losses import BaseLoss, find_loss
    >>> hinge, log = find_loss("hinge"), find_loss("log")
    >>> isinstance(log, BaseLoss), hinge.oracle, log.oracle, hinge.is_smooth, log.is_smooth
    (True, 'max', 'exp', False, True)
    """

    margin: bool = True  # whether outputs must win by their cost; a field of every loss
    level: float = 1.0  # how much it is smoothed: it bends by at most the squared norms of features over it
    renamed: ClassVar[Mapping[str, str | None]] = {}  # fields that files of earlier versions have by another name

    def __init_subclass__(cls) -> None:
        register(cls, make=renaming(cls, cls.renamed))  # saved by its fields
        attains(cls)

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def oracle(self) -> str:
        """The name of the oracle it needs; empty if it needs none."""
        return "max"

    @property
    def is_smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return False

    @property
    def entropy_level(self) -> float | None:
        """The level at which entropy smooths its maximum: 0 if nothing does; None if h is anything else."""
        return None

    @property
    def is_maximum(self) -> bool:
        """Whether h is the maximum itself."""
        return self.entropy_level == 0

    @property
    def n_best(self) -> int:
        """How many outputs it may ask of the top-K oracle."""
        return 1

    def with_margin(self, margin: bool) -> Self:
        """The same loss, with costs or without."""
        loss: Any = self  # a dataclass, as all losses are
        return replace(loss, margin=margin)

    def at_output(self) -> Self | None:
        """What `attain_at` takes, or None where one output does not tell all."""
        return self if supports(attain_at, self) else None

    def attained_on(self, problem: AnyProblem) -> object:
        """What loops take in its place, for the oracles of a problem."""
        loss = self.at_output()
        if loss is None:
            return self
        return OfBound(self.margin, loss) if supports(generics.bound_oracle, problem) else OfMaximum(self.margin, loss)


@attains
class OfMaximum(NamedTuple):
    """A loss that is attained at the output of the max oracle."""

    margin: bool
    loss: Any

    def attain(self, problem, i, theta, means, scratch):
        y = scratch.y[: generics.true_output(problem, i).size]
        generics.max_oracle(problem, i, theta, y, scratch.work)
        score = generics.score_output(problem, i, theta, y)
        return attain_at(self.loss, problem, i, theta, y, score, score, means)


@attains
class OfBound(NamedTuple):
    """The same, of problems whose oracle finds an output and a bound of the maximum."""

    margin: bool
    loss: Any

    def attain(self, problem, i, theta, means, scratch):
        y = scratch.y[: generics.true_output(problem, i).size]
        bound = generics.bound_oracle(problem, i, theta, y, scratch.work)
        score = generics.score_output(problem, i, theta, y)
        return attain_at(self.loss, problem, i, theta, y, score, max(bound, score), means)


def check_margin(margin: object) -> None:
    """Raise unless it is True or False."""
    if not isinstance(margin, (bool, np.bool_)):
        raise ValueError(f"margin must be True or False, not {margin!r}.")


def check_level(level: float, least: float = 1e-30) -> float:
    """The level as a float; raises unless loops can divide by it."""
    check_positive("level", level)
    if not least <= level <= LARGEST_LEVEL:
        raise ValueError(f"level must be between {least:g} and {LARGEST_LEVEL:g}, not {level:g}.")
    return float(level)


@helper
def potentials(problem, loss, w, i, theta):
    """Theta = B_i' w + margin * cost_i; return the score of the true output, which costs nothing."""
    generics.scores(problem, w, i, theta)
    return add_costs(problem, loss, i, theta)


@helper
def add_costs(problem, loss, i, theta):
    """Theta += margin * cost_i; return the score of the true output."""
    true_score = generics.score_output(problem, i, theta, generics.true_output(problem, i))
    if loss.margin:
        generics.augment(problem, i, theta)
    return true_score


def _combine(theta: np.ndarray, a: float, other: np.ndarray, b: float) -> None:
    is_impossible = theta < IMPOSSIBLE / 2
    theta *= a
    if b:
        add_scaled(theta, other, b)
    theta[is_impossible] = IMPOSSIBLE


@helper(interpreted=_combine)
def combine(theta, a, other, b):
    """Theta = a theta + b other, for potentials of two weight vectors; impossible parts stay impossible."""
    number = theta.dtype.type
    scale = number(a)
    shift = number(b)
    for p in range(theta.size):
        is_impossible = theta[p] < number(IMPOSSIBLE / 2)
        theta[p] = number(IMPOSSIBLE) if is_impossible else scale * theta[p] + shift * other[p]
