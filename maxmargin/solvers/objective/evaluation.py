"""The objective of a problem, its dual, and passes over all examples.

F(w) = (lambda/2) ||w||^2 - <q, w> + (1/n) sum_i weight_i loss_i(w), with a loss of `maxmargin.losses` and a linear
term, mostly zero. For any mean parts mu_i in the marginal polytopes,

    w(mu) = q/lambda + 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - mu_i),
    D(mu) = (1/n) sum_i weight_i {<cost_i, mu_i> + entropy_i(mu_i)} - (lambda/2) ||w(mu)||^2 <= min F,

where entropy_i(mu_i) = h_i - <theta_i, mu_i> is what smoothing adds: zero for the hinge loss. At the mean parts where
the loss is attained at w, the gradient of all but the regularization is -lambda w(mu), and for smooth losses
F(w) - D(mu) is ||grad F(w)||^2 / (2 lambda).
The linear term takes the place of true outputs that are not known, or known softly: with q = (1/n) sum_i weight_i B_i
(mean_i - s_i(y_i)), scores of true outputs become those of other mean parts, and dual points stay what they are.

Dual points are kept as mu_i - s_i(y_i), zero at the true outputs: where examples are nearly separable they are so close
to them that float32 could not tell mu_i from s_i(y_i).

Potentials are rounded, and so objectives are rounded up. Where a pass sums up the gradient g of the loss term, too, in
float64, the loss term is <w, g> plus the means of costs and entropies: free of the rounding of float32 potentials, but
for outputs that are not quite the best because of it.

With a prior m, ||w||^2 becomes ||w - m||^2, by a linear term and a constant. With bounds w(mu) is projected to them and
D gains a term (`bounds`). With lambda = 0, the only known bound is D = 0, at the true outputs: no loss is negative.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.arrays.blocks import Blocks, new_blocks
from maxmargin.checks import as_sample_weight, check_positive, check_share
from maxmargin.execution.runner import Runner
from maxmargin.features.layout import WeightLayout, layout_of, with_complete_steps
from maxmargin.losses import NAMED, BaseLoss
from maxmargin.losses.base_loss import OfBound
from maxmargin.problem import prepare
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.objective.active_sets import ActiveSets, DualPoint, as_point, fill_means, no_blocks, no_sets
from maxmargin.solvers.objective.bounds import dual_term, make_bounds, project, shrink
from maxmargin.solvers.objective.linear_term import add_pull, as_linear, read_terms
from maxmargin.solvers.objective.loss_pass import (
    COST,
    ENTROPY,
    HARD_LOSS,
    LOSS,
    N_COLUMNS,
    SLACK,
    Evaluation,
    Examples,
    Found,
    LossSums,
    assemble,
    loss_pass,
    rounding_of,
    sum_up,
)
from maxmargin.solvers.objective.objective_options import PassOptions

LEAST_C, LARGEST_C = 1e-30, 1e30  # beyond them, steps leave the range of numbers in float32


class Objective:
    """A problem with its loss, regularization and sample weights, evaluated on several threads.

    Parameters
    ----------
    problem
        The examples.
    C
        Inverse strength of the regularization, lambda = 1/(n C); infinite for none.
    sample_weight : (n,) weights of the examples, all 1 by default
    n_jobs
        The number of threads of a pass over all examples, as in scikit-learn.
    lower, upper
        Bounds of the weights, numbers or one per weight.
    loss
        The loss of an example.
    l1_ratio
        The share of the L1 norm in the regularization.
    linear
        The linear term q, in the layout of solvers; None for none.
    prior
        The weights m that the regularization draws to, in the layout of solvers; None for zero.
    """

    is_convex = True
    tilt = 0.0  # of outputs that are known in part, where a share of labels is expected

    def __init__(
        self,
        problem: Any,
        C: float = 1.0,
        sample_weight: np.ndarray | None = None,
        n_jobs: int | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        loss: BaseLoss = NAMED["hinge"],
        l1_ratio: float = 0.0,
        linear: np.ndarray | None = None,
        prior: np.ndarray | None = None,
    ) -> None:
        check_positive("C", C, allow_infinite=True)
        check_share("l1_ratio", l1_ratio)
        self.C, self.l1_ratio = C, l1_ratio = float(C), float(l1_ratio)
        if not (LEAST_C <= C <= LARGEST_C or np.inf == C):
            raise ValueError(f"C must be between {LEAST_C:g} and {LARGEST_C:g}, or infinite, not {C:g}.")
        self.loss, self.attained = loss, loss.attained_on(problem)  # what it is, and as loops take it
        self.n_jobs = n_jobs
        self.runner = Runner(problem, n_jobs, loss.n_best)
        self.problem = self.runner.problem  # for steps on single examples
        self.layout = self._find_layout()
        if not self.layout.is_explicit:
            self.problem = self.problem.sibling(with_complete_steps(self.problem.problem))
        self.n, self.n_weights = self._count_examples(), self.layout.n_solved
        self.regularization = (1 - l1_ratio) / (self.n * C)
        self.l1 = l1_ratio / (self.n * C)  # a term of its own
        self.bounds = make_bounds(lower, upper, np.zeros(self.n_weights, self.runner.dtype))
        n = self.runner.n
        self.weight = np.ones(n) if sample_weight is None else as_sample_weight(sample_weight, n)
        self.linear, self.constant = read_terms(linear, prior, self.regularization, self.layout)
        self.prior = None if prior is None else np.asarray(prior, np.float64)

    def _find_layout(self) -> WeightLayout:
        return layout_of(self.problem.problem)

    def _count_examples(self) -> int:
        return self.runner.n

    def with_loss(self, loss: BaseLoss) -> Objective:
        """The same objective with another loss."""
        other = copy.copy(self)
        other.loss, other.attained = loss, loss.attained_on(self.problem)
        if loss.n_best > self.runner.n_best:
            other.runner = Runner(self.runner.problem, self.n_jobs, loss.n_best, self.runner.clock)
        return other

    def with_regularization(self, regularization: float) -> Objective:
        """The same objective with another lambda."""
        other = copy.copy(self)
        other.regularization = regularization
        return other

    @property
    def can_prepare(self) -> bool:
        """Whether its problem can be made ready for many short steps."""
        return supports(prepare, self.problem)

    def prepare(self, dtype: DTypeLike) -> Objective:
        """The same objective, of the problem made ready for many short steps in a precision; without its bounds."""
        other = copy.copy(self)
        problem, runner = prepare(self.problem.problem, dtype), self.runner
        other.runner = Runner(problem, self.n_jobs, runner.n_best, runner.clock)
        other.problem = other.runner.problem
        return other

    @property
    def is_bounded(self) -> bool:
        """Whether the oracle need not find the best outputs, and says by how much they may be better."""
        return self.loss.is_maximum and isinstance(self.attained, OfBound)

    def true_means(self) -> Blocks:
        """The dual point of the true outputs, whose weights are the `origin`."""
        return new_blocks(self.runner.part_sizes, self.runner.dtype)

    def new_outputs(self) -> Blocks:
        """Room for an output of every example."""
        return new_blocks(self.runner.output_sizes, np.int32)

    def means_of(self, point: DualPoint) -> Blocks:
        """The mean parts of a dual point, less those of the true outputs."""
        means = self.true_means()
        self.runner.run(fill_means, point, means)
        return means

    def at(self, point: DualPoint | Blocks) -> tuple[np.ndarray, float]:
        """w(mu) and D(mu) of a dual point, or of its mean parts, in float64 whatever the dtype of the problem.

        The weights are those before they are projected to the bounds, free of the drift of incremental updates.
        """
        v, cost = self.sums_of(point)
        return v, self.dual_value(cost, v)

    def sums_of(self, point: DualPoint | Blocks) -> tuple[np.ndarray, float]:
        """w(mu) before its projection, and the mean of <cost, mu>, of a dual point."""
        costs = np.zeros(self.n)
        v = self.runner.accumulate(assemble, self.examples, as_point(point), self.regularization, costs)
        self.layout.complete(v)
        return self.from_origin(v), float(costs.sum()) / self.n

    def pull_towards(self, target: Blocks) -> None:
        """Put mean parts, of all examples, in place of those of the true outputs."""
        if not np.array_equal(np.diff(target.starts), self.runner.part_sizes):
            raise ValueError("weak.target must hold a number for every part of every example.")
        target = Blocks(target.values.astype(self.runner.dtype, copy=False), target.starts)
        q = self.runner.accumulate(add_pull, self.weight, target)
        self.layout.complete(q)
        self.linear = as_linear(q, self.n_weights, self.regularization) - self.new_gradient()

    @property
    def origin(self) -> np.ndarray:
        """q/lambda, the weights w(mu) of the true outputs: zero without a linear term."""
        return self.from_origin(np.zeros(self.n_weights))

    def from_origin(self, v: np.ndarray) -> np.ndarray:
        """Weights that sums over examples make, in place, with what the linear term adds."""
        if self.linear is not None:
            v += self.linear / self.regularization
        return v

    def new_gradient(self) -> np.ndarray:
        """That of the linear term, -q, to which the gradients of losses are added."""
        return np.zeros(self.n_weights) if self.linear is None else -self.linear

    @property
    def least(self) -> float:
        """A lower bound that is known beforehand: no loss is negative; D of the true outputs with a linear term."""
        return min(self.dual_value(0.0, self.origin), 0.0)

    def in_dtype(self, w: np.ndarray) -> np.ndarray:
        """Weights in the dtype of the problem."""
        rounded = w.astype(self.runner.dtype, copy=False)
        if rounded is not w:
            self.layout.complete(rounded)  # by what the coefficients have become
        return rounded

    def primal(self, w: np.ndarray, loss: float) -> float:
        """F(w) with the L1 term, given that of the loss."""
        pull = 0.0 if self.linear is None else self.layout.inner(self.linear, w)
        pull -= self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0
        return 0.5 * self.regularization * self.layout.squared_length(w) + float(loss) - pull + self.constant

    def weights_of(self, v: np.ndarray) -> np.ndarray:
        """w(mu), given it before the L1 term moves it towards zero, or before its projection to the bounds."""
        if self.l1:
            return shrink(v, self.l1 / self.regularization if self.regularization else np.inf)
        return project(v, self.bounds) if self.bounds.which.size else v

    def dual_value(self, gain: float, v: np.ndarray) -> float:
        """D(mu), given w(mu) before its projection and the mean of <cost, mu> + entropy(mu)."""
        square = self.layout.squared_length(self.weights_of(v))
        return gain + self.constant - self.regularization * (0.5 * square + dual_term(v, self.bounds))

    def evaluate(self, w: np.ndarray, **asked: Unpack[PassOptions]) -> Evaluation:
        """F(w) with its gradient and a dual point, by one pass of the oracle.

        Parameters
        ----------
        w
            The weights.
        means
            Where to keep the mean parts at which the losses are attained, less those of the true outputs.
        outputs
            Where to keep the outputs of a max oracle.
        point
            A dual point, or its mean parts, to fill in the gaps.
        sets
            Stored outputs that those of a max oracle must not be worse than, by default those of the point.
        loss
            In place of that of the objective, as loops take it.
        with_gradient
            Whether to sum up the gradient.
        """
        w = self.in_dtype(w)
        return self.conclude(w, self.sum_losses(w, **asked))

    def sum_losses(
        self,
        w: np.ndarray,
        *,
        means: Blocks | None = None,
        outputs: Blocks | None = None,
        point: DualPoint | Blocks | None = None,
        sets: ActiveSets | None = None,
        loss: object = None,
        with_gradient: bool = True,
    ) -> LossSums:
        """What the examples tell `evaluate`, whose arguments these are, at weights in the dtype of the problem."""
        values = np.zeros((self.n, N_COLUMNS))
        rounding = rounding_of(self.runner.dtype, self.loss.entropy_level if loss is None else 0.0)
        found = Found(values, means or no_blocks(self.runner.dtype), outputs or no_blocks(np.int32))
        gradient = self.runner.accumulate(
            loss_pass,
            w,
            loss or self.attained,
            self.examples,
            self._rivals(point, sets),
            rounding,
            found,
            size=self.n_weights if with_gradient else 0,
        )
        if with_gradient:
            self.layout.complete(gradient)
        return sum_up(values, self.weight, rounding.unit, gradient)

    def conclude(self, w: np.ndarray, sums: LossSums) -> Evaluation:
        """The objective at weights, by what all examples tell."""
        averages, gradient, has_gradient = sums.averages, sums.gradient, sums.gradient.size > 0
        shift = error = float(np.finfo(self.runner.dtype).eps) * sums.norm_of_rounding / self.n
        if has_gradient and w.dtype == np.float32 and self.layout.is_explicit and not sums.n_beyond_reach:
            precise = self.layout.inner(w, gradient) + averages[COST] + averages[ENTROPY] + averages[SLACK]
            shift += max(precise, 0.0) - averages[LOSS]
        if has_gradient and self.linear is not None:
            gradient -= self.linear
        rest = self.primal(w, shift)
        return Evaluation(
            value=rest + averages[LOSS],
            hard=rest + averages[HARD_LOSS],
            gradient=gradient,
            cost=averages[COST],
            entropy=averages[ENTROPY] - error,
            rounding=error,
            size=sums.norm_of_sizes * np.sqrt(self.n) / (sums.weight or 1.0),
            slack=averages[SLACK],
            gaps=sums.gaps,
            n_wrong=sums.n_wrong,
            n_inexact=sums.n_inexact,
        )

    def keep(self, function: Callable[..., object], *args: object) -> Any:
        """What a function of the objective says, which stays with the examples; it may change `args` that do."""
        return function(self, *args)

    def mean_of(self, numbers: Callable[[object], np.ndarray]) -> float:
        """The mean of what a function tells of the examples of a problem, by their weights."""
        return float(self.weight @ numbers(self.problem)) / self.n

    @property
    def mean_weight(self) -> float:
        """That of the examples."""
        return float(self.weight.mean())

    @property
    def n_threads(self) -> int:
        """On how many threads a pass is made."""
        return len(self.runner.ranges)

    @property
    def examples(self) -> Examples:
        """What loops ask of its examples."""
        return Examples(self.runner.part_sizes, self.weight)

    def _rivals(self, point: DualPoint | Blocks | None, sets: ActiveSets | None) -> DualPoint:
        """What losses are compared with: the mean parts of a point, and stored outputs, its own if it has no others."""
        at = as_point(point or no_blocks(self.runner.dtype))
        return at if not at.means.values.size and at.sets.sizes.size else at._replace(sets=sets or no_sets())
