"""Chains whose oracle takes many times as long: Viterbi is run again and again, everything else is as it was."""

from __future__ import annotations

from typing import NamedTuple

from maxmargin.problem import (
    add_output,
    augment,
    max_oracle,
    new_weights,
    oracle_work,
    part_sizes,
    score_output,
    scores,
    spread,
    squared_norm,
    true_outputs,
    workspace,
)
from maxmargin.runtime.dispatch import implements
from maxmargin.solvers.automatic.auto import USUAL
from maxmargin.structures.chains.chain_problem import ChainProblem


class SlowChain(NamedTuple):
    """A chain, and how often to run its oracle for each call."""

    chain: ChainProblem
    n_runs: int


@implements(max_oracle, SlowChain)
def slow_max_oracle(problem, i, theta, y, work):
    best = max_oracle(problem.chain, i, theta, y, work)
    for _ in range(problem.n_runs - 1):
        best = max_oracle(problem.chain, i, theta, y, work)
    return best


@implements(oracle_work, SlowChain)
def slow_oracle_work(problem):
    return USUAL * problem.n_runs


@implements(new_weights, SlowChain)
def slow_new_weights(problem):
    return new_weights(problem.chain)


@implements(part_sizes, SlowChain)
def slow_part_sizes(problem):
    return part_sizes(problem.chain)


@implements(true_outputs, SlowChain)
def slow_true_outputs(problem):
    return true_outputs(problem.chain)


@implements(workspace, SlowChain)
def slow_workspace(problem, n_best):
    return workspace(problem.chain, n_best)


@implements(scores, SlowChain)
def slow_scores(problem, w, i, theta):
    scores(problem.chain, w, i, theta)


@implements(spread, SlowChain)
def slow_spread(problem, w, i, delta, scale):
    spread(problem.chain, w, i, delta, scale)


@implements(squared_norm, SlowChain)
def slow_squared_norm(problem, i, delta, work):
    return squared_norm(problem.chain, i, delta, work)


@implements(augment, SlowChain)
def slow_augment(problem, i, theta):
    augment(problem.chain, i, theta)


@implements(add_output, SlowChain)
def slow_add_output(problem, i, y, scale, mu):
    add_output(problem.chain, i, y, scale, mu)


@implements(score_output, SlowChain)
def slow_score_output(problem, i, theta, y):
    return score_output(problem.chain, i, theta, y)
