"""Block-coordinate Frank-Wolfe (*Gaps*, Algorithm 1): one oracle call, one exact line search on one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin.dispatch import kernel
from maxmargin.problem import add_output, max_oracle, n_examples, spread, squared_norm
from maxmargin.solvers.base import Run, Solver
from maxmargin.solvers.objective import Certificate, augmented_potentials, inner

# Mean parts below this are dropped: they would decay into denormal numbers, a hundred times slower to work with.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe.

    Parameters
    ----------
    sampling : order of the examples: "permutation" visits each once per pass, "uniform" draws with replacement
    averaging : certify and return the average of the iterates, weighted by their number, in place of the last one
    gap_every : passes between two certificates

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs,
    Algorithms 3 and 4. Osokin et al. (2016), Minding the gaps for block Frank-Wolfe optimization of structured SVMs,
    Algorithm 1.
    """

    sampling: str = "permutation"
    averaging: bool = False
    gap_every: int = 10

    needs: ClassVar[frozenset[str]] = frozenset({"max"})

    def __post_init__(self) -> None:
        if self.sampling not in ("permutation", "uniform"):
            raise ValueError(f'sampling must be "permutation" or "uniform", not {self.sampling!r}.')
        if self.gap_every < 1:
            raise ValueError(f"gap_every must be at least 1, not {self.gap_every}.")

    def iterate(self, run: Run) -> Iterator[Certificate]:
        n = run.objective.n
        state = BlockState(run, self.averaging)
        certificate = None
        if run.is_warm:
            yield (certificate := state.certify())
        n_passes = 1
        while True:
            for _ in range(n_passes):
                order = run.rng.permutation(n) if self.sampling == "permutation" else run.rng.integers(n, size=n)
                for part in run.slices(order):
                    state.step(part)
                if run.must_stop or (certificate and state.gaps.sum() <= 0.8 * run.tol * certificate.primal):
                    break
            yield (certificate := state.certify())
            n_passes = self.gap_every


class BlockState:
    """What block-coordinate steps work on besides w and the mean parts."""

    def __init__(self, run: Run, averaging: bool) -> None:
        self.run = run
        self.gaps = np.full(run.objective.n, np.inf)  # block gaps, each as of the last step on its block
        self.outputs = run.objective.new_outputs()
        self.lag = np.zeros(run.w.size if averaging else 0)
        self.n_steps = 0

    def step(self, order: np.ndarray) -> None:
        """Take a step on each example of `order`."""
        run, objective = self.run, self.run.objective
        weight, regularization, scratch = objective.weight, objective.regularization, objective.passes.scratches[0]
        problem, gaps, lag = objective.problem, self.gaps, self.lag
        bcfw_steps(problem, run.w, run.means, weight, regularization, order, gaps, lag, self.n_steps, scratch)
        self.n_steps += len(order)

    def certify(self) -> Certificate:
        """Rebuild w from the mean parts, then bound the objective by one oracle pass."""
        run, k = self.run, self.n_steps
        dual = run.rebuild()
        w, gaps = run.w, self.gaps
        if self.lag.size and k > 1:
            w, gaps = (run.w - self.lag * (2 / (k * (k + 1)))).astype(run.w.dtype), gaps.copy()
        return Certificate(w, run.primal(w, gaps, self.outputs), dual)


@kernel
def bcfw_steps(problem, w, means, weight, regularization, order, gaps, lag, n_steps, scratch):
    """A Frank-Wolfe step on each example of `order`; w = w(means) is kept up to date.

    `lag` collects sum_j j (j - 1)/2 (w_j - w_{j - 1}) over the steps j, from which the weighted average of the
    iterates is 2/(k (k + 1)) sum_j j w_j = w_k - 2/(k (k + 1)) lag: as sparse to update as w itself.
    """
    scale = 1.0 / (regularization * n_examples(problem))
    for k in range(order.size):
        i = order[k]
        mu = means.values[means.start[i] : means.start[i + 1]]
        theta = scratch.theta[: mu.size]
        delta = scratch.delta[: mu.size]
        augmented_potentials(problem, w, i, theta)
        max_oracle(problem, i, theta, scratch.y, scratch.work)
        for p in range(mu.size):
            delta[p] = -mu[p]
        add_output(problem, i, scratch.y, 1.0, delta)
        slope = inner(theta, delta)
        gaps[i] = weight[i] * max(slope, 0.0) / n_examples(problem)
        if slope <= 0:
            continue
        curvature = weight[i] * scale * squared_norm(problem, i, delta, scratch.work)
        gamma = slope / curvature if slope < curvature else 1.0
        for p in range(mu.size):
            mu[p] += gamma * delta[p]
            if mu[p] < NEGLIGIBLE:
                mu[p] = 0
        spread(problem, w, i, delta, -gamma * weight[i] * scale)
        if lag.size > 0:
            j = n_steps + k + 1.0
            spread(problem, lag, i, delta, -gamma * weight[i] * scale * j * (j - 1) / 2)
