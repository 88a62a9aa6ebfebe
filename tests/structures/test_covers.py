"""Outputs that pay for groups that they do not cover, or cover all: oracles against enumeration, solvers, too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import BCFW
from maxmargin import problem as generics
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime import interpreted
from maxmargin.structures.derived import covers  # noqa: F401  (its oracles)
from maxmargin.structures.derived.cover_cuts import cover_by_cuts
from maxmargin.structures.derived.groups import CoverCutProblem, CoveredProblem, CoverProblem, make_groups
from maxmargin.structures.graphs.cliques import EdgeType
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.supervision.image_annotations import Group
from maxmargin.testing import check_structure
from maxmargin.trace import Status
from tests import naive
from tests.structures import test_graph_cut
from tests.structures.test_pairwise import all_labellings, make_problem, random_graph


def loopy(problem):
    """Without elimination, as if the graphs were large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
        return with_oracles(problem)


def random_groups(rng, base, most, least=0):
    """Groups that the true outputs cover: of each, a node and its true state, and some others."""
    groups = []
    for i in range(len(generics.part_sizes(base))):
        truth = generics.true_output(base, i)
        some = []
        for _ in range(rng.integers(least, most + 1)):
            state = truth[rng.integers(len(truth))]
            others = np.flatnonzero(rng.random(len(truth)) < 0.5)
            nodes = np.union1d(others, rng.choice(np.flatnonzero(truth == state)))
            some.append(Group(nodes, state, float(rng.integers(0, 4))))
        groups.append(some)
    return make_groups(base, groups)


def put_together(cls, base, groups):
    if cls is CoveredProblem:
        return CoveredProblem(base, groups, generics.all_true_outputs(base))
    return cover_by_cuts(base, groups) if cls is CoverCutProblem else CoverProblem(base, groups)


def outputs_of(problem, all_outputs, i):
    """The outputs of a problem with groups."""
    table = [np.array(y, np.int32) for y in all_outputs(i)]
    if not isinstance(problem, CoveredProblem):
        return table
    theta = np.zeros(generics.part_sizes(problem)[i])
    generics.scores(problem, generics.new_weights(problem), i, theta)
    return [y for y in table if generics.score_output(problem, i, theta, y) > IMPOSSIBLE / 2]


def make_graphs(rng, sizes, is_loopy, integer=False):
    problem = make_problem(rng, [random_graph(rng, size) for size in sizes], (3,), [EdgeType(0, 0)], integer=integer)
    return loopy(problem) if is_loopy else with_oracles(problem)


def make_cuts(rng, sizes, integer=False):
    return test_graph_cut.make_problem(rng, [test_graph_cut.make_graph(rng, size, 5, integer) for size in sizes])


def make_base(rng, kind, sizes, integer=False):
    if kind == "cuts":
        base = make_cuts(rng, sizes, integer)
        return base, test_graph_cut.all_labellings(base), test_graph_cut.LOWER[: generics.new_weights(base).size]
    base = make_graphs(rng, sizes, kind == "loopy", integer)
    return base, all_labellings(base), -np.inf


KINDS = [(cls, kind) for cls in (CoverProblem, CoveredProblem) for kind in ("elimination", "loopy", "cuts")]


@pytest.mark.parametrize(("cls", "kind"), [*KINDS, (CoverCutProblem, "cuts")])
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=2), integer=st.booleans())
def test_outputs_and_bounds(cls, kind, seed, sizes, integer):
    """Up to seven groups: more than are tried set by set; one work for all calls, which start from the last."""
    rng = np.random.default_rng(seed)
    base, labellings, lower = make_base(rng, kind, sizes, integer)
    groups = random_groups(rng, base, 7)
    problem = put_together(cls, base, groups)
    with interpreted():
        work = generics.workspace(problem, 1)
        for i in 2 * [*range(len(sizes))]:
            w = np.maximum(rng.normal(size=generics.new_weights(base).size), lower)
            theta, y = np.zeros(generics.part_sizes(problem)[i]), np.zeros(sizes[i], np.int32)
            generics.scores(problem, w, i, theta)
            if cls is not CoveredProblem:
                generics.augment(problem, i, theta)
            all_scores = [generics.score_output(problem, i, theta, np.array(other)) for other in labellings(i)]
            bound = (generics.max_oracle if cls is CoverCutProblem else generics.bound_oracle)(
                problem, i, theta, y, work
            )
            score = generics.score_output(problem, i, theta, y)
            assert score <= max(all_scores) + 1e-9
            assert bound >= max(all_scores) - 1e-9
            assert generics.max_oracle(problem, i, theta, y, work) > IMPOSSIBLE / 2
            n_groups = groups.starts[i + 1] - groups.starts[i]
            is_exact = n_groups == 0 or cls is CoverCutProblem or (cls is CoverProblem and n_groups < 7)
            if kind != "loopy" and is_exact:
                assert np.isclose(score, max(all_scores))
                assert np.isclose(bound, score)


@pytest.mark.long
@pytest.mark.parametrize(
    ("cls", "kind", "least", "most"),
    [(CoverProblem, "elimination", 0, 4), (CoverProblem, "elimination", 64, 70), (CoverCutProblem, "cuts", 0, 4)],
)
def test_structure(cls, kind, least, most):
    """Interpreted, then compiled; with more groups than numbers have bits, too."""
    rng = np.random.default_rng(1)
    base, labellings, lower = make_base(rng, kind, [1, 4, 3])
    problem = put_together(cls, base, random_groups(rng, base, most, least))
    check_structure(problem, lambda i: outputs_of(problem, labellings, i), lower=lower)


def blocks_of_example(problem, labellings, i):
    """Of example i, phi(true) - phi(y) and the cost of all labellings y, the latter by definition."""
    groups, truth = problem.groups, generics.true_output(problem, i)
    cost, psi, costs = np.zeros(generics.part_sizes(problem.base)[i]), [], []
    generics.augment(problem.base, i, cost)
    for y in labellings(i):
        mu, w = np.zeros_like(cost), generics.new_weights(problem)
        generics.add_output(problem.base, i, truth, 1.0, mu)
        generics.add_output(problem.base, i, y, -1.0, mu)
        generics.spread(problem.base, w, i, mu, 1.0)
        psi.append(w)
        members = [slice(*groups.first[g : g + 2]) for g in range(*groups.starts[i : i + 2])]
        unused = [all(y[v] != x for v, x in zip(groups.node[m], groups.state[m], strict=True)) for m in members]
        costs.append(
            generics.score_output(problem.base, i, cost, y)
            + np.dot(unused, groups.cost[slice(*groups.starts[i : i + 2])])
        )
    return np.array(psi), np.array(costs)


def test_groups_have_states():
    base = make_graphs(np.random.default_rng(0), [2], is_loopy=False)
    with pytest.raises(ValueError, match=r"Node 1 of a group cannot have its label\."):
        make_groups(base, [[Group(np.array([0, 1]), np.array([0, -1]), 1.0)]])


@pytest.mark.parametrize("kind", ["elimination", "cuts"])
def test_solvers_reach_the_optimum(kind):
    rng = np.random.default_rng(5)
    base, labellings, lower = make_base(rng, kind, [3, 3, 4])
    problem = put_together(CoverCutProblem if kind == "cuts" else CoverProblem, base, random_groups(rng, base, 3))
    assert problem.groups.cost.any()
    lower = np.broadcast_to(lower, generics.new_weights(base).shape)
    blocks = [blocks_of_example(problem, lambda i: map(np.array, labellings(i)), i) for i in range(3)]
    optimum = naive.solve(blocks, 0.3, lower=lower)[1]
    with interpreted():
        result = BCFW(steps="pairwise").solve(problem, C=0.3, tol=1e-3, lower=lower, random_state=0)
    assert result.status is Status.OPTIMAL
    assert np.isclose(naive.primal(result.w, blocks, 0.3), result.certificate.primal)
    assert result.certificate.dual <= optimum + 1e-6 <= result.certificate.primal + 2e-6
