"""What a problem must be able to do: the generic functions that solvers are written with.

A problem holds the training examples of one structure. Example i has outputs y, each a row of integers, and *parts*:
the statistics s_i(y) in which the score of an output is linear, so that score(y) = <theta_i, s_i(y)>. The potentials
theta_i = B_i' w come from the weights by a linear map B_i, the features. A mixture of outputs is described by its
mean parts mu_i, a point of the convex hull of all s_i(y); vertices are outputs.

Every argument is a flat array: `theta`, `mu` and `delta` have one entry per part of the example, `w` one per weight.
A NamedTuple registers implementations with `maxmargin.runtime.implements`; a Python class has methods of the same
names, without the first argument.

>>> from maxmargin.problem import part_sizes
>>> from maxmargin.testing import toy_chains
>>> part_sizes(toy_chains(n=2, n_labels=3, max_length=1))  # 3 of labels, 9 of transitions
array([12, 12])
"""

from __future__ import annotations

# mypy: disable-error-code="empty-body"
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.runtime.dispatch import PROBLEM, Bound, generic, helper, supports
from maxmargin.runtime.plain import read_from_tuples
from maxmargin.runtime.tables import Draws, Output, Outputs, Reals, Sums, Work, read_from_tables

# Potentials of impossible parts: finite, so that 0 * IMPOSSIBLE = 0, and below every score that can occur: those of
# possible parts must be within REACH.
IMPOSSIBLE = -1e25
REACH = 1e15


def _is_beyond_reach(theta: np.ndarray) -> bool:
    if not theta.size or (theta.max() <= REACH and theta.min() >= -REACH):
        return False
    is_within = (np.abs(theta) <= REACH) | (np.abs(theta - IMPOSSIBLE) <= -1e-6 * IMPOSSIBLE)
    return not is_within.all()


@helper(interpreted=_is_beyond_reach, fastmath={"nsz"})  # which sees infinite ones and NaN, unlike other helpers
def is_beyond_reach(theta):
    """Whether potentials are too large to be told from impossible ones, infinite or NaN."""
    reach = theta.dtype.type(REACH)
    impossible = theta.dtype.type(IMPOSSIBLE)
    rounding = theta.dtype.type(-1e-6 * IMPOSSIBLE)
    n_within = 0  # counts vectorise, early exits do not
    for p in range(theta.size):
        n_within += abs(theta[p]) <= reach
    if n_within == theta.size:
        return False
    for p in range(theta.size):
        n_within += abs(theta[p] - impossible) <= rounding
    return n_within < theta.size


class OwnProblem(Protocol):
    """A problem written in Python: what every one has as methods; what some have is declared below."""

    def true_outputs(self) -> Sequence[np.ndarray] | Blocks: ...
    def new_weights(self) -> np.ndarray: ...
    def part_sizes(self) -> np.ndarray: ...
    def workspace(self, n_best: int, /) -> object: ...
    def scores(self, w: np.ndarray, i: int, theta: np.ndarray, /) -> None: ...
    def spread(self, w: np.ndarray, i: int, delta: np.ndarray, scale: float, /) -> None: ...
    def augment(self, i: int, theta: np.ndarray, /) -> None: ...
    def add_output(self, i: int, y: np.ndarray, scale: float, mu: np.ndarray, /) -> None: ...
    def score_output(self, i: int, theta: np.ndarray, y: np.ndarray, /) -> float: ...


AnyProblem = tuple[Any, ...] | OwnProblem | Bound  # a NamedTuple with implementations, a class in Python, or made ready


# --- sizes and true outputs, called from Python only ----------------------------------------------------------------


@generic
def new_weights(problem):
    """Zero weights of the problem's size and dtype."""


@generic
def part_sizes(problem):
    """The number of parts of each example, int64 of shape (n,)."""


@generic
def true_outputs(problem):
    """The true outputs of all examples: a list of rows of integers, or `Blocks` of them."""


@generic
def workspace(problem, n_best):
    """A new `work` with room for every example and up to `n_best` outputs, so that oracles allocate nothing.

    None if nothing is needed.
    """


@generic
def squared_diameters(problem):
    """Upper bounds of ||B_i (s_i(y) - s_i(y'))||^2 over all outputs y and y' of each example, float64 of shape (n,).

    How much smoothed losses can bend, for solvers that ask for guarantees beforehand; no other needs it.
    """


@generic
def oracle_work(problem):
    """About how many operations a call of the max oracle takes per part, on average over the examples: a count that
    depends on the problem alone, never on a clock.

    `Auto` decides by it whether to keep a cache of outputs, `ExponentiatedGradient` whether to keep mean parts. Where
    it is not implemented, compiled oracles are taken to look at each part a few times, and those of Python classes to
    take long.
    """


@generic
def layout(problem):
    """How weights lie, a `maxmargin.features.layout.WeightLayout`: some are solved faster in another order.

    Where it is not implemented, solvers have the weights of a model as they are, with the ordinary inner product.
    """


@generic
def prepare(problem, dtype):
    """The same problem in a precision, made to tell norms of directions fast: for solvers that take many short steps.

    Where it is not implemented, nobody asks for it.
    """


@generic
def stretches(problem):
    """What is read of each example by `scores` and its like, as stretches of memory (`maxmargin.arrays.prefetch`).

    Solvers that draw examples ask for the memory of one while they look at another. Where this is not implemented, they
    wait for it.
    """


@generic
def restrict(problem, excluded):
    """The same examples, parts and weights, with only those outputs that have none of the excluded parts.

    `excluded` are `Blocks` of flags for the first parts of each example: those that an output has once or not at all,
    such as the labels of nodes; parts without a flag are not ruled out. What is restricted already stays so. All
    oracles are those of the outputs left. Some output of every example must be left, which is for callers to check: if
    none is, the score of what `max_oracle` finds is below IMPOSSIBLE / 2.
    Where flags of parts say little of outputs, `excluded` is something else, and `Blocks` raise a `NoFlags`: the limits
    of sides, `BoxLimits`, of boxes; what is known of each output, or None, of structures that methods describe.
    """


# --- the linear map between weights and parts -----------------------------------------------------------------------


@generic(interface=PROBLEM)
def scores(problem, w: Reals, i: int, theta: Reals) -> None:
    """Theta = B_i' w."""


@generic(interface=PROBLEM)
def spread(problem, w: Reals, i: int, delta: Reals, scale: float) -> None:
    """W += scale * B_i delta."""


@generic(interface=PROBLEM, like=spread)
def accumulate(problem, w: Sums, i: int, delta: Reals, scale: float) -> None:
    """As `spread`, which implements it, for weights in float64 whatever the dtype of the problem."""


@generic(interface=PROBLEM)
def squared_norm(problem, i: int, delta: Reals, work: Work) -> float:
    """Return ||B_i delta||^2."""


# --- outputs and their costs ----------------------------------------------------------------------------------------


@generic(interface=PROBLEM)
def augment(problem, i: int, theta: Reals) -> None:
    """Theta += cost_i, the potentials whose score is the cost of predicting an output in place of the true one."""


@generic(interface=PROBLEM)
def add_output(problem, i: int, y: Output, scale: float, mu: Reals) -> None:
    """Mu += scale * s_i(y)."""


@generic(interface=PROBLEM)
def score_output(problem, i: int, theta: Reals, y: Output) -> float:
    """Return <theta, s_i(y)>."""


# --- oracles --------------------------------------------------------------------------------------------------------


@generic(interface=PROBLEM)
def max_oracle(problem, i: int, theta: Reals, y: Output, work: Work) -> float:
    """Write an output of the highest score into `y`; return that score. Ties are broken deterministically."""


@generic(interface=PROBLEM)
def bound_oracle(problem, i: int, theta: Reals, y: Output, work: Work) -> float:
    """As `max_oracle`, of structures where `y` need not be the best; return an upper bound of the highest score.

    Where it is implemented, certificates rest on it, and not on the score of `y`.
    """


@generic(interface=PROBLEM)
def block_oracle(problem, i: int, theta: Reals, curvature: float, mu: Reals, delta: Reals, work: Work) -> float:
    """Write into `delta` how to move from mu + s_i(y_i) to the best mean parts of a quadratic model of the dual.

    They maximise <theta, delta> - (curvature / 2) ||B_i delta||^2 over all moves to mean parts. Return the highest
    score of an output, as `max_oracle`. `BCFW` takes exact steps where this is implemented.
    """


@generic(interface=PROBLEM)
def topk_oracle(problem, i: int, theta: Reals, outputs: Outputs, values: Sums, level: float, work: Work) -> int:
    """Write the K best outputs into the K rows of `outputs`, best first, and their scores, in float64, into `values`.

    Return how many there are: fewer than K where the example has fewer outputs, or where the others have no weight in
    the maximum smoothed by l2 at `level` (`maxmargin.losses.smoothing`: `has_weight`, and `EVERY` if all K are wanted).
    """


@generic(interface=PROBLEM)
def exp_oracle(problem, i: int, theta: Reals, mu: Reals, work: Work) -> float:
    """Write the mean parts under p(y) ~ exp(score(y)) into `mu`; return the log-partition function."""


@generic(interface=PROBLEM)
def mean_oracle(problem, i: int, theta: Reals, mu: Reals, work: Work) -> bool:
    """As `exp_oracle`, of structures where that can be out of reach: mean parts of a relaxation then.

    Return whether they are exact.
    """


@generic(interface=PROBLEM)
def relax_oracle(problem, i: int, theta: Reals, mu: Reals, work: Work) -> float:
    """Write the best mean parts of a relaxation into `mu`; return an upper bound of the highest score.

    Where it is implemented, `work` says how each example was last dealt with: `work.method`, an index into `METHODS`,
    by `bound_oracle`, and `work.integrality`, the share of integral nodes, by `relax_oracle`.
    """


@generic(interface=PROBLEM)
def sample_oracle(problem, i: int, theta: Reals, draws: Draws, outputs: Outputs, work: Work) -> None:
    """Write independent outputs drawn from p(y) ~ exp(score(y)) into the rows of `outputs`.

    `draws` has the same shape, with independent numbers uniform in [0, 1): they alone decide which outputs are drawn.
    """


@generic(interface=PROBLEM)
def max_marginals(problem, i: int, theta: Reals, out: Sums, work: Work) -> None:
    """Write into `out`, for each part that an output has once or not at all, the best score of an output that has it.

    In float64. Other parts are left alone. Where there are no such parts, this generic is not implemented.
    """


@generic(interface=PROBLEM)
def transition_marginals(problem, i: int, theta: Reals, pairs: Output, out: Sums, work: Work) -> None:
    """Write into `out` the probabilities of transitions of a sequence under p(y) ~ exp(score(y)), in float64.

    `pairs` are those to look at, a L + b for labels a and b; those of positions 0 and 1 come first, in their order.
    """


METHODS = ("elimination", "cut", "relaxation", "expansion")
TIGHT = 1e-9  # of a bound: smaller gaps are rounding


@helper
def is_tight(bound, score):
    """Whether a bound is attained, but for rounding."""
    return bound - score <= TIGHT * (1 + abs(bound))


@helper
def rank(problem, i, theta, outputs, values, count):
    """Score outputs anew, in float64, and sort them, best first: dynamic programs are exact but for their rounding."""
    for new in range(count):
        value = score_output(problem, i, theta, outputs[new])
        k = new
        while k > 0 and values[k - 1] < value:
            values[k] = values[k - 1]
            for p in range(outputs.shape[1]):
                outputs[k - 1, p], outputs[k, p] = outputs[k, p], outputs[k - 1, p]
            k -= 1
        values[k] = value


ORACLES = {"max": max_oracle, "topk": topk_oracle, "exp": exp_oracle, "block": block_oracle}

# --- what loops know without asking the structure -----------------------------------------------------------------


def all_true_outputs(problem: Any) -> Blocks:
    """The true outputs of all examples."""
    if isinstance(problem, Bound):
        return problem.truth
    given = true_outputs(problem)
    rows = [given.values] if isinstance(given, Blocks) else given[:1]
    if not len(rows) or np.ndim(rows[0]) != 1 or (len(rows[0]) and np.asarray(rows[0]).dtype.kind not in "iu"):
        raise ValueError("true_outputs must hold a row of integers for every example, of which there is at least one.")
    return as_blocks(given, np.int32)


USUAL_WORK = 10.0  # operations per part, of compiled oracles that do not tell theirs


def work_of(problem: AnyProblem) -> float:
    """About how many operations per part a call of the max oracle takes; infinite where it may be any number."""
    if supports(oracle_work, problem):
        return float(oracle_work(problem))
    return USUAL_WORK if isinstance(problem, tuple) else np.inf


def n_examples(problem: object) -> int:
    """The number of examples, n."""
    return len(all_true_outputs(problem).starts) - 1


def true_output(problem: object, i: int) -> np.ndarray:
    """The true output of example i."""
    truth = all_true_outputs(problem)
    return truth.values[truth.starts[i] : truth.starts[i + 1]]


read_from_tables(n_examples, true_output)
read_from_tuples(n_examples, true_output)
