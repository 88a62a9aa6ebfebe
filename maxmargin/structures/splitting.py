"""The K best outputs by splitting sets of outputs: best-max-marginal-first (Yanover and Weiss 2003).

The set of outputs whose second best is the best of all sets is split in two by a *rule*: one half must have the choice
where the second best departs from the best, the other must not have it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.vectors import copy_into, first_best
from maxmargin.execution.threads import aligned
from maxmargin.losses.smoothing import has_weight
from maxmargin.problem import IMPOSSIBLE, max_oracle, score_output
from maxmargin.runtime.dispatch import generic, helper

RULED_OUT = 100 * IMPOSSIBLE  # of what rules rule out, which no possible parts make up for


class Splits(NamedTuple):
    """Up to K sets of outputs."""

    theta: np.ndarray  # (parts,) potentials under rules, float64
    tail: np.ndarray  # (K,) the last rule that each set obeys, or -1
    rules: np.ndarray  # (2 K, 4) the rule before, the place of a choice, the choice, and whether it is forced
    runner_up: np.ndarray  # (K, 2) the place and the choice where the second best output of a set leaves its best
    runner_up_score: np.ndarray  # (K,)


def new_splits(n_parts: int, n_best: int) -> Splits:
    """Room for examples of so many parts."""
    return Splits(
        theta=aligned((n_parts,), np.float64),
        tail=aligned((n_best,), np.int64),
        rules=aligned((2 * n_best, 4), np.int64),
        runner_up=aligned((n_best, 2), np.int64),
        runner_up_score=aligned((n_best,), np.float64),
    )


@generic
def obey_rule(problem, i, place, choice, is_forced, theta):
    """Rule out all that is at odds with a choice, or the choice."""


@generic
def find_runner_up(problem, i, theta, y, score, is_new, work):
    """The place, the choice and the score of the best output that is not y, the best one; a low score if none is.

    It is new if the max oracle has just found it, and `work` is as that has left it.
    """


@helper
def split_best(problem, i, theta, outputs, values, level, work):
    """The `topk_oracle` of structures that implement the two generics above, and whose `work` has `splits`."""
    splits = work.splits
    ruled = splits.theta[: theta.size]
    for k in range(values.size):
        parent = 0 if k == 0 else first_best(splits.runner_up_score[:k])
        if k > 0 and splits.runner_up_score[parent] == RULED_OUT:
            return k
        for is_forced in (1, 0):
            if is_forced == 0 and k == 0:
                continue
            part = k if is_forced == 1 else parent
            last = -1
            if k > 0:
                last = 2 * k - is_forced
                splits.rules[last, 0] = splits.tail[parent] if is_forced == 1 else splits.rules[last - 1, 0]
                splits.rules[last, 1] = splits.runner_up[parent, 0]
                splits.rules[last, 2] = splits.runner_up[parent, 1]
                splits.rules[last, 3] = is_forced
            splits.tail[part] = last
            copy_into(ruled, theta)
            while last >= 0:
                obey_rule(problem, i, splits.rules[last, 1], splits.rules[last, 2], splits.rules[last, 3] == 1, ruled)
                last = splits.rules[last, 0]
            if is_forced == 1:
                max_oracle(problem, i, ruled, outputs[k], work)
                values[k] = score_output(problem, i, theta, outputs[k])
                if k > 0 and not has_weight(values, k, level):
                    return k
            place, choice, score = find_runner_up(problem, i, ruled, outputs[part], values[part], is_forced == 1, work)
            splits.runner_up[part, 0] = place
            splits.runner_up[part, 1] = choice
            splits.runner_up_score[part] = score if score > IMPOSSIBLE / 2 else RULED_OUT
    return values.size
