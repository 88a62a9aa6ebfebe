"""What a problem must be able to do: the generic functions that solvers are written with.

A problem holds the training examples of one structure. Example i has outputs y, each a row of integers, and *parts*:
the statistics s_i(y) in which the score of an output is linear, so that score(y) = <theta_i, s_i(y)>. The potentials
theta_i = B_i' w come from the weights by a linear map B_i, the features. A mixture of outputs is described by its
mean parts mu_i, a point of the convex hull of all s_i(y); vertices are outputs.

Every argument is a flat array: `theta`, `mu` and `delta` have one entry per part of the example, `w` one per weight.
A NamedTuple registers implementations with `maxmargin.runtime.implements`; a Python class has methods of the same
names, without the first argument.
"""

from __future__ import annotations

from maxmargin.runtime.dispatch import generic

# Potentials of impossible parts: finite, so that 0 * IMPOSSIBLE = 0, and below every score that can occur.
IMPOSSIBLE = -1e9

# --- sizes, called from Python only ---------------------------------------------------------------------------------


@generic
def new_weights(problem):
    """Zero weights of the problem's size and dtype."""


@generic
def part_sizes(problem):
    """The number of parts of each example, int64 of shape (n,)."""


@generic
def output_sizes(problem):
    """The number of integers in an output of each example, int64 of shape (n,)."""


@generic
def workspace(problem, n_best):
    """A new `work` with room for every example and up to `n_best` outputs, so that oracles allocate nothing."""


# --- the linear map between weights and parts -----------------------------------------------------------------------


@generic
def scores(problem, w, i, theta):
    """Theta = B_i' w."""


@generic
def spread(problem, w, i, delta, scale):
    """W += scale * B_i delta."""


@generic
def squared_norm(problem, i, delta, work):
    """Return ||B_i delta||^2."""


# --- outputs and their costs ----------------------------------------------------------------------------------------


@generic
def n_examples(problem):
    """The number of examples, n."""


@generic
def gold(problem, i):
    """The true output of example i."""


@generic
def augment(problem, i, theta):
    """Theta += cost_i, the potentials whose score is the cost of predicting an output in place of the true one."""


@generic
def add_output(problem, i, y, scale, mu):
    """Mu += scale * s_i(y)."""


@generic
def score_output(problem, i, theta, y):
    """Return <theta, s_i(y)>."""


# --- oracles --------------------------------------------------------------------------------------------------------


@generic
def max_oracle(problem, i, theta, y, work):
    """Write an output of the highest score into `y`; return that score. Ties are broken deterministically."""


@generic
def topk_oracle(problem, i, theta, outputs, values, work):
    """Write the K best outputs into the K rows of `outputs`, best first, and their scores into `values`.

    Return how many there are: fewer than K where the example has fewer outputs.
    """


@generic
def exp_oracle(problem, i, theta, mu, work):
    """Write the mean parts under p(y) ~ exp(score(y)) into `mu`; return the log-partition function."""


@generic
def sample_oracle(problem, i, theta, draws, outputs, work):
    """Write independent outputs drawn from p(y) ~ exp(score(y)) into the rows of `outputs`.

    `draws` has the same shape, with independent numbers uniform in [0, 1): they alone decide which outputs are drawn.
    """


@generic
def max_marginals(problem, i, theta, out, work):
    """Write into `out`, for each part that an output has once or not at all, the best score of an output that has it.

    Other parts are left alone. Where there are no such parts, this generic is not implemented.
    """


ORACLES = {"max": max_oracle, "topk": topk_oracle, "exp": exp_oracle}
