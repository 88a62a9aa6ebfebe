"""The objective of a problem, its dual, and passes over all examples.

F(w) = (lambda/2) ||w||^2 + (1/n) sum_i weight_i loss_i(w), with a loss of `maxmargin.losses`. For any mean parts mu_i
in the marginal polytopes,

    w(mu) = 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i),
    D(mu) = (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i(mu_i)} - (lambda/2) ||w(mu)||^2 <= min F,

where entropy_i(mu_i) = h_i - <theta_i, mu_i> is what smoothing adds: zero for the hinge loss. At the mean parts where
the loss is attained at w, the gradient of the loss term is -lambda w(mu), and for smooth losses F(w) - D(mu) is
||grad F(w)||^2 / (2 lambda).

With bounds w(mu) is projected to the bounds and D gains a term (`maxmargin.solvers.bounds`). Without regularization,
lambda = 0, the only known bound is D = 0, at the true outputs: no loss is negative.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from maxmargin.checks import check_positive, check_share
from maxmargin.losses import NAMED, Loss, attain, clear, potentials
from maxmargin.problem import (
    add_output,
    augment,
    gold,
    max_oracle,
    n_examples,
    new_weights,
    score_output,
    scores,
    spread,
)
from maxmargin.runtime.dispatch import kernel
from maxmargin.runtime.passes import Blocks, Passes, new_blocks
from maxmargin.solvers.bounds import dual_term, make_bounds, project


class Certificate(NamedTuple):
    """Weights, their objective, and a lower bound of the optimum."""

    w: np.ndarray
    primal: float
    dual: float


class Evaluation(NamedTuple):
    """An objective at some weights, by one pass of its oracle; averages over the examples."""

    value: float  # F(w)
    hard: float  # F(w) with the hinge loss, or `value` where the oracle does not tell the true maximum
    gradient: np.ndarray  # of the loss term, in float64
    cost: float  # of the mean parts where the loss is attained
    entropy: float
    n_wrong: int  # oracle outputs worse than the true ones
    n_inexact: int  # examples whose smoothed maximum is only a bound


# The columns of what `loss_pass` writes for each example.
LOSS, HARD_LOSS, COST, ENTROPY, IS_WRONG, IS_INEXACT = range(6)


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
        self.problem = problem
        self.loss = loss
        self.n_jobs = n_jobs
        self.passes = Passes(problem, n_jobs, loss.n_best)
        self.n = self.passes.n
        self.n_weights = new_weights(problem).size
        self.regularization = (1 - l1_ratio) / (self.n * C)
        self.l1 = l1_ratio / (self.n * C)  # a term of its own, in solvers that know of it
        self.bounds = make_bounds(lower, upper, new_weights(problem))
        self.weight = np.ones(self.n) if sample_weight is None else np.array(sample_weight, np.float64)
        if self.weight.shape != (self.n,) or not (np.isfinite(self.weight).all() and (self.weight >= 0).all()):
            raise ValueError(f"sample_weight must hold {self.n} finite, non-negative numbers, one per example.")

    def with_loss(self, loss: Loss) -> Objective:
        """The same objective with another loss."""
        other = copy.copy(self)
        other.loss = loss
        if loss.n_best > self.passes.n_best:
            other.passes = Passes(self.problem, self.n_jobs, loss.n_best)
        return other

    def gold_means(self) -> Blocks:
        """The mean parts of the true outputs: the feasible dual point whose weights are zero."""
        means = new_blocks(self.passes.part_sizes, self.passes.dtype)
        fill_gold(self.problem, means)
        return means

    def new_outputs(self) -> Blocks:
        """Room for an output of every example."""
        return new_blocks(self.passes.output_sizes, np.int32)

    def weights(self, means: Blocks) -> np.ndarray:
        """w(mu) in float64, whatever the dtype of the problem and before it is projected to the bounds.

        It is free of the drift of incremental updates.
        """
        return self.passes.accumulate(assemble, means, self.weight, self.regularization)

    def hinge(self, w: np.ndarray, means: Blocks, gaps: np.ndarray, outputs: Blocks) -> tuple[float, int]:
        """(1/n) sum_i weight_i loss_i(w) by one oracle pass, and how many outputs were worse than the true ones.

        Fills the block gaps and the oracle's outputs.
        """
        parts = self.passes.run(oracle_pass, w, means, self.weight, gaps, outputs)
        return sum(total for total, _ in parts), sum(wrong for _, wrong in parts)

    def primal(self, w: np.ndarray, loss: float) -> float:
        """F(w), given its loss term."""
        return 0.5 * self.regularization * float(np.sum(np.square(w, dtype=np.float64))) + float(loss)

    def dual(self, v: np.ndarray, means: Blocks) -> float:
        """D(mu), given w(mu) in float64 before its projection."""
        return self.dual_value(sum(self.passes.run(expected_cost, means, self.weight)), v)

    def dual_value(self, gain: float, v: np.ndarray) -> float:
        """D(mu), given w(mu) before its projection and the mean of <cost, mu> + entropy(mu)."""
        w = project(v, self.bounds)
        return gain - self.regularization * (0.5 * float(np.dot(w, w)) + dual_term(v, self.bounds))

    def evaluate(
        self, w: np.ndarray, means: Blocks | None = None, outputs: Blocks | None = None, oracle: Any = None
    ) -> Evaluation:
        """F(w) with its gradient and a dual point, by one pass of the loss's oracle or of a given one.

        `means` keeps its mean parts, `outputs` those of a max oracle.
        """
        values, nowhere = np.zeros((self.n, 6)), np.zeros(self.n + 1, np.int64)
        gradient = self.passes.accumulate(
            loss_pass,
            w.astype(self.passes.dtype, copy=False),
            self.loss.compiled() if oracle is None else oracle,
            self.passes.part_sizes,
            self.weight,
            Blocks(np.zeros(0, self.passes.dtype), nowhere) if means is None else means,
            Blocks(np.zeros(0, np.int32), nowhere) if outputs is None else outputs,
            values,
        )
        averages = self.weight @ values[:, :IS_WRONG] / self.n
        n_wrong, n_inexact = np.count_nonzero(values[:, IS_WRONG:], axis=0)
        return Evaluation(
            value=self.primal(w, averages[LOSS]),
            hard=self.primal(w, averages[HARD_LOSS]),
            gradient=gradient,
            cost=averages[COST],
            entropy=averages[ENTROPY],
            n_wrong=int(n_wrong),
            n_inexact=int(n_inexact),
        )


@kernel
def fill_gold(problem, means):
    """Means += the parts of the true outputs."""
    for i in range(n_examples(problem)):
        add_output(problem, i, gold(problem, i), 1.0, means.values[means.start[i] : means.start[i + 1]])


@kernel
def assemble(problem, w, means, weight, regularization, lo, hi, scratch):
    """W += 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i) over the examples lo:hi."""
    scale = 1.0 / (regularization * n_examples(problem))
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        delta = scratch.delta[: mu.size]
        for p in range(mu.size):
            delta[p] = -mu[p]
        add_output(problem, i, gold(problem, i), 1.0, delta)
        spread(problem, w, i, delta, weight[i] * scale)


@register_jitable
def inner(a, b):
    """<a, b>, summed in float64."""
    total = 0.0
    for p in range(a.size):
        total += a[p] * b[p]
    return total


@register_jitable
def augmented_potentials(problem, w, i, theta):
    """Theta = B_i' w + cost_i."""
    scores(problem, w, i, theta)
    augment(problem, i, theta)


@register_jitable
def call_oracle(problem, i, theta, y, work):
    """Write an output of the highest score into y; return its score, that of the true output, and whether it is worse.

    An output that is worse than the true one, beyond rounding, is replaced by the true one.
    """
    max_oracle(problem, i, theta, y, work)
    best = score_output(problem, i, theta, y)
    true_output = gold(problem, i)
    truth = score_output(problem, i, theta, true_output)
    is_worse = best < truth - 1e-5 * (1 + abs(truth))
    if is_worse:
        for t in range(true_output.size):
            y[t] = true_output[t]
        best = truth
    return best, truth, is_worse


@kernel
def oracle_pass(problem, w, means, weight, gaps, outputs, lo, hi, scratch):
    """Block gaps and oracle outputs of the examples lo:hi; the sum of hinge losses, divided by n, and wrong outputs."""
    n = n_examples(problem)
    total = 0.0
    n_wrong = 0
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        theta = scratch.theta[: mu.size]
        augmented_potentials(problem, w, i, theta)
        y = outputs.values[outputs.start[i] : outputs.start[i + 1]]
        best, truth, is_worse = call_oracle(problem, i, theta, y, scratch.work)
        gaps[i] = weight[i] * (best - inner(theta, mu)) / n
        total += weight[i] * (best - truth)
        n_wrong += is_worse
    return total / n, n_wrong


@kernel
def loss_pass(problem, gradient, w, loss, sizes, weight, means, outputs, values, lo, hi, scratch):
    """Add (1/n) sum_i weight_i B_i (mu_i - s_i(y_i)) over the examples lo:hi to the gradient; fill their values."""
    n = n_examples(problem)
    for i in range(lo, hi):
        theta = scratch.theta[: sizes[i]]
        delta = scratch.delta[: sizes[i]]
        truth = potentials(problem, loss, w, i, theta)
        h, top, mean, is_exact = attain(loss, problem, i, theta, delta, scratch)
        if means.values.size > 0:
            kept = means.values[means.start[i] : means.start[i + 1]]
            for p in range(kept.size):
                kept[p] = delta[p]
        if outputs.values.size > 0:
            y = outputs.values[outputs.start[i] : outputs.start[i + 1]]
            for t in range(y.size):
                y[t] = scratch.y[t]
        values[i, LOSS] = h - truth
        values[i, HARD_LOSS] = top - truth
        values[i, ENTROPY] = h - mean
        if loss.margin:
            clear(theta)
            augment(problem, i, theta)
            values[i, COST] = inner(theta, delta)
        values[i, IS_WRONG] = top < truth - 1e-5 * (1 + abs(truth))
        values[i, IS_INEXACT] = not is_exact
        add_output(problem, i, gold(problem, i), -1.0, delta)
        spread(problem, gradient, i, delta, weight[i] / n)


@kernel
def expected_cost(problem, means, weight, lo, hi, scratch):
    """(1/n) sum_i weight_i <cost_i, mu_i> over the examples lo:hi."""
    total = 0.0
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        theta = scratch.theta[: mu.size]
        for p in range(theta.size):
            theta[p] = 0
        augment(problem, i, theta)
        total += weight[i] * inner(theta, mu)
    return total / n_examples(problem)
