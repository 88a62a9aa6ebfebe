"""Prox-linear training of networks (*Smoother*, Algorithm 5), and stochastic subgradients as its rival.

The objective is F(w) = (lambda/2) ||w||^2 + (1/n) sum_i loss_i(g_i(w)), lambda = 1/(n C), where g_i(w) are the
potentials of example i. Step k minimises the model in which g is linearized at w_{k-1}, plus (1/(2 eta)) ||w -
w_{k-1}||^2: a convex problem of the library with affine potentials, once w is counted from the centre of both quadratic
terms. Any of its solvers can do that, with a certificate. The step is accepted where F decreases.

The measure of stationarity is ||w - argmin of the model at w||/eta. As the model is (lambda + 1/eta)-strongly convex, a
solution with a duality gap is at most sqrt(2 gap/(lambda + 1/eta)) from the minimiser, which makes a bound of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import Loss, find_loss
from maxmargin.solvers import Result, Solver, find_solver
from maxmargin.solvers.casimir import Casimir
from maxmargin.torch.choices import Candidates
from maxmargin.torch.functions import structured_loss
from maxmargin.torch.linearize import ScoreMap
from maxmargin.trace import Trace

SCHEDULES = ("adaptive", "constant")
STEP_SCHEDULES = ("constant", "sqrt", "inverse")
LONGER, SHORTER = 2.0, 0.25  # what a free eta is multiplied by where F decreases, or does not
LEVEL_SHARE = 0.1  # of the objective at the start, that is the first level of smoothing


class Trained(NamedTuple):
    """What training a network has led to. The network has the weights of the lowest objective.

    Attributes
    ----------
    w : its parameters, flat
    trace : one row per step: `primal`, the lowest objective so far, `dual`, zero, which no objective is below, and
        extras; of `ProxLinear` these are `stationarity`, `stationarity_bound`, `model_gap`, `eta` and `accepted`
    inner : the result of the last convex problem; for a linear network and an infinite eta that is the objective itself
    """

    w: np.ndarray
    trace: Trace
    inner: Result | None = None


@dataclass(frozen=True)
class ProxLinear:
    """Prox-linear training: a sequence of convex problems, each solved by the library.

    Parameters
    ----------
    eta : the step length; by default it starts at ``first_eta`` and adapts: longer after steps that are accepted,
        shorter after others. Infinite for linear networks, whose model is the objective
    first_eta : where a free eta starts
    solver : of the convex problems: by default `Casimir` with the levels of `schedule`
    inner_passes : the most passes over the examples of each convex problem
    inner_tol : the relative duality gap at which they stop before that
    schedule : of the smoothing of the default solver in step k: "adaptive", mu/k with the smoothness k L, or "constant"
    mu : the level of smoothing; by default a tenth of the objective at the start
    smoothness : L, of the default solver; estimated by default
    max_steps : stop after this many steps
    tol : stop where the bound of the stationarity falls below this
    max_bytes : the most memory that the derivatives of all potentials may take, which are kept for the solver

    References
    ----------
    Pillutla, Roulet, Kakade, Harchaoui (2019), A smoother way to train structured prediction models, Algorithm 5.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import CandidateHead, ProxLinear
    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <torch._C.Generator object at ...>
    >>> network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ELU(), CandidateHead(4))
    >>> lists = [torch.randn(1, 5, 3) for _ in range(8)]
    >>> best = [x[:, :, 0].argmax(dim=1) for x in lists]
    >>> trained = ProxLinear(max_steps=4).solve(network, lists, best, C=10.0)
    >>> bool((trained.trace.primal[1:] <= trained.trace.primal[:-1]).all())
    True
    """

    eta: float | None = None
    first_eta: float = 1.0
    solver: Solver | str | None = None
    inner_passes: float = 10
    inner_tol: float = 1e-4
    schedule: str = "adaptive"
    mu: float | None = None
    smoothness: float | None = None
    max_steps: int = 20
    tol: float = 1e-4
    max_bytes: float = 2**31

    def __post_init__(self) -> None:
        for name in ("eta", "mu", "smoothness"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), allow_infinite=name == "eta")
        for name in ("first_eta", "inner_passes", "inner_tol", "tol", "max_bytes"):
            check_positive(name, getattr(self, name), allow_infinite=name == "max_bytes")
        check_choice("schedule", self.schedule, SCHEDULES)
        check_count("max_steps", self.max_steps)

    def solve(
        self,
        module: nn.Module,
        inputs: Sequence[Any],
        y: Sequence[Any],
        C: float = 1.0,
        *,
        loss: Loss | str = "hinge",
        cost: Any = None,
        is_rowwise: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
    ) -> Trained:
        """Train a network; the derivatives of all its potentials are kept, so it should be small, or mostly fixed.

        Parameters
        ----------
        module : ``module(*inputs[i])`` makes `Chains`, `Trees`, `Candidates` or `Matchings` of one example; all of its
            parameters that require a gradient are trained
        inputs : for each example a tensor, or a tuple of what the network takes, as a batch of one
        y : for each example its true output, as a batch of one
        C : inverse strength of the regularization, lambda = 1/(n C); infinite for none
        loss : "hinge", "smooth_hinge", "log" or a `Loss`
        cost : of candidates, for each example what they cost; of labels as in `structured_loss`
        is_rowwise : whether each row of an input makes a potential of its own, as those of candidates do: derivatives
            are then found row by row, which is much faster
        random_state : seed of the solver
        verbose : print the trace as it grows
        callback : called with the trace after each step; returning True stops
        """
        chosen, run = find_loss(loss), _Training(ScoreMap(module, inputs, y, cost, is_rowwise), C, find_loss(loss))
        # Offsets come with the costs; where the loss has none, a problem without costs makes it.
        inner_loss = replace(chosen, margin=True) if chosen.is_smooth else chosen
        scores, n, strength = run.scores, run.scores.n, run.strength
        if not chosen.margin and chosen.is_smooth:
            scores.problem = without_costs(scores.problem)
        solver = None if self.solver is None else find_solver(self.solver, chosen)
        seeds = np.random.default_rng(random_state)
        eta, w, value = self.eta or self.first_eta, scores.w, run.value
        mu, found, inner = self.mu or LEVEL_SHARE * (value or 1.0), None, None
        run.note(value, verbose, **self._extras(np.nan, np.nan, np.nan, eta, True))
        for k in range(1, self.max_steps + 1):
            if found is None:
                found = scores.derivatives(self.max_bytes), scores.potentials().astype(np.float64)
            derivatives, potentials = found
            total = strength + 1 / eta
            if total == 0:
                raise ValueError("C and eta must not both be infinite: the convex problems would have no bound.")
            centre = w / (eta * total)
            problem = scores.linearized(derivatives, potentials + derivatives @ (centre - w))
            stepper = solver or self._casimir(k, mu)
            start = None if stepper.keeps_dual else w - centre
            inner = stepper.solve(
                problem,
                1 / (n * total),
                loss=inner_loss,
                start=start,
                tol=self.inner_tol,
                max_passes=self.inner_passes,
                random_state=seeds,
            )
            run.calls += int(inner.trace.oracle_calls[-1])
            scores.w = trial = centre + inner.w
            reached = run.objective()
            is_accepted = reached <= value
            away, gap = float(np.linalg.norm(w - trial)), inner.certificate.gap
            bound = (away + np.sqrt(2 * gap / total)) / eta
            extras = self._extras(away / eta, bound, gap, eta, is_accepted)
            if is_accepted:
                w, value, found = trial, reached, None
            else:
                scores.w = w
            if self.eta is None:
                eta *= LONGER if is_accepted else SHORTER
            run.note(value, verbose, **extras)
            if bound <= self.tol or (callback is not None and callback(run.trace)):
                break
        scores.w = w
        return Trained(w, run.trace, inner)

    def _casimir(self, k: int, mu: float) -> Casimir:
        factor = k if self.schedule == "adaptive" else 1
        smoothness = None if self.smoothness is None else self.smoothness * factor
        return Casimir(schedule="constant", mu=mu / factor, smoothness=smoothness)

    @staticmethod
    def _extras(stationarity: float, bound: float, gap: float, eta: float, accepted: bool) -> dict[str, float]:
        return {
            "stationarity": stationarity,
            "stationarity_bound": bound,
            "model_gap": gap,
            "eta": eta,
            "accepted": float(accepted),
        }


@dataclass(frozen=True)
class StochasticSubgradient:
    """Stochastic subgradient steps on single examples of a network, with the three schedules of *Smoother*.

    Parameters
    ----------
    schedule : of the step length in step t, "constant", step, "sqrt", step/sqrt(t), or "inverse", step/t
    step : the first step length
    max_passes : how many passes to make over the examples

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
        inputs: Sequence[Any],
        y: Sequence[Any],
        C: float = 1.0,
        *,
        loss: Loss | str = "hinge",
        cost: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
    ) -> Trained:
        """Train a network; arguments as in `ProxLinear.solve`."""
        chosen = find_loss(loss)
        run = _Training(ScoreMap(module, inputs, y, cost, False), C, chosen)
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
                        parameter.mul_(1 - length * run.strength)
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
class _Training:
    """The objective of a network, counters and the trace."""

    scores: ScoreMap
    C: float
    loss: Loss
    trace: Trace = field(default_factory=Trace)
    calls: int = 0

    def __post_init__(self) -> None:
        check_positive("C", self.C, allow_infinite=True)
        self.began, self.strength = time.perf_counter(), 1 / (self.scores.n * float(self.C))
        self.value = self.objective()

    def objective(self) -> float:
        """F at the parameters of the network; counts the calls of the oracle."""
        self.calls += self.scores.n
        w = self.scores.w
        if not np.isfinite(w).all():
            return np.inf
        return 0.5 * self.strength * float(np.dot(w, w)) + self.scores.loss(self.loss)

    def note(self, value: float, verbose: int, **extras: float) -> None:
        """Add a row to the trace."""
        seconds, passes = time.perf_counter() - self.began, self.calls / self.scores.n
        self.trace.append(
            passes=passes, oracle_calls=self.calls, seconds=seconds, primal=value, dual=0.0, extras=extras
        )
        if verbose:
            print(*([self.trace.header()] if len(self.trace) == 1 else []), self.trace.line(), sep="\n", flush=True)


def without_costs(problem: Any) -> Any:
    """The problem with costs of zero."""
    names = [name for name in ("cost_matrix", "costs") if hasattr(problem, name)]
    return problem._replace(**{name: np.zeros_like(getattr(problem, name)) for name in names})
