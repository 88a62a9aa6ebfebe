"""Where less, or other, than one true output is known of each example."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.supervision.shares import Share


class Weak(NamedTuple):
    """What is known of the examples of a problem, besides their true outputs and costs.

    The true output of an example of which less is known is one of those that agree with it, a *completion*: any will
    do to begin with. Costs are zero for all outputs that agree with what is known.

    Attributes
    ----------
    consistent
        The same examples, parts and weights, with only those outputs that agree with what is known: what the generic
        `restrict` makes of the problem, or another problem with the same parts. None if all outputs are known, or
        soft.
    target
        Mean parts in place of those of the true outputs, of all examples: soft labels. None if there are none.
    is_weak
        (n,) flags of the examples of which less, or other, than one true output is known; None if nobody tells.
    share
        How many labels of some kind are expected in all, of which `consistent` takes the costs; None if nobody knows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import CCCP
    >>> from maxmargin.arrays.blocks import Blocks
    >>> from maxmargin.problem import restrict
    >>> from maxmargin.supervision.weak import Weak
    >>> from maxmargin.testing import toy_chains
    >>> problem = toy_chains(n_labels=2)
    >>> is_wrong = np.arange(2) != problem.supervision.labels[:, np.newaxis]
    >>> is_wrong[0], problem.supervision.weight[0] = False, 0.0  # of the first label nothing is known
    >>> weak = Weak(restrict(problem, Blocks(is_wrong.ravel(), 2 * problem.starts)))
    >>> CCCP().solve(problem, weak=weak, random_state=0).status.name
    'STATIONARY'
    """

    consistent: Any = None
    target: Blocks | None = None
    is_weak: np.ndarray | None = None
    share: Share | None = None


class Learned(NamedTuple):
    """What training data teach: how to encode others, their problem, and what is known beyond it.

    Attributes
    ----------
    encoder
        What a fitted model remembers of its data.
    problem
        The examples with their true outputs and costs.
    weak
        What is known of outputs where that is less, or other, than one true output each; None if all are known.
    """

    encoder: Any
    problem: Any
    weak: Weak | None = None
