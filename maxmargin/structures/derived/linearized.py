"""Any structure with potentials that are affine in the weights, as those of a network linearized at some weights.

The parts, outputs and oracles are those of the `base` problem, whose features are not asked. Each part has a row of
derivatives and an offset: theta_i = J_i w + offset_i. The offsets are added with the costs, so that a loss with a
margin has them; the true output must have none, as it costs nothing. A base without costs makes a loss with offsets
alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.execution.threads import aligned
from maxmargin.features import DenseFeatures, Gram
from maxmargin.problem import AnyProblem
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.choices.candidate_problem import candidate_scores, candidate_squared_norm, spread_candidates
from maxmargin.structures.delegated import OUTPUTS_AND_ORACLES, base_workspace, delegate
from maxmargin.supervision.exclusions import nothing_excluded


class LinearizedProblem(NamedTuple):
    """The parts of example i have the rows and offsets starts[i]:starts[i + 1]."""

    base: Any
    features: Any  # the rows of derivatives
    starts: np.ndarray  # (n + 1,) int64
    offset: np.ndarray  # (sum of parts,)
    n_weights: int
    excluded: Blocks


def linearized(base: AnyProblem, derivatives: np.ndarray, offset: np.ndarray) -> LinearizedProblem:
    """A problem of the parts of `base`, given the derivatives of their potentials, (sum of parts, d), and offsets.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import BCFW
    >>> from maxmargin.problem import part_sizes
    >>> from maxmargin.structures.derived.linearized import linearized
    >>> from maxmargin.testing import toy_chains
    >>> n_parts = int(part_sizes(toy_chains()).sum())
    >>> derivatives = np.random.default_rng(0).standard_normal((n_parts, 2))  # of each potential, by two weights
    >>> len(BCFW().solve(linearized(toy_chains(), derivatives, np.zeros(n_parts)), random_state=0).w)
    2
    """
    starts = starts_of(generics.part_sizes(base))
    no_grams = Gram(np.empty(0), np.zeros(len(starts) - 1, np.int64))
    rows = DenseFeatures(np.require(derivatives, offset.dtype, ["C", "W"]), no_grams)
    excluded = nothing_excluded(len(starts) - 1)
    return LinearizedProblem(base, rows, starts, np.ascontiguousarray(offset), derivatives.shape[1], excluded)


class LinearizedWork(NamedTuple):
    """The workspace of the base problem and the buffer of direction norms."""

    base: Any
    spread: np.ndarray  # (d,)


delegate(LinearizedProblem, functions=OUTPUTS_AND_ORACLES)


@implements(generics.new_weights, LinearizedProblem)
def new_linearized_weights(problem):
    return np.zeros(problem.n_weights, problem.offset.dtype)


@implements(generics.workspace, LinearizedProblem)
def linearized_workspace(problem, n_best):
    return LinearizedWork(base_workspace(problem, n_best), aligned((problem.n_weights,), problem.offset.dtype))


# A part has a row of features, as a candidate has.
implements(generics.scores, LinearizedProblem)(candidate_scores)
implements(generics.spread, LinearizedProblem)(spread_candidates)
implements(generics.squared_norm, LinearizedProblem)(candidate_squared_norm)


@implements(generics.augment, LinearizedProblem)
def augment_linearized(problem, i, theta):
    generics.augment(problem.base, i, theta)
    lo = problem.starts[i]
    for p in range(theta.size):
        theta[p] += problem.offset[lo + p]
