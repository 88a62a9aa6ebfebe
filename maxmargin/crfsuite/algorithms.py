"""How CRFsuite trains: with the pairs that occur often enough, until the loss is flat, and with a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.foundation.fit_options import estimator
from maxmargin.parameters import arguments, parameter
from maxmargin.trace import Trace


class TrainingLog(NamedTuple):
    """The course of a training: a dictionary for each certificate, with its number, the loss and the seconds so far."""

    iterations: list[dict[str, Any]]

    @property
    def last_iteration(self) -> dict[str, Any]:
        """The last of them."""
        return self.iterations[-1]


@arguments
class Frequent:
    """Of models that have the features of CRFsuite."""

    least_observed: float = parameter("float", "Have weights only for pairs that occur so often or more.", default=0.0)


@estimator
class FrequentCRF(Frequent, ChainCRF):
    """A CRF with the features of CRFsuite."""


@estimator
class FrequentSVM(Frequent, ChainSVM):
    """A structural SVM with the features of CRFsuite."""


def flattens(period: int, delta: float) -> Callable[[Trace], bool]:
    """Whether a loss has fallen by at most a share `delta` in the last `period` certificates."""

    def has_flattened(trace: Trace) -> bool:
        if len(trace) <= period:
            return False
        before, now = trace.rows[-1 - period][3], trace.rows[-1][3]
        return before - now <= delta * abs(now)

    return has_flattened


def select_edges(edge_features: Iterable[object] | None, n: int, which: list[int]) -> dict[str, Any]:
    """Features of the transitions of some of n sequences, as models take them; none where there are none."""
    if edge_features is None:
        return {}
    listed = [*edge_features]
    if len(listed) != n:
        raise ValueError(f"edge_features must have an entry for each of the {n} sequences of X, not {len(listed)}.")
    return {"edge_features": [listed[i] for i in which]}
