import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.problem import IMPOSSIBLE, exp_oracle, max_oracle, part_sizes, restrict, scores, topk_oracle, workspace
from maxmargin.runtime import interpreted
from maxmargin.solvers import BCFW, LBFGS
from maxmargin.structures.scalar_semirings import plain_sum_of_products
from maxmargin.structures.spans import chart, span_problem
from maxmargin.structures.spans.span_problem import SpanProblem, SpanSupervision, no_signs
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive
from tests.toy import random_rows


def make_problem(rng, lengths, n_labels=1, storage="dense", dtype="float64", integer=False):
    """Random sentences; `integer` data gives many ties."""
    n_spans = [n * (n + 1) // 2 for n in lengths]
    rows = Rows(random_rows(rng, sum(n_spans), storage, integer), starts_of(n_spans))
    truth = [rng.choice(all_outputs(n, n_labels)) if n < 5 else naive.span_output((), n, n_labels) for n in lengths]
    return SpanProblem(
        features=row_features(rows, dtype, with_grams=True),
        starts=starts_of(lengths),
        span_starts=rows.starts,
        supervision=SpanSupervision(
            np.concatenate(truth), rng.random(len(lengths)).astype(dtype), no_signs(len(lengths))
        ),
        excluded=nothing_excluded(len(lengths)),
        n_features=3,
        n_labels=n_labels,
    )


def all_outputs(n, n_labels):
    return [naive.span_output(tree, n, n_labels) for tree in naive.span_trees(n, n_labels)]


def parts_of(y, n, n_labels):
    return np.bincount(y, minlength=n * (n + 1) // 2 * (1 + n_labels)).astype(float)


@pytest.mark.long
def test_compiled_oracles_equal_enumeration():
    lengths = [1, 2, 3]
    problem = make_problem(np.random.default_rng(0), lengths, 2, storage="binary", dtype="float32")
    check_structure(problem, lambda i: all_outputs(lengths[i], 2), k=6)


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 2), integer=st.booleans(), k=st.integers(1, 20))
def test_random_sentences(seed, n_labels, integer, k):
    """Ties, one word and two, more labels than one, and more trees asked for than there are."""
    lengths = [1, 2, 3] if n_labels == 1 else [1, 2]
    problem = make_problem(np.random.default_rng(seed), lengths, n_labels, integer=integer)
    with interpreted():
        check_structure(problem, lambda i: all_outputs(lengths[i], n_labels), random_state=seed, k=k)


@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), integer=st.booleans())
def test_four_words(seed, integer):
    """Where spans can cross, be within each other, or follow each other: all oracles but those checked above."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [4])
    outputs = all_outputs(4, 1)
    theta = np.concatenate([rng.integers(-2, 3, 10) if integer else 3 * rng.normal(size=10), np.zeros(10)])
    table = np.array([parts_of(y, 4, 1) for y in outputs])
    expected = table @ theta
    found, values, mu = np.zeros((12, 7), np.int32), np.zeros(12), np.zeros(20)
    with interpreted():
        work = workspace(problem, 12)
        assert np.isclose(max_oracle(problem, 0, theta, np.zeros(7, np.int32), work), expected.max())
        assert np.isclose(exp_oracle(problem, 0, theta, mu, work), np.logaddexp.reduce(expected))
        assert topk_oracle(problem, 0, theta, found, values, 1e30, work) == 12
    assert len({tuple(y) for y in found} & {tuple(y) for y in outputs}) == 12
    assert np.allclose(values, np.sort(expected)[:-13:-1])
    assert np.allclose(mu, np.exp(expected - np.logaddexp.reduce(expected)) @ table)


def count_trees(problem, n):
    """By the log-partition function of zero weights."""
    with interpreted():
        theta, mu = np.zeros(part_sizes(problem)[0]), np.zeros(part_sizes(problem)[0])
        scores(problem, np.zeros(3 * problem.n_labels), 0, theta)
        return math.exp(exp_oracle(problem, 0, theta, mu, workspace(problem, 1)))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12])
def test_there_are_as_many_trees_as_there_should_be(n):
    """Bracketings are counted by Schroeder's numbers; binary trees, where every span has a label, by Catalan's."""
    problem = make_problem(np.random.default_rng(0), [n])
    super_catalan = [1, 1]  # brackets of two words and more, that of the sentence excepted
    for k in range(2, n + 1):
        super_catalan.append(((6 * k - 3) * super_catalan[k - 1] - (k - 2) * super_catalan[k - 2]) // (k + 1))
    of_words = 2**n
    assert np.isclose(count_trees(problem, n), of_words * (2 if n > 1 else 1) * super_catalan[n - 1])
    n_spans = n * (n + 1) // 2
    binary = restrict(problem, Blocks(np.repeat([False, True], n_spans), np.array([0, 2 * n_spans])))
    assert np.isclose(count_trees(binary, n), math.comb(2 * n - 2, n - 1) / n)


def test_steps_grow_with_the_cube_of_words(monkeypatch):
    """All sums are over neighbours: those of twice as many words have eight times as many terms, nearly."""
    counts = []

    def count(semiring, a, r, b, s, lo, hi):
        counts[-1] += hi - lo
        return plain_sum_of_products(semiring, a, r, b, s, lo, hi)

    monkeypatch.setattr(chart, "sum_products", count)
    for n in (8, 16):
        counts.append(0)
        count_trees(make_problem(np.random.default_rng(0), [n]), n)
    inside, outside = ([(n**3 - n) // 6 for n in (8, 16)] for _ in range(2))
    assert counts == [i + 2 * o for i, o in zip(inside, outside, strict=True)]


@pytest.mark.parametrize("far", [60.0, 6e5])
def test_sums_of_scores_far_apart(far):
    problem = make_problem(np.random.default_rng(0), [3])
    outputs = all_outputs(3, 1)
    table = np.array([parts_of(y, 3, 1) for y in outputs])
    theta, mu = far * np.random.default_rng(1).normal(size=12), np.zeros(12)
    theta[6:] = 0
    with interpreted():
        log_z = exp_oracle(problem, 0, theta, mu, workspace(problem, 1))
    assert np.isclose(log_z, np.logaddexp.reduce(table @ theta), rtol=1e-13)
    assert np.allclose(mu, np.exp(table @ theta - np.logaddexp.reduce(table @ theta)) @ table, atol=1e-9)


def test_logarithms_are_the_same_sums(monkeypatch):
    """Scores of which some trees are e^200 times as likely as others, and one part is impossible."""
    problem = make_problem(np.random.default_rng(0), [7], 2)
    theta = np.concatenate([20 * np.random.default_rng(1).normal(size=56), np.zeros(28)])
    theta[3] = IMPOSSIBLE
    with interpreted():
        fast, slow = np.zeros(84), np.zeros(84)
        log_z = exp_oracle(problem, 0, theta, fast, workspace(problem, 1))
        monkeypatch.setattr(span_problem, "has_underflown", lambda total, n_words: True)
        assert np.isclose(exp_oracle(problem, 0, theta, slow, workspace(problem, 1)), log_z, rtol=1e-13)
    assert fast[3] == slow[3] == 0
    assert np.allclose(fast, slow, atol=1e-12)


def test_long_sentences(interpreted_loops):
    """The best of the K best is the best, and all that is left of the sum of large scores."""
    rng, n, level = np.random.default_rng(0), 9, 1e-4
    problem = make_problem(rng, [n], 2)
    theta = np.concatenate([rng.normal(size=90), np.zeros(45)])
    y, mu, outputs, values = np.zeros(17, np.int32), np.zeros(135), np.zeros((4, 17), np.int32), np.zeros(4)
    call, work = Caller(problem), workspace(problem, 4)
    best = call(max_oracle, 0, theta, y, work)
    assert call(topk_oracle, 0, theta, outputs, values, 1e30, work) == 4
    assert (outputs[0] == y).all()
    assert np.isclose(values[0], best)
    assert (np.diff(values) <= 0).all()
    assert len({tuple(row) for row in outputs}) == 4
    smooth = level * call(exp_oracle, 0, theta / level, mu, work)
    assert best <= smooth + 1e-9 <= best + level * 17 * math.log(27)
    assert np.allclose(mu, parts_of(y, n, 2))


@pytest.mark.parametrize("n_labels", [1, 2])
def test_solvers_reach_the_reference_optimum(n_labels):
    lengths = [1, 2, 3, 2] if n_labels == 1 else [1, 2, 2]
    problem = make_problem(np.random.default_rng(1), lengths, n_labels)
    blocks = []
    for i, (lo, hi) in enumerate(itertools.pairwise(problem.span_starts)):
        x, n = problem.features.rows[lo:hi], lengths[i]
        first = 2 * problem.starts[i] - i
        truth = problem.supervision.parts[first : first + 2 * n - 1]
        outputs = [truth, *all_outputs(n, n_labels)]
        labels = np.array([parts_of(y, n, n_labels)[: len(x) * n_labels] for y in outputs]).reshape(
            -1, len(x), n_labels
        )
        parts = np.einsum("sf,ysl->yfl", x, labels).reshape(len(outputs), -1)
        costs = problem.supervision.cost[i] * np.abs(labels - labels[0]).sum(axis=(1, 2))
        blocks.append((parts[0] - parts[1:], costs[1:]))
    with interpreted():
        check_solver(BCFW(steps="pairwise"), problem, naive.solve(blocks, 1.0)[1], tol=1e-4)
        reference = naive.log_primal(naive.solve_log(blocks, 1.0), blocks, 1.0)
        check_solver(LBFGS(), problem, reference, loss="log", tol=1e-4)
