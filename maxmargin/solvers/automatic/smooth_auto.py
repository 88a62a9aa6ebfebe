"""What "auto" does with smooth losses: exponentiated gradient first where there is much to do, then L-BFGS.

Steps on single examples get far in a few passes, but the larger C is, the shorter they become, and the more passes the
rest takes. L-BFGS goes on from any weights. So the one hands over to the other when its gap falls too slowly; where its
weights are worse than those at the start, L-BFGS begins with the best so far. Steps are taken in float32, certificates
and the weights they go on from are of the objective's own precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.runtime.modes import is_enough
from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.exponentiated.exponentiated_gradient import ExponentiatedGradient, SingleSteps
from maxmargin.solvers.frame.observation import Observer
from maxmargin.solvers.frame.run import Run, State
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import Certifier
from maxmargin.trace import Certificate, Status

ENOUGH_PARTS = 1_000_000  # of all examples: with fewer, L-BFGS takes next to no time
MOST_PARTS = 60_000_000  # a number of each is kept
SLOW = 2.0  # the gap is to fall by this factor in as many passes as there are between two looks, as L-BFGS's would
SLOW_WITH_L1 = 1.05  # of OWL-QN, which takes hundreds of passes
FIRST = 2  # looks that say little: those of the first passes
MOST_LOOKS = 4  # from one certificate to the next: as long as steps tell that the gap falls fast, none is needed
KNOWN_SHARES = 0.7, 1.5  # of the gap, that what steps tell of it may be


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
                at_start=np.inf,
                steps=None,
                gap=np.inf,
                at=0.0,
                known=0.0,
                share=0.0,
                is_slow=False,
            )
        return State(**vars(super()._begin(run)), is_single=False, dual=run.objective.least)


def suits_single_steps(objective: Objective) -> bool:
    """Whether exponentiated gradient is to begin: where it can, and where there is enough to do."""
    has_steps = objective.is_convex and bool(objective.loss.entropy_level) and objective.can_prepare
    is_plain = objective.regularization > 0 and not objective.bounds.which.size
    n_parts = objective.runner.part_sizes.sum()
    return has_steps and is_plain and is_enough(n_parts, ENOUGH_PARTS) and n_parts <= MOST_PARTS


def take_single_steps(run: Run, state: State) -> Iterator[Certificate]:
    """Certificates for as long as their gap falls fast enough, and a note of why they end."""
    solver = ExponentiatedGradient(sampling="gap")
    slow = SLOW_WITH_L1 if run.objective.l1 else SLOW
    if state.certificate is None:
        state.certificate = state.certifier.certify(run.start_weights(), 0.0)
        state.at_start = state.certificate.primal
        run.n_steps += run.objective.n
        yield state.certificate
    if state.steps is None:
        state.steps = SingleSteps(run, run.objective.prepare(np.float32), state.certificate)
        run.notes.append("Began with steps of exponentiated gradient on single examples.")
    while not state.is_slow:
        known, enough = make_passes(run, state, solver)
        falls, state.known = known <= state.known / slow, known
        n_looks = (run.passes - state.at) / solver.gap_every
        if falls and known > enough and n_looks < MOST_LOOKS and run.held_out is None and not run.must_stop:
            continue
        certificate = state.certifier.certify(*state.steps.rebuild())
        if certificate.primal > state.at_start:  # weights that are not worth a look, by held-out data neither
            state.certificate = replace(state.certificate, dual=max(state.certificate.dual, certificate.dual))
            run.notes.append(f"Left to L-BFGS after {run.passes:.0f} passes: steps led above where they began.")
            return
        state.certificate = certificate
        gap = certificate.primal - certificate.dual
        state.share = float(np.clip(known / max(gap, 1e-300), *KNOWN_SHARES))
        if n_looks >= 1:  # with held-out data, there are more certificates at first
            state.is_slow = run.passes > 1 + FIRST * solver.gap_every and gap > state.gap / slow**n_looks
            state.gap, state.at = gap, run.passes
        yield certificate
    run.notes.append(
        f"Handed over to L-BFGS after {run.passes:.0f} passes, as the gap fell too slowly: steps went "
        f"{state.steps.point.etas.mean():.2g} of the way on average."
    )


def make_passes(run: Run, state: State, solver: ExponentiatedGradient) -> tuple[float, float]:
    """Passes until the next look; return the gap by what steps tell of it, and the one that is taken for the target."""
    enough = state.share * run.target(state.certificate.primal)
    for _ in range(run.passes_to_go(solver.gap_every)):
        state.steps.make_pass(solver)
        if run.must_stop or state.steps.known_gap <= enough:
            break
    return state.steps.known_gap, enough
