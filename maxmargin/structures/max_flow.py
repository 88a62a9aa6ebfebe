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
from numba.extending import register_jitable

from maxmargin.threads import aligned

SOURCE, SINK = 0, 1  # sides
NO_PARENT, TERMINAL, ORPHAN = -1, -2, -3  # besides arcs to the parent; a node without parent belongs to no tree
NOT_QUEUED = -1
FAR = 2**31 - 1

TIME, FIRST_ACTIVE, LAST_ACTIVE, FIRST_ORPHAN, N_ORPHANS = range(5)  # entries of `counters`


class Flow(NamedTuple):
    """Residual capacities, trees and queues, for graphs of up to so many nodes and arcs."""

    residual: np.ndarray  # (A,) int64 of arcs
    excess: np.ndarray  # (V,) int64 of nodes
    side: np.ndarray  # (V,) the tree
    parent: np.ndarray  # (V,) the arc to the parent, or one of the above
    stamp: np.ndarray  # (V,) when `distance` was last known to be right
    distance: np.ndarray  # (V,) to the terminal, by tree arcs
    next_active: np.ndarray  # (V,) the queue of active nodes, a linked list whose last entry points to itself
    orphans: np.ndarray  # (V,) a ring
    counters: np.ndarray


def new_flow(n_nodes: int, n_arcs: int) -> Flow:
    """Room for graphs of up to `n_nodes` and `n_arcs`."""
    nodes = (max(n_nodes, 1),)
    return Flow(
        residual=aligned((n_arcs,), np.int64),
        excess=aligned(nodes, np.int64),
        side=aligned(nodes, np.int32),
        parent=aligned(nodes, np.int32),
        stamp=aligned(nodes, np.int32),
        distance=aligned(nodes, np.int32),
        next_active=aligned(nodes, np.int32),
        orphans=aligned(nodes, np.int32),
        counters=aligned((5,), np.int64),
    )


@register_jitable
def activate(flow, p):
    """Queue p, whose neighbours are to be looked at."""
    if flow.next_active[p] != NOT_QUEUED:
        return
    if flow.counters[FIRST_ACTIVE] < 0:
        flow.counters[FIRST_ACTIVE] = p
    else:
        flow.next_active[flow.counters[LAST_ACTIVE]] = p
    flow.counters[LAST_ACTIVE] = p
    flow.next_active[p] = p


@register_jitable
def next_active(flow):
    """Take the first queued node that belongs to a tree; -1 where there is none."""
    p = flow.counters[FIRST_ACTIVE]
    while p >= 0:
        following = flow.next_active[p]
        flow.counters[FIRST_ACTIVE] = following if following != p else -1
        flow.next_active[p] = NOT_QUEUED
        if flow.parent[p] != NO_PARENT:
            return p
        p = flow.counters[FIRST_ACTIVE]
    return p


@register_jitable
def orphan(flow, p):
    """Cut p off its parent; it waits for another."""
    flow.parent[p] = ORPHAN
    at = flow.counters[FIRST_ORPHAN] + flow.counters[N_ORPHANS]
    flow.orphans[at if at < flow.orphans.size else at - flow.orphans.size] = p
    flow.counters[N_ORPHANS] += 1


@register_jitable
def start(flow, n_nodes):
    """Plant trees at the terminals of the nodes, given residual capacities and excesses."""
    flow.counters[:] = 0
    flow.counters[FIRST_ACTIVE] = -1
    for p in range(n_nodes):
        flow.next_active[p] = NOT_QUEUED
        flow.stamp[p] = 0
        flow.distance[p] = 1
        flow.parent[p] = NO_PARENT
    for p in range(n_nodes):
        if flow.excess[p] != 0:
            flow.side[p] = SOURCE if flow.excess[p] > 0 else SINK
            flow.parent[p] = TERMINAL
            activate(flow, p)


@register_jitable
def saturate(first, head, sister, flow):
    """Push flow until none is left to push; return how much went through."""
    residual = flow.residual
    side = flow.side
    parent = flow.parent
    stamp = flow.stamp
    distance = flow.distance
    total = 0
    p = next_active(flow)
    while p >= 0:
        meeting = -1
        is_source = side[p] == SOURCE
        for a in range(first[p], first[p + 1]):
            q = head[a]
            outwards = a if is_source else sister[a]  # the arc in the direction of the flow
            if residual[outwards] == 0:
                continue
            if parent[q] == NO_PARENT:
                side[q] = side[p]
                parent[q] = sister[a]
                stamp[q] = stamp[p]
                distance[q] = distance[p] + 1
                activate(flow, q)
            elif side[q] != side[p]:
                meeting = outwards
                break
            elif stamp[q] <= stamp[p] and distance[q] > distance[p]:  # p is nearer to the terminal than q's parent
                parent[q] = sister[a]
                stamp[q] = stamp[p]
                distance[q] = distance[p] + 1
        flow.counters[TIME] += 1
        if meeting < 0:
            p = next_active(flow)
            continue
        total += augment(head, sister, flow, meeting)
        adopt_orphans(first, head, sister, flow)
        if parent[p] == NO_PARENT:
            p = next_active(flow)
    return total


@register_jitable
def augment(head, sister, flow, meeting):
    """Push as much as fits along the path through the arc `meeting`, from tree to tree; return how much."""
    residual = flow.residual
    parent = flow.parent
    amount = residual[meeting]
    p = head[sister[meeting]]
    while parent[p] != TERMINAL:
        amount = min(amount, residual[sister[parent[p]]])
        p = head[parent[p]]
    amount = min(amount, flow.excess[p])
    p = head[meeting]
    while parent[p] != TERMINAL:
        amount = min(amount, residual[parent[p]])
        p = head[parent[p]]
    amount = min(amount, -flow.excess[p])

    residual[meeting] -= amount
    residual[sister[meeting]] += amount
    p = head[sister[meeting]]
    while parent[p] != TERMINAL:
        a = parent[p]
        residual[a] += amount
        residual[sister[a]] -= amount
        if residual[sister[a]] == 0:
            orphan(flow, p)
        p = head[a]
    flow.excess[p] -= amount
    if flow.excess[p] == 0:
        orphan(flow, p)
    p = head[meeting]
    while parent[p] != TERMINAL:
        a = parent[p]
        residual[sister[a]] += amount
        residual[a] -= amount
        if residual[a] == 0:
            orphan(flow, p)
        p = head[a]
    flow.excess[p] += amount
    if flow.excess[p] == 0:
        orphan(flow, p)
    return amount


@register_jitable
def adopt_orphans(first, head, sister, flow):
    """Give every orphan the neighbour in its tree that is nearest to the terminal as its parent, or set it free."""
    residual = flow.residual
    parent = flow.parent
    side = flow.side
    stamp = flow.stamp
    distance = flow.distance
    counters = flow.counters
    time = counters[TIME]
    while counters[N_ORPHANS] > 0:
        p = flow.orphans[counters[FIRST_ORPHAN]]
        counters[N_ORPHANS] -= 1
        counters[FIRST_ORPHAN] += 1
        if counters[FIRST_ORPHAN] == flow.orphans.size:
            counters[FIRST_ORPHAN] = 0
        is_source = side[p] == SOURCE
        best = NO_PARENT
        nearest = FAR
        for a in range(first[p], first[p + 1]):
            q = head[a]
            inwards = sister[a] if is_source else a  # the arc that flow would take if q were the parent
            if residual[inwards] == 0 or side[q] != side[p] or parent[q] == NO_PARENT:
                continue
            steps = steps_to_terminal(head, parent, stamp, distance, time, q)
            if steps == FAR:
                continue
            if steps < nearest:
                best = a
                nearest = steps
            while stamp[q] != time:
                stamp[q] = time
                distance[q] = steps
                steps -= 1
                q = head[parent[q]]
        parent[p] = best
        if best != NO_PARENT:
            stamp[p] = time
            distance[p] = nearest + 1
            continue
        for a in range(first[p], first[p + 1]):
            q = head[a]
            if side[q] != side[p] or parent[q] == NO_PARENT:
                continue
            if residual[sister[a] if is_source else a] > 0:
                activate(flow, q)  # it may take p in again
            if parent[q] == sister[a]:
                orphan(flow, q)


@register_jitable
def steps_to_terminal(head, parent, stamp, distance, time, q):
    """The distance of q from the terminal, FAR if its ancestors end in an orphan."""
    steps = 0
    while stamp[q] != time:
        steps += 1
        if parent[q] == TERMINAL:
            stamp[q] = time
            distance[q] = 1
            return steps
        if parent[q] == ORPHAN:
            return FAR
        q = head[parent[q]]
    return steps + distance[q]


@register_jitable
def change_excess(first, head, sister, flow, p, amount):
    """Add to the excess of p and mend the trees; `saturate` goes on from there."""
    residual = flow.residual
    parent = flow.parent
    side = flow.side
    flow.excess[p] += amount
    if parent[p] != NO_PARENT:
        for a in range(first[p], first[p + 1]):
            if parent[head[a]] == sister[a]:
                orphan(flow, head[a])
    if flow.excess[p] != 0:
        side[p] = SOURCE if flow.excess[p] > 0 else SINK
        parent[p] = TERMINAL
        flow.stamp[p] = flow.counters[TIME]
        flow.distance[p] = 1
        activate(flow, p)
    else:
        parent[p] = NO_PARENT
        for a in range(first[p], first[p + 1]):
            q = head[a]
            if parent[q] != NO_PARENT and residual[sister[a] if side[q] == SOURCE else a] > 0:
                activate(flow, q)
    flow.counters[TIME] += 1
    adopt_orphans(first, head, sister, flow)
