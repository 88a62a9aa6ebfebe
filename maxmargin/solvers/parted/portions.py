"""Examples in portions: an objective of all of them is put together by what each portion says of its own.

Whoever asks hands over a function of an objective, which is called where the examples are, once per portion, and the
answers come back in the order of the portions: where a portion lives, and who else lives there, changes nothing. What
belongs to examples, such as dual points and outputs, stays there, too (`Kept`).

The objective of a portion is an ordinary one. Its regularization lambda_k makes lambda_k n_k what lambda n is for all
examples, so that sums over its examples move weights as they do there; averages count by the shares n_k / n.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxmargin.execution.clock import Clock
from maxmargin.execution.threads import count_threads
from maxmargin.features.layout import ScaledLayout
from maxmargin.losses import BaseLoss
from maxmargin.persist.registry import register_state
from maxmargin.problem import AnyProblem, part_sizes
from maxmargin.solvers.objective.evaluation import Objective

T = TypeVar("T")  # what a function tells of a portion


class Terms(NamedTuple):
    """What an objective of all examples says about those of portions."""

    loss: BaseLoss
    regularization: float
    n: int  # of all examples
    n_jobs: int | None


class Portion:
    """Some of the examples, at hand.

    Parameters
    ----------
    problem
        The examples; its weights mean the same as those of other portions, in the order of the model.
    sample_weight : (n_k,) their weights, all 1 by default
    """

    def __init__(self, problem: AnyProblem, sample_weight: np.ndarray | None = None) -> None:
        self.problem, self.sample_weight = problem, sample_weight
        self._base: Objective | None = None
        self.lock = threading.Lock()  # of what its objectives share: room to work in

    def __reduce__(self) -> tuple[object, ...]:
        return receive, (self.problem, self.sample_weight)

    def objective(self, terms: Terms) -> Objective:
        """That of its examples."""
        base, loss = self._base, terms.loss
        if base is None or base.n_jobs != terms.n_jobs or base.runner.n_best < loss.n_best:
            self._base = base = Objective(self.problem, 1.0, self.sample_weight, terms.n_jobs, loss=loss)
        return base.with_loss(loss).with_regularization(terms.regularization * (terms.n / base.n))


def receive(*args: object) -> Portion:
    """A portion that came from another process."""
    return Portion(*in_tuples(own, args))


def own(value: object) -> object:
    """An array of one's own: those from other processes may be read-only, and lie anywhere."""
    return value.copy() if isinstance(value, np.ndarray) else value


@register_state
class Kept:
    """What stays with the examples: something of each portion."""

    fetch: Callable[[list[Any]], list[Any]] | None = None  # brings values here, where they are elsewhere
    age = 0  # how often they were changed there

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __getstate__(self) -> dict[str, object]:
        return {"values": self.values if self.fetch is None else self.fetch(self.values)}


class Portions(ABC):
    """All examples, in portions.

    Attributes
    ----------
    sizes : (K,) array
        The numbers of their examples.
    like
        A problem of the same kind, with the same weights, at hand: it tells oracles, precision and layout.
    layout : ScaledLayout or None
        How solvers are to have the weights, where not as the model has them; for those alone that ask for sums.
    """

    sizes: np.ndarray
    like: AnyProblem
    layout: ScaledLayout | None = None

    @abstractmethod
    def each(
        self,
        function: Callable[..., T],
        terms: Terms,
        *args: object,
        fills: Sequence[Kept] = (),
        clock: Clock | None = None,
    ) -> Iterable[T]:
        """Call ``function(objective, *args)`` where each portion is; the results, in the order of the portions.

        They may be found as they are asked for, so that not all need be in memory: each is asked for once.

        Of what is `Kept` in the arguments, also inside of tuples, each is handed its own; those that the function
        fills in are to be named. Raises `BrokenOff` when the clock says so.
        """

    @abstractmethod
    def keep(self, function: Callable[..., object], terms: Terms, *args: object, clock: Clock | None = None) -> Kept:
        """As `each`, with results that stay where they are; the function may change what is kept in its arguments."""

    def n_threads(self, n_jobs: int | None) -> int:
        """On how many threads a pass is made."""
        return count_threads(n_jobs)

    def brought_near(self, loss: BaseLoss, n_jobs: int | None) -> Portions:
        """The same portions, here if that is where passes of a loss take less time."""
        return self

    @abstractmethod
    def identity(self) -> object:
        """What tells the examples from others, for checkpoints."""


class LocalPortions(Portions):
    """Portions that this process can open, one after the other.

    Parameters
    ----------
    portions
        Them; subclasses that have none in memory override `open`.

    Examples
    --------
    >>> from maxmargin import LBFGS
    >>> from maxmargin.solvers.parted.portions import LocalPortions, Portion
    >>> from maxmargin.testing import toy_chains
    >>> LBFGS().solve(LocalPortions([Portion(toy_chains()), Portion(toy_chains())])).status.name
    'OPTIMAL'
    """

    folder: str | None = None  # where there is room for what steps keep of portions; that of temporary files

    def __init__(self, portions: Sequence[Portion]) -> None:
        self.portions = portions
        self.sizes = np.array([len(part_sizes(portion.problem)) for portion in portions])
        self.like = portions[0].problem

    def open(self, k: int) -> Portion:
        """The portion k."""
        return self.portions[k]

    def each(
        self,
        function: Callable[..., T],
        terms: Terms,
        *args: object,
        fills: Sequence[Kept] = (),
        clock: Clock | None = None,
    ) -> Iterator[T]:
        for k in range(len(self.sizes)):
            objective = self.open(k).objective(terms)
            objective.runner.clock = clock
            found = function(objective, *hand_out(args, partial(own_of, k)))
            del objective  # so that no two portions are open at once
            yield found
            del found

    def keep(self, function: Callable[..., object], terms: Terms, *args: object, clock: Clock | None = None) -> Kept:
        return Kept([*self.each(function, terms, *args, clock=clock)])

    def identity(self) -> object:
        return [(portion.problem, portion.sample_weight) for portion in map(self.open, range(len(self.sizes)))]


@dataclass(frozen=True)
class Thin:
    """A vector by some of its coordinates; the others are zero."""

    size: int
    places: np.ndarray
    values: np.ndarray


def own_of(k: int, kept: Kept) -> Any:
    """What is kept of portion k."""
    return kept.values[k]


def hand_out(value: object, get: Callable[[Kept], object]) -> Any:
    """A value with what is kept, also inside of tuples, replaced by what `get` makes of it."""
    return in_tuples(lambda leaf: get(leaf) if isinstance(leaf, Kept) else leaf, value)


def in_tuples(change: Callable[[object], object], value: object) -> Any:
    """What a function makes of a value, and of those in tuples."""
    if isinstance(value, tuple):
        fields = (in_tuples(change, field) for field in value)
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return change(value)
