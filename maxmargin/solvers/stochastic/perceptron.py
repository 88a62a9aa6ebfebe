"""The structured perceptron (Collins 2002), plain and averaged.

Each wrong prediction y of example i moves the weights by B_i (s_i(y_i) - s_i(y)). On separable examples, where some
unit vector scores every true output by at least a margin above all others, it makes at most (R / margin)^2 mistakes, R
being the largest norm of such a move. It minimises no objective: the trace reports that of its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.arrays.vectors import clear, is_same
from maxmargin.checks import check_count
from maxmargin.problem import accumulate, add_output, max_oracle, scores, spread, true_output
from maxmargin.runtime.dispatch import helper, loop
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.bounds import Bounds
from maxmargin.solvers.objective.lower_bound import LowerBound
from maxmargin.trace import Certificate, Status


@dataclass(frozen=True)
class Perceptron(Solver):
    """The structured perceptron: no costs, no regularization, nothing to tune.

    It stops after a pass without mistakes, or after 20 passes unless `max_passes` says otherwise: more change averages
    little, but where few labels matter (F1 of entities: 14.4 after 10 passes, 16.8 after 20, 17.9 after 50). The
    weights are those after the last pass.

    Parameters
    ----------
    averaging
        Whether to return the average of the weights over all steps in place of the last ones.
    gap_every
        Passes between two certificates.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> from maxmargin.testing import toy_chains
    >>> len(Perceptron(averaging=False).solve(toy_chains(), max_passes=5, random_state=0).w)
    21
    """

    averaging: bool = True
    gap_every: int = 10

    resumes = returns_last = True
    needs_regularization = takes_linear = False
    default_passes: ClassVar[int] = 20

    def __post_init__(self) -> None:
        check_count("gap_every", self.gap_every)

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective, state = run.objective, run.take_up(lambda: self._begin(run))
        lag = state.lag
        while True:
            for _ in range(state.n_passes):
                before, order, mistakes = run.n_steps, run.rng.permutation(objective.n), 0
                for lo, hi in run.slices(objective.n):
                    mistakes += perceptron_steps(
                        objective.problem,
                        run.w,
                        objective.bounds,
                        lag,
                        objective.runner.part_sizes,
                        objective.weight,
                        order[lo:hi],
                        run.n_steps,
                        objective.runner.scratches[0],
                    )
                    run.count(calls=hi - lo)
                if mistakes == 0 and run.n_steps - before == objective.n:
                    run.verdict = Status.SEPARATED
                if run.must_stop:
                    break
            w = run.w - lag / max(run.n_steps, 1) if self.averaging else run.w
            found = run.evaluate(w)
            state.n_passes = run.passes_to_go(self.gap_every)
            yield Certificate(w.astype(run.w.dtype), found.value, state.bound.add(found.cost, found.gradient))

    def _begin(self, run: Run) -> State:
        run.w[:] = run.start_weights()
        lag = np.zeros(run.w.size if self.averaging else 0)
        return State(bound=LowerBound(run.objective), lag=lag, n_passes=1)


@loop
def perceptron_steps(problem, w, bounds, lag, sizes, weight, order, n_steps, scratch):
    """A step on each example of `order`; return the number of mistakes.

    `lag`, if not empty, collects sum_t (t - 1) (w_t - w_{t-1}), so that the average of w_1 to w_T is w_T - lag / T.
    """
    mistakes = 0
    for k in range(order.size):
        i = order[k]
        y_true = true_output(problem, i)
        y = scratch.y[: y_true.size]
        theta = scratch.theta[: sizes[i]]
        scores(problem, w, i, theta)
        max_oracle(problem, i, theta, y, scratch.work)
        if is_same(y, y_true):
            continue
        mistakes += 1
        delta = scratch.delta[: sizes[i]]
        clear(delta)
        add_output(problem, i, y_true, 1.0, delta)
        add_output(problem, i, y, -1.0, delta)
        spread(problem, w, i, delta, weight[i])
        if lag.size > 0:
            accumulate(problem, lag, i, delta, weight[i] * (n_steps + k))
        clip(w, bounds, lag, n_steps + k)
    return mistakes


def _clip(w: np.ndarray, bounds: Bounds, lag: np.ndarray, weight: float) -> None:
    change = np.clip(w[bounds.which], bounds.lower, bounds.upper) - w[bounds.which]
    w[bounds.which] += change
    if lag.size:
        lag[bounds.which] += change * weight


@helper(interpreted=_clip)
def clip(w, bounds, lag, weight):
    """Move the weights into the bounds, which counts `weight` in the lag."""
    for k in range(bounds.which.size):
        j = bounds.which[k]
        change = min(max(w[j], bounds.lower[k]), bounds.upper[k]) - w[j]
        w[j] += change
        if lag.size > 0:
            lag[j] += change * weight
