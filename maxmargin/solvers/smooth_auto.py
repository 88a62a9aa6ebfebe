"""What "auto" does with smooth losses: exponentiated gradient first where there is much to do, then L-BFGS.

Steps on single examples get far in a few passes, but the larger C is, the shorter they become, and the more passes the
rest takes. L-BFGS goes on from any weights. So the one hands over to the other when its gap falls too slowly. Steps are
taken in float32, certificates and the weights they go on from are of the objective's own precision.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin.problem import prepared
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.exponentiated_gradient import BlockState, ExponentiatedGradient
from maxmargin.solvers.lbfgs import LBFGS
from maxmargin.solvers.lower_bound import Certifier
from maxmargin.solvers.objective import Certificate, Objective
from maxmargin.solvers.run import Run
from maxmargin.trace import Status

ENOUGH_PARTS = 1_000_000  # of all examples: with fewer, L-BFGS takes next to no time
MOST_PARTS = 30_000_000  # two numbers of each are kept
SLOW = 2.0  # the gap is to fall by this factor between certificates, which is about what L-BFGS would do
FIRST = 2  # certificates whose gaps say little: those of the first passes


@dataclass(frozen=True)
class SmoothAuto(LBFGS):
    """`ExponentiatedGradient`, then `LBFGS`; the choice is noted in the trace."""

    def follow(self, run: Run, observe: Callable[[Certificate], bool]) -> None:
        """Run; what float32 cannot certify is left to L-BFGS in float64, from the weights reached so far."""
        seen: list[Certificate] = []

        def watch(certificate: Certificate) -> bool:
            seen[:] = [certificate]
            return observe(certificate)

        super().follow(run, watch)
        is_rough = run.verdict is Status.STALLED and run.objective.passes.dtype == np.float32
        if is_rough and supports(prepared, run.objective.problem):
            (last,), run.verdict = seen, None
            run.objective, run.start = run.objective.prepared(np.float64), last.w
            run.notes.append(f"Went on in float64 after {run.passes:.0f} passes.")
            LBFGS().follow(run, lambda found: observe(found._replace(dual=max(found.dual, last.dual))))

    def iterate(self, run: Run) -> Iterator[Certificate]:
        dual = 0.0
        if suits_single_steps(run.objective):
            for certificate in take_single_steps(run):
                yield certificate
            run.start, dual = certificate.w, certificate.dual
        for certificate in super().iterate(run):
            yield certificate._replace(dual=max(dual, certificate.dual))


def suits_single_steps(objective: Objective) -> bool:
    """Whether exponentiated gradient is to begin: where it can, and where there is enough to do."""
    has_steps = objective.loss.smoothing == "entropy" and supports(prepared, objective.problem)
    is_plain = objective.regularization > 0 and not objective.l1 and not objective.bounds.which.size
    return has_steps and is_plain and ENOUGH_PARTS <= objective.passes.part_sizes.sum() <= MOST_PARTS


def take_single_steps(run: Run) -> Iterator[Certificate]:
    """Certificates for as long as their gap falls fast enough, and a note of why they end."""
    solver, certifier = ExponentiatedGradient(sampling="gap"), Certifier(run)
    certificate = certifier.certify(run.start_weights(), 0.0)
    run.n_steps += run.objective.n
    yield certificate
    state, gap = BlockState(run, run.objective.prepared(np.float32), certificate), np.inf
    run.notes.append("Began with steps of exponentiated gradient on single examples.")
    for n_before in itertools.count():
        for _ in range(run.passes_to_go(solver.gap_every)):
            state.make_pass(solver)
            if run.must_stop:
                break
        v, dual, exponents, _ = state.rebuild()
        yield (certificate := certifier.certify(v, dual, exponents))
        before, gap = gap, certificate.primal - certificate.dual
        if n_before >= FIRST and gap > before / SLOW:
            run.notes.append(
                f"Handed over to L-BFGS after {run.passes:.0f} passes, as the gap fell too slowly: steps went "
                f"{state.etas.mean():.2g} of the way on average."
            )
            return
