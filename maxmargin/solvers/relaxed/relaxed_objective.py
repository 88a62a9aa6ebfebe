"""The relaxed objective of graphs with cycles: its loss, its dual, and bounds of both from any point of a solver.

In place of the marginal polytope of a graph stands the *local* one: mu_c of every clique c, node or edge, in the
simplex (call this product of simplices I) and A mu = 0, that is, mu_i = A_i mu_e for both ends i of every edge e,
where A_i mu_e are the margins of the table mu_e.

The entropy is a sum over cliques, concave on all of I and 0 at outputs: Gini's, h_c(mu_c) = 1 - ||mu_c||^2, or the mean
over oriented spanning trees of the entropies of the root and of every child given its parent, each to second order at
the uniform distribution. With p_i the probability of i as the root and p_{i|j} that of j as the parent of i,

    h_i = k_i p_i (1 - ||mu_i||^2)
    h_e = k_i k_j (p_{i|j} + p_{j|i}) (1 - ||mu_e||^2)
          - epsilon (k_i p_{j|i} (1 - ||A_i mu_e||^2) + k_j p_{i|j} (1 - ||A_j mu_e||^2)).

With a temperature g > 0,

    loss_i(w) = max over the local polytope of <theta_i(w) + cost_i, mu> + g h(mu), minus <theta_i(w), s_i(y_i)>.

The matrix A is never formed. With sums over examples in place of means and Lambda = n lambda = 1/C, for mu in I, any
multipliers xi and rho > 0,

    w(mu)               = w_0 + 1/Lambda B (s - mu)          delta(mu, xi) = xi - A mu / rho
    D(mu)               = <cost, mu> + g h(mu) - Lambda/2 ||w(mu)||^2
    D_rho(mu, xi)       = D(mu) + <xi, A mu> - ||A mu||^2 / (2 rho)
    U(w, delta)         = Lambda/2 ||w||^2 - Lambda <w_0, w> + sum_c max over the simplex of <theta_c, u> + g h_c(u)
                          minus <theta, s>, where theta = theta(w) + cost + A' delta
    P_rho(w, delta, xi) = U(w, delta) + rho/2 ||delta - xi||^2

Weights of the examples multiply B, and all terms but those in w alone. Lambda w_0 is the linear term of the objective,
as that of soft labels, zero without.

*Upper bound.* A mu = 0 on the local polytope, which lies in I, so that P(w) <= U(w, delta) for every delta, with
equality at the best one. *Lower bound.* D(mu) <= min P for every mu of the local polytope, and only there: D_rho at a
mu with A mu != 0 can be above min P. So mu is corrected: nodes take the mean nu_i of mu_i and of the margins of their
edges; the table of an edge is scaled down, row by row and then column by column, to margins of at most nu, and what
is missing in its rows and columns is added as their outer product over the total (Altschuler, Weed, Rigollet 2017).
The change of a table is at most twice that of its margins, so that the bound is tight as A mu tends to 0. Nor is it
taken at this point nu itself, but at the best one on the way there from the true outputs s, which are feasible, too: as
w(s) = w_0 and h(s) = 0, and h is concave,

    D(s + t (nu - s)) >= t (<cost, nu> + g h(nu)) - Lambda/2 ||w_0 + t (w(nu) - w_0)||^2    for t from 0 to 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks, in_precision, places_in, starts_of
from maxmargin.execution.threads import aligned
from maxmargin.losses import RelaxedLoss
from maxmargin.persist.registry import register_state
from maxmargin.problem import REACH, add_output, part_sizes
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.relaxed.entropies import gini, oriented_trees
from maxmargin.solvers.relaxed.relaxed_passes import (
    ROUNDING,
    CliqueTerms,
    bound_losses,
    correct,
    residuals,
    squared_norms,
    weigh,
)
from maxmargin.structures.graphs.cliques import Cliques
from maxmargin.structures.graphs.graph_problem import GraphProblem, LabelledGraphs, ends_in_all
from maxmargin.structures.graphs.local_polytope import make_constraints
from maxmargin.supervision.label_supervision import LabelSupervision


@register_state
class Report(NamedTuple):
    """What is known at a point; means over the examples."""

    w: np.ndarray
    residual: np.ndarray  # A mu
    augmented_dual: float  # D_rho(mu, xi)
    augmented_primal: float  # P_rho(w(mu), delta(mu, xi), xi)
    violation: float  # ||A mu||^2, the sum over all graphs
    primal: float  # U >= P(w)
    dual: float  # at most D of mean parts between the true and the corrected ones, and so <= min P

    @property
    def inner_gap(self) -> float:
        """That of the augmented problem at fixed multipliers."""
        return self.augmented_primal - self.augmented_dual

    def columns(self, rho: float) -> dict[str, float]:
        """Those of the trace."""
        return {
            "D_rho": self.augmented_dual,
            "P_rho": self.augmented_primal,
            "inner gap": self.inner_gap,
            "violation": self.violation,
            "rho": rho,
        }


class Relaxation:
    """The relaxed objective of graphs.

    Parameters
    ----------
    objective
        The problem, its regularization, weights of examples and `RelaxedLoss`.
    """

    def __init__(self, objective: Objective) -> None:
        self.problem = GraphProblem(objective.problem.problem.graphs)
        self.graphs = graphs = self.problem.graphs
        loss = objective.loss
        assert isinstance(loss, RelaxedLoss)
        self.n = objective.n
        self.n_lambda = objective.regularization * objective.n
        self.n_weights, self.dtype = objective.n_weights, objective.runner.dtype
        self.origin, self.constant, self.least = objective.origin, objective.constant, objective.least
        starts = starts_of(part_sizes(self.problem))
        _check_trees(loss.trees, graphs)
        is_gini = loss.entropy == "gini"
        of_nodes, of_edges = gini(graphs) if is_gini else oriented_trees(graphs, loss.trees, loss.epsilon)
        both = graphs.nodes, graphs.edges
        self.sizes = np.concatenate([cliques.n_parts[cliques.type] for cliques in both])
        owner = np.concatenate([np.repeat(np.arange(self.n), np.diff(cliques.starts)) for cliques in both])
        self.terms = CliqueTerms(
            constraints=make_constraints(graphs.nodes, ends_in_all(graphs)),
            starts=starts,
            at=np.concatenate([cliques.part for cliques in both]) + starts[owner],
            weight=objective.weight[owner],
            stiffness=np.concatenate([_stiffness(cliques) for cliques in both]),
            entropy=loss.level * np.concatenate([of_nodes, of_edges[:, 0]]),
            margin_entropy=np.ascontiguousarray(loss.level * of_edges[:, 1:]),
            costs=_costs_of_nodes(graphs, loss.margin),
            edge_costs=_costs_of_edges(graphs, loss.margin),
        )
        self.n_parts, self.n_cliques = int(starts[-1]), len(self.sizes)
        self.n_multipliers = int(self.terms.constraints.starts[-1])
        self.ranges = objective.runner.ranges
        self._scratches = [aligned((4, self.sizes.max(initial=1)), np.float64) for _ in range(len(self.ranges))]
        self.scratch = self._scratches[0]
        self._feasible = np.zeros(self.n_parts)

    def uniform(self) -> np.ndarray:
        """The mean parts where every clique is uniform."""
        mu = np.zeros(self.n_parts)
        mu[self.parts()] = np.repeat(1 / self.sizes, self.sizes)
        return mu

    def parts(self) -> np.ndarray:
        """Where the mean parts of all cliques lie, one clique after the other."""
        return np.repeat(self.terms.at, self.sizes) + places_in(self.sizes)

    def correct(self, mu: np.ndarray) -> np.ndarray:
        """A point of the local polytope near mu, valid until the next call."""
        self._over_graphs(correct, mu, self._feasible)
        return self._feasible

    def true_means(self) -> np.ndarray:
        """The mean parts of the true outputs."""
        mu = np.zeros(self.n_parts)
        starts = self.terms.starts
        for i, (lo, hi) in enumerate(itertools.pairwise(self.graphs.nodes.starts)):
            add_output(self.problem, i, self.graphs.supervision.labels[lo:hi], 1.0, mu[starts[i] : starts[i + 1]])
        return mu

    def curvature(self, rho: float) -> np.ndarray:
        """Of the smooth part of D_rho within each clique, along directions that add up to zero: those of the margins of
        a table are then orthogonal.
        """
        terms = self.terms
        shapes = np.diff(terms.constraints.starts).reshape(-1, 2)
        across = shapes[:, ::-1] * (1 / rho - 2 * terms.margin_entropy)
        coupling = np.concatenate([np.diff(terms.constraints.first) / rho, np.maximum(across, 0).max(axis=1)])
        return terms.weight * terms.stiffness / self.n_lambda + coupling

    def balanced_rho(self) -> float:
        """That at which the marginalization constraints of a typical clique bend D_rho as much as all else does."""
        smooth = self.curvature(np.inf)
        coupling = self.curvature(1.0) - smooth
        bend = smooth + 2 * self.terms.entropy
        return float(np.median((coupling / bend)[coupling > 0])) if coupling.any() else 1.0

    def report(self, mu: np.ndarray, xi: np.ndarray, rho: float) -> Report:
        """Evaluate a point, with w and A mu afresh, free of the drift of incremental updates."""
        residual = np.zeros(self.n_multipliers)
        found = self._over_graphs(residuals, mu, xi, residual)
        penalty, linear, violation = np.sum(found, axis=0) / [2 * rho, 1, 1]
        v, gain = self._weigh(mu)
        w = self.origin + v
        smooth = self._half_square(w)
        kept = w.astype(self.dtype).astype(np.float64)  # as the dtype of the problem can keep them
        primal = self._half_square(kept) - self.n_lambda * float(np.dot(self.origin, kept))
        losses, largest = zip(*self._over_graphs(bound_losses, kept, mu, xi - residual / rho), strict=True)
        primal += sum(losses) if max(largest) <= REACH else np.inf
        return Report(
            w,
            residual,
            augmented_dual=(gain - smooth + linear - penalty) / self.n + self.constant,
            augmented_primal=(primal + penalty) / self.n + self.constant,
            violation=violation,
            primal=primal / self.n + self.constant,
            dual=max(self._bound(self.correct(mu)) / self.n + self.constant, self.least),
        )

    def _bound(self, nu: np.ndarray) -> float:
        """At most D of a point on the way from the true outputs to a point of the local polytope, the best of them."""
        v, most = self._weigh(nu)
        norm = 2 * self._half_square(v)
        slope = most - self.n_lambda * float(np.dot(self.origin, v))
        share = float(np.clip(slope / norm, 0, 1)) if norm > 0 else 1.0
        magnitude = share * abs(most) + 2 * self._half_square(self.origin) + share**2 * norm
        return share * most - self._half_square(self.origin + share * v) - ROUNDING * magnitude

    def _half_square(self, w: np.ndarray) -> float:
        return self.n_lambda / 2 * float(np.dot(w, w))

    def _weigh(self, mu: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights w(mu) - w_0, and the costs and the entropy of mu."""
        w = np.zeros((len(self.ranges), self.n_weights))
        gains = self.ranges.run(
            lambda k, lo, hi: weigh(self.problem, self.terms, self._scratches[k], self.n_lambda, mu, w[k], lo, hi)
        )
        return w.sum(axis=0), sum(gains)

    def _over_graphs(self, function: Callable, *arguments: np.ndarray) -> list[Any]:
        return self.ranges.run(
            lambda k, lo, hi: function(self.problem, self.terms, self._scratches[k], *arguments, lo, hi)
        )


def _costs_of_nodes(graphs: LabelledGraphs, margin: bool) -> LabelSupervision:
    """The costs of labels, in float64; zeros without margin."""
    known = in_precision(graphs.supervision, np.float64)
    if margin and len(known.cost):
        return known
    return known._replace(annotation=np.zeros_like(known.labels), cost=np.zeros((1, known.cost.shape[1])))


def _costs_of_edges(graphs: LabelledGraphs, margin: bool) -> Blocks:
    """The costs of pairs of labels, in float64; none without margin."""
    values, starts = graphs.edge_cost
    return Blocks((values if margin else values[:0]).astype(np.float64), starts)


def _check_trees(trees: np.ndarray | None, graphs: LabelledGraphs) -> None:
    if trees is not None and (np.shape(trees) != graphs.ends.shape or not np.all(trees > 0)):
        raise ValueError(f"trees must hold two positive numbers for each of the {len(graphs.ends)} edges.")


def _stiffness(cliques: Cliques) -> np.ndarray:
    """Directions within a simplex add up to zero, so that those of untied parts are stretched by ||x|| alone."""
    norms = np.zeros(len(cliques.type))
    squared_norms(cliques.features, cliques.row, np.zeros(cliques.n_features), norms)
    columns = [cliques.column[lo:hi] for lo, hi in zip(cliques.first[:-1], cliques.first[1:], strict=True)]
    ties = np.array([np.bincount(column[column >= 0]).max() for column in columns], np.int64)
    return norms * ties[cliques.type]
