"""Exponentiated gradient (Collins et al. 2008) on the dual of log losses and of hinge losses, smoothed or plain.

A dual point is a Gibbs distribution of each example, alpha_i ~ exp(<theta_i, s(y)>). A step adds a multiple of the
slope of the dual to the potentials, theta_i + eta (B_i'w(alpha) + cost_i - level theta_i), where level is the level of
entropy: on one example after the other, w following at once (`exponentiated_steps`), or on all at the same time.

In batch steps from theta_i = B_i'W + c cost_i, potentials stay of that form: W <- (1 - eta level) W + eta w(alpha) and
c <- (1 - eta level) c + eta. So nothing is kept per example, and alpha is where the loss smoothed at the level 1/c is
attained at the weights W/c. Steps that lower the dual are taken back. If w(alpha) changes by v and the mean cost by k,
the slope is a = k - lambda <w, v> - level (c k - lambda <W, v>), and of small steps eta = a / (level a + lambda ||v||^2
/ eta) is the best.

An L1 term l1 ||w||_1 is the largest <b, w> with |b| <= l1, and b one more block of the dual: the best b moves every
number of w(alpha) by l1/lambda towards zero. Single steps raise the dual of a fixed b, which follows after each pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.arrays.blocks import new_blocks
from maxmargin.checks import check_choice, check_count, check_share
from maxmargin.execution.meeting import NO_LOG, Seat, new_pace
from maxmargin.execution.step_rounds import Order, StepRounds, count_ranges
from maxmargin.execution.threads import aligned
from maxmargin.losses import BaseLoss
from maxmargin.persist.registry import register_state
from maxmargin.problem import IMPOSSIBLE, USUAL_WORK, work_of
from maxmargin.solvers.block_coordinate import sum_tree
from maxmargin.solvers.block_coordinate.block_steps import ALL
from maxmargin.solvers.block_coordinate.sum_tree import RangeTrees
from maxmargin.solvers.exponentiated.exponentiated_steps import (
    GibbsPoint,
    GibbsRule,
    GibbsVisits,
    assemble_gibbs,
    exponentiated_rounds,
    exponentiated_steps,
    place,
)
from maxmargin.solvers.exponentiated.gibbs import Gibbs, attain_gibbs, first_gibbs, first_level
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import Certifier
from maxmargin.trace import Certificate, Status

SAMPLINGS = ("permutation", "gap")
PULL, PULLS = 10.0, (3.0, 20.0)  # of the true outputs' potentials, at which blocks begin: one to try, and the range
MOST_KEPT = 2**23  # mean parts of all examples, 32 MB in float32: more are found again in every step, if that is fast
FIRST_STEP = 0.5  # of the way to where the loss is attained
STEPS_OF_ROUND = 16  # they take longer than those of the max oracle
RELAXED = 0.5  # the share of the best step that batch steps take: with the whole, they go to and fro
SHORTEST = 1e-12  # of the last step, tried before giving up


@dataclass(frozen=True)
class ExponentiatedGradient(Solver):
    """Exponentiated gradient on the dual, on single examples or in batch.

    Good for conditional random fields at small and medium C: few passes to a tight gap. Single steps keep a number per
    part of each example, or two where these are few, batch steps nothing.

    Parameters
    ----------
    batch
        Take steps on all examples at once, on all threads, in place of one after the other.
    sampling
        Order of the examples: "permutation" visits each once per pass, "gap" draws in proportion to what their last
        steps tell of the block gaps.
    uniform_share
        The share of examples that gap sampling draws uniformly.
    gap_every
        Passes between two certificates.

    References
    ----------
    Collins, Globerson, Koo, Carreras, Bartlett (2008), Exponentiated gradient algorithms for conditional random fields
    and max-margin Markov networks.

    Examples
    --------
    >>> from maxmargin import ExponentiatedGradient
    >>> from maxmargin.testing import toy_chains
    >>> ExponentiatedGradient().solve(toy_chains(), loss="log", random_state=0).status.name
    'OPTIMAL'
    """

    batch: bool = False
    sampling: str = "permutation"
    uniform_share: float = 0.2
    gap_every: int = 5

    takes_smooth = needs_margin = resumes = takes_kernels = True
    takes_bounds = False

    def __post_init__(self) -> None:
        if not isinstance(self.batch, (bool, np.bool_)):
            raise ValueError(f"batch must be True or False, not {self.batch!r}.")
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_share("uniform_share", self.uniform_share)
        check_count("gap_every", self.gap_every)

    @property
    def takes_portions(self) -> bool:  # type: ignore[override]
        return bool(self.batch)

    def takes(self, loss: BaseLoss) -> bool:
        return super().takes(loss) and loss.entropy_level is not None

    def oracles(self, loss: BaseLoss) -> set[str]:
        return {"exp", loss.oracle}

    def needs_norms(self, loss: BaseLoss) -> bool:
        return not self.batch

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: State(certifier=Certifier(run), first=None, steps=None))
        if state.first is None:
            yield state.certifier.certify_start(state)
        if state.steps is None:
            first = state.first
            state.steps = BatchSteps(run, first) if self.batch else SingleSteps(run, run.objective, first)
        while True:
            for _ in range(run.passes_to_go(self.gap_every)):
                state.steps.make_pass(self)
                if run.must_stop:
                    break
            yield state.certifier.certify(*state.steps.rebuild())


@register_state
class BatchSteps:
    """Steps on all examples at once, from certified weights."""

    def __init__(self, run: Run, certificate: Certificate) -> None:
        self.run, self.objective = run, run.objective
        self.level = run.objective.loss.entropy_level or 0.0
        self.point = first_gibbs(run, certificate)
        self.eta = FIRST_STEP / first_level(run, certificate)

    def _value(self, point: Gibbs) -> float:
        return self.objective.dual_value(point.cost + self.level * point.entropy, point.v)

    def make_pass(self, solver: ExponentiatedGradient) -> None:
        """One step, which may take several passes."""
        run, point, level, regularization = self.run, self.point, self.level, self.objective.regularization
        inner = self.objective.layout.inner
        shortest = SHORTEST * self.eta
        while not run.must_stop:
            eta = self.eta
            tried = attain_gibbs(run, (1 - eta * level) * point.W + eta * point.v, (1 - eta * level) * point.c + eta)
            change, cost = tried.v - point.v, tried.cost - point.cost
            a = (1 - level * point.c) * cost - regularization * inner(point.v - level * point.W, change)
            bend = level * a + regularization * inner(change, change) / eta
            best = a / bend if bend > 0 else 2 * eta
            if self._value(tried) >= self._value(point):
                self.point, self.eta = tried, min(max(RELAXED * best, eta / 2), 2 * eta)
                return
            self.eta = min(max(best, eta / 10), eta / 2)
            if self.eta < shortest:
                run.verdict = Status.STALLED

    def rebuild(self) -> tuple[np.ndarray, float, float]:
        """w(alpha), D(alpha), and the size of its exponents."""
        return self.point.v, self._value(self.point), self.point.exponents


@register_state
class SingleSteps:
    """Steps on one example after the other, from certified weights; by another precision of the objective, maybe."""

    def __init__(self, run: Run, objective: Objective, certificate: Certificate) -> None:
        self.run, self.objective = run, objective
        self.level = objective.loss.entropy_level or 0.0
        sizes, dtype = objective.runner.part_sizes, objective.runner.dtype
        keeps_means = sizes.sum() <= MOST_KEPT * work_of(objective.problem.problem) / USUAL_WORK
        first = 1 / first_level(run, certificate)
        self.point = GibbsPoint(
            potentials=new_blocks(sizes, dtype),
            means=new_blocks(keeps_means * sizes, dtype),
            w=certificate.w.astype(dtype),
            etas=np.full(objective.n, FIRST_STEP * first),
            tree=sum_tree.new_tree(objective.n),
        )
        self.rule = GibbsRule(self.level, objective.weight, objective.regularization)
        self.is_first = True
        self._prepare()
        self.pace = new_pace(1 if self.rounds is None else len(self.rounds), is_short=True)
        if run.start is not None:
            self._place(first, 0.0)
        else:
            value, norm = self._place(0.0, PULL)
            if self.level > 0 and value > 0 and norm > 0:
                self._place(0.0, float(np.clip(PULL - np.log(value / (2 * norm)), *PULLS)))

    def _prepare(self) -> None:
        """What follows from the objective, and is no part of the state: how many ranges step at once, in what room."""
        objective, runner = self.objective, self.objective.runner
        n_ranges = count_ranges(runner) if objective.layout.is_explicit else 1
        self.rounds = StepRounds(runner, objective.n_weights, STEPS_OF_ROUND) if n_ranges > 1 else None
        self.gaps = RangeTrees([] if self.rounds is None else self.rounds.ranges.bounds)
        self.rooms = [aligned((3, int(runner.part_sizes.max())), runner.dtype) for _ in range(n_ranges)]

    def __getstate__(self) -> dict[str, object]:
        """All but the objective, if it is not that of the run, but in which precision it is."""
        dtype = None if self.objective is self.run.objective else self.objective.runner.dtype
        kept = {name: value for name, value in vars(self).items() if name not in ("rounds", "gaps", "rooms")}
        return {**kept, "objective": dtype}

    def __setstate__(self, state: dict[str, Any]) -> None:
        exact, dtype = state["run"].objective, state["objective"]
        vars(self).update(state, objective=exact if dtype is None else exact.prepare(dtype))
        self._prepare()

    def _place(self, scale: float, pull: float) -> tuple[float, float]:
        """Begin at theta_i = scale (B_i'w + cost_i) + pull s_i(y_i); return both terms of D there, the second less q.

        With a strong pull, probabilities of other outputs are proportional to exp(-pull), as are both the first term
        and the root of the second: from one pull they tell which is about the best.
        """
        self.objective.runner.run(place, self.point, self.objective.attained, scale, pull)
        v, dual, _ = self.rebuild()
        objective = self.objective
        moved, norm = (
            0.5 * objective.regularization * objective.layout.squared_length(u) for u in (v - objective.origin, v)
        )
        return dual + norm - objective.constant, moved

    @property
    def known_gap(self) -> float:
        """The gap, by what the last step on each example tells."""
        return float(sum_tree.leaves(self.point.tree, self.objective.n).sum())

    def make_pass(self, solver: ExponentiatedGradient) -> None:
        """As many steps as there are examples and, with an L1 term, one on what it holds of the weights."""
        sampling = "permutation" if self.is_first else solver.sampling
        self.is_first = False
        if self.rounds is not None:
            self._make_rounds(self.rounds, self.rounds.draw_orders(self.run.rng, sampling, solver.uniform_share))
        else:
            self._make_steps(sampling, solver.uniform_share)
        if self.objective.l1:
            self._hold(self.point.w + self.held)

    def _hold(self, v: np.ndarray) -> np.ndarray:
        """Go on from the weights of v, and return them; what the L1 term holds of v stays until the next call."""
        w = self.objective.weights_of(v)
        self.point.w[:] = w
        if self.objective.l1:
            self.held = v - w
        return w

    def _make_steps(self, sampling: str, uniform_share: float) -> None:
        """A step on each of the examples, one after the other."""
        run, objective, n = self.run, self.objective, self.objective.n
        order, draws = run.rng.permutation(n), run.rng.random(n)
        if sampling == "gap":
            order = run.rng.integers(n, size=n)
            order[run.rng.random(n) >= uniform_share] = -1
        problem, scratch = objective.problem, objective.runner.scratches[0]
        for lo, hi in run.slices(n):
            lines = objective.runner.lines
            visits = GibbsVisits(order, draws, hi, 0, n, lines, self.rooms[0], np.zeros(1), NO_LOG)
            _, calls = exponentiated_steps(
                problem, objective.attained, self.point, self.rule, visits, lo, ALL, 1.0, scratch
            )
            run.count(calls=calls)

    def _make_rounds(self, rounds: StepRounds, orders: list[Order]) -> None:
        """A step on each of the examples, by all ranges at once."""
        run, objective, point = self.run, self.objective, self.point
        gaps, counts = sum_tree.leaves(point.tree, objective.n), [0] * len(rounds)
        self.gaps.read(gaps)

        def step(seat: Seat, begin: int) -> tuple[int, bool]:
            k, (lo, hi) = seat.k, rounds.ranges.bounds[seat.k]
            order, draws = orders[k]
            lines, room = objective.runner.lines, self.rooms[k]
            visits = GibbsVisits(order, draws, len(order), lo, hi - lo, lines, room, seat.gain, seat.log)
            own = point._replace(w=rounds.weights_of(k), tree=self.gaps.trees[k])
            problem, loss, scratch = objective.problem, objective.attained, rounds.scratches[k]
            place, calls = exponentiated_rounds(problem, loss, own, self.rule, visits, seat, begin, scratch)
            counts[k] += calls
            return place, True

        sizes = [len(order) for order, _ in orders]
        slices = run.slices(sum(sizes))
        rounds.make_pass(slices, sizes, step, point.w, point.w.copy(), objective.regularization, self.pace)
        self.gaps.write(gaps)
        run.count(calls=sum(counts))

    def rebuild(self) -> tuple[np.ndarray, float, float]:
        """w(alpha), recomputed in float64 against drift, D(alpha), and the size of its exponents.

        Where steps are less precise than the objective of the run, alpha is that of their potentials in its precision.
        """
        objective = self.run.objective
        costs, entropies = np.zeros((2, objective.n))
        arguments = self.point.potentials, objective.weight, objective.regularization, costs, entropies
        v = objective.runner.accumulate(assemble_gibbs, *arguments)
        objective.layout.complete(v)
        objective.from_origin(v)
        self.run.count(calls=objective.n)
        w = self._hold(v)
        gain = float(costs.sum()) * objective.loss.margin + self.level * float(objective.weight @ entropies)
        return w, objective.dual_value(gain / objective.n, v), size_of_potentials(self.point.potentials.values)


def size_of_potentials(theta: np.ndarray) -> float:
    """The largest size of potentials of possible parts."""
    pieces = np.array_split(theta, 1 + len(theta) // 100_000)  # less memory than all at once
    return float(max(np.abs(piece[piece > IMPOSSIBLE / 2]).max(initial=0) for piece in pieces))
