"""Graphs with features to a problem of `structures.graphs`. Every check of the user's graphs is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import check_choice
from maxmargin.encode.inputs.base_encoder import LabellingEncoder
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.example_checks import find_labels, flatten_weights, locate
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import append_constant, row_features
from maxmargin.encode.inputs.typed_graphs import Typed, stack_graphs
from maxmargin.encode.partial.cost_tables import check_one_cost, read_edge_costs, read_node_costs
from maxmargin.encode.partial.image_labels import agree_with_images, learn_covered, learn_image_labels
from maxmargin.encode.partial.node_states import (
    StatesOfTypes,
    by_state,
    by_state_of_type,
    join_types,
    labels_of_types,
    mean_parts_of_states,
    number_states,
    order_classes,
    pairs_of_states,
    supervise_states,
)
from maxmargin.losses import BaseLoss
from maxmargin.problem import AnyProblem
from maxmargin.structures.derived.annotated import shape_of_groups
from maxmargin.structures.graphs.cliques import TIES, EdgeType
from maxmargin.structures.graphs.graph_problem import WithOracles, ends_in_all, make_graph_problem
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.supervision.costs import label_costs, weigh_nodes
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise, without_costs
from maxmargin.supervision.tallies import in_portions
from maxmargin.supervision.weak import Learned


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphEncoder(LabellingEncoder[WithOracles]):
    """The encoder of graphs.

    A kind of edges is a type of theirs with those of the nodes that they join, the first not after the second.
    """

    published = ("classes", "n_features_in", "n_edge_features_in")
    noun = "node"
    of_edges: ClassVar[dict[str, object]] = {}  # what `problem` takes, so that each edge has parts of its own

    n_edge_features_in: int
    interaction: str
    node_types: np.ndarray
    edge_types: np.ndarray
    state: np.ndarray  # (types, classes) the state of a node of a type that has a label, or -1
    kinds: np.ndarray  # (K, 3) of edges: its type, and those of the nodes

    @property
    def n_weights(self) -> int:
        """Those of `names`, in which symmetric edges have as many as others."""
        counts = (self.state.max(axis=1) + 1).tolist()
        n_of_edges = sum(
            1 if self.interaction == "potts" and first == second else counts[first] * counts[second]
            for _, first, second in self.kinds.tolist()
        )
        return sum(counts) * (self.n_features_in + self.has_bias) + n_of_edges * self._edge_width

    @property
    def _edge_width(self) -> int:
        return self.n_edge_features_in + self.has_bias if self.n_edge_features_in else 1

    def claims(self, w: np.ndarray) -> Iterator[tuple[str, bool]]:
        yield from super().claims(w)
        yield "interaction", self.interaction in TIES
        n_types = len(self.node_types)
        yield "node_types", self.node_types.ndim == self.edge_types.ndim == 1 and n_types > 0
        yield "state", self.state.shape == (n_types, len(self.classes)) and self.state.dtype.kind == "i"
        is_seen = self.state >= 0
        yield "state", np.array_equal(self.state, number_states(is_seen)) and bool(is_seen.any(axis=1).all())
        yield "kinds", self.kinds.ndim == 2 and self.kinds.shape[1] == 3 and self.kinds.dtype.kind == "i"
        limits = [len(self.edge_types), n_types, n_types]
        yield "kinds", bool((self.kinds >= 0).all() and (self.kinds < limits).all())
        yield "kinds", bool((self.kinds[:, 1] <= self.kinds[:, 2]).all())

    @classmethod
    def learn(
        cls,
        X: Sequence[tuple[object, ...]],
        y: Sequence[ArrayLike],
        *,
        interaction: str,
        cost: str | None = None,
        class_weight: str | Mapping[object, float] | None = None,
        loss: BaseLoss | None = None,
        node_weight: Sequence[ArrayLike] | None = None,
        node_cost: object = None,
        edge_cost: object = None,
        fit_intercept: bool,
        dtype: DTypeLike,
        former: GraphEncoder | None = None,
    ) -> Learned:
        """The encoder and the problem of training graphs; arguments are those of `GraphSVM`."""
        check_choice("interaction", interaction, TIES)
        typed = stack_graphs(X)
        nodes, edges = typed.graphs.nodes, typed.graphs.edges
        scales = flatten_weights(node_weight, nodes.lengths, "node_weight", "graph")
        weights = weigh_nodes(scales, nodes.lengths, cost)
        images = learn_image_labels(y, nodes.lengths, Blocks(weights, nodes.starts), former)
        classes = images.known.classes
        node_types, node_type = np.unique(typed.node_types, return_inverse=True)
        edge_types, edge_type = np.unique(typed.edge_types, return_inverse=True)
        is_seen = labels_of_types(images, node_type, len(node_types))
        joined = np.sort(node_type[typed.graphs.ends_in_all], axis=1)
        encoder = cls.of(
            nodes,
            dtype,
            former=former,
            has_bias=fit_intercept,
            classes=classes,
            n_edge_features_in=edges.matrix.shape[1],
            interaction=interaction,
            node_types=node_types,
            edge_types=edge_types,
            state=number_states(is_seen),
            kinds=np.unique(np.column_stack([edge_type, joined]), axis=0),
        ).after(former)
        if former is not None:
            node_type = find_labels(typed.node_types, encoder.node_types)
        known = images.known.without(encoder.state[node_type] < 0, nodes.starts, "nodes of its type have others")
        images = images._replace(known=known)
        costs = None
        if cost is not None:
            by_class = images.counts(scales, needs_all=isinstance(class_weight, str) and not in_portions())
            costs = label_costs(cost, classes, by_class, class_weight)
        state = encoder.state[node_type]
        supervision = supervise_states(known, encoder.state, node_type, costs, weights, dtype)
        if node_cost is not None:
            check_one_cost(class_weight)
            table = by_state_of_type(encoder.state, node_type, read_node_costs(node_cost, known, nodes.starts, "graph"))
            supervision = supervise(supervision.labels, table, scales, dtype, np.arange(len(table)))
        tables = None
        if edge_cost is not None:
            tables = read_edge_costs(edge_cost, known, typed.graphs.ends_in_all, edges.starts, "graph")
        problem = encoder.assemble(typed, supervision, tables)
        missed = np.ones(len(classes)) if costs is None else costs.max(axis=1)
        return learn_covered(encoder, problem, known, typed.graphs.ends_in_all, images.groups(missed, state), loss)

    def joined(self, other: GraphEncoder) -> GraphEncoder:
        self.check_width(other)
        known = [StatesOfTypes(*(getattr(e, name) for name in StatesOfTypes._fields)) for e in (self, other)]
        joined: dict[str, Any] = join_types(*known)._asdict()
        return replace(self, **joined)

    def problem(
        self,
        X: Sequence[tuple[object, ...]],
        y: Sequence[ArrayLike] | None = None,
        *,
        node_weight: Sequence[ArrayLike] | None = None,
    ) -> WithOracles:
        typed = stack_graphs(X, self.n_features_in, self.n_edge_features_in)
        nodes = typed.graphs.nodes
        weights = flatten_weights(node_weight, nodes.lengths, "node_weight", "graph")
        codes = self.truth(y, nodes, "graph")
        node_type = self._numbers(typed.node_types, self.node_types, nodes.starts, "node")
        states = np.where(codes < 0, NO_LABEL, self.state[node_type, codes])
        return self.assemble(typed, without_costs(states, self.state.max() + 1, self.dtype, weights))

    def assemble(self, typed: Typed, supervision: LabelSupervision, edge_cost: np.ndarray | None = None) -> WithOracles:
        """Put checked graphs, what is known of the states of their nodes, and costs of labels of edges together."""
        graphs = typed.graphs
        nodes, edges = self.stored(graphs.nodes, append_constant), graphs.edges
        node_type = self._numbers(typed.node_types, self.node_types, nodes.starts, "node")
        edge_type = self._numbers(typed.edge_types, self.edge_types, edges.starts, "edge")
        joined = node_type[graphs.ends_in_all]
        is_turned = joined[:, 0] > joined[:, 1]
        ends = np.where(is_turned[:, np.newaxis], graphs.ends[:, ::-1], graphs.ends)
        costs = None if edge_cost is None else pairs_of_states(self.state, joined, is_turned, edge_cost)
        rows = edges._replace(matrix=edges.matrix if self.n_edge_features_in else np.ones((1, 1)))
        if self.has_bias and self.n_edge_features_in:
            rows = append_constant(rows)
        problem = make_graph_problem(
            row_features(nodes, self.dtype),
            row_features(rows, self.dtype),
            (nodes.matrix.shape[1], rows.matrix.shape[1]),
            nodes.starts,
            edges.starts,
            ends,
            supervision,
            n_states=(self.state.max(axis=1) + 1).tolist(),
            edge_types=[EdgeType(a, b, self.interaction if a == b else "full") for _, a, b in self.kinds.tolist()],
            node_type=node_type,
            edge_type=self._kinds(np.column_stack([edge_type, np.sort(joined, axis=1)]), edges.starts),
            edge_row=None if self.n_edge_features_in else np.zeros(len(ends), int),
            edge_cost=costs,
        )
        return with_oracles(problem)

    def _numbers(self, names: np.ndarray, known: np.ndarray, starts: np.ndarray, noun: str) -> np.ndarray:
        """The numbers of types of nodes or edges."""
        numbers = find_labels(names, known)
        if (numbers < 0).any():
            k = int(np.argmax(numbers < 0))
            i, place = locate(k, starts)
            raise ValueError(f"The type of {noun} {place} of X[{i}], {names[k].item()!r}, was not seen in fit.")
        return numbers

    def _kinds(self, found: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The numbers of kinds of edges."""
        place = {kind: k for k, kind in enumerate(map(tuple, self.kinds.tolist()))}
        numbers = np.array([place.get(kind, -1) for kind in map(tuple, found.tolist())], np.int32)
        if (numbers < 0).any():
            e = int(np.argmax(numbers < 0))
            i, row = locate(e, starts)
            kind, first, second = found[e]
            types = f"{self.node_types[first].item()!r} and {self.node_types[second].item()!r}"
            edge_type = f" of type {self.edge_types[kind].item()!r}" if len(self.edge_types) > 1 else ""
            raise ValueError(f"Edge {row} of X[{i}] joins nodes of types {types}, which no edge{edge_type} did in fit.")
        return numbers

    def check_left(self, problem: WithOracles, allowed: np.ndarray, name: str) -> None:
        nodes = problem.graphs.nodes
        left = (allowed & (self.state[nodes.type] >= 0)).any(axis=1)
        if not left.all():
            i, node = locate(int(np.argmin(left)), nodes.starts)
            raise ValueError(f"{name}[{i}] leaves no label for node {node}: nodes of its type have others.")

    def agreeing(self, problem: WithOracles, known: object, name: str) -> AnyProblem:
        return agree_with_images(self, problem, known, name, self.state[problem.graphs.nodes.type])

    def exclude(self, problem: WithOracles, table: np.ndarray) -> Blocks:
        return by_state(self.state, problem.graphs.nodes, table)

    def mean_parts(self, problem: WithOracles, means: np.ndarray) -> Blocks:
        return mean_parts_of_states(problem.graphs, by_state(self.state, problem.graphs.nodes, means), self.dtype)

    def dual_shape(self, problem: WithOracles) -> tuple[np.ndarray, ...]:
        base, *groups = shape_of_groups(problem)
        nodes, edges = base.graphs.nodes, base.graphs.edges
        return nodes.starts, nodes.type, edges.starts, edges.type, base.graphs.ends, *groups

    def names(self, w: np.ndarray) -> Bunch:
        counts = (self.state.max(axis=1) + 1).tolist()
        width = self.n_features_in + self.has_bias
        node_types = self.node_types.tolist()
        named, at = {}, 0
        for name, count in zip(node_types, counts, strict=True):
            table = w[at : at + width * count].reshape(count, width).T
            which = f"[{name}]" if len(node_types) > 1 else ""
            named[f"nodes{which}"] = table[: self.n_features_in]
            if self.has_bias:
                named[f"bias{which}"] = table[-1]
            at += table.size
        return Bunch(**named, **self.names_of_edges(w[at:]))

    def names_of_edges(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of the weights of edges by their names, as views."""
        counts = (self.state.max(axis=1) + 1).tolist()
        node_types, edge_types = self.node_types.tolist(), self.edge_types.tolist()
        named, at = {}, 0
        for kind, first, second in self.kinds.tolist():
            is_potts = self.interaction == "potts" and first == second
            shape = () if is_potts else (counts[first], counts[second])
            size = self._edge_width * int(np.prod(shape, dtype=int))
            which = f"[{edge_types[kind]}: {node_types[first]}, {node_types[second]}]" if len(self.kinds) > 1 else ""
            named[f"edges{which}"] = np.moveaxis(w[at : at + size].reshape(*shape, self._edge_width), -1, 0)
            at += size
        return named

    def judge(self, problem: WithOracles, outputs: Blocks) -> Merits:
        return super().judge(problem, outputs)._replace(weights=problem.graphs.supervision.weight.astype(np.float64))

    def decode(self, problem: WithOracles, i: int, rows: np.ndarray) -> np.ndarray:
        nodes = shape_of_groups(problem)[0].graphs.nodes
        return self._labels(nodes.type[nodes.starts[i] : nodes.starts[i + 1]], rows)

    def decode_all(self, problem: WithOracles, outputs: Blocks) -> list[np.ndarray]:
        nodes = shape_of_groups(problem)[0].graphs.nodes
        return np.split(self._labels(nodes.type, outputs.values), outputs.starts[1:-1])

    def _labels(self, node_types: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The labels of states of nodes of some types: the classes that a type has are sorted as its states are."""
        return self.classes[order_classes(self.state)[node_types, states]]

    def arrange(self, problem: WithOracles, parts: Blocks, missing: float = 0.0) -> list[np.ndarray]:
        """Tables (V_i, L) of numbers of nodes and labels, with `missing` for labels that a type does not have."""
        nodes = problem.graphs.nodes
        state = self.state[nodes.type]
        at = nodes.part + np.repeat(parts.starts[:-1], np.diff(nodes.starts))
        table = np.where(state < 0, missing, parts.values[at[:, np.newaxis] + np.maximum(state, 0)])
        return np.split(table, nodes.starts[1:-1])

    def arrange_edges(self, problem: WithOracles, parts: Blocks, edges: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Tables (E_i, L, L) of numbers of the labels of both nodes of edges, as they were given."""
        graphs = problem.graphs
        first, second = self.state[graphs.nodes.type[ends_in_all(graphs)]].transpose(1, 0, 2)[..., np.newaxis]
        second, n_second = second.transpose(0, 2, 1), second.max(axis=1, keepdims=True) + 1
        at = graphs.edges.part + np.repeat(parts.starts[:-1], np.diff(graphs.edges.starts))
        places = at[:, np.newaxis, np.newaxis] + np.maximum(first, 0) * n_second + np.maximum(second, 0)
        table = np.where((first < 0) | (second < 0), 0.0, parts.values[places])
        cuts = graphs.edges.starts[1:-1]
        for own, ends, given in zip(np.split(table, cuts), np.split(graphs.ends, cuts), edges, strict=True):
            order = np.argsort(given.max(axis=1), kind="stable")  # by which the problem has them
            is_turned = ends[:, 0] != given[order, 0]
            own[is_turned] = own[is_turned].transpose(0, 2, 1)
            own[order] = own.copy()
        return np.split(table, cuts)
