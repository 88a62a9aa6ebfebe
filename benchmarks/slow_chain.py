"""Chains whose oracle takes many times as long: Viterbi is run again and again, everything else is as it was."""

from __future__ import annotations

from typing import NamedTuple

from maxmargin import problem as generics
from maxmargin.runtime.dispatch import implements
from maxmargin.solvers.automatic.auto import USUAL
from maxmargin.structures.chains.chain_problem import ChainProblem


class SlowChain(NamedTuple):
    """A chain, and how often to run its oracle for each call."""

    chain: ChainProblem
    n_runs: int


@implements(generics.max_oracle, SlowChain)
def slow_max_oracle(problem, i, theta, y, work):
    best = generics.max_oracle(problem.chain, i, theta, y, work)
    for _ in range(problem.n_runs - 1):
        best = generics.max_oracle(problem.chain, i, theta, y, work)
    return best


@implements(generics.oracle_work, SlowChain)
def slow_oracle_work(problem):
    return USUAL * problem.n_runs


@implements(generics.new_weights, SlowChain)
def slow_new_weights(problem):
    return generics.new_weights(problem.chain)


@implements(generics.part_sizes, SlowChain)
def slow_part_sizes(problem):
    return generics.part_sizes(problem.chain)


@implements(generics.true_outputs, SlowChain)
def slow_true_outputs(problem):
    return generics.true_outputs(problem.chain)


@implements(generics.workspace, SlowChain)
def slow_workspace(problem, n_best):
    return generics.workspace(problem.chain, n_best)


@implements(generics.scores, SlowChain)
def slow_scores(problem, w, i, theta):
    generics.scores(problem.chain, w, i, theta)


@implements(generics.spread, SlowChain)
def slow_spread(problem, w, i, delta, scale):
    generics.spread(problem.chain, w, i, delta, scale)


@implements(generics.squared_norm, SlowChain)
def slow_squared_norm(problem, i, delta, work):
    return generics.squared_norm(problem.chain, i, delta, work)


@implements(generics.augment, SlowChain)
def slow_augment(problem, i, theta):
    generics.augment(problem.chain, i, theta)


@implements(generics.add_output, SlowChain)
def slow_add_output(problem, i, y, scale, mu):
    generics.add_output(problem.chain, i, y, scale, mu)


@implements(generics.score_output, SlowChain)
def slow_score_output(problem, i, theta, y):
    return generics.score_output(problem.chain, i, theta, y)
