import itertools
import signal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy.linalg import qr
from scipy.optimize import minimize

from maxmargin import Status
from maxmargin.arrays.blocks import Blocks
from maxmargin.encode.partial.node_states import mean_parts_of_states
from maxmargin.losses import RelaxedLoss
from maxmargin.problem import new_weights
from maxmargin.runtime import interpreted
from maxmargin.runtime.dispatch import loop
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.relaxed import oriented_trees
from maxmargin.solvers.relaxed.gdmm import GDMM
from maxmargin.solvers.relaxed.idal import IDAL
from maxmargin.solvers.relaxed.neighborhoods import find_neighborhoods, single_cliques, whole_graphs
from maxmargin.solvers.relaxed.oriented_trees import heaviest_forest, tree_probabilities
from maxmargin.solvers.relaxed.relaxed_objective import Relaxation
from maxmargin.solvers.relaxed.relaxed_passes import correct
from maxmargin.solvers.relaxed.soft import SoftBCFW, SoftSDCA
from maxmargin.solvers.relaxed.tighter_trees import tighten
from maxmargin.structures.graphs.cliques import EdgeType
from maxmargin.structures.graphs.elimination import with_elimination
from maxmargin.structures.graphs.local_polytope import project
from maxmargin.supervision.weak import Weak
from maxmargin.testing import toy_chains
from tests import naive, small
from tests.fuzz import certified
from tests.structures.test_pairwise import TRIANGLE, make_problem

TREE = [(1, 0), (1, 2)]
SQUARE = [(0, 1), (1, 2), (3, 2), (3, 0)]
GRAPHS = [(np.zeros(3, int), TRIANGLE), (np.zeros(5, int), SQUARE)]  # with a node that has no edge


def joint_features(problem, i):
    """For each part of graph i its features; only for dense features and one type of full edges."""
    nodes, edges, k = problem.graphs.nodes, problem.graphs.edges, problem.graphs.nodes.n_parts[0]
    columns = []
    for c in range(nodes.starts[i], nodes.starts[i + 1]):
        for x in range(k):
            columns.append(np.zeros(new_weights(problem).size))
            columns[-1][2 * x : 2 * x + 2] = nodes.features.rows[c]
    for e in range(edges.starts[i], edges.starts[i + 1]):
        for x in range(k * k):
            columns.append(np.zeros(new_weights(problem).size))
            at = 2 * k + 2 * x
            columns[-1][at : at + 2] = edges.features.rows[edges.row[e]]
    return np.array(columns).T


def polytope(problem, i):
    """A mu = 0 and sums of 1, as the rows of E mu = f, and the parts of the true output."""
    k = problem.graphs.nodes.n_parts[0]
    n_nodes = int(np.diff(problem.graphs.nodes.starts)[i])
    ends = problem.graphs.ends[problem.graphs.edges.starts[i] : problem.graphs.edges.starts[i + 1]]
    labels = problem.graphs.supervision.labels[problem.graphs.nodes.starts[i] : problem.graphs.nodes.starts[i + 1]]
    size = n_nodes * k + len(ends) * k * k
    truth, sums, margins = np.zeros(size), [], []
    for v in range(n_nodes):
        sums.append(np.zeros(size))
        sums[-1][v * k : v * k + k] = 1
        truth[v * k + labels[v]] = 1
    for e, (a, b) in enumerate(ends):
        table = np.arange(k * k).reshape(k, k) + n_nodes * k + e * k * k
        truth[table[labels[a], labels[b]]] = 1
        sums.append(np.zeros(size))
        sums[-1][table] = 1
        for v, rows in ((a, table), (b, table.T)):
            for x in range(k):
                margins.append(np.zeros(size))
                margins[-1][v * k + x] = 1
                margins[-1][rows[x]] = -1
    A = np.array(margins).reshape(-1, size)
    return A, np.array(sums), truth


def graphs_of(problem):
    return zip(
        np.diff(problem.graphs.nodes.starts),
        np.split(problem.graphs.ends, problem.graphs.edges.starts[1:-1]),
        strict=True,
    )


def gini(graph):
    n_nodes, ends = graph
    return np.ones(n_nodes), np.tile([1.0, 0.0, 0.0], (len(ends), 1))


def tree_gini(graph, k, child=None, epsilon=1.0):
    """Second-order terms of H(root) + sum of H(child, parent) - epsilon H(parent), the mean over all oriented trees."""
    roots, found = naive_trees(*graph)
    child = found if child is None else child
    return k * roots, np.column_stack([k * k * child.sum(axis=1), epsilon * k * child[:, 1], epsilon * k * child[:, 0]])


def naive_trees(n_nodes, ends):
    """How often each node is a root, and each end of an edge the child of the other, over all forests and roots."""
    incidence = np.zeros((len(ends), n_nodes))
    for e, (a, b) in enumerate(ends):
        incidence[e, [a, b]] = 1, -1
    size = np.linalg.matrix_rank(incidence) if len(ends) else 0
    forests = [f for f in itertools.combinations(range(len(ends)), size) if rank(incidence[[*f]]) == size]
    child, roots = np.zeros((len(ends), 2)), np.zeros(n_nodes)
    for forest in forests:
        for e in forest:
            sides = [reach(v, [ends[f] for f in forest if f != e]) for v in ends[e]]
            child[e] += np.array([len(sides[1]), len(sides[0])]) / (len(sides[0]) + len(sides[1]))  # where the root is
        for v in range(n_nodes):
            roots[v] += 1 / len(reach(v, [ends[f] for f in forest]))
    return roots / len(forests), child / len(forests)


def rank(matrix):
    return np.linalg.matrix_rank(matrix) if len(matrix) else 0


def reach(v, ends):
    seen = {v}
    for _ in ends:
        seen |= {u for pair in ends if seen & set(pair) for u in pair}
    return seen


class Dual:
    """D(mu) of all graphs, by definition, in sums over examples; mu are those of all graphs, one after the other."""

    known: ClassVar[dict] = {}  # the maxima: finding one takes longer than the methods that are held against it
    prior = 0.0

    def __init__(self, problem, C, temperature, margin=True, weight=None, entropy="gini", trees=None, epsilon=1.0):
        n = len(problem.graphs.nodes.starts) - 1
        self.n, self.C, self.temperature = n, C, temperature
        weight = np.ones(n) if weight is None else np.asarray(weight)
        pieces = [polytope(problem, i) for i in range(n)]
        sizes = [truth.size for _, _, truth in pieces]
        self.cuts = np.cumsum(sizes)[:-1]
        self.A = block([A for A, _, _ in pieces])
        self.S = block([sums for _, sums, _ in pieces])
        self.truth = np.concatenate([truth for _, _, truth in pieces])
        self.weight = np.repeat(weight, sizes)
        self.B = np.concatenate([joint_features(problem, i) for i in range(n)], axis=1) * self.weight
        k = problem.graphs.nodes.n_parts[0]
        costs = []
        for (_, _, truth), lo, hi in zip(
            pieces, problem.graphs.nodes.starts[:-1], problem.graphs.nodes.starts[1:], strict=True
        ):
            cost = np.zeros(truth.size)
            cost[: (hi - lo) * k] = np.repeat(problem.graphs.supervision.weight[lo:hi], k) * (
                1 - truth[: (hi - lo) * k]
            )
            costs.append(margin * cost)
        self.cost = np.concatenate(costs)
        # The entropy is top - mu' H mu.
        children = [None] * n if trees is None else np.split(trees, problem.graphs.edges.starts[1:-1])
        coefficients = [
            gini(graph) if entropy == "gini" else tree_gini(graph, k, child, epsilon)
            for graph, child in zip(graphs_of(problem), children, strict=True)
        ]
        self.H, self.top = np.zeros((self.truth.size,) * 2), 0.0
        at = 0
        for (A, _, truth), (of_nodes, of_edges), scale in zip(pieces, coefficients, weight, strict=True):
            squares = np.concatenate([np.repeat(of_nodes, k), np.repeat(of_edges[:, 0], k * k)])
            margins = np.where(A < 0, 1.0, 0.0)  # the margins of both ends of each edge
            H = np.diag(squares) - margins.T @ np.diag(np.repeat(of_edges[:, 1:].ravel(), k)) @ margins
            self.H[at : at + truth.size, at : at + truth.size] = scale * H
            self.top += scale * (of_nodes.sum() + of_edges[:, 0].sum() - of_edges[:, 1:].sum())
            at += truth.size

    def w(self, mu):
        return self.prior + self.C * self.B @ (self.truth - mu)

    def gain(self, mu):
        return self.weight @ (self.cost * mu) + self.temperature * (self.top - mu @ self.H @ mu)

    def value(self, mu):
        w = self.w(mu)
        return (self.gain(mu) - w @ w / (2 * self.C)) / self.n + self.constant

    @property
    def constant(self):
        return np.sum(np.square(self.prior)) / (2 * self.C * self.n)

    def slope(self, mu):
        return (self.weight * self.cost - 2 * self.temperature * self.H @ mu + self.B.T @ self.w(mu)) / self.n

    def objective(self, w, start):
        """F(w): the maximum of all losses over the local polytope, by definition."""
        theta = self.B.T @ w + self.weight * self.cost

        def value(mu):
            return theta @ mu + self.temperature * (self.top - mu @ self.H @ mu)

        found = self._maximise(value, lambda mu: theta - 2 * self.temperature * self.H @ mu, start, self.A)
        square = np.sum((w - self.prior) ** 2)
        return (square / (2 * self.C) + value(found) - self.B.T @ w @ self.truth) / self.n

    def best(self, start):
        """The maximum over the local polytope."""
        arrays = self.A, self.B, self.H, self.cost, self.weight, start, self.truth, np.asarray(self.prior)
        key = (*(array.tobytes() for array in arrays), self.C, self.temperature)
        if key not in self.known:
            self.known[key] = self.value(self._maximise(self.value, self.slope, start, self.A))
        return self.known[key]

    def augmented(self, mu, rho, xi):
        """D_rho(mu, xi)."""
        return self.value(mu) + (xi @ self.A @ mu - np.sum((self.A @ mu) ** 2) / (2 * rho)) / self.n

    def softest(self, start, rho, xi):
        """Where D_rho is largest over the simplices, where violated constraints cost."""
        return self._maximise(
            lambda mu: self.augmented(mu, rho, xi),
            lambda mu: self.slope(mu) + self.A.T @ (xi - self.A @ mu / rho) / self.n,
            start,
            self.A[:0],
        )

    def _maximise(self, value, slope, start, A):
        """With sums of 1 and A mu = 0."""
        E, f = np.vstack([self.S, A]), np.repeat([1.0, 0.0], [len(self.S), len(A)])
        _, r, order = qr(E.T, mode="economic", pivoting=True)
        chosen = order[: np.sum(np.abs(np.diag(r)) > 1e-9)]  # independent constraints
        E, f = E[chosen], f[chosen]
        found = minimize(
            lambda mu: -value(mu),
            start,
            jac=lambda mu: -slope(mu),
            bounds=[(0, 1)] * start.size,
            constraints={"type": "eq", "fun": lambda mu: E @ mu - f, "jac": lambda mu: E},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert found.success, found.message
        return found.x


def block(matrices):
    height, width = np.sum([m.shape for m in matrices], axis=0)
    out, at = np.zeros((height, width)), np.zeros(2, int)
    for m in matrices:
        out[at[0] : at[0] + m.shape[0], at[1] : at[1] + m.shape[1]] = m
        at += m.shape
    return out


CASES = [
    {"temperature": 1.0, "rho": 1.0},
    {"temperature": 0.05, "rho": 0.1},
    {"temperature": 5.0, "rho": 10.0, "margin": False},
    {"temperature": 0.3, "rho": 1.0, "weight": [0.5, 3.0]},
    {"temperature": 1.0, "rho": 1.0, "entropy": "oriented_trees"},
    {"temperature": 0.1, "rho": 0.1, "entropy": "oriented_trees", "weight": [2.0, 1.0]},
    {"temperature": 1.0, "rho": 1.0, "entropy": "oriented_trees", "epsilon": 0.5},
]
PUBLISHED = partial(IDAL, order="uniform", multipliers="global")


@pytest.mark.long
@pytest.mark.parametrize("method", [IDAL, PUBLISHED, GDMM, partial(GDMM, active="factors")])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_an_independent_qp(case, method):
    case = {"margin": True, "weight": None, "entropy": "gini", "epsilon": 1.0, **case}
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    entropy = {"entropy": case["entropy"], "epsilon": case["epsilon"]}
    dual = Dual(problem, 0.5, case["temperature"], case["margin"], case["weight"], **entropy)
    result = method(rho=case["rho"]).solve(
        problem,
        0.5,
        case["weight"],
        loss=RelaxedLoss(level=case["temperature"], margin=case["margin"], **entropy),
        tol=1e-6,
        max_passes=1e4,
        random_state=0,
    )
    assert result.status is Status.OPTIMAL
    optimum = dual.best(Relaxation(Objective(problem, loss=RelaxedLoss())).uniform())
    slack = 1e-7 * optimum
    assert (result.trace.dual <= optimum + slack).all()
    assert (result.trace.primal >= optimum - slack).all()
    assert np.isclose(result.trace.primal[-1], optimum, rtol=2e-6)
    point = result.dual
    violation = np.sum((dual.A @ point.means) ** 2)
    assert np.isclose(result.trace.extras["violation"][-1], violation, rtol=1e-6)
    assert violation < 1e-3
    assert np.allclose(dual.w(point.means), result.w, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("method", [SoftSDCA, SoftBCFW])
@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[4]], ids=str)
def test_soft_constraints_equal_an_independent_qp(case, method):
    """What they maximise is D_rho without multipliers; their certificates are those of the relaxed objective."""
    case = {"entropy": "gini", **case}
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    dual = Dual(problem, 0.5, case["temperature"], entropy=case["entropy"])
    loss = RelaxedLoss(level=case["temperature"], entropy=case["entropy"])
    result = method(rho=case["rho"]).solve(problem, 0.5, loss=loss, tol=1e-3, max_passes=1e4, random_state=0)
    assert result.status is Status.SURROGATE
    start = Relaxation(Objective(problem, loss=RelaxedLoss())).uniform()
    none = np.zeros(len(dual.A))
    optimum = dual.augmented(dual.softest(start, case["rho"], none), case["rho"], none)
    last = {name: x[-1] for name, x in result.trace.extras.items()}
    assert last["D_rho"] <= optimum * (1 + 1e-7)
    assert last["P_rho"] >= optimum * (1 - 1e-7)
    assert last["inner gap"] <= 1e-3 * last["P_rho"]
    assert not result.dual.multipliers.any()
    assert result.trace.dual[-1] <= dual.best(start) * (1 + 1e-7)
    assert result.trace.primal[-1] >= dual.best(start) * (1 - 1e-7)


@pytest.mark.parametrize("method", [IDAL, GDMM, SoftSDCA, SoftBCFW])
def test_certificates_are_of_the_weights_returned(method):
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    start = Relaxation(Objective(problem, loss=RelaxedLoss())).uniform()
    for loss in (RelaxedLoss(level=0.3), RelaxedLoss(margin=False), RelaxedLoss(level=0.1, entropy="oriented_trees")):
        dual = Dual(problem, 2.0, loss.level, loss.margin, entropy=loss.entropy)
        optimum = dual.best(start)
        for max_passes in (1, 30):
            result = method().solve(problem, 2.0, loss=loss, tol=1e-3, max_passes=max_passes, random_state=0)
            assert result.certificate.primal >= dual.objective(result.w, start) * (1 - 1e-7)
            assert result.certificate.dual <= optimum * (1 + 1e-7)


@pytest.mark.parametrize("method", [IDAL, SoftBCFW])
def test_soft_labels_and_priors_are_linear_terms(method):
    """Of soft labels, D is that of their mean parts in place of the true ones; a prior is what weights are drawn to."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    start = Relaxation(Objective(problem, loss=RelaxedLoss())).uniform()
    loss = RelaxedLoss(level=0.3)
    soft, drawn = (Dual(problem, 2.0, loss.level) for _ in range(2))
    shares = np.random.default_rng(1).dirichlet(np.ones(2), problem.graphs.nodes.starts[-1])
    starts = np.cumsum([0, *(truth.size for _, _, truth in (polytope(problem, i) for i in range(2)))])
    target = mean_parts_of_states(problem.graphs, Blocks(shares.ravel(), 2 * problem.graphs.nodes.starts), float)
    assert np.array_equal(target.starts, starts)
    assert np.allclose(soft.A @ target.values, 0)
    soft.truth = target.values
    drawn.prior = np.random.default_rng(2).normal(size=new_weights(problem).size)
    for dual, given in ((soft, {"weak": Weak(target=target)}), (drawn, {"prior": drawn.prior})):
        optimum = dual.best(start)
        for max_passes in (1, 3000):
            options = {"loss": loss, "tol": 1e-3, "random_state": 0, **given}
            result = method().solve(problem, 2.0, max_passes=max_passes, **options)
            assert result.certificate.primal >= dual.objective(result.w, start) - 1e-7 * optimum
            assert (result.trace.dual <= optimum * (1 + 1e-7)).all()
        if method is IDAL:
            assert result.status is Status.OPTIMAL
            assert result.certificate.dual >= 0.998 * optimum


def test_values_by_definition():
    """D_rho, P_rho and the bounds after a few passes, far from the optimum."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    rho, temperature = 0.7, 0.4
    result = IDAL(rho=rho).solve(problem, 0.5, loss=RelaxedLoss(level=temperature), max_passes=2, random_state=0)
    dual, point = Dual(problem, 0.5, temperature), result.dual
    residual = dual.A @ point.means
    last = {name: column[-1] for name, column in result.trace.extras.items()}
    penalty = residual @ residual / (2 * rho)
    multipliers = point.multipliers
    assert np.isclose(last["D_rho"], dual.value(point.means) + (multipliers @ residual - penalty) / 2)
    w, delta = dual.w(point.means), multipliers - residual / rho
    theta = dual.B.T @ w + dual.cost + dual.A.T @ delta
    upper = w @ w - dual.truth @ theta  # 1/(2 C) = 1
    for row in dual.S:
        (mine,) = np.nonzero(row)
        upper += largest(theta[mine], temperature)
    assert np.isclose(last["P_rho"], (upper + penalty) / 2)
    assert last["inner gap"] == last["P_rho"] - last["D_rho"] >= 0
    assert np.isclose(result.trace.primal[-1], upper / 2)


def largest(theta, temperature):
    u = naive.project_to_simplex(theta / (2 * temperature))
    return theta @ u + temperature * (1 - u @ u)


def test_a_tree_is_exact():
    """The local polytope of a tree is its marginal one: mixtures of outputs reach the same optimum."""
    problem = make_problem(np.random.default_rng(1), [(np.zeros(3, int), TREE)], (2,))
    dual = Dual(problem, 1.0, 0.5)
    table = np.zeros((8, dual.truth.size))
    for row, y in zip(table, itertools.product(range(2), repeat=3), strict=True):
        for v, label in enumerate(y):
            row[2 * v + label] = 1
        for e, (a, b) in enumerate(TREE):
            row[6 + 4 * e + 2 * y[a] + y[b]] = 1
    exact = minimize(
        lambda p: -dual.value(p @ table),
        np.full(8, 1 / 8),
        jac=lambda p: -table @ dual.slope(p @ table),
        bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(8)},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    result = IDAL().solve(problem, loss=RelaxedLoss(level=0.5), tol=1e-7, max_passes=1e4, random_state=0)
    assert np.isclose(result.trace.primal[-1], -exact.fun, rtol=1e-6)


OPTIONS = [
    {},
    {"rho": 1.0},
    {"rho": 0.1, "inner": 2.0},
    {"rho": 5.0, "inner": 0.1, "gap_every": 3},
    {"steps": "exact"},
    {"steps": "line_search"},
    {"order": "uniform"},
    {"rho": 1.0, "order": "uniform", "multipliers": "global"},  # as published
    {"multipliers": "global", "inner": 2.0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("ties", ["full", "potts"])
@pytest.mark.parametrize("entropy", ["gini", "oriented_trees"])
def test_every_option_reaches_the_same_optimum(options, ties, entropy):
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,), [EdgeType(ties=ties)])
    loss = RelaxedLoss(entropy=entropy)
    result = IDAL(**options).solve(problem, loss=loss, tol=1e-6, max_passes=1e4, random_state=0)
    assert result.status is Status.OPTIMAL
    certified = IDAL().solve(problem, loss=loss, tol=1e-9, max_passes=1e4, random_state=1).certificate
    assert result.trace.dual[-1] <= certified.primal
    assert result.trace.primal[-1] >= certified.dual


def test_rho_adapts(interpreted_loops):
    """It starts balanced, falls where the multipliers are to blame, and rises to its start where they are not."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    relaxed = Relaxation(Objective(problem, loss=RelaxedLoss()))
    smooth, balanced = relaxed.curvature(np.inf), relaxed.balanced_rho()
    share = (relaxed.curvature(balanced) - smooth) / (smooth + 2)
    assert (share > 0.999).any()
    assert (share < 1.001).any()
    report = relaxed.report(relaxed.uniform(), np.zeros(relaxed.n_multipliers), balanced)
    pace = IDAL().first_pace(relaxed)
    assert pace.rho == balanced
    for share, factor in ((0.03, np.sqrt(0.03 / 0.6)), (0.5, 1.0), (0.99, 2.0), (0.99, 2.0), (0.99, 2.0)):
        inner_gap = share * (report.primal - report.dual)
        found = report._replace(augmented_primal=report.augmented_dual + inner_gap)
        after = IDAL().adapt(pace, found, relaxed)
        assert np.isclose(after.rho, min(factor * pace.rho, balanced))
        assert IDAL(rho=pace.rho).adapt(pace, found, relaxed).rho == pace.rho
        pace = after
    for _ in range(20):
        pace = IDAL().adapt(pace, report._replace(augmented_primal=report.augmented_dual), relaxed)
    assert np.isclose(pace.rho, 0.1 * balanced)


def test_stops_on_both_residuals():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,))
    for solver in (IDAL(eps=1e-3, gap_every=1), GDMM(eps=1e-3, gap_every=1)):
        result = solver.solve(problem, tol=1e-12, random_state=0)
        assert result.status is Status.SURROGATE
        for name in ("inner gap", "violation"):
            assert result.trace.extras[name][-1] <= 1e-3
        assert max(result.trace.extras[name][-2] for name in ("inner gap", "violation")) > 1e-3


def test_the_greedy_method_keeps_mean_parts_sparse():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (5,))
    truth = Relaxation(Objective(problem, loss=RelaxedLoss())).true_means()
    assert np.array_equal(truth, Dual(problem, 1.0, 1.0).truth)
    means = GDMM().solve(problem, max_passes=1, tol=1e-9, random_state=0).dual.means
    assert np.count_nonzero(truth) < np.count_nonzero(means) <= 2 * np.count_nonzero(truth)


def test_factors_become_active_one_by_one():
    """In each pass one more node or edge of each graph; the others stay at the truth."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,))
    relaxed = Relaxation(Objective(problem, loss=RelaxedLoss()))
    truth = relaxed.true_means()
    cliques = [np.arange(lo, lo + size) for lo, size in zip(relaxed.terms.at, relaxed.sizes, strict=True)]
    graph = np.concatenate(
        [np.repeat(np.arange(2), np.diff(c.starts)) for c in (problem.graphs.nodes, problem.graphs.edges)]
    )
    for n_passes in (1, 2, 3):
        means = GDMM(active="factors").solve(problem, max_passes=n_passes, tol=1e-9, random_state=0).dual.means
        moved = [not np.array_equal(means[at], truth[at]) for at in cliques]
        assert np.bincount(graph, moved).tolist() == [n_passes, n_passes]


def test_every_set_of_a_graph():
    problem = make_problem(np.random.default_rng(0), GRAPHS)
    single, whole = single_cliques(problem.graphs), whole_graphs(problem.graphs)
    assert np.diff(single.starts).tolist() == [1] * 15
    assert whole.starts.tolist() == [0, 6, 15]
    assert whole.cliques.tolist() == [0, 1, 2, 8, 9, 10, 3, 4, 5, 6, 7, 11, 12, 13, 14]


def outer_iterations(problem, loss, rho, inner, n, seed):
    """The points of n outer iterations of the method as published: xi_t, mu after its inner steps, and xi_{t+1}."""
    solver, start, xi = PUBLISHED(rho=rho, inner=inner, gap_every=inner), None, np.zeros(len(Dual(problem, 1.0, 1.0).A))
    for t in range(n):
        start = solver.solve(problem, loss=loss, start=start, tol=1e-300, max_passes=inner, random_state=[seed, t]).dual
        yield xi, start.means, start.multipliers
        xi = start.multipliers


def test_multipliers_are_stepped_together():
    """Algorithm 1, line 6: xi - A mu / rho, once, after all inner steps."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    dual = Dual(problem, 1.0, 1.0)
    for before, means, after in outer_iterations(problem, RelaxedLoss(), 0.5, 2, 4, 0):
        assert np.allclose(after, before - dual.A @ means / 0.5)


def test_lemma_1():
    """Means over runs obey both recursions of its proof, at the rate of Proposition 1, and so shrink by lambda_max."""
    problem, rho = make_problem(np.random.default_rng(0), [(np.zeros(3, int), TRIANGLE)], (2,)), 1.0
    relaxed = Relaxation(Objective(problem, loss=RelaxedLoss()))
    dual = Dual(problem, 1.0, 1.0)
    pi = np.min(2 / (2 + relaxed.curvature(rho))) / relaxed.n_cliques  # sigma / (|C| (sigma + L)), sigma = 2 gamma
    n_runs, n_outer, inner = 4, 6, 10
    beta = (1 - pi) ** (inner * relaxed.n_cliques)
    uniform = relaxed.uniform()
    optimum = dual.best(uniform)
    first, last, excess, steepness = np.zeros((4, n_runs, n_outer))
    for seed in range(n_runs):
        before = uniform
        for t, (xi, means, _) in enumerate(outer_iterations(problem, RelaxedLoss(), rho, inner, n_outer, seed)):
            at = dual.softest(means, rho, xi)
            top = dual.augmented(at, rho, xi)
            first[seed, t] = top - dual.augmented(before, rho, xi)
            last[seed, t] = top - dual.augmented(means, rho, xi)
            excess[seed, t] = top - optimum
            steepness[seed, t] = np.sum((dual.A @ at) ** 2)
            before = means
    floor = 1e-8  # of the reference
    kept = excess > 100 * floor
    kappa = np.min(steepness[kept] / (2 * excess[kept])) / rho
    assert 0 < kappa < 1
    assert (last.mean(axis=0) <= beta * first.mean(axis=0) + floor).all()
    assert (first[:, 1:] <= 6 * last[:, :-1] + 3 * excess[:, :-1] + floor).all()
    assert (excess[:, 1:] <= last[:, :-1] + (1 - kappa) * excess[:, :-1] + floor).all()
    rate = np.linalg.eigvals([[6 * beta, 3 * beta], [1, 1 - kappa]]).real.max()
    assert rate < 1
    suboptimal = np.hypot(last.mean(axis=0), excess.mean(axis=0))
    vectors = np.linalg.eig([[6 * beta, 3 * beta], [1, 1 - kappa]])[1]
    assert (suboptimal <= np.linalg.cond(vectors) * rate ** np.arange(n_outer) * suboptimal[0] + floor).all()
    assert suboptimal[-1] < suboptimal[0] / 10


def test_sets_of_neighbours():
    """Every clique once, those of a set from one graph, and few."""
    rng = np.random.default_rng(0)
    side = 12
    at = np.arange(side * side).reshape(side, side)
    grid = [
        *zip(at[:, 1:].ravel(), at[:, :-1].ravel(), strict=True),
        *zip(at[1:].ravel(), at[:-1].ravel(), strict=True),
    ]
    graphs = [(np.zeros(1, int), []), (np.zeros(side * side, int), grid), *GRAPHS, (np.zeros(40, int), [])]
    problem = make_problem(rng, graphs)
    sets = find_neighborhoods(problem.graphs)
    assert np.array_equal(
        np.sort(sets.cliques), np.arange(len(problem.graphs.supervision.labels) + len(problem.graphs.ends))
    )
    owner = np.concatenate(
        [np.repeat(np.arange(5), np.diff(c.starts)) for c in (problem.graphs.nodes, problem.graphs.edges)]
    )
    for mine in np.split(owner[sets.cliques], sets.starts[1:-1]):
        assert 0 < len(mine) <= 64
        assert len(set(mine)) == 1


def test_threads_and_the_interpreter_give_the_same():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,))
    options = {"tol": 1e-9, "max_passes": 20, "random_state": 0}
    one, two = (IDAL().solve(problem, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    with interpreted():
        slow = IDAL().solve(problem, **options)
    for other in (two, slow):
        assert np.allclose(other.w, one.w, rtol=1e-8)
        assert np.allclose(other.trace.primal, one.trace.primal, rtol=1e-8)
        assert np.allclose(other.trace.dual, one.trace.dual, rtol=1e-8)


def test_the_rate_is_linear():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,))
    extras = IDAL(rho=1.0, gap_every=5).solve(problem, tol=1e-12, max_passes=30, random_state=0).trace.extras
    for name, factor in (("inner gap", 5), ("violation", 3)):
        for early, late in itertools.pairwise(extras[name][1:]):
            assert late < early / factor


@pytest.mark.parametrize("steps", ["prox", "line_search"])
def test_too_few_steps_between_those_of_the_multipliers(steps):
    """Where a tenth of a pass is not enough to converge, more are made."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (3,))
    result = IDAL(rho=0.1, inner=0.1, steps=steps).solve(problem, tol=1e-6, max_passes=1000, random_state=0)
    assert result.status is Status.OPTIMAL


def test_many_passes_after_the_last_progress():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    result = IDAL().solve(problem, tol=1e-300, max_passes=1000, random_state=0)
    assert result.status in (Status.MAX_PASSES, Status.OPTIMAL)
    assert result.certificate.relative_gap < 1e-12


def test_types_sparse_features_and_float32(interpreted_loops):
    graphs = [(np.array([0, 1, 0, 1]), [(0, 1), (0, 3), (2, 3), (2, 1), (0, 2)]), (np.array([1]), [])]
    types = [EdgeType(0, 0, "symmetric"), EdgeType(0, 1)]
    problem = make_problem(np.random.default_rng(0), graphs, (3, 2), types, "float32", sparse=True)
    result = IDAL().solve(problem, tol=1e-4, random_state=0)
    assert result.status is Status.OPTIMAL
    assert result.w.dtype == np.float32
    exact = IDAL().solve(with_elimination(problem), tol=1e-4, random_state=0)  # which it makes no use of
    assert np.array_equal(exact.w, result.w)


def test_runs_repeat_go_on_and_stop(interpreted_loops):
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    result, again = (IDAL().solve(problem, tol=1e-4, random_state=0) for _ in range(2))
    assert np.array_equal(result.w, again.w)
    warm = IDAL().solve(problem, start=result, tol=1e-4, random_state=1)
    assert warm.trace.passes[-1] == 0
    short = IDAL().solve(problem, tol=1e-12, max_passes=2, random_state=0)
    assert short.status is Status.MAX_PASSES
    assert short.trace.passes[-1] == 2
    assert IDAL().solve(problem, tol=1e-12, max_passes=0.3, random_state=0).status is Status.MAX_PASSES
    stopped = IDAL().solve(problem, tol=1e-12, callback=lambda trace: True)
    assert stopped.status is Status.INTERRUPTED
    assert len(stopped.trace) == 1
    pressed = IDAL().solve(problem, tol=1e-300, callback=lambda trace: signal.raise_signal(signal.SIGINT))
    assert pressed.status is Status.INTERRUPTED
    assert np.isfinite(pressed.certificate.gap)


def test_corrected_points_are_feasible():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    relaxed, dual = Relaxation(Objective(problem, loss=RelaxedLoss())), Dual(problem, 1.0, 1.0)
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(row) for row in dual.S]
    for sharpness in (0.1, 1.0, 10.0):
        mu, feasible = np.zeros((2, relaxed.n_parts))
        for at in places:
            mu[at] = rng.dirichlet(np.full(at.size, 1 / sharpness))
        correct(relaxed.problem, relaxed.terms, relaxed.scratch, mu, feasible, 0, 2)
        assert (feasible >= 0).all()
        assert np.allclose(dual.A @ feasible, 0, atol=1e-12)
        assert np.allclose(dual.S @ feasible, 1)
        correct(relaxed.problem, relaxed.terms, relaxed.scratch, feasible, mu, 0, 2)
        assert np.allclose(mu, feasible)  # a feasible point stays


@pytest.mark.parametrize("ends", [TRIANGLE, SQUARE, [*SQUARE, (0, 2), (4, 5)], [(0, 1)], TREE])
def test_probabilities_of_trees_equal_enumeration(ends, monkeypatch):
    monkeypatch.setattr(oriented_trees, "COLUMNS", 2)
    ends = np.array(ends)
    for found, expected in zip(tree_probabilities(7, ends), naive_trees(7, ends), strict=True):
        assert np.allclose(found, expected)


def test_the_heaviest_forest_equals_enumeration():
    rng = np.random.default_rng(0)
    ends = np.array([*SQUARE, (0, 2), (4, 5)])
    sets = itertools.combinations(range(len(ends)), 4)
    forests = [f for f in sets if np.allclose(naive_trees(6, ends[[*f]])[1].sum(axis=1), 1)]
    for _ in range(10):
        weight = rng.integers(-3, 4, len(ends)).astype(float)
        chosen = heaviest_forest(6, ends, weight)
        assert tuple(chosen) in forests
        assert weight[chosen].sum() == max(weight[[*f]].sum() for f in forests)
    assert heaviest_forest(3, np.zeros((0, 2), int), np.zeros(0)).size == 0


@pytest.mark.parametrize("epsilon", [1.0, 0.7])
def test_tighter_trees(epsilon):
    """The objective falls with every step, and is that of an independent QP with the same trees."""
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    loss, optima = RelaxedLoss(level=0.3, entropy="oriented_trees", epsilon=epsilon), []
    for t in range(1, 5):
        objective = Objective(problem, 0.5, loss=loss)
        result = IDAL().solve(problem, 0.5, loss=loss, tol=1e-7, max_passes=1e4, random_state=0)
        optima.append(result.certificate.primal)
        dual = Dual(problem, 0.5, 0.3, entropy="oriented_trees", trees=loss.trees, epsilon=epsilon)
        assert np.isclose(optima[-1], dual.best(Relaxation(objective).uniform()), rtol=1e-6)
        loss = tighten(objective, result.dual.means, 2 / (t + 2))
        assert np.isclose(loss.trees.sum(), 2 + 3)  # edges of a tree
        assert loss.trees.min() > 0
    assert all(late < early for early, late in itertools.pairwise(optima))
    with pytest.raises(ValueError, match="trees must hold two positive numbers for each of the 7 edges"):
        IDAL().solve(problem, loss=RelaxedLoss(entropy="oriented_trees", trees=np.zeros((7, 2))))


def test_no_edges():
    roots, edges = tree_probabilities(2, np.zeros((0, 2), int))
    assert roots.tolist() == [1.0, 1.0]
    assert edges.shape == (0, 2)
    problem = make_problem(np.random.default_rng(0), [(np.zeros(2, int), []), (np.zeros(1, int), [])])
    for entropy in ("gini", "oriented_trees"):
        assert IDAL().solve(problem, loss=RelaxedLoss(entropy=entropy), random_state=0).status is Status.OPTIMAL


def test_the_projection_is_that_by_sorting():
    rng = np.random.default_rng(0)
    for size, scale in itertools.product((1, 2, 7, 30), (1e-8, 0.1, 1.0, 1e9)):
        v = np.round(scale * rng.normal(size=size), 1 if scale == 1.0 else 20)
        expected = naive.project_to_simplex(v)
        project(v, size)
        assert np.allclose(v, expected, atol=1e-6 if scale == 1e9 else 1e-12)


@loop
def project_all(v):
    project(v, v.size)


def test_large_numbers_are_projected_to_the_simplex():
    """Compiled sums are taken in any order, but for 1 added to 1e20."""
    for top in (1e12, 1e20, 1e28):
        v = np.array([-top, top, 0.0, 0.9 * top])
        project_all(v)
        assert np.array_equal(v, [0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("scale", [1e5, 1e7, 1e11])
def test_relaxed_objectives_of_large_potentials(scale, interpreted_loops):
    model, X, y, _ = small.make("GraphSVM")
    X = [(scale * x, edges) for x, edges in X]
    for loss in (RelaxedLoss(level=1e-9), RelaxedLoss(margin=False)):
        model.set_params(loss=loss, max_passes=10)
        if scale == 1e11:
            with pytest.raises(ValueError, match="The objective is not finite"):
                model.fit(X, y)
        else:
            model.fit(X, y)
            assert certified.false_certificate(model, X, y, None, model) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 0.0}, "rho must be a positive number"),
        ({"inner": -1.0}, "inner must be a positive number"),
        ({"eps": -1.0}, "eps must be a number, 0 or more"),
        ({"steps": "newton"}, "steps must be one of prox, exact, line_search"),
        ({"gap_every": 0}, "gap_every must be an integer"),
        ({"order": "random"}, "order must be one of neighbors, uniform"),
        ({"multipliers": "all"}, "multipliers must be one of local, global"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        IDAL(**options)


@pytest.mark.parametrize("method", [GDMM, SoftSDCA, SoftBCFW])
@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, None, "small"])
def test_bad_rho(method, rho):
    with pytest.raises(ValueError, match="rho must be a positive number"):
        method(rho=rho)


def test_bad_problems_losses_and_starts():
    problem = make_problem(np.random.default_rng(0), GRAPHS, (2,))
    with pytest.raises(TypeError, match="IDAL needs a GraphProblem, not a ChainProblem"):
        IDAL().solve(toy_chains())
    with pytest.raises(ValueError, match="IDAL minimises the relaxed loss, not the log loss"):
        IDAL().solve(problem, loss="log")
    with pytest.raises(ValueError, match="level must be a positive number"):
        RelaxedLoss(level=0.0)
    with pytest.raises(ValueError, match="entropy must be one of gini, oriented_trees"):
        RelaxedLoss(entropy="shannon")
    with pytest.raises(ValueError, match="epsilon must be a number from 0 to 1"):
        RelaxedLoss(epsilon=2.0)
    with pytest.raises(ValueError, match="active must be one of parts, factors"):
        GDMM(active="nodes")
    with pytest.raises(ValueError, match="start must be the Result of an earlier run"):
        IDAL().solve(problem, start=np.zeros(3))
    with pytest.raises(ValueError, match="IDAL takes no bounds"):
        IDAL().solve(problem, lower=0.0)
