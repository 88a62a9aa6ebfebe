"""Problems of dependency trees, and what the two sorts of them do in their own ways with tables of arcs.

A table of arcs has a row per head and a column per word, both counted from 1, with 0 for the root: arcs[h, m] is the
score of the arc from h to m. Its diagonal is impossible, and the column of the root is never looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.arrays.exponential import fast_exp
from maxmargin.arrays.vectors import clear
from maxmargin.arrays.views import matrix
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import generic, helper

ROOT = 0


class DependencySupervision(NamedTuple):
    """The true trees, and what others cost."""

    arcs: np.ndarray  # (words,) int32: head, times the number of labels, plus label
    word_cost: np.ndarray  # (words,) the cost of a wrong head
    label_cost: float  # of a wrong label at the right head, as a share of that


class ProjectiveProblem(NamedTuple):
    """Trees whose arcs do not cross: sentence i has the words starts[i]:starts[i + 1].

    The arcs of its n words are the rows arc_starts[i]:arc_starts[i + 1], word by word, each from the heads 0 to n.
    """

    features: Any
    starts: np.ndarray  # (n + 1,) int64
    arc_starts: np.ndarray  # (n + 1,) int64
    supervision: DependencySupervision
    excluded: Blocks  # flags of parts that are ruled out
    n_features: int
    n_labels: int  # 0 of trees without labels
    single_root: bool  # whether one word alone has the root as its head


class NonprojectiveProblem(NamedTuple):
    """As `ProjectiveProblem`, of trees whose arcs may cross."""

    features: Any
    starts: np.ndarray
    arc_starts: np.ndarray
    supervision: DependencySupervision
    excluded: Blocks
    n_features: int
    n_labels: int
    single_root: bool


@generic
def find_heads(problem, arcs, heads, work):
    """Write the heads of the words of a best tree."""


@generic
def find_through(problem, arcs, through, work):
    """Write the score of the best tree that has it, for each arc."""


@generic
def find_others(problem, arcs, heads, through, work):
    """As `find_through`, of arcs that the best tree lacks: of those among them that the second best tree has, at least.

    Others may have a lower number, that of impossible trees included.
    """


@generic
def sum_trees(problem, arcs, means, work):
    """Write the probability of each arc under p(tree) ~ exp(score); return the log-partition function."""


@generic
def start_drawing(problem, arcs, work):
    """Fill the tables that `draw_heads` needs."""


@generic
def draw_heads(problem, arcs, draws, heads, rest, work):
    """Write the heads of a random tree, by one uniform number per word, and numbers that are uniform again."""


@helper
def fill_weights(arcs, weights, top):
    """Weights = exp(arcs - the best to each word), zero of impossible arcs; return the sum of the best."""
    size = arcs.shape[0]
    clear(matrix(weights, 0, 1, weights.size)[0])
    for m in range(size):
        top[m] = IMPOSSIBLE
    for h in range(size):
        for m in range(1, size):
            top[m] = max(top[m], arcs[h, m])
    for h in range(size):
        for m in range(1, size):
            weights[h, m] = fast_exp(arcs[h, m] - top[m]) if arcs[h, m] > IMPOSSIBLE / 2 else 0.0
    total = 0.0
    for m in range(1, size):
        total += top[m]
    return total
