"""Points of the local polytope near any others (`relaxed`)."""

from __future__ import annotations

from maxmargin.runtime.dispatch import helper, kernel
from maxmargin.solvers.relaxed_passes import shape_of


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


@helper
def couple(feasible, at, first, n_first, second, n_second, rows, columns):
    """Give the table at `at` the margins at `first` and `second`, with little change; `rows`, `columns` are buffers."""
    for b in range(n_second):
        columns[b] = 0
    for a in range(n_first):
        total = 0.0
        for b in range(n_second):
            total += feasible[at + a * n_second + b]
        scale = feasible[first + a] / total if total > feasible[first + a] else 1.0
        for b in range(n_second):
            feasible[at + a * n_second + b] *= scale
            columns[b] += feasible[at + a * n_second + b]
    for b in range(n_second):
        columns[b] = feasible[second + b] / columns[b] if columns[b] > feasible[second + b] else 1.0
    missing = 0.0
    for a in range(n_first):
        rows[a] = feasible[first + a]
        for b in range(n_second):
            feasible[at + a * n_second + b] *= columns[b]
            rows[a] -= feasible[at + a * n_second + b]
        rows[a] = max(rows[a], 0.0)
        missing += rows[a]
    for b in range(n_second):
        columns[b] = feasible[second + b]
        for a in range(n_first):
            columns[b] -= feasible[at + a * n_second + b]
    if missing > 0:
        for a in range(n_first):
            for b in range(n_second):
                feasible[at + a * n_second + b] += rows[a] * max(columns[b], 0.0) / missing
