"""Trees of labelled spans: checked, binarized to outputs, and what is known of them in part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.encode.inputs.example_checks import as_labels, check_truths, is_integer, members_of
from maxmargin.structures.spans.span_parts import span_number
from maxmargin.wording import quote

ABSENT, UNKNOWN = -1, -2  # in place of labels


class LabelledSpans(NamedTuple):
    """The labelled spans of a tree: the words from where they start to where they end."""

    lo: np.ndarray
    hi: np.ndarray
    labels: np.ndarray

    def rows(self, n_words: int) -> np.ndarray:
        """Their numbers among all spans."""
        return span_number(n_words, self.lo, self.hi)

    def table(self, codes: np.ndarray, n_words: int) -> np.ndarray:
        """(n, n + 1) the numbers of their labels, which are -1 where they are not known."""
        labels = np.full((n_words, n_words + 1), ABSENT)
        labels[self.lo, self.hi] = np.where(codes < 0, UNKNOWN, codes)
        return labels


def read_span_trees(y: object, lengths: np.ndarray) -> list[LabelledSpans]:
    """Check trees, lists of triples of start, end and label; from the top down, left before right."""
    y = check_truths(y, len(lengths), "the labelled spans of each sentence", "sentence")
    return [
        _read_tree(tree, n_words, f"y[{i}]") for i, (tree, n_words) in enumerate(zip(y, lengths.tolist(), strict=True))
    ]


def _read_tree(tree: object, n_words: int, name: str) -> LabelledSpans:
    if isinstance(tree, (str, set, frozenset)) or not isinstance(tree, Iterable):
        raise TypeError(f"{name} must be a list of triples of start, end and label, not {quote(tree)}.")
    spans = [*tree]
    for span in spans:
        check_span(span, n_words, name, sizes=(3,))
    spans.sort(key=lambda span: (span[0], -span[1]))
    open_spans: list[Any] = []
    for span in spans:
        while open_spans and open_spans[-1][1] <= span[0]:
            open_spans.pop()
        if open_spans:
            above = open_spans[-1]
            if span[1] > above[1]:
                raise ValueError(f"{name} has spans that cross: {quote(tuple(above))} and {quote(tuple(span))}.")
            if span[:2] == above[:2]:
                raise ValueError(
                    f"{name} has two labels of the words {span[0]} to {span[1]}, {quote(above[2])} and "
                    f"{quote(span[2])}: join them into one, as `Constituents.spans` does."
                )
        open_spans.append(span)
    lo, hi = (np.array([span[k] for span in spans], np.int64) for k in range(2))
    return LabelledSpans(lo, hi, as_labels([span[2] for span in spans], name) if spans else np.zeros(0, "U1"))


def check_span(span: object, n_words: int, name: str, sizes: tuple[int, ...]) -> None:
    """Raise unless this is a span of a sentence with so many words, with a label or without, by its size."""
    # Tuples of Python itself are quicker to tell than others.
    if isinstance(span, str) or not isinstance(span, (tuple, Sequence)) or len(span) not in sizes:
        kinds = (
            "a triple of start, end and label"
            if 2 not in sizes
            else "a pair of start and end, or a triple with a label"
        )
        raise TypeError(f"{name} has {quote(span)}, which is not {kinds}.")
    for end in span[:2]:
        if not is_integer(end):
            raise TypeError(f"{name} has {quote(tuple(span))}, but a span must start and end at integers.")
    if not 0 <= span[0] < span[1] <= n_words:
        raise ValueError(f"{name} has {quote(tuple(span))}, but spans are within 0 to {n_words}, and not empty.")


def spans_within(labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(B, n, n + 1) flags of the spans of trees, by their labels, ABSENT where there is none, and numbers of words."""
    lo, hi = np.ogrid[: labels.shape[1], : labels.shape[2]]
    return (labels != ABSENT) & (lo < hi) & (hi <= lengths[:, np.newaxis, np.newaxis])


def are_crossing(is_span: np.ndarray) -> bool:
    """Whether any spans cross, by such flags: one goes from before a word to an end, one from this word beyond that."""
    word, end = np.ogrid[1 : is_span.shape[1], : is_span.shape[1]]
    from_before = np.logical_or.accumulate(is_span, axis=1)[:, :-1, :-1]
    beyond = np.logical_or.accumulate(is_span[:, 1:, :0:-1], axis=2)[:, :, ::-1]
    return bool((from_before & beyond & (word < end)).any())


def binarize(labels: np.ndarray, lengths: np.ndarray, n_labels: int) -> np.ndarray:
    """The outputs of trees, one after the other, by the labels of spans (B, n, n + 1), and numbers of words.

    ABSENT is the label where there is no span, UNKNOWN that of a part -1. From the top down, left before right, is by
    where spans start, wide ones first. At every place between two words a part is split: the left one is the widest
    span that ends there, or a word, and the right one ends with the narrowest span around that place.
    """
    n_words = lengths[:, np.newaxis, np.newaxis]
    lo, hi = np.ogrid[: labels.shape[1], : labels.shape[2]]
    is_part = (lo == 0) & (hi == n_words)
    is_span = is_part | spans_within(labels, lengths)
    around = np.logical_or.accumulate(is_span, axis=1)[:, :-1] & (hi > lo[1:])
    first, last = (is_span | (hi == lo + 1))[:, :, 1:-1].argmax(axis=1), around.argmax(axis=2)
    tree, place = np.nonzero(lo[1:, 0] < lengths[:, np.newaxis])
    is_part[tree, first[tree, place], place + 1] = is_part[tree, place + 1, last[tree, place]] = True
    tree, lo, hi = np.nonzero(is_part[:, :, ::-1])
    hi = labels.shape[1] - hi
    label, spans = labels[tree, lo, hi], span_number(lengths[tree], lo, hi)
    bare = lengths[tree] * (lengths[tree] + 1) // 2 * n_labels + spans
    parts = np.where(label == ABSENT, bare, np.where(label == UNKNOWN, -1, spans * n_labels + label))
    return parts.astype(np.int32)


def is_partial(tree: object) -> bool:
    """Whether a tree is given by the spans that are known of it: a set of them, or None for nothing."""
    return tree is None or isinstance(tree, (set, frozenset))


def exclude_spans(known: object, n_words: int, classes: list[object], name: str) -> np.ndarray:
    """Flags of the parts that no tree with all these spans has; those without a label may have any.

    Other spans of a binarized tree do not cross a span if and only if it is one of them.
    """
    lo, hi = np.triu_indices(n_words)
    hi = hi + 1
    of_labels, of_none = np.zeros((len(lo), len(classes)), bool), np.zeros(len(lo), bool)
    if known is not None and (isinstance(known, str) or not isinstance(known, Iterable)):
        raise TypeError(f"{name} must be a set of spans, or None, not {quote(known)}.")
    for span in () if known is None else known:
        check_span(span, n_words, name, sizes=(2, 3))
        begin, end, *label = span
        crosses = ((lo < begin) & (begin < hi) & (hi < end)) | ((begin < lo) & (lo < end) & (end < hi))
        of_labels[crosses] = of_none[crosses] = True
        at = span_number(n_words, begin, end)
        of_none[at] = True
        if label:
            named = _names(label[0], name)
            for other in named:
                if other not in classes:
                    raise ValueError(f"{name} has the label {quote(other)}, which was not seen in fit.")
            of_labels[at] |= ~np.isin(np.arange(len(classes)), [classes.index(other) for other in named])
    return np.append(of_labels.ravel(), of_none)


def _names(label: object, name: str) -> list[object]:
    """The labels that a span may have."""
    labels = [*members_of(label)]
    if not labels:
        raise ValueError(f"{name} has an empty set of labels of a span.")
    return labels


def labels_of_spans(known: Any, n_words: int, name: str) -> np.ndarray:
    """The labels that are named in what is known of a tree."""
    for span in known or ():
        check_span(span, n_words, name, sizes=(2, 3))
    labels = [label for span in known or () for named in span[2:] for label in _names(named, name)]
    return as_labels(labels, name) if labels else np.zeros(0, "U1")


def signs_of_parts(excluded: np.ndarray, n_labels: int) -> np.ndarray:
    """Of the labels of all spans: 1 where trees cannot have them, -1 where the span is known, and may have them."""
    n_spans = len(excluded) // (n_labels + 1)
    of_labels, must_have_one = excluded[:-n_spans].reshape(n_spans, n_labels), excluded[-n_spans:, np.newaxis]
    return np.where(of_labels, 1, -must_have_one.astype(np.int8)).ravel()
