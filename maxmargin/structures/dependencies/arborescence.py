"""The best tree whose arcs may cross, by the algorithm of Chu and Liu (1965) and Edmonds (1967), in O(n^2).

Starting from any word, the best arc into it is followed to its head, and so on, until the root or a tree is met that
was finished before, or a cycle closes. A cycle becomes one node: an arc into it is worth what it gains over the arc of
the cycle that it replaces. Nodes are the root, the words, and after these the cycles. Arcs keep their heads, so that a
cycle needs but a column of its own: the scores of arcs into it from all words, and the words where these arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.execution.threads import aligned
from maxmargin.problem import IMPOSSIBLE
from maxmargin.runtime.dispatch import helper
from maxmargin.structures.dependencies.arc_tables import ROOT

NOWHERE = -1


class ArborescenceWork(NamedTuple):
    """Arrays for N = n + 1 words with the root, and M = 2 N nodes with cycles."""

    score: np.ndarray  # (M, N) of the best arc into a node from each word
    target: np.ndarray  # (M, N) int64, the word where it arrives
    chosen: np.ndarray  # (M,) int64, the head of the arc into a node
    node: np.ndarray  # (N,) int64, the outermost node that a word is in
    parent: np.ndarray  # (M,) int64, the cycle that a node is in, or NOWHERE
    path: np.ndarray  # (M,) int64
    state: np.ndarray  # (M,) int64


NEW, ON_PATH, DONE = 0, 1, 2


def arborescence_work(longest: int) -> ArborescenceWork:
    """Arrays for sentences of so many words."""
    size = longest + 1
    return ArborescenceWork(
        score=aligned((2 * size, size), np.float64),
        target=aligned((2 * size, size), np.int64),
        chosen=aligned((2 * size,), np.int64),
        node=aligned((size,), np.int64),
        parent=aligned((2 * size,), np.int64),
        path=aligned((2 * size,), np.int64),
        state=aligned((2 * size,), np.int64),
    )


@helper
def best_arborescence(arcs, single_root, heads, work):
    """Write the heads of the words of a best tree.

    If it is to have a single root, arcs from there are lowered by so much that one costs more than any other arcs gain.
    """
    size = arcs.shape[0]
    lowered = lower_roots(arcs) if single_root else 0.0
    score, target, chosen = work.score, work.target, work.chosen
    node, parent, path, state = work.node, work.parent, work.path, work.state
    for v in range(size):
        node[v] = v
        parent[v] = NOWHERE
        state[v] = NEW
        for h in range(size):
            score[v, h] = arcs[h, v] - (lowered if h == ROOT else 0.0)
            target[v, h] = v
    state[ROOT] = DONE
    n_nodes = size
    for start in range(1, size):
        if state[node[start]] == DONE:
            continue
        n_path = 1
        path[0] = node[start]
        state[path[0]] = ON_PATH
        while True:
            v = path[n_path - 1]
            best = NOWHERE
            for h in range(size):
                if node[h] != v and (best == NOWHERE or score[v, h] > score[v, best]):
                    best = h
            chosen[v] = best
            before = node[best]
            if state[before] == DONE:
                break
            if state[before] == NEW:
                path[n_path] = before
                n_path += 1
                state[before] = ON_PATH
                continue
            first = n_path - 1
            while path[first] != before:
                first -= 1
            contract(path[first:n_path], n_nodes, size, work)
            path[first] = n_nodes
            n_path = first + 1
            state[n_nodes] = ON_PATH
            n_nodes += 1
        for k in range(n_path):
            state[path[k]] = DONE
    for v in range(n_nodes):
        state[v] = NEW
    for v in range(n_nodes - 1, ROOT, -1):  # from the outermost nodes inwards: those that no arc has entered yet
        if state[v] == DONE:
            continue
        inner = target[v, chosen[v]]
        heads[inner - 1] = chosen[v]
        while inner != v:
            state[inner] = DONE
            inner = parent[inner]


@helper
def contract(cycle, new, size, work):
    """Make one node of a cycle."""
    score, target, chosen = work.score, work.target, work.chosen
    node, parent = work.node, work.parent
    parent[new] = NOWHERE
    for k in range(cycle.size):
        parent[cycle[k]] = new
    for h in range(size):
        best = NOWHERE
        for k in range(cycle.size):
            v = cycle[k]
            if node[h] != v:
                gain = score[v, h] - score[v, chosen[v]]
                if best == NOWHERE or gain > score[new, h]:
                    best = v
                    score[new, h] = gain
        target[new, h] = target[best, h]
    for h in range(size):
        for k in range(cycle.size):
            if node[h] == cycle[k]:
                node[h] = new


@helper
def lower_roots(arcs):
    """More than trees can differ by: one plus the sum over words of the spread of their possible arcs."""
    size = arcs.shape[0]
    total = 1.0
    for m in range(1, size):
        top = IMPOSSIBLE
        bottom = -IMPOSSIBLE
        for h in range(size):
            if h != m and arcs[h, m] > IMPOSSIBLE / 2:
                top = max(top, arcs[h, m])
                bottom = min(bottom, arcs[h, m])
        total += max(top - bottom, 0.0)
    return total
