"""Graphs to a `GraphCutProblem`. Every check of the user's graphs is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.encode.inputs.base_encoder import LabellingEncoder, by_row
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.edges import Graphs, check_ends, join_graphs
from maxmargin.encode.inputs.example_checks import check_examples, flatten_weights, locate
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import append_constant, row_features
from maxmargin.encode.partial.annotations import price_annotations
from maxmargin.encode.partial.cost_tables import check_one_cost, read_node_costs
from maxmargin.encode.partial.image_labels import agree_with_images, learn_covered, learn_image_labels
from maxmargin.losses import BaseLoss
from maxmargin.problem import AnyProblem
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.cuts.max_flow import make_arcs
from maxmargin.structures.derived.annotated import shape_of_groups
from maxmargin.supervision.costs import label_costs, weigh_nodes
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import LabelSupervision, supervise, supervise_evenly
from maxmargin.supervision.tallies import in_portions
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphCutEncoder(LabellingEncoder[GraphCutProblem]):
    """The encoder of graphs of two labels."""

    published = ("classes", "n_features_in", "n_edge_features_in")

    n_edge_features_in: int

    @property
    def n_weights(self) -> int:
        return super().n_weights + self.n_edge_features_in

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "classes", len(self.classes) == 2

    @classmethod
    def learn(
        cls,
        X: object,
        y: object,
        *,
        cost: object,
        class_weight: object,
        loss: BaseLoss | None = None,
        node_weight: object = None,
        node_cost: object = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: GraphCutEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training graphs; arguments are those of `GraphCutSVM`."""
        graphs = stack_graphs(X)
        nodes = graphs.nodes
        scales = flatten_weights(node_weight, nodes.lengths, "node_weight", "graph")
        weights = weigh_nodes(scales, nodes.lengths, cost)
        images = learn_image_labels(y, nodes.lengths, Blocks(weights, nodes.starts), former)
        known, labels, classes = images.known, images.known.labels, images.known.classes
        if len(classes) != 2:
            raise ValueError(f"y must hold labels of two classes, but has {len(classes)}: {classes[:5].tolist()}.")
        is_balanced = isinstance(class_weight, str) and not in_portions()
        by_class = images.counts(scales, needs_all=is_balanced or known.allowed is None)
        costs = label_costs(cost, classes, by_class, class_weight)
        if node_cost is not None:
            check_one_cost(class_weight)
            table = read_node_costs(node_cost, known, nodes.starts, "graph")
            supervision = supervise(labels, table, scales, dtype, np.arange(len(table)))
        elif known.allowed is None:
            supervision = supervise_evenly(labels, weights * costs[labels, 1 - labels], 2, dtype)
        else:
            rows, annotation = price_annotations(known, costs)
            supervision = supervise(labels, rows, weights, dtype, annotation)
        width = graphs.edges.matrix.shape[1]
        known_of = {"has_bias": fit_intercept, "classes": classes, "n_edge_features_in": width}
        encoder = cls.of(nodes, dtype, former=former, **known_of).after(former)
        problem = encoder.assemble(graphs, supervision, with_grams=True)
        groups = images.groups(costs.max(axis=1), np.tile(np.arange(2), (len(labels), 1)))
        return learn_covered(encoder, problem, known, graphs.ends_in_all, groups, loss)

    def problem(self, X: object, y: object = None, *, node_weight: object = None) -> GraphCutProblem:
        graphs = stack_graphs(X, self.n_features_in, self.n_edge_features_in)
        weights = flatten_weights(node_weight, graphs.nodes.lengths, "node_weight", "graph")
        labels = self.truth(y, graphs.nodes, "graph")
        return self.assemble(graphs, self.unsupervised(labels, weights), with_grams=False)

    def assemble(self, graphs: Graphs, supervision: LabelSupervision, with_grams: bool) -> GraphCutProblem:
        """Put checked graphs and what is known of the labels 0 and 1 of their nodes together."""
        nodes, edges = self.stored(graphs.nodes, append_constant), graphs.edges
        return GraphCutProblem(
            features=row_features(nodes, self.dtype, with_grams=with_grams),
            edge_features=row_features(edges._replace(matrix=-edges.matrix), self.dtype, with_grams=with_grams),
            starts=nodes.starts.astype(np.int64),
            edge_starts=edges.starts.astype(np.int64),
            ends=graphs.ends.astype(np.int32),
            supervision=supervision,
            excluded=nothing_excluded(len(nodes.lengths)),
            arcs=make_arcs(nodes.starts, edges.starts, graphs.ends),
            n_features=nodes.matrix.shape[1],
            n_edge_features=edges.matrix.shape[1],
        )

    def agreeing(self, problem: GraphCutProblem, known: object, name: str) -> AnyProblem:
        return agree_with_images(self, problem, known, name, np.tile(np.arange(2), (problem.starts[-1], 1)))

    def exclude(self, problem: GraphCutProblem, table: np.ndarray) -> Blocks:
        return as_blocks([rows.T.ravel() for rows in np.split(table, problem.starts[1:-1])], bool)

    def mean_parts(self, problem: GraphCutProblem, means: np.ndarray) -> Blocks:
        blocks = []
        of_graphs = np.split(means[:, 1], problem.starts[1:-1])
        for on, ends in zip(of_graphs, np.split(problem.ends, problem.edge_starts[1:-1]), strict=True):
            first, second = on[ends].T
            blocks.append(np.concatenate([1 - on, on, first + second - 2 * first * second]))
        return as_blocks(blocks, self.dtype)

    def dual_shape(self, problem: GraphCutProblem) -> tuple[object, ...]:
        base, *groups = shape_of_groups(problem)
        return base.starts, base.ends, base.supervision.labels, *groups

    def names(self, w: np.ndarray) -> Bunch:
        width = self.n_features_in
        bias = {"bias": w[width : width + 1]} if self.has_bias else {}
        return Bunch(nodes=w[:width], edges=w[-self.n_edge_features_in :], **bias)

    def arrange(self, problem: GraphCutProblem, parts: Blocks) -> list[np.ndarray]:
        return [table.reshape(2, -1).T for table in by_row(parts, problem.starts, 2)]  # stored label by label

    def judge(self, problem: GraphCutProblem, outputs: Blocks) -> Merits:
        return super().judge(problem, outputs)._replace(weights=problem.supervision.weight.astype(np.float64))


def stack_graphs(X: object, n_features: int | None = None, n_edge_features: int | None = None) -> Graphs:
    """Check graphs, pairs (nodes, edges) or triples (nodes, edges, edge features), and stack them."""
    X = check_examples(X, "graphs", "graph")
    for i, graph in enumerate(X):
        if not isinstance(graph, (tuple, list)) or len(graph) not in (2, 3):
            raise TypeError(f"X[{i}] must be a pair (nodes, edges) or a triple (nodes, edges, edge features).")
        if len(graph) != len(X[0]):
            raise ValueError(f"X[{i}] has {len(graph)} parts, but X[0] has {len(X[0])}: edge features for all or none.")
    parts = [(*graph, None) if len(graph) == 2 else tuple(graph) for graph in X]
    graphs = join_graphs(parts, "graph", check_ends, n_features, n_edge_features, with_constant=True)
    is_negative = graphs.edges.matrix < 0
    if is_negative.any():
        row, g = np.argwhere(is_negative)[0].tolist()
        i, e = locate(row, graphs.edges.starts)
        edge = f"edge {e} of X[{i}], {tuple(graphs.ends[row].tolist())}"
        value = graphs.edges.matrix[row, g]
        raise ValueError(f"Feature {g} of {edge}, is {value:.3g}, but edge features must not be negative.")
    return graphs
