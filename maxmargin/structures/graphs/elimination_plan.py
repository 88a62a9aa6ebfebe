"""Plans of elimination: the order in which the nodes of graphs go, and where the tables of each step lie."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.arrays.blocks import starts_of

LARGEST_TABLES = 2**22  # entries of all tables of a graph: 32 MB for each thread
NONE = -1


class TreewidthError(ValueError):
    """Raised where exact inference would need too large tables."""


class EliminationPlan(NamedTuple):
    """The steps of all graphs; graphs of the same edges and numbers of states share theirs."""

    which: np.ndarray  # (n,) int64, the plan of each graph, or NONE
    first: np.ndarray  # (plans + 1,) int64, its steps are first[p]:first[p + 1]
    node: np.ndarray  # (T,) int64, the node that each step eliminates
    parent: np.ndarray  # (T,) int64, the step that takes its message, or NONE
    table: np.ndarray  # (T,) int64, where its table begins
    n_rows: np.ndarray  # (T,) int64, assignments to the scope without the node: the size of its message
    message: np.ndarray  # (T,) int64, where its message begins
    scope_first: np.ndarray  # (T + 1,) int64
    scope: np.ndarray  # nodes
    states: np.ndarray  # their numbers of states
    factor_first: np.ndarray  # (T + 1,) int64
    own_end: np.ndarray  # (T,) int64, the end of its first factors, which depend on the state of its node alone
    lead: np.ndarray  # (factors,) int64, the first node of the scope that it depends on, last ones first
    is_dense: np.ndarray  # (factors,) bool, whether it lies as the table does, from that node on
    source: np.ndarray  # (factors,) int64, the step whose message a factor is, or NONE for potentials
    base: np.ndarray  # (factors,) int64, in the potentials or in all messages
    stride_first: np.ndarray  # (factors,) int64
    stride: np.ndarray  # as many for each factor as there are nodes in the scope


def make_plan(
    graphs: Sequence[tuple[np.ndarray, np.ndarray]], skips: bool = False, most: float = math.inf
) -> EliminationPlan:
    """Plan the elimination of graphs, each the numbers of states of its nodes and the (E, 2) ends of its edges.

    Potentials are those of the nodes, one after the other, then a table for each edge, rows for its first end. Graphs
    of too large a treewidth, whose tables would have more than `most` entries, are an error, unless it `skips` them.
    """
    known: dict[tuple[bytes, bytes], int] = {}
    plans: list[list[_Step]] = []
    which = []
    for i, (n_states, ends) in enumerate(graphs):
        key = n_states.tobytes(), ends.tobytes()
        if key not in known:
            known[key] = len(plans)
            try:
                plans.append(_steps_of(i, n_states.tolist(), ends.tolist(), most))
            except TreewidthError:
                if not skips:
                    raise
                known[key] = NONE
        which.append(known[key])

    steps = [step for plan in plans for step in plan]
    factors = [factor for step in steps for factor in step.factors]
    before = np.repeat(starts_of([len(plan) for plan in plans])[:-1], [len(plan) for plan in plans])

    def integers(values: Sequence[int]) -> np.ndarray:
        return np.array(values, np.int64)

    parent = integers([step.parent for step in steps])
    source = integers([factor.source for factor in factors])
    of_factor = np.repeat(before, [len(step.factors) for step in steps])
    return EliminationPlan(
        which=integers(which),
        first=starts_of([len(plan) for plan in plans]),
        node=integers([step.scope[-1] for step in steps]),
        parent=np.where(parent == NONE, NONE, parent + before),
        table=integers([step.table for step in steps]),
        n_rows=integers([step.n_rows for step in steps]),
        message=integers([step.message for step in steps]),
        scope_first=starts_of([len(step.scope) for step in steps]),
        scope=integers([node for step in steps for node in step.scope]),
        states=integers([count for step in steps for count in step.states]),
        factor_first=starts_of([len(step.factors) for step in steps]),
        own_end=starts_of([len(step.factors) for step in steps])[:-1] + integers([step.n_own for step in steps]),
        lead=integers([factor.lead for factor in factors]),
        is_dense=np.array([factor.is_dense for factor in factors], np.bool_),
        source=np.where(source == NONE, NONE, source + of_factor),
        base=integers([factor.base for factor in factors]),
        stride_first=starts_of([len(factor.strides) for factor in factors])[:-1],
        stride=integers([stride for factor in factors for stride in factor.strides]),
    )


def n_operations(plan: EliminationPlan) -> np.ndarray:
    """The terms of all entries of the tables of each graph, (n,); 0 for graphs without a plan."""
    n_states = plan.states[plan.scope_first[1:] - 1]  # of the node itself, the last one of its scope
    terms = plan.n_rows * n_states * np.diff(plan.factor_first)
    totals = np.concatenate([np.diff(starts_of(terms)[plan.first]), [0]])
    return totals[plan.which]  # NONE is the last one


class _Factor(NamedTuple):
    source: int
    base: int
    strides: list[int]
    lead: int
    is_dense: bool


class _Step(NamedTuple):
    scope: list[int]
    states: list[int]
    parent: int
    table: int
    n_rows: int
    message: int
    factors: list[_Factor]
    n_own: int


def _factor(source: int, base: int, strides: list[int], states: list[int]) -> _Factor:
    lead = next(d for d, stride in enumerate(strides) if stride)
    return _Factor(source, base, strides, lead, strides[lead:] == _strides(states)[lead:])


def _strides(sizes: Sequence[int]) -> list[int]:
    """Those of a table whose last index runs fastest."""
    return [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]


def _steps_of(i: int, n_states: list[int], ends: list[list[int]], most: float) -> list[_Step]:
    """The steps of graph i."""
    scopes = _eliminate(i, n_states, ends, most)
    place = {scope[-1]: t for t, scope in enumerate(scopes)}
    node_part = starts_of(n_states)
    edge_part = node_part[-1] + starts_of([n_states[a] * n_states[b] for a, b in ends])
    potentials: list[list[tuple[int, dict[int, int]]]] = [
        [(int(node_part[scope[-1]]), {scope[-1]: 1})] for scope in scopes
    ]
    for (a, b), base in zip(ends, edge_part.tolist(), strict=False):
        potentials[min(place[a], place[b])].append((base, {a: n_states[b], b: 1}))
    steps: list[_Step] = []
    received: list[list[tuple[int, int, dict[int, int]]]] = [[] for _ in scopes]
    table = message = 0
    for t, scope in enumerate(scopes):
        states, others = [n_states[v] for v in scope], scope[:-1]
        parent = min((place[v] for v in others), default=NONE)
        given = [(NONE, base, stride) for base, stride in potentials[t]] + received[t]
        factors = [_factor(source, base, [stride.get(v, 0) for v in scope], states) for source, base, stride in given]
        factors.sort(key=lambda factor: -factor.lead)
        n_own = sum(factor.lead == len(others) for factor in factors)
        n_rows = math.prod(states[:-1])
        steps.append(_Step(scope, states, parent, table, n_rows, message, factors, n_own))
        if parent != NONE:
            received[parent].append((t, message, dict(zip(others, _strides(states[:-1]), strict=True))))
        table += n_rows * states[-1]
        message += n_rows
    return steps


def count_entries(n_states: list[int], ends: list[list[int]], most: float = math.inf) -> float:
    """The number of entries of all tables of a graph, infinite where it is above `most`."""
    try:
        scopes = _eliminate(0, n_states, ends, most)
    except TreewidthError:
        return math.inf
    return sum(math.prod(n_states[v] for v in scope) for scope in scopes)


def _eliminate(i: int, n_states: list[int], ends: list[list[int]], most: float) -> list[list[int]]:
    """The scopes of the steps of graph i, by the fewest edges that an elimination adds, then by the smallest table.

    Of equals the last node goes first: mostly the second end of its edges, along whose states their potentials lie.
    """
    near: list[set[int]] = [set() for _ in n_states]
    for a, b in ends:
        near[a].add(b)
        near[b].add(a)

    def price(v: int) -> tuple[int, float]:
        joined = sum(len(near[u] & near[v]) for u in near[v]) // 2
        return len(near[v]) * (len(near[v]) - 1) // 2 - joined, math.prod(n_states[u] for u in near[v]) * n_states[v]

    prices = [price(v) for v in range(len(n_states))]
    heap = [(*prices[v], -v) for v in range(len(n_states))]
    heapq.heapify(heap)
    is_done = [False] * len(n_states)
    scopes: list[list[int]] = []
    n_entries, limit = 0.0, min(most, LARGEST_TABLES)
    while heap:
        fill, size, negative = heapq.heappop(heap)
        v = -negative
        if is_done[v] or (fill, size) != prices[v]:
            continue
        n_entries += size
        if n_entries > limit:
            raise TreewidthError(
                f"Graph {i} has too large a treewidth for exact inference: its tables would have more than "
                f"{limit:.2g} entries."
            )
        is_done[v] = True
        scopes.append([*sorted(near[v]), v])
        changed = set(near[v])
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
            if fill:
                changed |= near[u]
        for u in changed:
            prices[u] = price(u)
            heapq.heappush(heap, (*prices[u], -u))
    return scopes
