"""How many labels of some kind there are expected to be in all, where it is not known which ones they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.arrays.blocks import Blocks
from maxmargin.checks import check_share
from maxmargin.supervision.label_supervision import LabelSupervision
from maxmargin.wording import quote


class Share(NamedTuple):
    """An expected number of labels of a kind."""

    starts: np.ndarray  # (n + 1,) of the nodes of the examples
    direction: np.ndarray  # (N, L) 1 for labels of the kind, less that of the true label, where both may be right; or 0
    costs: np.ndarray  # (N, L) what the problem of consistent outputs adds to potentials: a multiple of the direction
    expected: np.ndarray  # (n,) the number of each example, less that of its true output
    wanted: float  # the share of all nodes
    name: str  # what messages call it

    def number(self, means: Blocks, weight: np.ndarray) -> float:
        """The mean number of labels of the kind, of mean parts whose first are those of the labels of nodes."""
        lengths, n_labels = np.diff(self.starts), self.direction.shape[1]
        first = np.repeat(means.starts[:-1] - n_labels * self.starts[:-1], lengths)
        parts = (first + n_labels * np.arange(self.starts[-1]))[:, np.newaxis] + np.arange(n_labels)
        counts = np.einsum("tl,tl->t", means.values[parts], self.direction, dtype=np.float64)
        return float(np.repeat(weight, lengths) @ counts) / len(weight)

    def check_weights(self, weight: np.ndarray) -> None:
        """Raise unless outputs that agree with what is known can have the share, with these weights of examples."""
        lengths = np.diff(self.starts)
        of_node, expected, total = np.repeat(weight, lengths), weight @ self.expected, weight @ lengths
        ends = [of_node @ self.direction.min(axis=1), of_node @ self.direction.max(axis=1)]
        if ends[0] == ends[1]:
            raise ValueError(f"{self.name} needs labels that are not known in examples of a weight above 0.")
        least, most = (float(np.clip(self.wanted + (end - expected) / total, 0, 1)) for end in ends)
        if not least < self.wanted < most:
            raise ValueError(
                f"{self.name} must be between {least:.4g} and {most:.4g}, by what is known of y, not {self.wanted:.4g}."
            )


def expect_share(
    share: float,
    is_kind: np.ndarray,
    labels: np.ndarray,
    means: np.ndarray,
    allowed: np.ndarray,
    starts: np.ndarray,
    dtype: DTypeLike,
    name: str,
) -> tuple[Share, LabelSupervision]:
    """An expected share of labels of a kind, and what the problem of consistent outputs is to hold.

    Parameters
    ----------
    share
        From 0 to 1, of all nodes.
    is_kind
        (L,) flags of the labels.
    labels
        (N,) the true labels, or completions.
    means
        (N, L) the probabilities of labels where they are known; 1 of the true labels, and of completions.
    allowed
        (N, L) flags of those that agree with what is known.
    starts
        (n + 1,) of the nodes of the examples.
    dtype
        Of the problem.
    name
        What messages call the share.
    """
    may_differ = allowed[:, is_kind].any(axis=1) & allowed[:, ~is_kind].any(axis=1)
    direction = is_kind.astype(dtype) - is_kind[labels].astype(dtype)[:, np.newaxis]
    direction[~may_differ] = 0
    n_kind = np.add.reduceat(np.append(means[:, is_kind].sum(axis=1), 0), starts[:-1]) * (np.diff(starts) > 0)
    costs = np.zeros_like(direction)
    nodes = np.arange(len(labels), dtype=np.int32)
    supervision = LabelSupervision(labels.astype(np.int32), nodes, np.ones(len(labels), dtype), costs)
    return Share(starts, direction, costs, share * np.diff(starts) - n_kind, share, name), supervision


def check_label_share(name: str, value: object) -> None:
    """Raise unless it is None, or a dict of one label and its share."""
    if value is not None and not (isinstance(value, Mapping) and len(value) == 1):
        raise ValueError(
            f'{name} must be None or a dict of one label and its share, such as {{"O": 0.9}}, not {quote(value)}.'
        )
    for share in (value or {}).values():
        check_share(f"the share in {name}", share)
