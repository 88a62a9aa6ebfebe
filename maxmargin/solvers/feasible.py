"""Points of the local polytope near any others (`relaxed`)."""

from __future__ import annotations

from maxmargin.runtime.dispatch import kernel
from maxmargin.solvers.relaxed_passes import shape_of
from maxmargin.structures.margins import couple


@kernel
def correct(problem, layout, scratch, mu, feasible, start, stop):
    """Write a point of the local polytope near mu into `feasible`."""
    rows = scratch[1]
    columns = scratch[2]
    for i in range(start, stop):
        lo = problem.nodes.offsets[i]
        for c in range(lo, problem.nodes.offsets[i + 1]):
            for p in range(layout.node_at[c], layout.node_at[c] + problem.nodes.n_parts[problem.nodes.kind[c]]):
                feasible[p] = mu[p]
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            for p in range(layout.edge_at[e], layout.edge_at[e] + problem.edges.n_parts[problem.edges.kind[e]]):
                feasible[p] = mu[p]
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            first = layout.node_at[lo + problem.ends[e, 0]]
            second = layout.node_at[lo + problem.ends[e, 1]]
            n_first, n_second = shape_of(problem, layout, e)
            for a in range(n_first):
                for b in range(n_second):
                    feasible[first + a] += mu[layout.edge_at[e] + a * n_second + b]
                    feasible[second + b] += mu[layout.edge_at[e] + a * n_second + b]
        for c in range(lo, problem.nodes.offsets[i + 1]):
            total = 0.0
            for p in range(layout.node_at[c], layout.node_at[c] + problem.nodes.n_parts[problem.nodes.kind[c]]):
                total += feasible[p]
            for p in range(layout.node_at[c], layout.node_at[c] + problem.nodes.n_parts[problem.nodes.kind[c]]):
                feasible[p] /= total
        for e in range(problem.edges.offsets[i], problem.edges.offsets[i + 1]):
            first = layout.node_at[lo + problem.ends[e, 0]]
            second = layout.node_at[lo + problem.ends[e, 1]]
            n_first, n_second = shape_of(problem, layout, e)
            couple(feasible, layout.edge_at[e], first, n_first, second, n_second, rows, columns)
