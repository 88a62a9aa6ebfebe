"""Graphs and cuts of which some examples are annotated: what is known of them, in terms of problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.problem import all_true_outputs, restrict
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.derived import covers  # noqa: F401  (oracles)
from maxmargin.structures.derived.cover_cuts import cover_by_cuts
from maxmargin.structures.derived.groups import CoveredProblem, CoverProblem, make_groups
from maxmargin.supervision.image_annotations import Group
from maxmargin.supervision.label_supervision import LabelSupervision
from maxmargin.supervision.weak import Weak


class Annotated(NamedTuple):
    """What is known of an example: which states its nodes may have, and where some must occur."""

    allowed: np.ndarray  # (V, S)
    groups: list[Group]


def annotate(problem: Any, known: Mapping[int, Annotated], with_groups: bool) -> tuple[Any, Weak, np.ndarray]:
    """The problem with the costs of what is known of some of its examples, what agrees with it, and which they are.

    Their true outputs are completions, which agree with what is known; those of the other examples are known. Without
    groups, only the states of nodes are.
    """
    truth, supervision = all_true_outputs(problem), _supervision(problem)
    n_states = supervision.cost.shape[1]
    allowed = np.eye(n_states, dtype=bool)[truth.values]
    annotation = supervision.annotation.copy()
    is_weak = np.isin(np.arange(len(truth.starts) - 1), [*known])
    is_of_weak = np.repeat(is_weak, np.diff(truth.starts))
    for i, example in known.items():
        allowed[truth.starts[i] : truth.starts[i + 1]] = example.allowed
    if supervision.cost.size:
        rows, number = np.unique(allowed[is_of_weak], axis=0, return_inverse=True)
        annotation[is_of_weak] = len(supervision.cost) + number.ravel()
        cost = np.concatenate([supervision.cost, (~rows).astype(supervision.cost.dtype)])
        problem = _with_supervision(problem, supervision._replace(annotation=annotation, cost=cost))
    consistent = restrict(problem, _excluded(problem, ~allowed, truth.starts))
    groups = [known[i].groups if i in known else [] for i in range(len(is_weak))]
    if not with_groups or not any(groups):
        return problem, Weak(consistent), is_weak
    made = make_groups(problem, groups)
    covered = CoveredProblem(consistent, made, truth)
    if isinstance(problem, GraphCutProblem):
        return cover_by_cuts(problem, made), Weak(covered), is_weak
    return CoverProblem(problem, made), Weak(covered), is_weak


def shape_of_groups(problem: Any) -> tuple[Any, ...]:
    """The problem without groups and, if it has any, what the parts of groups depend on."""
    if not hasattr(problem, "groups"):
        return (problem,)
    return problem.base, problem.groups.starts, problem.groups.first, problem.groups.part


def _supervision(problem: Any) -> LabelSupervision:
    return problem.supervision if isinstance(problem, GraphCutProblem) else problem.graphs.supervision


def _with_supervision(problem: Any, supervision: LabelSupervision) -> Any:
    if isinstance(problem, GraphCutProblem):
        return problem._replace(supervision=supervision)
    return problem._replace(graphs=problem.graphs._replace(supervision=supervision))


def _excluded(problem: Any, table: np.ndarray, starts: np.ndarray) -> Blocks:
    """The flags of parts of nodes, given those of their states, (N, S)."""
    tables = np.split(table, starts[1:-1])
    if isinstance(problem, GraphCutProblem):
        return as_blocks([flags.T.ravel() for flags in tables], bool)
    nodes = problem.graphs.nodes
    has_state = np.split(np.arange(table.shape[1]) < nodes.n_parts[nodes.type][:, np.newaxis], starts[1:-1])
    return as_blocks([flags[has] for flags, has in zip(tables, has_state, strict=True)], bool)
