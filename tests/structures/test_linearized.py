"""Structures with affine potentials: against enumeration, and the structure itself where they are linear."""

import itertools

import numpy as np
import pytest

from maxmargin import BCFW, OneSlack
from maxmargin.problem import new_weights, part_sizes, scores, true_output
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.structures.derived.linearized import linearized
from maxmargin.testing import check_structure, toy_chains
from tests.naive import labellings


@pytest.fixture
def chains():
    return toy_chains(n=3, max_length=3)


def derivatives_of(base):
    """The derivatives of the potentials of all parts by the weights of the problem itself."""
    columns = []
    for k in range(new_weights(base).size):
        w = new_weights(base)
        w[k] = 1
        blocks = [np.zeros(size) for size in part_sizes(base)]
        for i, theta in enumerate(blocks):
            scores(base, w, i, theta)
        columns.append(np.concatenate(blocks))
    return np.stack(columns, axis=1)


def test_generics(chains):
    lengths = np.diff(chains.starts)
    rows = np.random.default_rng(0).normal(size=(int(part_sizes(chains).sum()), 5))
    problem = linearized(chains, rows, np.zeros(len(rows)))
    check_structure(problem, outputs=lambda i: labellings(int(lengths[i]), 3))


def test_linear_potentials_are_those_of_the_structure(chains):
    rows = derivatives_of(chains)
    problem = linearized(chains, rows, np.zeros(len(rows)))
    ours, theirs = (BCFW(steps="pairwise").solve(p, random_state=0, tol=1e-6) for p in (problem, chains))
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-5)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-3)


def test_offsets_move_the_centre_of_the_weights(chains):
    """With the potentials J w_0 as offsets, weights are counted from w_0: the loss at zero is that at w_0."""
    rows, w0 = derivatives_of(chains), np.random.default_rng(1).normal(size=new_weights(chains).size)
    offset, ends = rows @ w0, np.concatenate([[0], np.cumsum(part_sizes(chains))])
    for i, (lo, hi) in enumerate(itertools.pairwise(ends)):
        y = true_output(chains, i)
        truth = offset[lo : lo + 3 * len(y)].reshape(-1, 3)[range(len(y)), y].sum()
        pairs = offset[lo + 3 * len(y) : hi].reshape(3, 3)
        truth += sum(pairs[a, b] for a, b in itertools.pairwise(y))
        offset[lo : lo + 3 * len(y)] -= truth / len(y)
    problem = linearized(chains, rows, offset)
    at_zero, at_w0 = Objective(problem).evaluate(np.zeros(w0.size)).value, Objective(chains).evaluate(w0)
    assert at_zero == pytest.approx(at_w0.value - np.dot(w0, w0) / (2 * 3))
    one, other = (solver.solve(problem, random_state=0, tol=1e-4) for solver in (OneSlack(), BCFW(steps="pairwise")))
    assert one.certificate.dual <= other.certificate.primal * (1 + 1e-9)
    assert other.certificate.dual <= one.certificate.primal * (1 + 1e-9)
