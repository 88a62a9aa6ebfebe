"""Batch Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 2): one pass of the oracle, one exact line search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.problem import add_output, gold, n_examples, spread
from maxmargin.runtime.dispatch import kernel
from maxmargin.solvers.active_sets import DualPoint, no_sets
from maxmargin.solvers.objective import Certificate
from maxmargin.solvers.run import Run
from maxmargin.solvers.solver import Solver


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Batch Frank-Wolfe: slow to converge, but every pass gives a certificate and runs on all threads.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs,
    Algorithm 2.
    """

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective = run.objective
        run.start_dual()
        run.dual = DualPoint(run.dual.means, no_sets())
        gaps = np.zeros(objective.n)
        outputs = objective.new_outputs()
        while True:
            dual = run.rebuild()
            run.n_steps += objective.n
            yield Certificate(run.w, run.primal(run.w, gaps, outputs), dual)
            sizes, strength = objective.passes.part_sizes, objective.regularization
            vertex = objective.passes.accumulate(assemble_outputs, outputs, sizes, objective.weight, strength)
            direction = vertex - objective.weights(run.dual.means)
            curvature = objective.regularization * float(np.dot(direction, direction))
            slope = max(float(gaps.sum()), 0.0)
            gamma = slope / curvature if slope < curvature else 1.0
            objective.passes.run(mix, run.dual.means, outputs, gamma)


@kernel
def assemble_outputs(problem, w, outputs, sizes, weight, regularization, lo, hi, scratch):
    """W += 1/(lambda n) sum_i weight_i B_i (s_i(y_i) - s_i(output_i)): the weights w(mu) of a vertex."""
    scale = 1.0 / (regularization * n_examples(problem))
    for i in range(lo, hi):
        delta = scratch.delta[: sizes[i]]
        for p in range(delta.size):
            delta[p] = 0
        add_output(problem, i, gold(problem, i), 1.0, delta)
        add_output(problem, i, outputs.values[outputs.start[i] : outputs.start[i + 1]], -1.0, delta)
        spread(problem, w, i, delta, weight[i] * scale)


@kernel
def mix(problem, means, outputs, gamma, lo, hi, scratch):
    """mu_i = (1 - gamma) mu_i + gamma s_i(output_i) for the examples lo:hi."""
    for i in range(lo, hi):
        mu = means.values[means.start[i] : means.start[i + 1]]
        for p in range(mu.size):
            mu[p] *= 1 - gamma
        add_output(problem, i, outputs.values[outputs.start[i] : outputs.start[i + 1]], gamma, mu)
