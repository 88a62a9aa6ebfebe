"""Encoders with kernels, one for each structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin.encode.candidate_encoder import CandidateEncoder
from maxmargin.encode.chain_encoder import ChainEncoder
from maxmargin.encode.class_encoder import MulticlassEncoder
from maxmargin.encode.graph_encoder import GraphEncoder
from maxmargin.encode.inputs.base_encoder import LabellingEncoder, P
from maxmargin.encode.inputs.bunch import Bunch
from maxmargin.encode.inputs.node_edge_encoder import N_BIASES
from maxmargin.encode.kernelized.kernel_rows import KernelRows, LinearRows
from maxmargin.encode.tree_encoder import TreeEncoder, name_tables
from maxmargin.features.kernel_features import KernelFeatures, KnownScores
from maxmargin.structures.choices.candidate_problem import CandidateProblem
from maxmargin.structures.choices.class_problem import MulticlassProblem
from maxmargin.structures.graphs.graph_problem import WithOracles
from maxmargin.structures.graphs.kernel_cliques import with_node_features


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelLabels(KernelRows[P], LabellingEncoder[P]):
    """Of structures whose labels each have a function of a row."""

    @property
    def n_columns(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelChainEncoder(KernelLabels, ChainEncoder):  # type: ignore[misc]
    """The encoder of sequences for a kernel."""

    takes_edge_features: ClassVar[bool] = False
    linear_options: ClassVar[dict[str, object]] = {"with_grams": False, "only_observed": False}
    n_biases: ClassVar[int] = N_BIASES

    def names_of_edges(self, w: np.ndarray) -> dict[str, np.ndarray]:
        return {"transitions": w.reshape(self.n_columns, self.n_columns)}


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTreeEncoder(KernelLabels, TreeEncoder):  # type: ignore[misc]
    """The encoder of trees for a kernel of their nodes."""

    linear_options: ClassVar[dict[str, object]] = {"only_observed": False}
    n_biases: ClassVar[int] = N_BIASES

    def names_of_edges(self, w: np.ndarray) -> dict[str, np.ndarray]:
        return name_tables(w.reshape(-1, self.n_columns, self.n_columns))


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelMulticlassEncoder(KernelLabels, MulticlassEncoder):  # type: ignore[misc]
    """The encoder of single rows with a class each for a kernel."""

    def linear_rows(self, problem: MulticlassProblem) -> LinearRows:
        return LinearRows(problem.features, np.arange(len(problem.squared_norms) + 1), problem.n_features)

    def with_features(self, problem: object, features: KernelFeatures | KnownScores, width: int) -> Any:
        found = super().with_features(problem, features, width)
        if isinstance(features, KnownScores):
            return found
        return found._replace(squared_norms=features.gram.values)  # of one row each

    def attributes(self, w: np.ndarray) -> dict[str, object]:
        return super().attributes(w) | self.column_names


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelGraphEncoder(KernelLabels, GraphEncoder):  # type: ignore[misc]
    """The encoder of graphs for a kernel of their nodes; each type of nodes has functions for its labels."""

    @property
    def n_columns(self) -> int:
        return int((self.state.max(axis=1) + 1).sum())

    def linear_rows(self, problem: WithOracles) -> LinearRows:
        if not hasattr(problem, "graphs"):
            raise ValueError("y must hold labels of nodes: models with kernels take no Tags, Boxes or Seeds.")
        nodes = problem.graphs.nodes
        return LinearRows(nodes.features, nodes.starts, nodes.n_features)

    def with_features(self, problem: WithOracles, features: KernelFeatures | KnownScores, width: int) -> WithOracles:
        return with_node_features(problem, features, width)

    def names(self, w: np.ndarray) -> Bunch:
        dual, types = self.coefficients(w).T, self.node_types.tolist()
        of_types = np.split(dual, np.cumsum(self.state.max(axis=1) + 1)[:-1], axis=1)
        named = {f"dual[{name}]": part for name, part in zip(types, of_types, strict=True)}
        return Bunch(**(named if len(types) > 1 else {"dual": dual}), **self.names_of_edges(w[dual.size :]))


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelCandidateEncoder(KernelRows[CandidateProblem], CandidateEncoder):  # type: ignore[misc]
    """The encoder of candidate sets for a kernel: one function of a candidate."""

    @property
    def n_columns(self) -> int:
        return 1

    def names(self, w: np.ndarray) -> Bunch:
        return Bunch(dual=w)
