"""Maximum flows by growing trees from both terminals (Boykov, Kolmogorov 2004), in exact integer arithmetic.

A node has one terminal number: its excess, the residual capacity from the source if positive, to the sink if negative.
Arc 2 e leads along edge e from its first end to its second and arc 2 e + 1 back, so that arc a goes from ends[a] to
ends[a ^ 1], and a ^ 1 is the arc the other way; those that leave node p are out[first[p] : first[p + 1]]. Two trees
grow over arcs with residual capacity, from all sources and from all sinks. Where they touch, flow is pushed; nodes that
lose their parent are adopted by another one or become free. In the end the source's tree is the set of all nodes that
can be reached from it: the smallest of all minimum cuts, whatever flow led there.

The trees survive changes of an excess, so that the next flow starts from the last one (Kohli, Torr 2005).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of
from maxmargin.arrays.views import index
from maxmargin.execution.threads import aligned
from maxmargin.runtime.dispatch import helper

SOURCE, SINK, FREE = range(3)  # trees; free nodes are in none
NO_ARC, TERMINAL, ORPHAN = -1, -2, -3  # besides arcs to a parent
FAR = 2**31 - 1

PARENT, DISTANCE, STAMP = range(3)  # entries of `links`: side by side, as they are read together
QUEUE_START, N_QUEUED, N_ORPHANS, TIME = range(4)  # entries of `counters`


class Arcs(NamedTuple):
    """The arcs of graphs, one after the other: of graph i with nodes starts[i]:starts[i + 1], those of its edges."""

    first: np.ndarray  # (N + n,) int32, as above, from starts[i] + i on
    out: np.ndarray  # (2 M,) int32, arcs counted in their graph


def make_arcs(starts: np.ndarray, edge_starts: np.ndarray, ends: np.ndarray) -> Arcs:
    """The arcs of edges, whose `ends` (M, 2) are counted from the first node of their graph."""
    graph = np.repeat(np.arange(len(starts) - 1), np.diff(edge_starts))
    tails = (ends + starts[graph][:, np.newaxis]).ravel()
    out = np.argsort(tails, kind="stable")
    out -= 2 * edge_starts[graph[out // 2]]
    ends_of_rows = starts_of(np.bincount(tails, minlength=int(starts[-1])))
    graph_of_row = np.repeat(np.arange(len(starts) - 1), np.diff(starts) + 1)
    first = ends_of_rows[np.arange(len(graph_of_row)) - graph_of_row] - 2 * edge_starts[graph_of_row]
    return Arcs(first.astype(np.int32), out.astype(np.int32))


class Flow(NamedTuple):
    """Residual capacities, trees and queues, for graphs of up to V nodes and A arcs."""

    residual: np.ndarray  # (A,) int64 of arcs
    excess: np.ndarray  # (V,) int64 of nodes
    tree: np.ndarray  # (V,) int8
    links: np.ndarray  # (V, 4) the arc to the parent or one of the above, tree arcs to the terminal, when counted
    queue: np.ndarray  # (V + 1,) active nodes, whose neighbours are to be looked at: a ring, and one to spare
    is_queued: np.ndarray  # (V,) int8
    orphans: np.ndarray  # (V + 1,) a stack; nodes that have found a parent meanwhile are skipped
    counters: np.ndarray


def new_flow(n_nodes: int, n_arcs: int) -> Flow:
    """Room for graphs of up to `n_nodes` and `n_arcs`."""
    return Flow(
        residual=aligned((n_arcs,), np.int64),
        excess=aligned((n_nodes,), np.int64),
        tree=aligned((n_nodes,), np.int8),
        links=aligned((n_nodes, 4), np.int32),
        queue=aligned((n_nodes + 1,), np.int32),
        is_queued=aligned((n_nodes,), np.int8),
        orphans=aligned((n_nodes + 1,), np.int32),
        counters=aligned((4,), np.int64),
    )


@helper
def push_along_edges(flow, ends):
    """Let what neighbours owe each other go straight from one to the other: most of the flow, and it needs no trees."""
    excess = flow.excess
    residual = flow.residual
    for e in range(ends.size // 2):
        p = index(ends[2 * e])
        q = index(ends[2 * e + 1])
        if excess[p] ^ excess[q] < 0:  # their signs differ
            a = 2 * e if excess[p] > 0 else 2 * e + 1
            amount = min(abs(excess[p]), abs(excess[q]), residual[a])
            residual[a] -= amount
            residual[a ^ 1] += amount
            along = amount if excess[p] > 0 else -amount
            excess[p] -= along
            excess[q] += along


@helper
def plant_trees(flow, n_nodes, ends):
    """Start from residual capacities and excesses alone.

    Active are the nodes with a neighbour outside their tree: of large areas of one side only the borders.
    """
    excess = flow.excess
    tree = flow.tree
    links = flow.links
    is_queued = flow.is_queued
    for p in range(n_nodes):
        tree[p] = SOURCE if excess[p] > 0 else (SINK if excess[p] < 0 else FREE)
        is_queued[p] = 0
        links[p, PARENT] = TERMINAL
        links[p, DISTANCE] = 1
        links[p, STAMP] = 0
    for e in range(ends.size // 2):
        p = index(ends[2 * e])
        q = index(ends[2 * e + 1])
        if tree[p] != tree[q]:
            is_queued[p] = 1
            is_queued[q] = 1
    n_queued = 0
    for p in range(n_nodes):
        is_queued[p] &= tree[p] != FREE
        flow.queue[n_queued] = p  # without a branch, which would be guessed wrong too often
        n_queued += is_queued[p]
    flow.counters[QUEUE_START] = 0
    flow.counters[N_QUEUED] = n_queued
    flow.counters[N_ORPHANS] = 0
    flow.counters[TIME] = 0


@helper
def saturate(first, out, ends, flow):
    """Push flow until none is left to push; return how much went through.

    One function, with its counters in local variables: as several it would take three times as long.
    """
    residual = flow.residual
    excess = flow.excess
    tree = flow.tree
    links = flow.links
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
            child = index(orphans[n_orphans])
            if tree[child] == FREE or links[child, PARENT] != ORPHAN:
                continue
            own = tree[child]
            inwards = 1 - own  # from an arc of the child to the one that flow would take
            best = NO_ARC
            nearest = FAR
            for k in range(first[child], first[child + index(1)]):
                a = out[k]
                q = index(ends[index(a ^ 1)])
                if residual[index(a ^ inwards)] == 0 or tree[q] != own:
                    continue
                steps = 0
                ancestor = q
                while links[ancestor, STAMP] != time and links[ancestor, PARENT] >= 0:
                    steps += 1
                    ancestor = index(ends[index(links[ancestor, PARENT] ^ 1)])
                if links[ancestor, PARENT] == ORPHAN:
                    continue
                if links[ancestor, PARENT] == TERMINAL:
                    links[ancestor, DISTANCE] = 1
                    links[ancestor, STAMP] = time
                steps += links[ancestor, DISTANCE]
                if steps < nearest:
                    nearest = steps
                    best = a
                while links[q, STAMP] != time:
                    links[q, DISTANCE] = steps
                    links[q, STAMP] = time
                    steps -= 1
                    q = index(ends[index(links[q, PARENT] ^ 1)])
            if best != NO_ARC:
                links[child, PARENT] = best
                links[child, DISTANCE] = nearest + 1
                links[child, STAMP] = time
                continue
            tree[child] = FREE
            for k in range(first[child], first[child + index(1)]):
                a = out[k]
                q = index(ends[index(a ^ 1)])
                if tree[q] != own:
                    continue
                if residual[index(a ^ inwards)] > 0 and not is_queued[q]:  # may take it in again
                    at = queue_start + n_queued
                    queue[at if at < n_nodes else at - n_nodes] = q
                    is_queued[q] = 1
                    n_queued += 1
                if links[q, PARENT] == a ^ 1:
                    links[q, PARENT] = ORPHAN
                    orphans[n_orphans] = q
                    n_orphans += 1

        # Grow: take in the neighbours of an active node until one of them belongs to the other tree.
        if p < 0 or tree[p] == FREE:
            p = -1
            while p < 0 and n_queued > 0:
                candidate = queue[queue_start]
                queue_start = queue_start + 1 if queue_start + 1 < n_nodes else 0
                n_queued -= 1
                is_queued[candidate] = 0
                if tree[candidate] != FREE:
                    p = candidate
            if p < 0:
                break
        own = tree[p]
        distance = links[p, DISTANCE]
        stamp = links[p, STAMP]
        meeting = NO_ARC
        for k in range(first[p], first[p + 1]):
            a = out[k]
            outwards = a ^ own  # the arc in the direction of the flow
            if residual[index(outwards)] == 0:
                continue
            q = index(ends[index(a ^ 1)])
            if tree[q] == own:
                if links[q, STAMP] <= stamp and links[q, DISTANCE] > distance:  # p is nearer than q's parent
                    links[q, PARENT] = a ^ 1
                    links[q, DISTANCE] = distance + 1
                    links[q, STAMP] = stamp
            elif tree[q] == FREE:
                tree[q] = own
                links[q, PARENT] = a ^ 1
                links[q, DISTANCE] = distance + 1
                links[q, STAMP] = stamp
                if not is_queued[q]:
                    at = queue_start + n_queued
                    queue[at if at < n_nodes else at - n_nodes] = q
                    is_queued[q] = 1
                    n_queued += 1
            else:
                meeting = outwards
                break
        time += 1
        if meeting == NO_ARC:
            p = -1
            continue

        # Augment: push as much as fits from the source over the arc where the trees meet to the sink.
        amount = residual[meeting]
        for side in range(2):
            q = index(ends[index(meeting ^ side)])
            while links[q, PARENT] != TERMINAL:
                a = links[q, PARENT]
                amount = min(amount, residual[index(a ^ 1 ^ side)])
                q = index(ends[index(a ^ 1)])
            amount = min(amount, abs(excess[q]))
        total += amount
        residual[meeting] -= amount
        residual[meeting ^ 1] += amount
        for side in range(2):
            q = index(ends[index(meeting ^ side)])
            while links[q, PARENT] != TERMINAL:
                a = links[q, PARENT]
                forwards = a ^ 1 ^ side
                residual[index(forwards)] -= amount
                residual[index(forwards ^ 1)] += amount
                if residual[index(forwards)] == 0:
                    links[q, PARENT] = ORPHAN
                    orphans[n_orphans] = q
                    n_orphans += 1
                q = index(ends[index(a ^ 1)])
            excess[q] -= amount if side == SOURCE else -amount
            if excess[q] == 0:
                links[q, PARENT] = ORPHAN
                orphans[n_orphans] = q
                n_orphans += 1

    flow.counters[QUEUE_START] = queue_start
    flow.counters[N_QUEUED] = 0
    flow.counters[N_ORPHANS] = 0
    flow.counters[TIME] = time + 1
    return total


@helper
def change_excess(first, out, ends, flow, p, amount):
    """Add to the excess of p; `saturate` goes on from there."""
    tree = flow.tree
    links = flow.links
    flow.excess[p] += amount
    if tree[p] != FREE:
        for k in range(first[p], first[p + 1]):
            child = ends[out[k] ^ 1]
            if tree[child] != FREE and links[child, PARENT] == out[k] ^ 1:
                links[child, PARENT] = ORPHAN
                flow.orphans[flow.counters[N_ORPHANS]] = child
                flow.counters[N_ORPHANS] += 1
    if flow.excess[p] != 0:
        tree[p] = SOURCE if flow.excess[p] > 0 else SINK
        links[p, PARENT] = TERMINAL
        links[p, DISTANCE] = 1
        links[p, STAMP] = flow.counters[TIME]
        activate(flow, first.size - 1, p)
        return
    tree[p] = FREE
    for k in range(first[p], first[p + 1]):
        q = ends[out[k] ^ 1]
        if tree[q] != FREE and flow.residual[out[k] ^ 1 ^ tree[q]] > 0:
            activate(flow, first.size - 1, q)  # it may take p in


@helper
def activate(flow, n_nodes, p):
    """Queue p."""
    if not flow.is_queued[p]:
        at = flow.counters[QUEUE_START] + flow.counters[N_QUEUED]
        flow.queue[at if at < n_nodes else at - n_nodes] = p
        flow.is_queued[p] = 1
        flow.counters[N_QUEUED] += 1
