"""Graphs and cuts of which some examples are annotated: groups of nodes where a label must occur, in their problems."""

from __future__ import annotations

from typing import Any

from maxmargin.arrays.blocks import Blocks
from maxmargin.problem import AnyProblem, all_true_outputs
from maxmargin.structures.cuts.cut_problem import GraphCutProblem
from maxmargin.structures.derived import covers  # noqa: F401  (oracles)
from maxmargin.structures.derived.cover_cuts import cover_by_cuts
from maxmargin.structures.derived.groups import CoveredProblem, CoverProblem, make_groups
from maxmargin.supervision.image_annotations import Group


def cover_groups(
    problem: AnyProblem, consistent: object, groups: list[list[Group]]
) -> tuple[AnyProblem, CoveredProblem]:
    """The problem with the costs of groups that are not covered, and what agrees with what is known, too, with all."""
    made = make_groups(problem, groups)
    covered = CoveredProblem(consistent, made, all_true_outputs(problem))
    if isinstance(problem, GraphCutProblem):
        return cover_by_cuts(problem, made), covered
    return CoverProblem(problem, made), covered


def cover_all(problem: AnyProblem, groups: list[list[Group]], outputs: Blocks) -> CoveredProblem:
    """The problem with only those outputs that cover all groups, as the given ones do."""
    return CoveredProblem(problem, make_groups(problem, groups), outputs)


def shape_of_groups(problem: Any) -> tuple[Any, ...]:
    """The problem without groups and, if it has any, what the parts of groups depend on."""
    if not hasattr(problem, "groups"):
        return (problem,)
    return problem.base, problem.groups.starts, problem.groups.first, problem.groups.part
