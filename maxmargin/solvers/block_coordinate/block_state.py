"""What block-coordinate steps work on, and the steps of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.arrays.vectors import approach
from maxmargin.execution.meeting import NO_LOG
from maxmargin.execution.step_rounds import NO_DRAWS, Order, count_ranges, draw_order
from maxmargin.persist.registry import register_state
from maxmargin.solvers.block_coordinate import sum_tree
from maxmargin.solvers.block_coordinate.block_rounds import BlockRounds
from maxmargin.solvers.block_coordinate.block_steps import (
    ALL,
    AWAY,
    BEST,
    EXACT,
    FW,
    NO_TURNS,
    PAIRWISE,
    BlockPoint,
    BlockRule,
    Turns,
    Visits,
    block_steps,
)
from maxmargin.solvers.block_coordinate.exact_steps import exact_steps
from maxmargin.solvers.block_coordinate.momentum import go_on
from maxmargin.solvers.frame.run import Run
from maxmargin.solvers.objective.active_sets import Carried, DualPoint, OfStored, enlarge, no_sets, rescale, sets_of
from maxmargin.solvers.objective.bounds import project
from maxmargin.trace import Certificate

if TYPE_CHECKING:
    from maxmargin.solvers.block_coordinate.bcfw import BCFW

STEPS = {"fw": FW, "pairwise": PAIRWISE, "away": AWAY, "best": BEST, "exact": EXACT}
MOST_BYTES = 2**26  # of mean parts: where they would take more, Frank-Wolfe steps keep active sets, too
UNKNOWN = 1e300  # the gap of a block that was not visited yet: no cached output can promise as much
RECENT = 8  # in the mean of recent weights, the last ones count for 8/(k + 7) after k passes, until that is the least:
LEAST_SHARE = 0.1
FIRST_MOMENTUM = 60  # passes: fits that end sooner gain nothing, as block gaps are known less well after it


@register_state
class BlockState:
    """What block-coordinate steps work on besides the weights and mean parts of a run."""

    sigma = 1.0  # how many times the changes of steps, one after the other, count

    def __init__(self, solver: BCFW, run: Run) -> None:
        objective = run.objective
        self.run = run
        self.tree = sum_tree.new_tree(objective.n)
        self.gaps = sum_tree.leaves(self.tree, objective.n)  # block gaps, each as of the last oracle call on it
        self.gaps[:] = UNKNOWN
        self.global_gap = UNKNOWN
        self.primal: float | None = None  # of the last certificate
        self.n_passes, self.age = 1, 0  # passes to the next one; of the gaps, in passes since all were refreshed
        self.outputs = objective.new_outputs()
        self.lag = np.zeros(run.w.size if solver.averaging is True else 0)
        self.n_steps, self.passes_made = 0, 0
        self.counts, self.gain = np.zeros(3, np.int64), np.zeros(1)
        kind = STEPS[solver.steps]
        runner = objective.runner
        keeps_means = kind == EXACT or (kind == FW and runner.part_sizes.sum() * runner.dtype.itemsize <= MOST_BYTES)
        self.rule = BlockRule(
            kind,
            keeps_means,
            not keeps_means or solver.cache > 0,
            solver.cache,
            float(solver.cache_factor),
            float(solver.cache_nu),
            True,
            objective.weight,
            objective.regularization,
        )
        self.uniform_share = float(solver.uniform_share)
        self.is_warm = run.start_dual(needs_sets=not keeps_means)
        self.recent = run.w.copy() if solver.averaging == "recent" else np.zeros(0)  # the mean of recent weights
        self.knows_gaps = isinstance(run.start, Carried) and run.dual.gaps.size > 0
        if self.knows_gaps:
            self.gaps[:] = run.dual.gaps
            sum_tree.sum_up(self.tree)
        self.sets = run.dual.sets if not keeps_means or not solver.cache else sets_of(objective.problem.truth)
        self.share_sets()
        is_free = objective.layout.is_explicit and not objective.bounds.which.size
        self.momentum = solver.momentum if is_free and not keeps_means else 0
        self.sets.earlier[:] = self.sets.alpha
        can_share = objective.layout.is_explicit and not self.lag.size
        self.rounds = BlockRounds(run, self.sets) if can_share and count_ranges(runner) > 1 else None

    def share_sets(self) -> None:
        """Make the gaps part of the dual point, and the sets if they are active sets, not just a cache."""
        self.run.dual = DualPoint(self.run.dual.means, no_sets() if self.rule.keeps_means else self.sets, self.gaps)

    def make_pass(self, sampling: str) -> None:
        """As many steps as there are examples."""
        if self.rule.kind == EXACT and sampling == "gap":
            self.take_turns()
        elif self.rounds is not None:
            orders = self.rounds.rounds.draw_orders(self.run.rng, sampling, self.uniform_share)
            self.step_in_rounds(orders, [NO_TURNS] * len(orders))
        else:
            self.make_steps(sampling, self.run.objective.n)
        self.passes_made += 1
        if self.momentum and self.passes_made >= FIRST_MOMENTUM and self.passes_made % self.momentum == 0:
            go_on(self.run, self.sets)
        approach(self.recent, self.run.w, max(RECENT / (RECENT - 1 + self.passes_made), LEAST_SHARE))

    def make_steps(self, sampling: str, n_steps: int) -> None:
        """At most as many steps as there are examples, one after the other."""
        order, draws = draw_order(self.run.rng, sampling, self.uniform_share, self.run.objective.n, n_steps)
        for lo, hi in self.run.slices(n_steps):
            self.step(order, draws, lo, hi)

    def take_turns(self) -> None:
        """As many exact steps as there are examples, on those in turn whose gap is not small."""
        n, run = self.run.objective.n, self.run
        order, turns = np.full(n, -1), Turns(run.rng.permutation(n), np.zeros(1, np.int64))
        if self.rounds is not None:
            self.step_in_rounds(*self.rounds.split(turns.order))
            return
        for lo, hi in run.slices(n):
            self.step(order, begin=lo, end=hi, turns=turns)

    def step_in_rounds(self, orders: list[Order], turns: Sequence[Turns]) -> None:
        """Take a step on each example of the orders of all ranges."""
        if self.rounds is not None:
            self.count(*self.rounds.make_pass(self, orders, turns))

    def step(
        self,
        order: np.ndarray,
        draws: np.ndarray = NO_DRAWS,
        begin: int = 0,
        end: int | None = None,
        turns: Turns = NO_TURNS,
    ) -> None:
        """Take a step on each example of order[begin:end]."""
        run, objective = self.run, self.run.objective
        before = self.counts.copy()
        take_steps = exact_steps if self.rule.kind == EXACT else block_steps
        end = len(order) if end is None else end
        while True:
            point = BlockPoint(
                run.w,
                objective.bounds,
                run.dual.means,
                self.sets,
                self.tree,
                0,
                self.lag,
                self.counts,
                self.gain,
                NO_LOG,
                objective.runner.lines,
            )
            visits = Visits(order, draws, end, objective.n, self.n_steps - begin, self.global_gap, turns)
            done, has_room = take_steps(
                objective.problem, point, self.rule, visits, begin, ALL, self.sigma, objective.runner.scratches[0]
            )
            self.n_steps += done - begin
            begin = done
            if has_room:
                break
            self.sets = enlarge(self.sets)
            self.share_sets()
        self.count(*(self.counts - before))

    def count(self, calls: int, hits: int, wrong: int) -> None:
        """Count calls of the oracle, cache hits and wrong outputs."""
        wrong = 0 if self.run.objective.is_bounded else wrong  # where outputs worse than known ones are nothing wrong
        self.run.count(calls=calls, hits=hits, misses=calls if self.rule.cache_limit else 0, wrong=wrong)

    def rebuild(self) -> float:
        """Rebuild the weights from the dual point, against drift; return the dual value."""
        if not self.rule.keeps_means:
            rescale(self.sets)
        return self.run.rebuild()

    def estimate(self) -> Certificate:
        """As `certify`, by the last known block gaps, or what stored outputs promise if that is more."""
        dual, rounding = self.rebuild(), self.run.rounding
        if self.sets.sizes.size:
            stored = OfStored(True, self.run.objective.loss, self.sets)
            promised = self.run.objective.evaluate(self.run.w, loss=stored, point=self.run.dual, with_gradient=False)
            rounding = promised.rounding
            self.gaps[:] = np.maximum(self.gaps, promised.gaps)
            sum_tree.sum_up(self.tree)
        return self.trust_gaps(dual - rounding)

    def trust_gaps(self, dual: float) -> Certificate:
        """What the known block gaps say, given the dual value."""
        self.global_gap = float(self.gaps.sum())
        return Certificate(self.run.w, dual + self.global_gap, dual)

    def certify(self) -> Certificate:
        """Rebuild, then bound the objective by one oracle pass, which also refreshes the block gaps."""
        run, k = self.run, self.n_steps
        dual = self.rebuild()
        w = project(self.recent, run.objective.bounds) if self.recent.size else run.w
        found = run.evaluate(w, outputs=self.outputs, point=run.dual, sets=self.sets, with_gradient=False)
        dual -= found.rounding
        self.gaps[:] = np.maximum(found.gaps, 0)
        sum_tree.sum_up(self.tree)
        self.global_gap = float(self.gaps.sum())
        if self.lag.size and k > 1:
            average = run.objective.at(run.dual)[0] - self.lag * (2 / (k * (k + 1)))
            w = project(average, run.objective.bounds).astype(run.w.dtype)
            found = run.evaluate(w, with_gradient=False)
        return Certificate(w, found.value, dual)
