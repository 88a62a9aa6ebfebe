"""Trees of heads: checked, told apart from what is none, and made projective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.encode.inputs.example_checks import check_truths, flatten_labels, is_integer, members_of
from maxmargin.wording import quote

ROOT = 0


def read_trees(y: object, lengths: np.ndarray, *, single_root: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Check trees, lists of heads or of pairs of a head and a label; return their heads, and flat labels if any."""
    y = check_truths(y, len(lengths), "the heads of the words of each sentence", "sentence")
    trees = [_as_tree(tree, f"y[{i}]") for i, tree in enumerate(y)]
    are_labelled = [len(tree) > 0 and isinstance(tree[0], (tuple, list)) for tree in trees]
    heads, labels = [], []
    for i, (tree, n_words) in enumerate(zip(trees, lengths, strict=True)):
        if any(isinstance(arc, (tuple, list)) != are_labelled[0] for arc in tree):
            kind = "pairs of a head and a label" if are_labelled[0] else "heads without labels"
            raise TypeError(f"y[{i}] must hold {kind} alone, as y[0] begins with {quote(trees[0][0])}.")
        if are_labelled[0]:
            for m, arc in enumerate(tree, start=1):
                if len(arc) != 2:
                    raise ValueError(f"y[{i}] has {quote(arc)} at word {m}, not a pair of a head and a label.")
            labels.append([label for _, label in tree])
            tree = [head for head, _ in tree]
        heads.append(check_heads(tree, int(n_words), f"y[{i}]", single_root=single_root))
    return heads, flatten_labels(labels, lengths, "sentence") if are_labelled[0] else None


def _as_tree(tree: object, name: str) -> list[Any]:
    if isinstance(tree, np.ndarray):
        return tree.tolist()
    if isinstance(tree, str) or not isinstance(tree, Sequence):
        raise TypeError(f"{name} must be a list of heads, or of pairs of a head and a label, not {quote(tree)}.")
    return [*tree]


def is_partial(tree: Any) -> bool:
    """Whether a tree is given by what is known of the head of each word, be it None or a set of heads."""
    is_list = isinstance(tree, (list, tuple, np.ndarray))
    return tree is None or (is_list and any(arc is None or isinstance(arc, (set, frozenset)) for arc in tree))


def open_arcs(tree: object, n_words: int, classes: list[object], name: str) -> np.ndarray:
    """(n, n + 1, 1 + L) flags of the parts that agree with what is known of the head of each word, and its label.

    Of each word it is the head, a pair of a head and a label, a set of these, or None; None for all words.
    """
    is_open = np.zeros((n_words, n_words + 1, 1 + len(classes)), bool)
    if tree is None:
        return ~is_open
    arcs = _as_tree(tree, name)
    if len(arcs) != n_words:
        raise ValueError(f"{name} has {len(arcs)} heads, but there are {n_words} words.")
    for m, known in enumerate(arcs):
        if known is None:
            is_open[m] = True
            continue
        some = members_of(known)
        if not some:
            raise ValueError(f"{name} has an empty set of heads at word {m + 1}.")
        for arc in some:
            head, labels = (arc[0], arc[1:]) if isinstance(arc, (tuple, list)) and len(arc) == 2 else (arc, ())
            is_head = is_integer(head) and 0 <= int(head) <= n_words
            if not is_head or any(label not in classes for label in labels):
                label = "and labels those of fit, " if classes else ""
                raise ValueError(
                    f"{name} has {quote(arc)} at word {m + 1}, but heads are 0, the root, to {n_words}, {label}sets of "
                    "such or None."
                )
            is_open[m, head, [0, *(1 + classes.index(label) for label in labels)] if labels else slice(None)] = True
    return is_open


def read_open_trees(
    y: Sequence[object], lengths: np.ndarray, classes: np.ndarray | None, *, lift: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The labels of arcs that trees name, besides those so far, and `open_arcs` of each; whole trees may be lifted."""
    y = check_truths(y, len(lengths), "what is known of the heads of each sentence", "sentence")
    named = {pair[1] for tree in y if tree is not None for pair in _pairs(tree)}
    named |= set() if classes is None else {*classes.tolist()}
    if len({isinstance(label, str) for label in named}) > 1:
        raise TypeError("y must hold labels of arcs that are all strings, or all integers.")
    classes = np.unique([*named]) if named else np.zeros(0, "U1")
    tables = []
    for i, (tree, n_words) in enumerate(zip(y, lengths.tolist(), strict=True)):
        name = f"y[{i}]"
        if lift and not is_partial(tree):
            (heads,), labels = read_trees([tree], np.array([n_words]), single_root=False)
            heads = lift_crossing(heads)
            tree = heads.tolist() if labels is None else [*zip(heads.tolist(), labels.tolist(), strict=True)]
        tables.append(open_arcs(tree, n_words, classes.tolist(), name))
    if all(table.all() for table in tables):
        raise ValueError("y must hold at least one head, but nothing of it is known.")
    return classes, tables


def _pairs(tree: object) -> list[Sequence[object]]:
    """The pairs of a head and a label that what is known of a tree names."""
    arcs = [arc for known in _as_tree(tree, "y") for arc in members_of(known)]
    return [arc for arc in arcs if isinstance(arc, (tuple, list)) and len(arc) == 2]


def make_projective(heads: Sequence[np.ndarray], *, lift: bool) -> list[np.ndarray]:
    """Trees without crossing arcs, by lifting them, or else they are an error."""
    if lift:
        return [lift_crossing(tree) for tree in heads]
    for i, tree in enumerate(heads):
        crossing = find_crossing(tree)
        if crossing:
            first, second = (f"{tree[m - 1]} to {m}" for m in crossing)
            raise ValueError(
                f"y[{i}] is not projective: its arcs from {first} and from {second} cross. Set projective=False, or "
                "lift=True to attach such words further up."
            )
    return [*heads]


def check_heads(heads: Sequence[object], n_words: int, name: str, *, single_root: bool = True) -> np.ndarray:
    """Raise unless these are the heads of a tree of n words, from 1, with 0 for the root; `name` is in messages."""
    if len(heads) != n_words:
        raise ValueError(f"{name} has {len(heads)} heads, but there are {n_words} words.")
    for m, head in enumerate(heads, start=1):
        if not is_integer(head):
            raise TypeError(f"{name} has the head {quote(head)} at word {m}, but a head must be an integer.")
        if not 0 <= int(head) <= n_words:
            raise ValueError(f"{name} has the head {head} at word {m}, but heads are 0, the root, to {n_words}.")
    array = np.array(heads, np.int64).reshape(-1)
    cycle = find_cycle(array)
    if len(cycle) == 1:
        raise ValueError(f"{name} is no tree: word {cycle[0]} is its own head.")
    if cycle:
        shown_cycle = ", ".join(map(str, cycle))
        raise ValueError(f"{name} is no tree: from head to head, the words {shown_cycle} lead back to {cycle[0]}.")
    roots = np.flatnonzero(array == ROOT) + 1
    if single_root and len(roots) > 1:
        raise ValueError(
            f"{name} has the root as the head of the words {roots[0]} and {roots[1]}: with single_root, one word has."
        )
    return array


def are_trees(heads: np.ndarray, starts: np.ndarray, *, single_root: bool, projective: bool) -> bool:
    """Whether the heads of all words, (N,), are those of trees: `read_trees` takes longer, and says why not."""
    lengths, n_words = np.diff(starts), len(heads)
    if ((heads < ROOT) | (heads > np.repeat(lengths, lengths))).any():
        return False
    above = np.append(np.where(heads == ROOT, n_words, np.repeat(starts[:-1], lengths) + heads - 1), n_words)
    for _ in range(int(lengths.max()).bit_length()):
        above = above[above]
    if (above != n_words).any() or (single_root and (np.add.reduceat(heads == ROOT, starts[:-1], dtype=int) > 1).any()):
        return False
    words = np.arange(lengths.max())
    padded = np.tile(words + 1, (len(lengths), 1))  # with arcs of no length, which cross none
    padded[words < lengths[:, np.newaxis]] = heads
    return not (projective and crossing_pairs(padded).any())


def find_cycle(heads: np.ndarray) -> list[int]:
    """The words of a cycle, from the least one on; none of a tree."""
    above = np.append(ROOT, heads)
    for _ in range(len(heads).bit_length()):
        above = above[above]  # twice as far up
    astray = above[above != ROOT]
    if not astray.size:
        return []
    cycle = [int(astray[0])]
    while (word := int(heads[cycle[-1] - 1])) != cycle[0]:
        cycle.append(word)
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]


def crossing_pairs(heads: np.ndarray) -> np.ndarray:
    """(..., n, n) flags: whether the arc to the one word crosses that to the other, and begins and ends before it."""
    words = np.arange(1, heads.shape[-1] + 1)
    lo, hi = np.minimum(heads, words), np.maximum(heads, words)
    first_lo, first_hi, lo, hi = (
        lo[..., np.newaxis],
        hi[..., np.newaxis],
        lo[..., np.newaxis, :],
        hi[..., np.newaxis, :],
    )
    return (first_lo < lo) & (lo < first_hi) & (first_hi < hi)


def find_crossing(heads: np.ndarray) -> tuple[int, int] | None:
    """The first two words whose arcs from their heads cross; None if there are none."""
    pairs = np.argwhere(crossing_pairs(heads)) + 1
    return min((min(pair), max(pair)) for pair in pairs.tolist()) if len(pairs) else None


def lift_crossing(heads: np.ndarray) -> np.ndarray:
    """Projective heads: the shortest arc that crosses another is lifted to the head of its head, until none does.

    As Nivre and Nilsson (2005) do; no arc is lifted to the root as long as another can be lifted elsewhere.
    """
    heads = heads.copy()
    while True:
        crosses = crossing_pairs(heads)
        if not crosses.any():
            return heads
        above = np.where(heads == ROOT, ROOT, heads[heads - 1])
        candidates = (crosses.any(axis=0) | crosses.any(axis=1)) & (heads != ROOT)
        if (candidates & (above != ROOT)).any():
            candidates &= above != ROOT
        lengths = np.abs(heads - np.arange(1, len(heads) + 1))
        m = np.flatnonzero(candidates)[np.argmin(lengths[candidates])]
        heads[m] = above[m]
