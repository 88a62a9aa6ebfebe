"""The hinge loss, and what smooths its maximum: l2 or entropy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from maxmargin.arrays.vectors import clear, inner
from maxmargin.arrays.views import matrix
from maxmargin.checks import check_choice, check_count
from maxmargin.losses.base_loss import LEAST_LEVEL, BaseLoss, attains, check_level, check_margin, combine
from maxmargin.losses.smoothing import SMOOTHINGS, bound_sorted, has_weight, smooth_sorted
from maxmargin.persist.registry import register, renaming
from maxmargin.problem import IMPOSSIBLE, AnyProblem, add_output, exp_oracle, topk_oracle, true_output


@dataclass(frozen=True)
class Loss(BaseLoss):
    """The hinge loss, the hinge loss with its maximum smoothed, or without margin; the log loss is one of these.

    Parameters
    ----------
    smoothing
        None for the maximum, "l2" (by the top-K oracle) or "entropy" (by the exp oracle).
    level
        How much the maximum is smoothed.
    margin
        Whether outputs must win by their cost.
    max_k
        The most outputs that l2 smoothing mixes: the smoothed maximum is exact where these are enough.

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

    renamed: ClassVar[Mapping[str, str | None]] = {"mu": "level"}

    def __post_init__(self) -> None:
        check_choice("smoothing", self.smoothing, (None, *SMOOTHINGS))
        check_margin(self.margin)
        least = {"least": LEAST_LEVEL} if self.smoothing == "entropy" else {}
        object.__setattr__(self, "level", check_level(self.level, **least))
        check_count("max_k", self.max_k)

    @property
    def oracle(self) -> str:
        return {None: "max", "l2": "topk", "entropy": "exp"}[self.smoothing]

    @property
    def is_smooth(self) -> bool:
        return self.smoothing is not None

    @property
    def name(self) -> str:
        """What to call it: "hinge", "smooth_hinge" or "log"."""
        if not self.is_smooth:
            return "hinge"
        return "smooth_hinge" if self.margin else "log"

    @property
    def entropy_level(self) -> float | None:
        return {None: 0.0, "l2": None, "entropy": self.level}[self.smoothing]

    @property
    def n_best(self) -> int:
        """One more than are to have a weight."""
        return self.max_k + 1 if self.smoothing == "l2" else 1

    def attained_on(self, problem: AnyProblem) -> object:
        if self.smoothing == "l2":
            return TopK(self.margin, self.level, self.max_k)
        return Marginals(self.margin, self.level) if self.smoothing else super().attained_on(problem)

    def attain_at(self, problem, i, theta, y, score, bound, means):
        """The maximum itself."""
        clear(means)
        add_output(problem, i, y, 1.0, means)
        return bound, bound, bound, bound - score


for earlier in ("MaxLoss", "TopKLoss", "ExpLoss"):  # the classes that files of earlier versions name
    register(Loss, name=earlier, make=renaming(Loss, Loss.renamed))
register(Loss)


@attains
class TopK(NamedTuple):
    """The maximum smoothed by l2: a mixture of the best outputs."""

    margin: bool
    level: float
    max_k: int

    def attain(self, problem, i, theta, means, scratch):
        outputs = matrix(scratch.outputs, 0, self.max_k + 1, true_output(problem, i).size)
        values = scratch.values[: self.max_k + 1]
        found = topk_oracle(problem, i, theta, outputs, values, self.level, scratch.work)
        count = min(found, self.max_k)
        h = smooth_sorted(values, count, self.level, scratch.shares)
        # Proposition 4: the outputs that were not asked for have no weight if the last one has none.
        is_exact = found == count or not has_weight(values, count, self.level)
        slack = 0.0 if is_exact else max(bound_sorted(values, count, self.level) - h, 0.0)
        clear(means)
        mean = 0.0
        for k in range(count):
            if scratch.shares[k] > 0:
                add_output(problem, i, outputs[k], scratch.shares[k], means)
                mean += scratch.shares[k] * values[k]
        return h + slack, values[0], mean + slack, slack


@attains
class Marginals(NamedTuple):
    """The maximum smoothed by entropy: the marginals at its level."""

    margin: bool
    level: float

    def attain(self, problem, i, theta, means, scratch):
        if self.level != 1:
            combine(theta, 1 / self.level, theta, 0.0)
        log_z = exp_oracle(problem, i, theta, means, scratch.work)
        h = log_z if log_z < IMPOSSIBLE / 2 else self.level * log_z  # where nothing is possible, no level makes it so
        if self.level != 1:
            combine(theta, self.level, theta, 0.0)
        return h, h, inner(theta, means), 0.0
