"""Slack rescaling on chains and trees: the oracle against enumeration, and solvers against a reference optimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW, SGD, Auto, ChainSVM, FrankWolfe, NSlack, OneSlack, Tree, TreeSVM
from maxmargin.problem import max_oracle, part_sizes, scores, workspace
from maxmargin.runtime import interpreted
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.structures.derived.rescaled import rescaled
from maxmargin.testing import check_solver, check_structure, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of
from tests.structures.test_tree import make_problem, random_tree
from tests.toy import random_chains


def labellings_of(problem):
    lengths, n_labels = np.diff(problem.starts), problem.supervision.cost.shape[1]
    return lambda i: naive.labellings(lengths[i], n_labels)


def weighing(problem, weight):
    """The problem with other weights of nodes."""
    return problem._replace(supervision=problem.supervision._replace(weight=weight))


def slack_blocks(problem):
    """Of each example, cost(y) psi(y) and cost(y) of all labellings y."""
    return [(cost[:, np.newaxis] * psi, cost) for psi, cost in blocks_of(problem)]


@pytest.mark.long
def test_structure_of_chains():
    """Compiled and interpreted, with forbidden transitions and costs that are multiples of a third."""
    problem = random_chains(np.random.default_rng(0), [1, 2, 4, 3], 3, "dense", "float64", with_bias=True)
    length = np.repeat(np.diff(problem.starts), np.diff(problem.starts))
    problem = weighing(problem, 1 / length)
    check_structure(rescaled(problem), labellings_of(problem))


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3), integer=st.booleans())
def test_random_trees(seed, sizes, integer):
    """Forests, with costs from 0 to 2, against enumeration."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, size, n_edge_features=1, integer=integer) for size in sizes]
    problem = make_problem(rng, trees, 3)
    problem = weighing(problem, np.full(len(problem.parent), 0.5))
    with interpreted():
        check_structure(rescaled(problem), labellings_of(problem), random_state=seed)


@given(seed=st.integers(0, 10**6), scale=st.floats(0.0, 10.0), has_margin=st.booleans())
def test_the_oracle_maximises_the_product(seed, scale, has_margin):
    """Against max_y cost(y) {margin + score(y) - score(y_i)}, by definition."""
    rng = np.random.default_rng(seed)
    base = toy_chains(n=1, max_length=6, random_state=rng)
    problem, length = rescaled(base), len(base.supervision.labels)
    ((psi, cost),) = blocks_of(base)
    w = scale * rng.normal(size=psi.shape[1])
    theta, y = np.zeros(part_sizes(problem)[0]), np.zeros(length, np.int32)
    with interpreted():
        scores(problem, w, 0, theta)
        theta[-1] = has_margin
        found = max_oracle(problem, 0, theta, y, workspace(problem, 1))
    products = cost * (has_margin - psi @ w)
    assert np.isclose(found, max(products.max(), 0.0))
    at = np.ravel_multi_index(tuple(y), (3,) * length)
    assert np.isclose(products[at], found)


SOLVERS = [Auto(), BCFW(), BCFW(steps="pairwise", sampling="gap"), BCFW(steps="best", cache=3), FrankWolfe()]


@pytest.mark.long
@pytest.mark.parametrize("solver", [*SOLVERS, NSlack(), OneSlack()], ids=str)
def test_solvers_reach_the_reference_optimum(solver):
    base = toy_chains(n=5, n_labels=3, max_length=4)
    optimum = naive.solve(slack_blocks(base), 0.3)[1]
    tol = {FrankWolfe: 1e-2, BCFW: 1e-3}.get(type(solver), 1e-4)
    check_solver(solver, rescaled(base), optimum, C=0.3, tol=tol)


@pytest.mark.long
def test_sgd_certifies_as_well():
    base = toy_chains(n=5, n_labels=3, max_length=4)
    optimum = naive.solve(slack_blocks(base), 0.3)[1]
    found = SGD().solve(rescaled(base), 0.3, tol=2e-2, max_passes=1000, random_state=0).certificate
    assert found.dual <= optimum <= found.primal <= optimum * 1.03


def test_the_objective_is_that_of_the_paper():
    base = toy_chains(n=5, n_labels=3, max_length=4)
    w = np.random.default_rng(0).normal(size=21)
    expected = naive.primal(w, slack_blocks(base), 0.3)
    assert np.isclose(Objective(rescaled(base), 0.3).evaluate(w).value, expected)
    assert not np.isclose(naive.primal(w, blocks_of(base), 0.3), expected)


@pytest.mark.parametrize("cost", ["hamming", "normalized_hamming"])
def test_estimators(words, cost, interpreted_loops):
    X, y = (part[:8] for part in words)
    tree = [Tree(x, edges=[(t, t + 1) for t in range(len(x) - 1)]) for x in X]
    models = (
        ChainSVM(rescaling="slack", cost=cost, fit_intercept=False),
        TreeSVM(rescaling="slack", cost=cost, fit_intercept=False),
    )
    chain, same = (
        model.set_params(dtype="float64", tol=1e-2, C=0.1, random_state=0).fit(data, y)
        for model, data in zip(models, (X, tree), strict=True)
    )
    assert chain.status_ is same.status_ is Status.OPTIMAL
    assert np.isclose(chain.certificate_.primal, same.certificate_.primal, rtol=2e-2)
    assert chain.score(X, y) > 0.8
    margin = ChainSVM(cost=cost, fit_intercept=False, dtype="float64", tol=1e-2, C=0.1, random_state=0).fit(X, y)
    assert not np.isclose(margin.certificate_.primal, chain.certificate_.primal, rtol=1e-2)


def test_where_nothing_costs_anything_the_optimum_is_zero(interpreted_loops):
    model = ChainSVM(rescaling="slack").fit([np.eye(2), np.ones((3, 2))], [["a", "a"], ["a", "a", "a"]])
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.primal == 0


def test_warm_starts_know_how_costs_were_rescaled(words, interpreted_loops):
    X, y = (part[:8] for part in words)
    model = ChainSVM(rescaling="slack", warm_start=True, dtype="float64", random_state=0).fit(X, y)
    assert model.fit(X, y).n_iter_ == 0
    other = model.set_params(rescaling="margin").fit(X, y).certificate_
    afresh = ChainSVM(dtype="float64", random_state=0).fit(X, y).certificate_
    assert other.dual <= afresh.primal
    assert afresh.dual <= other.primal


def test_bad_arguments(words):
    X, y = words
    with pytest.raises(ValueError, match="rescaling must be one of margin, slack, not 'both'"):
        ChainSVM(rescaling="both").fit(X, y)
    weight = [np.linspace(1, np.sqrt(2), len(labels)) for labels in y]
    with pytest.raises(
        ValueError, match=r"Slack rescaling counts costs: .* but example 0, of \d nodes, has costs from 1 to 1.4"
    ):
        ChainSVM(rescaling="slack").fit(X, y, position_weight=weight)
    with pytest.raises(TypeError, match="LBFGS needs the topk oracle for the smooth_hinge loss, which RescaledProblem"):
        ChainSVM(rescaling="slack", loss="smooth_hinge", solver="lbfgs").fit(X, y)
    with pytest.raises(
        TypeError, match="Slack rescaling needs a problem of chains of order 1, or of trees, not a RescaledProblem"
    ):
        rescaled(rescaled(toy_chains()))
