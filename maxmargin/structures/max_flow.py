"""Maximum flows by growing trees from both terminals (Boykov, Kolmogorov 2004), in exact integer arithmetic.

A node has one terminal number: its excess, the residual capacity from the source if positive, to the sink if negative.
Arcs lie in compressed rows: those that leave node p are first[p]:first[p + 1], arc a leads to head[a], and sister[a] is
the arc the other way. Two trees grow over arcs with residual capacity, from all sources and from all sinks. Where they
touch, flow is pushed; nodes that lose their parent are adopted by another one or become free. In the end the source's
tree is the set of all nodes that can be reached from it: the smallest of all minimum cuts, whatever flow led there.

The trees survive changes of an excess, so that the next flow starts from the last one (Kohli, Torr 2005).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.runtime.dispatch import helper
from maxmargin.runtime.threads import aligned

SOURCE, SINK = 0, 1  # sides
NO_PARENT, TERMINAL, ORPHAN = -1, -2, -3  # besides arcs to a parent; nodes without parent belong to no tree
FAR = 2**31 - 1

QUEUE_START, N_QUEUED, N_ORPHANS, TIME = range(4)  # entries of `counters`


class Arcs(NamedTuple):
    """The arcs of graphs, one after the other: of graph i with nodes offsets[i]:offsets[i + 1], those of its edges."""

    first: np.ndarray  # (N + n,) int32, as above, from offsets[i] + i on
    head: np.ndarray  # (2 M,) int32
    sister: np.ndarray  # (2 M,) int32
    arc: np.ndarray  # (M,) int32, from the first end of an edge to the second


def make_arcs(offsets: np.ndarray, edge_offsets: np.ndarray, ends: np.ndarray) -> Arcs:
    """The arcs of edges, whose `ends` (M, 2) are counted from the first node of their graph."""
    n_nodes, n_edges = int(offsets[-1]), len(ends)
    graph = np.repeat(np.arange(len(offsets) - 1), np.diff(edge_offsets))
    tails = (ends + offsets[graph][:, np.newaxis]).T.ravel()
    at = np.empty(2 * n_edges, np.int64)
    at[np.argsort(tails, kind="stable")] = np.arange(2 * n_edges)
    there, back = np.split(at, 2)
    head, sister = np.empty((2, 2 * n_edges), np.int64)
    head[there], head[back] = ends[:, 1], ends[:, 0]
    before = 2 * edge_offsets[graph]  # arcs of earlier graphs
    sister[there], sister[back] = back - before, there - before
    ends_of_rows = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n_nodes))])
    graph_of_row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets) + 1)
    first = ends_of_rows[np.arange(len(graph_of_row)) - graph_of_row] - 2 * edge_offsets[graph_of_row]
    return Arcs(*(np.ascontiguousarray(array, np.int32) for array in (first, head, sister, there - before)))


class Flow(NamedTuple):
    """Residual capacities, trees and queues, for graphs of up to V nodes and A arcs."""

    residual: np.ndarray  # (A,) int64 of arcs
    excess: np.ndarray  # (V,) int64 of nodes
    side: np.ndarray  # (V,) the tree
    parent: np.ndarray  # (V,) the arc to the parent, or one of the above
    distance: np.ndarray  # (V,) to the terminal, by tree arcs
    stamp: np.ndarray  # (V,) when the distance was last found
    queue: np.ndarray  # (V,) active nodes, whose neighbours are to be looked at: a ring
    is_queued: np.ndarray  # (V,)
    orphans: np.ndarray  # (V + 1,) a stack; nodes that have found a parent meanwhile are skipped
    counters: np.ndarray


def new_flow(n_nodes: int, n_arcs: int) -> Flow:
    """Room for graphs of up to `n_nodes` and `n_arcs`."""
    return Flow(
        residual=aligned((n_arcs,), np.int64),
        excess=aligned((n_nodes,), np.int64),
        side=aligned((n_nodes,), np.int32),
        parent=aligned((n_nodes,), np.int32),
        distance=aligned((n_nodes,), np.int32),
        stamp=aligned((n_nodes,), np.int32),
        queue=aligned((n_nodes,), np.int32),
        is_queued=aligned((n_nodes,), np.int32),
        orphans=aligned((n_nodes + 1,), np.int32),
        counters=aligned((4,), np.int64),
    )


@helper
def plant_trees(flow, n_nodes, ends):
    """Start from residual capacities and excesses alone.

    Active are the nodes with a neighbour outside their tree: of large areas of one side only the borders.
    """
    excess = flow.excess
    parent = flow.parent
    side = flow.side
    is_queued = flow.is_queued
    for p in range(n_nodes):
        flow.distance[p] = 1
        flow.stamp[p] = 0
        parent[p] = NO_PARENT if excess[p] == 0 else TERMINAL
        side[p] = SOURCE if excess[p] > 0 else SINK
        is_queued[p] = 0
    for e in range(len(ends)):
        p = ends[e, 0]
        q = ends[e, 1]
        if side[p] != side[q] or parent[p] != parent[q]:
            is_queued[p] = 1
            is_queued[q] = 1
    n_queued = 0
    for p in range(n_nodes):
        if parent[p] == NO_PARENT:
            is_queued[p] = 0
        elif is_queued[p]:
            flow.queue[n_queued] = p
            n_queued += 1
    flow.counters[QUEUE_START] = 0
    flow.counters[N_QUEUED] = n_queued
    flow.counters[N_ORPHANS] = 0
    flow.counters[TIME] = 0


@helper
def saturate(first, head, sister, flow):
    """Push flow until none is left to push; return how much went through.

    One function, with its counters in local variables: as several it would take three times as long.
    """
    residual = flow.residual
    excess = flow.excess
    side = flow.side
    parent = flow.parent
    distance = flow.distance
    stamp = flow.stamp
    queue = flow.queue
    is_queued = flow.is_queued
    orphans = flow.orphans
    n_nodes = first.size - 1
    queue_start = flow.counters[QUEUE_START]
    n_queued = flow.counters[N_QUEUED]
    n_orphans = flow.counters[N_ORPHANS]
    time = flow.counters[TIME]
    total = 0
    p = -1
    while True:
        # Adopt: the new parent of an orphan is the neighbour in its tree that is nearest to the terminal.
        while n_orphans > 0:
            n_orphans -= 1
            child = orphans[n_orphans]
            if parent[child] != ORPHAN:
                continue
            own_side = side[child]
            best = NO_PARENT
            nearest = FAR
            for a in range(first[child], first[child + 1]):
                q = head[a]
                inwards = sister[a] if own_side == SOURCE else a  # the arc that flow would take if q were the parent
                if residual[inwards] == 0 or side[q] != own_side or parent[q] == NO_PARENT:
                    continue
                steps = 0
                ancestor = q
                while stamp[ancestor] != time and parent[ancestor] >= 0:
                    steps += 1
                    ancestor = head[parent[ancestor]]
                if parent[ancestor] == ORPHAN:
                    continue
                if parent[ancestor] == TERMINAL:
                    distance[ancestor] = 1
                    stamp[ancestor] = time
                steps += distance[ancestor]
                if steps < nearest:
                    nearest = steps
                    best = a
                while stamp[q] != time:
                    distance[q] = steps
                    stamp[q] = time
                    steps -= 1
                    q = head[parent[q]]
            parent[child] = best
            if best != NO_PARENT:
                distance[child] = nearest + 1
                stamp[child] = time
                continue
            for a in range(first[child], first[child + 1]):
                q = head[a]
                if side[q] != own_side or parent[q] == NO_PARENT:
                    continue
                if residual[sister[a] if own_side == SOURCE else a] > 0 and not is_queued[q]:  # may take it in again
                    at = queue_start + n_queued
                    queue[at if at < n_nodes else at - n_nodes] = q
                    is_queued[q] = 1
                    n_queued += 1
                if parent[q] == sister[a]:
                    parent[q] = ORPHAN
                    orphans[n_orphans] = q
                    n_orphans += 1

        # Grow: take in the neighbours of an active node until one of them belongs to the other tree.
        if p < 0 or parent[p] == NO_PARENT:
            p = -1
            while p < 0 and n_queued > 0:
                candidate = queue[queue_start]
                queue_start = queue_start + 1 if queue_start + 1 < n_nodes else 0
                n_queued -= 1
                is_queued[candidate] = 0
                if parent[candidate] != NO_PARENT:
                    p = candidate
            if p < 0:
                break
        own_side = side[p]
        meeting = -1
        for a in range(first[p], first[p + 1]):
            outwards = a if own_side == SOURCE else sister[a]  # the arc in the direction of the flow
            if residual[outwards] == 0:
                continue
            q = head[a]
            if parent[q] == NO_PARENT:
                side[q] = own_side
                parent[q] = sister[a]
                distance[q] = distance[p] + 1
                stamp[q] = stamp[p]
                if not is_queued[q]:
                    at = queue_start + n_queued
                    queue[at if at < n_nodes else at - n_nodes] = q
                    is_queued[q] = 1
                    n_queued += 1
            elif side[q] != own_side:
                meeting = outwards
                break
            elif stamp[q] <= stamp[p] and distance[q] > distance[p]:  # p is nearer to the terminal than q's parent
                parent[q] = sister[a]
                distance[q] = distance[p] + 1
                stamp[q] = stamp[p]
        time += 1
        if meeting < 0:
            p = -1
            continue

        # Augment: push as much as fits from the source over the arc where the trees meet to the sink.
        amount = residual[meeting]
        q = head[sister[meeting]]
        while parent[q] != TERMINAL:
            amount = min(amount, residual[sister[parent[q]]])
            q = head[parent[q]]
        amount = min(amount, excess[q])
        q = head[meeting]
        while parent[q] != TERMINAL:
            amount = min(amount, residual[parent[q]])
            q = head[parent[q]]
        amount = min(amount, -excess[q])
        total += amount
        residual[meeting] -= amount
        residual[sister[meeting]] += amount
        for direction in range(2):
            q = head[sister[meeting]] if direction == SOURCE else head[meeting]
            while parent[q] != TERMINAL:
                a = parent[q]
                forwards = sister[a] if direction == SOURCE else a
                residual[forwards] -= amount
                residual[sister[forwards]] += amount
                if residual[forwards] == 0:
                    parent[q] = ORPHAN
                    orphans[n_orphans] = q
                    n_orphans += 1
                q = head[a]
            excess[q] -= amount if direction == SOURCE else -amount
            if excess[q] == 0:
                parent[q] = ORPHAN
                orphans[n_orphans] = q
                n_orphans += 1

    flow.counters[QUEUE_START] = queue_start
    flow.counters[N_QUEUED] = 0
    flow.counters[N_ORPHANS] = 0
    flow.counters[TIME] = time + 1
    return total


@helper
def change_excess(first, head, sister, flow, p, amount):
    """Add to the excess of p; `saturate` goes on from there."""
    parent = flow.parent
    side = flow.side
    flow.excess[p] += amount
    if parent[p] != NO_PARENT:
        for a in range(first[p], first[p + 1]):
            if parent[head[a]] == sister[a]:
                parent[head[a]] = ORPHAN
                flow.orphans[flow.counters[N_ORPHANS]] = head[a]
                flow.counters[N_ORPHANS] += 1
    if flow.excess[p] != 0:
        parent[p] = TERMINAL
        side[p] = SOURCE if flow.excess[p] > 0 else SINK
        flow.distance[p] = 1
        flow.stamp[p] = flow.counters[TIME]
        activate(flow, first.size - 1, p)
        return
    parent[p] = NO_PARENT
    for a in range(first[p], first[p + 1]):
        q = head[a]
        if parent[q] != NO_PARENT and flow.residual[sister[a] if side[q] == SOURCE else a] > 0:
            activate(flow, first.size - 1, q)  # it may take p in


@helper
def activate(flow, n_nodes, p):
    """Queue p."""
    if not flow.is_queued[p]:
        at = flow.counters[QUEUE_START] + flow.counters[N_QUEUED]
        flow.queue[at if at < n_nodes else at - n_nodes] = p
        flow.is_queued[p] = 1
        flow.counters[N_QUEUED] += 1
