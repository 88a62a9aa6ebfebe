"""Better oriented trees for the entropy of a relaxed objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.losses import RelaxedLoss
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.relaxed.entropies import tightest_trees, uniform_trees
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation


def tighten(objective: Objective, means: np.ndarray, share: float) -> RelaxedLoss:
    """Move the trees of the loss of an objective towards those of the lowest entropy at mean parts of a solution.

    The entropy of every distribution of trees is an upper bound of that of the graph. The objective at its optimal
    weights is convex in the distribution, and this is a step of conditional gradient that lowers it.

    Parameters
    ----------
    objective
        The problem and a loss whose entropy is "oriented_trees".
    means
        The mean parts of a solution, ``result.dual.means``.
    share
        How far to go, less than 1: 2 / (t + 2) in step t = 1, 2, ...

    Returns
    -------
    The loss with the new trees.

    Examples
    --------
    >>> from maxmargin.solvers.relaxed.idal import IDAL
    >>> from maxmargin.solvers.objective.evaluation import Objective
    >>> from maxmargin import RelaxedLoss
    >>> from maxmargin.solvers.relaxed.tighter_trees import tighten
    >>> from maxmargin.testing import toy_triangle
    >>> problem = toy_triangle()
    >>> loss = RelaxedLoss(entropy="oriented_trees")
    >>> result = IDAL().solve(problem, loss=loss, random_state=0)
    >>> tighter = tighten(Objective(problem, loss=loss), result.dual.means, 2 / 3)
    >>> tighter.trees.sum(axis=1).round(2)  # one edge is rarer now
    array([0.89, 0.89, 0.22])

    References
    ----------
    Wainwright, Jaakkola, Willsky (2005), A new class of upper bounds on the log partition function.
    Hu, Obozinski (2018), SDCA-powered inexact dual augmented Lagrangian method for fast CRF learning, appendix C.
    """
    relaxed, loss = Relaxation(objective), objective.loss
    assert isinstance(loss, RelaxedLoss)
    squares = np.add.reduceat(relaxed.correct(means)[relaxed.parts()] ** 2, starts_of(relaxed.sizes)[:-1])
    trees = uniform_trees(relaxed.graphs) if loss.trees is None else loss.trees
    of_nodes, of_edges = np.split(squares, [len(relaxed.graphs.nodes.row)])
    tightest = tightest_trees(relaxed.graphs, of_nodes, of_edges, loss.epsilon)
    return replace(loss, trees=trees + share * (tightest - trees))
