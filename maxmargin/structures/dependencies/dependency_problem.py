"""Oracles of dependency trees: labels are chosen or summed arc by arc, then trees, each sort in its own way."""

from __future__ import annotations

import math

import numpy as np

from maxmargin import problem as generics
from maxmargin.arrays.vectors import clear
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import implements
from maxmargin.structures.dependencies import arc_tables, best_trees, dependency_parts, nonprojective, projective  # noqa: F401  (they implement more)
from maxmargin.structures.dependencies.arc_tables import NonprojectiveProblem, ProjectiveProblem
from maxmargin.structures.dependencies.dependency_parts import BOTH
from maxmargin.structures.scalar_semirings import LogSums, pick

__all__ = ["NonprojectiveProblem", "ProjectiveProblem"]


@implements(generics.max_oracle, *BOTH)
def best_tree(problem, i, theta, y, work):
    arcs, _ = dependency_parts.score_arcs(problem, i, theta, False, work)
    arc_tables.find_heads(problem, arcs, work.heads, work)
    dependency_parts.write_tree(problem, theta, work.heads, y)
    return generics.score_output(problem, i, theta, y)


@implements(generics.max_marginals, *BOTH)
def dependency_max_marginals(problem, i, theta, out, work):
    size = dependency_parts.count_words(problem, i) + 1
    width = 1 + problem.n_labels
    arcs, through = dependency_parts.score_arcs(problem, i, theta, False, work)
    arc_tables.find_through(problem, arcs, through, work)
    for m in range(1, size):
        for h in range(size):
            first = ((m - 1) * size + h) * width
            score = IMPOSSIBLE if h == m else max(through[h, m], IMPOSSIBLE)
            out[first] = score
            _, top = dependency_parts.best_label(problem, theta, size - 1, h, m)
            for label in range(problem.n_labels):
                out[first + 1 + label] = IMPOSSIBLE if h == m else score + theta[first + 1 + label] - top


@implements(generics.exp_oracle, *BOTH)
def sum_dependencies(problem, i, theta, mu, work):
    size = dependency_parts.count_words(problem, i) + 1
    width = 1 + problem.n_labels
    arcs, means = dependency_parts.score_arcs(problem, i, theta, True, work)
    log_z = arc_tables.sum_trees(problem, arcs, means, work)
    clear(mu)
    for m in range(1, size):
        for h in range(size):
            if h != m:
                first = ((m - 1) * size + h) * width
                mu[first] = means[h, m]
                if width > 1:
                    over_all = dependency_parts.sum_labels(problem, theta, size - 1, h, m)
                    for label in range(problem.n_labels):
                        mu[first + 1 + label] = means[h, m] * math.exp(theta[first + 1 + label] - over_all)
    return log_z


@implements(generics.sample_oracle, *BOTH)
def draw_trees(problem, i, theta, draws, outputs, work):
    size = dependency_parts.count_words(problem, i) + 1
    arcs, _ = dependency_parts.score_arcs(problem, i, theta, True, work)
    arc_tables.start_drawing(problem, arcs, work)
    for k in range(outputs.shape[0]):
        arc_tables.draw_heads(problem, arcs, draws[k], work.heads, work.rest, work)
        for m in range(1, size):
            h = np.int64(work.heads[m - 1])
            label = 0
            if problem.n_labels > 0:
                first = ((m - 1) * size + h) * (1 + problem.n_labels) + 1
                for other in range(problem.n_labels):
                    work.options[other] = theta[first + other]
                label, _ = pick(LogSums(), work.options[: problem.n_labels], work.rest[m - 1])
            outputs[k, m - 1] = dependency_parts.join_arc(problem, h, label)
