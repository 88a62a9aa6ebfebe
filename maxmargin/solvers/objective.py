"""The objective of a problem, its dual, and passes over all examples.

F(w) = (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), with a loss of `maxmargin.losses`. For any mean parts mu_i
in the marginal polytopes,

    w(mu) = 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i),
    D(mu) = (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i(mu_i)} - (lambda/2) ||w(mu)||^2 <= min F,

where entropy_i(mu_i) = h_i - <theta_i, mu_i> is what smoothing adds: zero for the hinge loss. At the mean parts where
the loss is attained at w, the gradient of the loss term is -lambda w(mu), and for smooth losses F(w) - D(mu) is
||grad F(w)||^2 / (2 lambda).

Dual points are kept as mu_i - s_i(y_i), zero at the true outputs: where examples are nearly separable they are so close
to them that float32 could not tell mu_i from s_i(y_i). Potentials are rounded, and so objectives are rounded up.

With bounds w(mu) is projected to the bounds and D gains a term (`maxmargin.solvers.bounds`). Without regularization,
lambda = 0, the only known bound is D = 0, at the true outputs: no loss is negative.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from maxmargin.checks import as_sample_weight, check_positive, check_share
from maxmargin.features.kernel import complete, inner_product, kernel_of, squared_length
from maxmargin.losses import NAMED, BoundedLoss, Loss, attain, attained_on, potentials
from maxmargin.persist.registry import kept
from maxmargin.problem import (
    IMPOSSIBLE,
    accumulate,
    add_output,
    augment,
    gold,
    is_beyond_reach,
    n_examples,
    new_weights,
    prepared,
    score_output,
)
from maxmargin.runtime.blocks import Blocks, new_blocks
from maxmargin.runtime.dispatch import helper, kernel
from maxmargin.runtime.passes import Passes
from maxmargin.runtime.vectors import clear, copy_into, inner
from maxmargin.runtime.views import matrix
from maxmargin.solvers.active_sets import ActiveSets, DualPoint, best_stored, fill_means, no_sets, read_means
from maxmargin.solvers.bounds import dual_term, make_bounds, project

FINE = 1e-10  # a rounding for which a rough bound, by one of the two outputs, is good enough
LEAST_C, LARGEST_C = 1e-30, 1e30  # beyond them, steps leave the range of numbers in float32


@kept
class Certificate(NamedTuple):
    """Weights, their objective, a lower bound of the optimum, and what else a solver has to show in the trace."""

    w: np.ndarray
    primal: float
    dual: float
    extras: Mapping[str, float] = MappingProxyType({})


@kept
class Evaluation(NamedTuple):
    """An objective at some weights, by one pass of its oracle; averages over the examples."""

    value: float  # F(w), rounded up; infinite where potentials are beyond reach
    hard: float  # F(w) with the hinge loss, or `value` where the oracle does not tell the true maximum
    gradient: np.ndarray  # of the loss term, in float64; empty if it was not asked for
    cost: float  # of the mean parts where the loss is attained
    entropy: float  # rounded down
    rounding: float  # by how much potentials that are rounded may change F(w)
    slack: float  # by how much the value is above what the oracle's outputs attain, where it is only an upper bound
    gaps: np.ndarray  # (n,) how much the loss of each example, less its slack, exceeds its value at a given dual point
    n_wrong: int  # oracle outputs worse than the true ones, or than stored ones
    n_inexact: int  # examples of which that is so


# The columns of what `loss_pass` writes for each example.
LOSS, HARD_LOSS, COST, ENTROPY, ROUNDING, GAP, SLACK, IS_WRONG, IS_BEYOND_REACH = range(9)


class Objective:
    """A problem with its loss, regularization and sample weights, evaluated on several threads.

    Parameters
    ----------
    problem : the examples
    C : inverse strength of the regularization, lambda = 1/(n C); infinite for none
    sample_weight : (n,) weights of the examples, all 1 by default
    n_jobs : the number of threads of a pass over all examples, as in scikit-learn
    lower, upper : bounds of the weights, numbers or one per weight
    loss : the loss of an example
    l1_ratio : the share of the L1 norm in the regularization
    """

    def __init__(
        self,
        problem: Any,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        n_jobs: int | None = None,
        lower: Any = None,
        upper: Any = None,
        loss: Loss = NAMED["hinge"],
        l1_ratio: float = 0.0,
    ) -> None:
        check_positive("C", C, allow_infinite=True)
        check_share("l1_ratio", l1_ratio)
        C, l1_ratio = float(C), float(l1_ratio)
        if not (LEAST_C <= C <= LARGEST_C or np.inf == C):
            raise ValueError(f"C must be between {LEAST_C:g} and {LARGEST_C:g}, or infinite, not {C:g}.")
        self.loss = attained_on(loss, problem)
        self.n_jobs = n_jobs
        self.passes = Passes(problem, n_jobs, loss.n_best)
        self.problem = self.passes.problem  # for steps on single examples
        self.kernel = kernel_of(self.problem.problem)
        if self.kernel is not None:
            followed = self.problem.problem._replace(features=self.kernel._replace(follows=True))
            self.problem = self.problem.sibling(followed)
        self.n = self.passes.n
        self.n_weights = new_weights(problem).size
        self.regularization = (1 - l1_ratio) / (self.n * C)
        self.l1 = l1_ratio / (self.n * C)  # a term of its own, in solvers that know of it
        self.bounds = make_bounds(lower, upper, new_weights(problem))
        self.weight = np.ones(self.n) if sample_weight is None else as_sample_weight(sample_weight, self.n)

    def with_loss(self, loss: Loss) -> Objective:
        """The same objective with another loss."""
        other = copy.copy(self)
        other.loss = attained_on(loss, self.problem)
        if loss.n_best > self.passes.n_best:
            other.passes = Passes(self.passes.problem, self.n_jobs, loss.n_best)
        return other

    def with_regularization(self, regularization: float) -> Objective:
        """The same objective with another lambda."""
        other = copy.copy(self)
        other.regularization = regularization
        return other

    def prepared(self, dtype: Any) -> Objective:
        """The same objective, of the problem made ready for many short steps in a precision; without its bounds."""
        other = copy.copy(self)
        other.passes = Passes(prepared(self.problem.problem, dtype), self.n_jobs, self.passes.n_best)
        other.problem = other.passes.problem
        return other

    @property
    def is_bounded(self) -> bool:
        """Whether the oracle need not find the best outputs, and says by how much they may be better."""
        return isinstance(self.loss, BoundedLoss)

    def gold_means(self) -> Blocks:
        """The dual point of the true outputs, whose weights are zero."""
        return new_blocks(self.passes.part_sizes, self.passes.dtype)

    def new_outputs(self) -> Blocks:
        """Room for an output of every example."""
        return new_blocks(self.passes.output_sizes, np.int32)

    def means_of(self, point: DualPoint) -> Blocks:
        """The mean parts of a dual point, less those of the true outputs."""
        means = self.gold_means()
        self.passes.run(fill_means, point.sets, point.means, means)
        return means

    def at(self, point: DualPoint | Blocks) -> tuple[np.ndarray, float]:
        """w(mu) and D(mu) of a dual point, or of its mean parts, in float64 whatever the dtype of the problem.

        The weights are those before they are projected to the bounds, free of the drift of incremental updates.
        """
        v, cost = self.sums_of(point)
        return v, self.dual_value(cost, v)

    def sums_of(self, point: DualPoint | Blocks) -> tuple[np.ndarray, float]:
        """w(mu) before its projection, and the mean of <cost, mu>, of a dual point."""
        costs, (means, sets, _) = np.zeros(self.n), as_point(point)
        arguments = means, sets, self.passes.part_sizes, self.weight, self.regularization, costs
        v = self.passes.accumulate(assemble, *arguments)
        self.complete(v)
        return v, float(costs.sum()) / self.n

    def complete(self, v: np.ndarray) -> None:
        """Fill in what sums over examples leave out of weights, where features are those of a kernel."""
        if self.kernel is not None:
            complete(self.kernel, v)

    def inner(self, a: np.ndarray, b: np.ndarray) -> float:
        """The inner product of two weights in float64."""
        return float(np.dot(a, b)) if self.kernel is None else inner_product(self.kernel, a, b)

    def squared_length(self, w: np.ndarray) -> float:
        """||w||^2 in float64; rounded up, where features are those of a kernel."""
        if self.kernel is None:
            return float(np.sum(np.square(w, dtype=np.float64)))
        return squared_length(self.kernel, w)

    def in_dtype(self, w: np.ndarray) -> np.ndarray:
        """Weights in the dtype of the problem."""
        rounded = w.astype(self.passes.dtype, copy=False)
        if rounded is not w:
            self.complete(rounded)  # by what the coefficients have become
        return rounded

    def primal(self, w: np.ndarray, loss: float) -> float:
        """F(w), given its loss term."""
        return 0.5 * self.regularization * self.squared_length(w) + float(loss)

    def dual_value(self, gain: float, v: np.ndarray) -> float:
        """D(mu), given w(mu) before its projection and the mean of <cost, mu> + entropy(mu)."""
        w = project(v, self.bounds)
        return gain - self.regularization * (0.5 * self.squared_length(w) + dual_term(v, self.bounds))

    def evaluate(
        self,
        w: np.ndarray,
        *,
        means: Blocks | None = None,
        outputs: Blocks | None = None,
        point: DualPoint | Blocks | None = None,
        sets: ActiveSets | None = None,
        loss: Any = None,
        with_gradient: bool = True,
    ) -> Evaluation:
        """F(w) with its gradient and a dual point, by one pass of the oracle.

        Parameters
        ----------
        w : the weights
        means : where to keep the mean parts at which the losses are attained, less those of the true outputs
        outputs : where to keep the outputs of a max oracle
        point : a dual point, or its mean parts, to fill in the gaps
        sets : stored outputs that those of a max oracle must not be worse than, by default those of the point
        loss : in place of that of the objective
        with_gradient : whether to sum up the gradient
        """
        values, w = np.zeros((self.n, 9)), self.in_dtype(w)
        arguments = self._loss_arguments(w, loss or self.loss, means, outputs, point, sets, values)
        size = self.n_weights if with_gradient else 0
        gradient = self.passes.accumulate(loss_pass, *arguments, size=size)
        if with_gradient:
            self.complete(gradient)
        averages = self.weight @ values[:, :IS_WRONG] / self.n
        n_inexact, n_wrong, n_beyond_reach = np.count_nonzero(values[:, SLACK:], axis=0)
        if n_beyond_reach:
            averages[:] = np.inf
        rounding = float(np.linalg.norm(self.weight * values[:, ROUNDING])) / self.n  # of examples on their own
        return Evaluation(
            value=self.primal(w, averages[LOSS] + rounding),
            hard=self.primal(w, averages[HARD_LOSS] + rounding),
            gradient=gradient,
            cost=averages[COST],
            entropy=averages[ENTROPY] - rounding,
            rounding=rounding,
            slack=averages[SLACK],
            gaps=self.weight * values[:, GAP] / self.n,
            n_wrong=int(n_wrong),
            n_inexact=int(n_inexact),
        )

    def prepare(self) -> None:
        """Compile what `evaluate` runs, so that the first time it takes is that of the work."""
        arguments = self._loss_arguments(new_weights(self.problem), self.loss, None, None, None, None, np.zeros((0, 9)))
        loss_pass(self.passes.problem, np.zeros(0), *arguments, 0, 0, self.passes.scratches[0])

    def _loss_arguments(
        self,
        w: np.ndarray,
        loss: Any,
        means: Blocks | None,
        outputs: Blocks | None,
        point: DualPoint | Blocks | None,
        sets: ActiveSets | None,
        values: np.ndarray,
    ) -> tuple[Any, ...]:
        dtype, sizes = self.passes.dtype, self.passes.part_sizes
        at = None if point is None else as_point(point)
        if at is not None and not at.means.values.size:
            sets = at.sets
        kept = (
            Blocks(np.zeros(0, kind), np.zeros(1, np.int64)) if blocks is None else blocks
            for blocks, kind in ((means, dtype), (outputs, np.int32), (at and at.means, dtype))
        )
        eps = float(np.finfo(dtype).eps)
        return w, loss, sizes, self.weight, *kept, sets or no_sets(), eps, values


def as_point(point: DualPoint | Blocks) -> DualPoint:
    """A dual point, of which only the mean parts may be given."""
    return point if isinstance(point, DualPoint) else DualPoint(point, no_sets())


@kernel
def assemble(problem, w, means, sets, sizes, weight, regularization, costs, lo, hi, scratch):
    """W += 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i) over lo:hi; costs[i] = weight_i <cost_i, mu_i>."""
    scale = 1.0 / (regularization * n_examples(problem))
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        mu = scratch.delta[: sizes[i]]
        read_means(problem, i, means, sets, mu)
        clear(theta)
        augment(problem, i, theta)
        costs[i] = weight[i] * (score_output(problem, i, theta, gold(problem, i)) + inner(theta, mu))
        accumulate(problem, w, i, mu, -weight[i] * scale)


@helper
def is_below(best, rival):
    """Whether an output is worse than another one, beyond rounding: the oracle is wrong."""
    return best < rival - 1e-5 * (1 + abs(rival))


def _largest_potential(theta: np.ndarray) -> float:
    sizes = np.abs(theta)
    return sizes.max(where=sizes < -IMPOSSIBLE / 2, initial=0.0)


@helper(interpreted=_largest_potential)
def largest_potential(theta):
    """The magnitude of the largest potential of a possible part."""
    most = theta.dtype.type(-IMPOSSIBLE / 2)
    largest = theta.dtype.type(0)
    for p in range(theta.size):
        size = abs(theta[p])
        size = size if size < most else theta.dtype.type(0)
        largest = size if size > largest else largest
    return largest


def _size_of_score(theta: np.ndarray, mu: np.ndarray, largest: float) -> float:
    which = np.flatnonzero(mu != 0)  # often few
    sizes = np.abs(mu[which])
    size = inner(np.abs(theta[which]), sizes)
    return min(size, largest * float(sizes.sum(dtype=np.float64))) if size > 0 else 0.0


@helper(interpreted=_size_of_score)
def size_of_score(theta, mu, largest):
    """The sum of the magnitudes of a score's terms, given that of the largest potential: what rounding is relative to.

    Some oracles leave potentials larger than they were.
    """
    size = 0.0
    n_parts = 0.0
    for p in range(theta.size):
        size += abs(theta[p] * mu[p])
        n_parts += abs(mu[p])
    return min(size, largest * n_parts) if size > 0 else 0.0  # the largest may be infinite


@kernel
def loss_pass(problem, gradient, w, loss, sizes, weight, means, outputs, point, sets, eps, values, lo, hi, scratch):
    """Evaluate the losses of the examples lo:hi and fill in their values; add their gradient, unless it is empty.

    The gradient is (1/n) sum_i weight_i B_i (mu_i - s_i(y_i)). An output that is worse than the true one, or a stored
    one, is replaced by it. The rounding of a loss is taken to be that of the parts of its two outputs.
    """
    n = n_examples(problem)
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        delta = scratch.delta[: sizes[i]]
        true_output = gold(problem, i)
        truth = potentials(problem, loss, w, i, theta)
        values[i, IS_BEYOND_REACH] = is_beyond_reach(theta)
        least = score_output(problem, i, theta, true_output)
        rival = true_output
        if point.values.size > 0:
            values[i, GAP] = -least - inner(theta, point.values[point.start[i] : point.start[i + 1]])
        if sets.sizes.size > 0:
            slot, score, mean = best_stored(problem, i, theta, sets)
            if point.values.size == 0:
                values[i, GAP] = -mean
            if score > least:
                least = score
                rival = matrix(sets.outputs, sets.output_at[i], sets.capacity[i], sets.sizes[i])[slot]
        largest = np.inf
        size = 0.0
        if eps > FINE:
            largest = np.float64(largest_potential(theta))
            clear(delta)
            add_output(problem, i, true_output, 1.0, delta)
            size = largest + size_of_score(theta, delta, largest)
        h, top, mean, slack = attain(loss, problem, i, theta, delta, scratch)
        is_wrong = is_below(top, least)
        is_worse = is_below(min(top, h - slack), least)
        h = max(h, least)
        slack = h - max(h - slack, least)
        if is_worse:
            mean = h
            clear(delta)
            add_output(problem, i, rival, 1.0, delta)
        top = max(top, least)
        if outputs.values.size > 0:
            y = outputs.values[outputs.start[i] : outputs.start[i + 1]]
            copy_into(y, rival if is_worse else scratch.y[: y.size])
        values[i, LOSS] = h - truth
        values[i, HARD_LOSS] = top - truth
        values[i, ENTROPY] = h - mean
        size += (1 if eps > FINE else 2) * size_of_score(theta, delta, largest)
        values[i, ROUNDING] = eps * size
        values[i, GAP] += h - slack
        values[i, SLACK] = slack
        values[i, IS_WRONG] = is_wrong
        if gradient.size > 0 and loss.margin:
            clear(theta)
            augment(problem, i, theta)
            values[i, COST] = inner(theta, delta)
        add_output(problem, i, true_output, -1.0, delta)
        if means.values.size > 0:
            copy_into(means.values[means.start[i] : means.start[i + 1]], delta)
        if gradient.size > 0:
            accumulate(problem, gradient, i, delta, weight[i] / n)
