"""Tables of pairs of states: their margins, projections to the simplex, and tables of given margins."""

from __future__ import annotations

from maxmargin.runtime.dispatch import helper


@helper
def project(v, size):
    """Replace v[:size] by the nearest point of the simplex: drop what lies below the mean excess until nothing does."""
    top = v[0]
    for p in range(1, size):
        top = max(top, v[p])
    for p in range(size):
        v[p] -= top  # kept: of large numbers, top + tau would be top
    count = size + 1
    tau = -2.0  # below the threshold of any point whose largest entry is 0
    while True:
        n_above = 0
        total = 0.0
        for p in range(size):
            if v[p] > tau:
                n_above += 1
                total += v[p]
        if n_above >= count:  # never more, but for rounding
            break
        count = n_above
        tau = (total - 1) / count
    for p in range(size):
        v[p] = max(v[p] - tau, 0.0)


@helper
def find_margins(mu, at, n_first, n_second, rows, columns):
    """The margins of the table of an edge."""
    for b in range(n_second):
        columns[b] = 0
    for a in range(n_first):
        rows[a] = 0
        for b in range(n_second):
            rows[a] += mu[at + a * n_second + b]
            columns[b] += mu[at + a * n_second + b]


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
