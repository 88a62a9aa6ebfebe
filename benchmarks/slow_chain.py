"""Chains whose oracle takes many times as long: Viterbi is run again and again, everything else is as it was."""

from __future__ import annotations

from typing import NamedTuple

from maxmargin import problem as generics
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.chains.chain_problem import ChainProblem
from maxmargin.structures.delegated import delegate


class SlowChain(NamedTuple):
    """A chain, and how often to run its oracle for each call."""

    base: ChainProblem
    n_runs: int


delegate(
    SlowChain,
    functions=(
        generics.true_outputs,
        generics.new_weights,
        generics.part_sizes,
        generics.augment,
        generics.add_output,
        generics.score_output,
    ),
)


@implements(generics.max_oracle, SlowChain)
def slow_max_oracle(problem, i, theta, y, work):
    best = generics.max_oracle(problem.base, i, theta, y, work)
    for _ in range(problem.n_runs - 1):
        best = generics.max_oracle(problem.base, i, theta, y, work)
    return best


@implements(generics.oracle_work, SlowChain)
def slow_oracle_work(problem):
    return generics.USUAL_WORK * problem.n_runs


@implements(generics.workspace, SlowChain)
def slow_workspace(problem, n_best):
    return generics.workspace(problem.base, n_best)


@implements(generics.scores, SlowChain)
def slow_scores(problem, w, i, theta):
    generics.scores(problem.base, w, i, theta)


@implements(generics.spread, SlowChain)
def slow_spread(problem, w, i, delta, scale):
    generics.spread(problem.base, w, i, delta, scale)


@implements(generics.squared_norm, SlowChain)
def slow_squared_norm(problem, i, delta, work):
    return generics.squared_norm(problem.base, i, delta, work)
