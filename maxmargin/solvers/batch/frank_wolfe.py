"""Batch Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 2): one pass of the oracle, one exact line search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.vectors import add_scaled, clear, scale
from maxmargin.problem import add_output, true_output
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.trace import Certificate


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Batch Frank-Wolfe: slow to converge, but every pass gives a certificate and runs on all threads.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs,
    Algorithm 2.

    Examples
    --------
    >>> from maxmargin import FrankWolfe
    >>> from maxmargin.testing import toy_chains
    >>> FrankWolfe().solve(toy_chains(), tol=0.1).status.name
    'OPTIMAL'
    """

    needs_margin = resumes = keeps_dual = takes_kernels = takes_portions = True

    def iterate(self, run: Run) -> Iterator[Certificate]:
        objective = run.objective
        state = run.take_up(lambda: self._begin(run))
        while True:
            if state.found is not None:
                self._step(run, state)
            dual = run.rebuild()
            run.n_steps += objective.n
            state.found = found = run.evaluate(run.w, outputs=state.outputs, point=run.dual.means)
            yield Certificate(run.w, found.value, dual - found.rounding)

    @staticmethod
    def _begin(run: Run) -> State:
        run.start_dual()
        return State(outputs=run.objective.new_outputs(), found=None)

    @staticmethod
    def _step(run: Run, state: State) -> None:
        """Go towards the outputs of the last pass, as far as the dual rises."""
        objective, found = run.objective, state.found
        vertex = -found.gradient / objective.regularization
        direction = vertex - objective.at(run.dual.means)[0]
        curvature = objective.regularization * objective.layout.inner(direction, direction)
        slope = max(float(found.gaps.sum()), 0.0)
        gamma = slope / curvature if slope < curvature else 1.0
        run.dual = run.dual._replace(means=objective.keep(mix_all, run.dual.means, state.outputs, gamma))


def mix_all(objective: Objective, means: Blocks, outputs: Blocks, gamma: float) -> Blocks:
    """The mean parts a share gamma of the way to those of the outputs, in place."""
    objective.runner.run(mix, means, outputs, gamma)
    return means


@loop
def mix(problem, means, outputs, gamma, lo, hi, scratch):
    """mu_i = (1 - gamma) mu_i + gamma s_i(output_i) for the examples lo:hi."""
    for i in range(lo, hi):
        mu = means.values[means.starts[i] : means.starts[i + 1]]
        delta = scratch.delta[: mu.size]
        clear(delta)
        add_output(problem, i, outputs.values[outputs.starts[i] : outputs.starts[i + 1]], 1.0, delta)
        add_output(problem, i, true_output(problem, i), -1.0, delta)
        scale(mu, 1 - gamma)
        add_scaled(mu, delta, gamma)
