"""Training of networks: their objective and its trace, and stochastic subgradients, the rival of prox-linear steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import BaseLoss, find_loss
from maxmargin.solvers import Result
from maxmargin.torch.choice_potentials import Candidates
from maxmargin.torch.potentials import Costs
from maxmargin.torch.score_map import ScoreMap
from maxmargin.torch.supervised.full_losses import structured_loss
from maxmargin.trace import Trace

STEP_SCHEDULES = ("constant", "sqrt", "inverse")


class Trained(NamedTuple):
    """What training a network has led to. The network has the weights of the lowest objective.

    Attributes
    ----------
    w
        Its parameters, flat.
    trace
        One row per step: `primal`, the lowest objective so far, `dual`, zero, which no objective is below, and extras;
        of `ProxLinear` these are `stationarity`, `stationarity_bound` and `model_gap`, of the parameters that the step
        started from, `eta` and `accepted`. What the last row says holds for `w`: where a step that was accepted would
        be the last, one more row has the model at `w`, from which no step is taken (`accepted` is NaN).
    inner
        The result of the last convex problem; for a linear network and an infinite eta that is the objective itself.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import CandidateHead, ProxLinear
    >>> lists, best = [torch.eye(3)[None], torch.eye(3)[None]], [[0], [0]]
    >>> trained = ProxLinear(eta=float("inf"), max_steps=1).solve(CandidateHead(3), lists, best, C=1.0, random_state=0)
    >>> trained.w.argmax().item(), bool(trained.trace.primal[-1] < trained.trace.primal[0])
    (0, True)
    """

    w: np.ndarray
    trace: Trace
    inner: Result | None = None


@dataclass(frozen=True)
class StochasticSubgradient:
    """Stochastic subgradient steps on single examples of a network, with the three schedules of *Smoother*.

    Parameters
    ----------
    schedule
        Of the step length in step t, "constant", step, "sqrt", step/sqrt(t), or "inverse", step/t.
    step
        The first step length.
    max_passes
        How many passes to make over the examples.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import CandidateHead, StochasticSubgradient
    >>> lists, best = [torch.randn(1, 5, 3) for _ in range(8)], [torch.tensor([0])] * 8
    >>> sgd = StochasticSubgradient("sqrt", step=0.1, max_passes=3)
    >>> len(sgd.solve(CandidateHead(3), lists, best, random_state=0).trace)
    4
    """

    schedule: str = "constant"
    step: float = 0.1
    max_passes: int = 20

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, STEP_SCHEDULES)
        check_positive("step", self.step)
        check_count("max_passes", self.max_passes)

    def solve(
        self,
        module: nn.Module,
        inputs: Sequence[object],
        y: Sequence[object],
        C: float = 1.0,
        *,
        loss: BaseLoss | str = "hinge",
        cost: Costs | None = None,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
    ) -> Trained:
        """Train a network; arguments as in `ProxLinear.solve`."""
        chosen = find_loss(loss)
        run = NetworkTraining(ScoreMap(module, inputs, y, cost, False), C, chosen)
        scores, n, rng = run.scores, run.scores.n, np.random.default_rng(random_state)
        parameters, t = [*scores.parameters.values()], 0
        costs = cost if isinstance(cost, (list, tuple)) else [cost] * n
        lowest, best = run.value, scores.w
        run.note(lowest, verbose)
        for _ in range(self.max_passes):
            for i in rng.integers(n, size=n).tolist():
                t += 1
                length = self.step / {"constant": 1.0, "sqrt": np.sqrt(t), "inverse": t}[self.schedule]
                potentials, own = scores.module(*scores.inputs[i]), costs[i]
                if own is not None and isinstance(potentials, Candidates):
                    own = torch.as_tensor(np.asarray(own)).reshape(potentials.scores.shape)
                value = structured_loss(potentials, y[i], chosen, cost=own, n_jobs=1)
                gradients = torch.autograd.grad(value, parameters, allow_unused=True)
                with torch.no_grad():
                    for parameter, gradient in zip(parameters, gradients, strict=True):
                        parameter.mul_(1 - length * run.regularization)
                        if gradient is not None:
                            parameter.sub_(length * gradient)
            run.calls += n
            reached = run.objective()
            if reached < lowest:
                lowest, best = reached, scores.w
            run.note(lowest, verbose)
            if not np.isfinite(reached) or (callback is not None and callback(run.trace)):
                break
        scores.w = best
        return Trained(best, run.trace)


@dataclass
class NetworkTraining:
    """The objective of a network, counters and the trace."""

    scores: ScoreMap
    C: float
    loss: BaseLoss
    trace: Trace = field(default_factory=Trace)
    calls: int = 0

    def __post_init__(self) -> None:
        check_positive("C", self.C, allow_infinite=True)
        self.began, self.regularization = time.perf_counter(), 1 / (self.scores.n * float(self.C))
        self.value = self.objective()

    def objective(self, w: np.ndarray | None = None) -> float:
        """F at the parameters of the network, or at others, which it then has; counts the calls of the oracle."""
        if w is not None:
            self.scores.w = w
        self.calls += self.scores.n
        w = self.scores.w
        if not np.isfinite(w).all():
            return np.inf
        return 0.5 * self.regularization * float(np.dot(w, w)) + self.scores.loss(self.loss)

    def note(self, value: float, verbose: int, **extras: float) -> None:
        """Add a row to the trace."""
        seconds, passes = time.perf_counter() - self.began, self.calls / self.scores.n
        self.trace.append(
            passes=passes, oracle_calls=self.calls, seconds=seconds, primal=value, dual=0.0, extras=extras
        )
        if verbose:
            print(*([self.trace.header()] if len(self.trace) == 1 else []), self.trace.line(), sep="\n", flush=True)
