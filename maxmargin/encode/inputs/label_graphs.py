"""Which pairs of labels are joined, by what they tell of each other, and what that costs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import rel_entr

from maxmargin.checks import check_choice, check_count
from maxmargin.encode.inputs.edges import check_ends
from maxmargin.encode.inputs.example_checks import is_integer
from maxmargin.structures.graphs.elimination_plan import count_entries

PAIRS_PER_LABEL = 2  # of "auto": few that tell most predict about as well as all
ENTRIES_PER_LABEL = 64  # of the tables of elimination: beyond them pairs are left out, so that inference stays fast
BYTES_PER_PAIR = 110  # of an example, where inference is approximate
SECONDS_PER_ENTRY, SECONDS_PER_PAIR = 8e-9, 3.5e-6  # of an oracle: by elimination, and by messages and moves
LONG, LARGE = 10.0, 1e9  # seconds of a pass, and bytes, that are worth a warning


class Price(NamedTuple):
    """What it takes to find the best labels of all examples once."""

    n_entries: float  # of all tables of elimination, infinite if they do not fit
    seconds: float
    n_bytes: float


def edges_of(graph: Any, labels: np.ndarray) -> np.ndarray:
    """The edges between labels that an argument `graph` stands for."""
    n_labels = labels.shape[1]
    if graph is None:
        graph = []
    elif is_integer(graph):
        check_count("graph", graph)
        graph = most_informative(labels, int(graph))
    elif isinstance(graph, str):
        check_choice("graph", graph, ("auto", "full", "tree"))
        pairs = [*itertools.combinations(range(n_labels), 2)]
        if graph == "tree":
            graph = chow_liu_tree(labels)
        elif graph == "full" or is_small(pairs, n_labels):
            graph = pairs
        else:
            graph = most_informative(labels, PAIRS_PER_LABEL * n_labels)
    return check_ends(graph, "graph", n_labels)


def is_small(pairs: Sequence[Sequence[int]], n_labels: int) -> bool:
    """Whether the tables of elimination are."""
    most = ENTRIES_PER_LABEL * n_labels
    return count_entries([2] * n_labels, [[*pair] for pair in pairs], most) <= most


def mutual_information(labels: np.ndarray) -> np.ndarray:
    """(L, L) what labels tell of each other, at most log 2."""
    states = np.stack([1 - labels, labels]).astype(float)
    joint = np.einsum("ain,bnj->abij", states.transpose(0, 2, 1), states) / len(labels)
    first, second = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    return rel_entr(joint, first * second).sum(axis=(0, 1))


def chow_liu_tree(labels: np.ndarray) -> np.ndarray:
    """The edges of the tree that joins all labels and has the largest sum of mutual information of the labels it joins.

    References
    ----------
    Chow, Liu (1968), Approximating discrete probability distributions with dependence trees.
    """
    return np.stack(minimum_spanning_tree(1 - mutual_information(labels)).nonzero(), axis=1)


def most_informative(labels: np.ndarray, n_pairs: int) -> np.ndarray:
    """The pairs of highest mutual information, without those that would make the tables of elimination large.

    Pairs are taken in their order, as many at once as can be: where a batch is too much its first half is tried, and a
    single pair that is too much is left out.
    """
    n_labels = labels.shape[1]
    first, second = np.triu_indices(n_labels, 1)
    order = np.argsort(-mutual_information(labels)[first, second], kind="stable")
    waiting = np.stack([first, second], axis=1)[order].tolist()
    chosen: list[list[int]] = []
    size = n_pairs
    while waiting and len(chosen) < n_pairs:
        batch = waiting[: min(size, n_pairs - len(chosen))]
        fits = is_small(chosen + batch, n_labels)
        if fits:
            chosen += batch
        if fits or len(batch) == 1:
            waiting = waiting[len(batch) :]
        size = 2 * len(batch) if fits else max(1, len(batch) // 2)
    return np.array(chosen, int).reshape(-1, 2)


def price_of(edges: np.ndarray, n_labels: int, n: int, *, takes_sums: bool) -> Price:
    """The price of n examples; without sums, by elimination only where that is the fastest."""
    slowly = SECONDS_PER_PAIR * len(edges)
    most = np.inf if takes_sums else max(slowly / SECONDS_PER_ENTRY, ENTRIES_PER_LABEL * n_labels)
    n_entries = count_entries([2] * n_labels, edges.tolist(), most)
    if np.isfinite(n_entries):
        return Price(n_entries, n * n_entries * SECONDS_PER_ENTRY * (4 if takes_sums else 1), 8 * 3 * n_entries)
    return Price(n_entries, n * slowly, n * len(edges) * BYTES_PER_PAIR)


def warn_of_price(price: Price, edges: np.ndarray, n_labels: int) -> None:
    """Say what many pairs will take, before they do."""
    if price.seconds > LONG or price.n_bytes > LARGE:
        warnings.warn(
            f"{n_labels} labels joined by {len(edges):,} pairs take about {price.n_bytes / 1e9:.2g} GB, and "
            f'{price.seconds:.2g} s for each pass over the examples: graph="auto", or a number of pairs, takes the '
            "pairs that tell most of each other.",
            UserWarning,
            stacklevel=2,
        )
