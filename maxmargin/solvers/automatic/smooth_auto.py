"""What "auto" does with smooth losses: exponentiated gradient first where there is much to do, then L-BFGS.

Steps on single examples get far in a few passes, but the larger C is, the shorter they become, and the more passes the
rest takes. L-BFGS goes on from any weights. So the one hands over to the other when its gap falls too slowly. Steps are
taken in float32, certificates and the weights they go on from are of the objective's own precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.exponentiated.exponentiated_gradient import ExponentiatedGradient, SingleSteps
from maxmargin.solvers.frame.observation import Observer
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import Certifier
from maxmargin.trace import Certificate, Status

ENOUGH_PARTS = 1_000_000  # of all examples: with fewer, L-BFGS takes next to no time
MOST_PARTS = 60_000_000  # a number of each is kept
SLOW = 2.0  # the gap is to fall by this factor in as many passes as there are between certificates, as L-BFGS's would
CAUTION = 1.1  # times the passes that seem to be needed
FIRST = 2  # gaps that say little: those of the first passes


@dataclass(frozen=True)
class SmoothAuto(LBFGS):
    """`ExponentiatedGradient`, then `LBFGS`; the choice is noted in the trace."""

    @property
    def known_as(self) -> str:
        return "Auto"

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        """Run; what float32 cannot certify is left to L-BFGS in float64, from the weights reached so far.

        Runs with a checkpoint end there: what goes on in another precision could not be resumed.
        """
        seen: list[Certificate] = []

        def watch(certificate: Certificate) -> bool:
            seen[:] = [certificate]
            return observe(certificate)

        super().follow(run, watch)
        objective = run.objective
        is_rough = run.verdict is Status.STALLED and objective.runner.dtype == np.float32
        can_go_on = objective.can_prepare and not objective.bounds.which.size
        if is_rough and can_go_on and isinstance(observe, Observer):
            (last,), run.verdict, run.state = seen, None, None
            run.objective, run.start = objective.prepare(np.float64), last.w
            run.notes.append(f"Went on in float64 after {run.passes:.0f} passes.")
            least = last.dual if objective.is_convex else -np.inf
            LBFGS().follow(run, lambda found: observe(replace(found, dual=max(found.dual, least))))

    def iterate(self, run: Run) -> Iterator[Certificate]:
        state = run.take_up(lambda: self._begin(run))
        if state.is_single:
            yield from take_single_steps(run, state)
            run.start = state.certificate.w
            run.state = State(**vars(super()._begin(run)), is_single=False, dual=state.certificate.dual)
        for certificate in super().iterate(run):
            yield replace(certificate, dual=max(run.state.dual, certificate.dual))

    def _begin(self, run: Run) -> State:
        if suits_single_steps(run.objective):
            certifier = Certifier(run)
            return State(
                is_single=True,
                certifier=certifier,
                certificate=None,
                steps=None,
                gap=np.inf,
                gap_before=np.inf,
                n_before=0,
                at=0.0,
            )
        return State(**vars(super()._begin(run)), is_single=False, dual=run.objective.least)


def suits_single_steps(objective: Objective) -> bool:
    """Whether exponentiated gradient is to begin: where it can, and where there is enough to do."""
    has_steps = objective.is_convex and bool(objective.loss.entropy_level) and objective.can_prepare
    is_plain = objective.regularization > 0 and not objective.l1 and not objective.bounds.which.size
    return has_steps and is_plain and ENOUGH_PARTS <= objective.runner.part_sizes.sum() <= MOST_PARTS


def take_single_steps(run: Run, state: State) -> Iterator[Certificate]:
    """Certificates for as long as their gap falls fast enough, and a note of why they end."""
    solver = ExponentiatedGradient(sampling="gap")
    if state.certificate is None:
        state.certificate = state.certifier.certify(run.start_weights(), 0.0)
        run.n_steps += run.objective.n
        yield state.certificate
    if state.steps is None:
        state.steps = SingleSteps(run, run.objective.prepare(np.float32), state.certificate)
        run.notes.append("Began with steps of exponentiated gradient on single examples.")
    while state.n_before <= FIRST or state.gap <= state.gap_before / SLOW:
        for _ in range(run.passes_to_go(passes_needed(run, state, solver.gap_every))):
            state.steps.make_pass(solver)
            if run.must_stop:
                break
        state.certificate = certificate = state.certifier.certify(*state.steps.rebuild())
        if run.passes - state.at >= solver.gap_every:  # with held-out data, there are more certificates at first
            state.gap_before, state.gap = state.gap, certificate.primal - certificate.dual
            state.n_before, state.at = state.n_before + 1, run.passes
        yield certificate
    run.notes.append(
        f"Handed over to L-BFGS after {run.passes:.0f} passes, as the gap fell too slowly: steps went "
        f"{state.steps.point.etas.mean():.2g} of the way on average."
    )


def passes_needed(run: Run, state: State, most: int) -> int:
    """The passes after which the gap is at its target, if it goes on falling as it did, and a few more; or `most`."""
    if not state.gap < state.gap_before < np.inf:
        return most
    primal, dual = state.certificate
    needed = most * np.log((primal - dual) / run.target(primal)) / np.log(state.gap_before / state.gap)
    return int(np.clip(np.ceil(CAUTION * needed), 1, most))
