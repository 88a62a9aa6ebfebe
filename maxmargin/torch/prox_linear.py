"""Prox-linear training of networks (*Smoother*, Algorithm 5).

The objective is F(w) = (lambda/2) ||w||^2 + (1/n) sum_i loss_i(g_i(w)), lambda = 1/(n C), where g_i(w) are the
potentials of example i. Step k minimises the model in which g is linearized at w_{k-1}, plus (1/(2 eta)) ||w -
w_{k-1}||^2: a convex problem of the library with affine potentials, once w is counted from the centre of both quadratic
terms. Any of its solvers can do that, with a certificate. The step is accepted where F decreases.

The measure of stationarity is ||w - argmin of the model at w||/eta. As the model is (lambda + 1/eta)-strongly convex, a
solution with a duality gap is at most sqrt(2 gap/(lambda + 1/eta)) from the minimiser, which makes a bound of it. It is
one of w, not of the step that leads on from there: the bound that ends a run, and the last one of its trace, are those
of the parameters that it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from maxmargin.checks import check_choice, check_count, check_positive
from maxmargin.losses import BaseLoss, find_loss
from maxmargin.solvers import Result, Solver, find_solver
from maxmargin.solvers.stochastic.casimir import Casimir
from maxmargin.solvers.stochastic.svrg import SmoothingSolver
from maxmargin.torch.network_training import NetworkTraining, Trained
from maxmargin.torch.potentials import Costs
from maxmargin.torch.score_map import ScoreMap
from maxmargin.trace import Trace

SCHEDULES = ("adaptive", "constant")
LONGER, SHORTER = 2.0, 0.25  # what a free eta is multiplied by where F decreases, or does not
LEVEL_SHARE = 0.1  # of the objective at the start, that is the first level of smoothing
COSTS = "cost", "word_cost"  # of supervisions, that are zero where nothing costs anything
UNKNOWN = dict.fromkeys(("stationarity", "stationarity_bound", "model_gap"), np.nan)


@dataclass(frozen=True)
class ProxLinear:
    """Prox-linear training: a sequence of convex problems, each solved by the library.

    Parameters
    ----------
    eta
        The step length; by default it starts at ``first_eta`` and adapts: longer after steps that are accepted, shorter
        after others. Infinite for linear networks, whose model is the objective.
    first_eta
        Where a free eta starts.
    solver
        Of the convex problems: by default `Casimir` with a constant level; of those that smooth the hinge loss, `level`
        and `smoothness` follow `schedule`, and other options are their own.
    inner_passes
        The most passes over the examples of each convex problem.
    inner_tol
        The relative duality gap at which they stop before that.
    schedule
        Of the smoothing in step k: "adaptive", level/k with the smoothness k L, or "constant".
    level
        How much the loss is smoothed; by default that of the solver, or a tenth of the objective at the start.
    smoothness
        L; by default that of the solver, or estimated.
    max_steps
        Stop after this many steps.
    tol
        Stop where the bound of the stationarity falls below this, at the parameters of which it is proven.
    max_bytes
        The most memory that the derivatives of all potentials may take, which are kept for the solver.

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
    level: float | None = None
    smoothness: float | None = None
    max_steps: int = 20
    tol: float = 1e-4
    max_bytes: float = 2**31

    def __post_init__(self) -> None:
        for name in ("eta", "level", "smoothness"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), allow_infinite=name == "eta")
        for name in ("first_eta", "inner_passes", "inner_tol", "tol", "max_bytes"):
            check_positive(name, getattr(self, name), allow_infinite=name == "max_bytes")
        check_choice("schedule", self.schedule, SCHEDULES)
        check_count("max_steps", self.max_steps)

    def solve(
        self,
        module: nn.Module,
        inputs: Sequence[object],
        y: Sequence[object],
        C: float = 1.0,
        *,
        loss: BaseLoss | str = "hinge",
        cost: Costs | None = None,
        is_rowwise: bool = False,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
        callback: Callable[[Trace], bool | None] | None = None,
    ) -> Trained:
        """Train a network; the derivatives of all its potentials are kept, so it should be small, or mostly fixed.

        Parameters
        ----------
        module
            ``module(*inputs[i])`` makes `Chains`, `Trees`, `Candidates` or `Matchings` of one example; all of its
            parameters that require a gradient are trained.
        inputs
            For each example a tensor, or a tuple of what the network takes, as a batch of one.
        y
            For each example its true output, as a batch of one.
        C
            Inverse strength of the regularization, lambda = 1/(n C); infinite for none.
        loss
            "hinge", "smooth_hinge", "log" or a `Loss`.
        cost
            Of candidates, for each example what they cost; of labels as in `structured_loss`.
        is_rowwise
            Whether each row of an input makes a potential of its own, as those of candidates do: derivatives are then
            found row by row, which is much faster.
        random_state
            Seed of the solver.
        verbose
            Print the trace as it grows.
        callback
            Called with the trace after each step; returning True stops.
        """
        run = NetworkTraining(ScoreMap(module, inputs, y, cost, is_rowwise), C, find_loss(loss))
        models = _Models(self, run, np.random.default_rng(random_state))
        eta, w, value, is_accepted = self.eta or self.first_eta, run.scores.w, run.value, True
        run.note(value, verbose, **UNKNOWN, eta=eta, accepted=1.0)
        for k in range(1, self.max_steps + 1):
            if self.eta is None and k > 1:
                eta *= LONGER if is_accepted else SHORTER
            trial, known = models.minimise(w, eta, k)
            is_settled = known["stationarity_bound"] <= self.tol and eta < np.inf
            reached = np.inf if is_settled else run.objective(trial)  # what is proven of w would not be of the trial
            is_accepted = reached <= value
            if is_accepted:
                w, value = run.scores.w, reached  # in the precision of the network
            run.note(value, verbose, **known, eta=eta, accepted=float(is_accepted))
            if is_settled or eta == np.inf or (callback is not None and callback(run.trace)):
                break
        if is_accepted and eta < np.inf:
            _, known = models.minimise(w, eta, k)
            run.note(value, verbose, **known, eta=eta, accepted=np.nan)
        run.scores.w = w
        return Trained(w, run.trace, models.inner)


class _Models:
    """The convex models of the objective of a network, and how they are minimised."""

    def __init__(self, prox: ProxLinear, run: NetworkTraining, seeds: np.random.Generator) -> None:
        self.prox, self.run, self.seeds = prox, run, seeds
        self.solver = find_solver(prox.solver or Casimir(schedule="constant"), run.loss)
        own = getattr(self.solver, "level", None), getattr(self.solver, "smoothness", None)
        self.level, self.smoothness = (
            prox.level or own[0] or LEVEL_SHARE * (run.value or 1.0),
            prox.smoothness or own[1],
        )
        # Offsets come with the costs; where the loss has none, a problem without costs makes it.
        self.loss = run.loss.with_margin(True) if run.loss.is_smooth else run.loss
        if not run.loss.margin and run.loss.is_smooth:
            run.scores.problem = without_costs(run.scores.problem)
        self.linearized_at: np.ndarray | None = None
        self.inner: Result | None = None

    def minimise(self, w: np.ndarray, eta: float, k: int) -> tuple[np.ndarray, dict[str, float]]:
        """The minimiser of the model at w in step k, as far as it is found, and what that says of w."""
        scores, total = self.run.scores, self.run.regularization + 1 / eta
        if total == 0:
            raise ValueError("C and eta must not both be infinite: the convex problems would have no bound.")
        if self.linearized_at is not w:
            scores.w = w
            self.derivatives = scores.derivatives(self.prox.max_bytes)
            self.potentials, self.linearized_at = scores.potentials().astype(np.float64), w
        centre = w / (eta * total)
        problem = scores.linearized(self.derivatives, self.potentials + self.derivatives @ (centre - w))
        solver = self._solver(k)
        self.inner = solver.solve(
            problem,
            1 / (scores.n * total),
            loss=self.loss,
            start=None if solver.keeps_dual else w - centre,
            tol=self.prox.inner_tol,
            max_passes=self.prox.inner_passes,
            random_state=self.seeds,
        )
        self.run.calls += int(self.inner.trace.oracle_calls[-1])
        found, gap = centre + self.inner.w, self.inner.certificate.gap
        away = float(np.linalg.norm(w - found))
        bound = (away + np.sqrt(2 * gap / total)) / eta
        return found, {"stationarity": away / eta, "stationarity_bound": bound, "model_gap": gap}

    def _solver(self, k: int) -> Solver:
        """The solver of step k, with its level of smoothing and the smoothness that goes with it."""
        if not isinstance(self.solver, SmoothingSolver) or self.solver.smoothing is None:
            return self.solver
        factor = k if self.prox.schedule == "adaptive" else 1
        smoothness = None if self.smoothness is None else self.smoothness * factor
        return replace(self.solver, level=self.level / factor, smoothness=smoothness)


def without_costs(problem: Any) -> Any:
    """The problem with costs of zero."""
    if hasattr(problem, "supervision"):
        known = problem.supervision
        costs = {name: np.zeros_like(getattr(known, name)) for name in COSTS if hasattr(known, name)}
        return problem._replace(supervision=known._replace(**costs))
    return problem
