"""What users say of labels: one each or, of some positions, less: None, a set of labels, or their probabilities.

Of what is known in part, the labels of a set are *allowed*; None allows all, probabilities those above zero. Where a
whole example is None, nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.encode.inputs import example_checks
from maxmargin.problem import AnyProblem, all_true_outputs, restrict
from maxmargin.supervision.costs import labelling_costs
from maxmargin.supervision.label_supervision import NO_LABEL, LabelSupervision, supervise, without_costs
from maxmargin.supervision.tallies import others_are_weak
from maxmargin.supervision.weak import Weak
from maxmargin.wording import count_of, quote

PARTIAL = set, frozenset, dict, list, tuple, np.ndarray, Mapping  # the frequent ones first, as this one is slow to tell
UNHASHABLE = set, dict, list, tuple, np.ndarray, Mapping
SUM_OF_SHARES = 1e-4  # how far from 1 probabilities may add up to


Fail = Callable[[int, str], None]  # raises for a row, and says what is wrong with it
NO_EDGES = np.zeros((0, 2), np.int64)


class Annotations(NamedTuple):
    """What is known of the labels of N nodes, of which there are L."""

    classes: np.ndarray  # (L,)
    labels: np.ndarray  # (N,) the true ones, or some that agree with what is known
    allowed: np.ndarray | None = None  # (N, L) flags of what agrees with what is known; None where all labels are known
    shares: np.ndarray | None = None  # (N, L) probabilities where they are known, and zeros; None where none are

    def open_and_soft(self) -> tuple[np.ndarray, np.ndarray]:
        """(N,) flags of nodes with several labels that agree, and of those with probabilities."""
        is_open = np.zeros(len(self.labels), bool) if self.allowed is None else self.allowed.sum(axis=1) > 1
        is_soft = np.zeros(len(self.labels), bool)
        if self.shares is not None:
            is_soft |= self.shares.any(axis=1)
        return is_open & ~is_soft, is_soft

    def is_weak(self, starts: np.ndarray) -> np.ndarray:
        """(n,) flags of examples of which less, or other, than one label of each node is known."""
        counts = np.concatenate([[0], np.cumsum(np.any(self.open_and_soft(), axis=0))])
        return np.diff(counts[starts]) > 0

    def means(self) -> np.ndarray:
        """(N, L) probabilities of labels: of nodes without any, 1 of their one label."""
        table = np.eye(len(self.classes))[self.labels]
        _, is_soft = self.open_and_soft()
        if self.shares is not None:
            table[is_soft] = self.shares[is_soft]
        return table

    def counts(self, weight: np.ndarray) -> np.ndarray:
        """(L,) weights of nodes, by label: a set counts in equal shares, an unknown label not at all."""
        if self.allowed is None:
            return np.bincount(self.labels, weight, minlength=len(self.classes))
        is_open, _ = self.open_and_soft()
        table = self.evenly()
        table[is_open & self.allowed.all(axis=1)] = 0
        return weight @ table

    def evenly(self) -> np.ndarray:
        """(N, L) probabilities of labels, those of a set in equal shares."""
        table, (is_open, _) = self.means(), self.open_and_soft()
        if self.allowed is not None:
            table[is_open] = self.allowed[is_open] / self.allowed[is_open].sum(axis=1, keepdims=True)
        return table

    def excluded(self) -> np.ndarray:
        """(N, L) flags of labels that do not agree; of nodes with probabilities, which replace it, of all but one."""
        is_open, _ = self.open_and_soft()
        table = np.arange(len(self.classes)) != self.labels[:, np.newaxis]
        if self.allowed is not None:
            table[is_open] = ~self.allowed[is_open]
        return table

    def without(self, excluded: np.ndarray, starts: np.ndarray, why: str) -> Annotations:
        """The same with labels (N, L) excluded; raises where none is left, or a probability is known of one of them."""
        if self.allowed is None:
            return self
        _, is_soft = self.open_and_soft()
        allowed = self.allowed & ~excluded
        is_lost = ~allowed.any(axis=1) | (is_soft & (allowed != self.allowed).any(axis=1))
        if is_lost.any():
            i, place = example_checks.locate(int(np.argmax(is_lost)), starts)
            raise ValueError(f"y[{i}] leaves no label for node {place}, or a probability to one: {why}.")
        is_left = np.take_along_axis(allowed, self.labels[:, np.newaxis], axis=1)[:, 0]
        return self._replace(allowed=allowed, labels=np.where(is_left, self.labels, np.argmax(allowed, axis=1)))


def price_annotations(known: Annotations, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(A, L) costs of annotations, the first of which are the labels, and (N,) the annotation of each node.

    A set costs nothing where one of its labels is predicted, else as much as the cheapest of them would; probabilities
    cost what is expected.
    """
    rows, annotation = [matrix], known.labels.copy()
    is_open, is_soft = known.open_and_soft()
    if is_open.any() and known.allowed is not None:
        flags = known.allowed[is_open]
        packed = np.packbits(flags, axis=1)  # in less memory, and a sort of it in less time
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        sets = flags[first]
        annotation[is_open] = len(matrix) + which.ravel()
        rows.append(np.stack([np.where(members, 0.0, matrix[members].min(axis=0)) for members in sets]))
    if is_soft.any() and known.shares is not None:
        shares, which = np.unique(known.shares[is_soft], axis=0, return_inverse=True)
        annotation[is_soft] = sum(map(len, rows)) + which.ravel()
        rows.append(shares @ matrix)
    return np.concatenate(rows), annotation


def supervise_annotations(
    known: Annotations, cost: object, class_weight: object, lengths: np.ndarray, dtype: DTypeLike, weight: np.ndarray
) -> LabelSupervision:
    """What is known of labels, with the costs of others and the weights of nodes, as users give them."""
    if cost is None:
        return without_costs(known.labels, len(known.classes), dtype)
    counts = known.counts(np.ones(len(known.labels)))
    matrix, scales = labelling_costs(cost, class_weight, known.classes, counts, lengths, weight)
    costs, annotation = price_annotations(known, matrix)
    return supervise(known.labels, costs, scales, dtype, annotation)


def find_weak(encoder: Any, problem: AnyProblem, known: Annotations, ends: np.ndarray = NO_EDGES) -> Weak | None:
    """What is known beyond the labels of a problem; None where all labels are known.

    Edges have these `ends`, of nodes that are counted over all examples.
    """
    is_open, is_soft = known.open_and_soft()
    is_asked = is_open.any() or others_are_weak()
    if not (is_asked or is_soft.any()):
        return None
    starts = all_true_outputs(problem).starts
    _refuse_neighbours(is_open, is_soft, ends, starts)
    consistent = restrict(problem, encoder.exclude(problem, known.excluded())) if is_asked else None
    target = encoder.mean_parts(problem, known.means()) if is_soft.any() else None
    return Weak(consistent, target, known.is_weak(starts))


def _refuse_neighbours(is_open: np.ndarray, is_soft: np.ndarray, ends: np.ndarray, starts: np.ndarray) -> None:
    """Raise where a node with probabilities is joined to one that is not known, or in a set.

    The mean parts of their edge depend on the label of the latter, so that probabilities are no linear term.
    """
    for soft, unknown in (ends.T, ends[:, ::-1].T):
        is_mixed = is_soft[soft] & is_open[unknown]
        if is_mixed.any():
            first, second = soft[np.argmax(is_mixed)], unknown[np.argmax(is_mixed)]
            i, place = example_checks.locate(int(first), starts)
            _, other = example_checks.locate(int(second), starts)
            raise ValueError(
                f"y[{i}] has probabilities of the labels at place {place}, but the label at place {other}, which is "
                "joined to it, is not known or in a set: then what is expected of both is not defined. Give a label, "
                "or probabilities, there, too."
            )


def is_partial(known: object) -> bool:
    """Whether what is known of a node is less, or other, than one label."""
    return known is None or isinstance(known, PARTIAL) or (isinstance(known, float | np.floating) and np.isnan(known))


def have_partial(y: object) -> bool:
    """Whether something is known in part only, among the labels of examples or of nodes."""
    if not isinstance(y, (Sequence, np.ndarray)) or isinstance(y, str):
        return False
    for known in y:
        if isinstance(known, np.ndarray) and known.dtype != object:
            if known.ndim > 1 or (known.dtype.kind == "f" and np.isnan(known).any()):
                return True
        elif (
            known is None
            or isinstance(known, (set, frozenset, Mapping))
            or (isinstance(known, (list, tuple, np.ndarray)) and any(map(is_partial, known)))
        ):
            return True
    return False


def learn_annotations(
    y: object,
    lengths: np.ndarray,
    starts: np.ndarray,
    noun: str,
    *,
    is_stacked: bool = False,
    also: Mapping[int, Sequence[object]] | None = None,
    former: np.ndarray | None = None,
) -> Annotations:
    """Read what is known of training examples, whose numbers of rows are given; `noun` is for messages.

    Labels may `also` be named elsewhere, given the examples where they are, if y is known in part; those of a `former`
    model are labels, too.
    """
    y = [*y] if isinstance(y, Iterator) else y
    try:
        flat = example_checks.flatten_labels(y, lengths, noun, is_stacked=is_stacked)
    except (TypeError, ValueError):
        if not have_partial(y):
            raise
    else:
        return Annotations(*example_checks.learn_classes(flat, starts, former))
    known = flatten_known(y, lengths, noun, "y", is_stacked=is_stacked)
    names = [*dict.fromkeys(_list_names(known, starts, also or {}))]
    if names or former is not None:
        classes = example_checks.join_classes(former, np.unique(example_checks.as_labels(names, "y")))
    else:
        rows = [len(entry) for entry in known if isinstance(entry, (list, tuple, np.ndarray))]
        if not rows:
            raise ValueError("y must hold at least one label, but nothing of it is known.")
        classes = np.arange(rows[0])
    if example_checks.seem_unknown(classes):
        is_unknown = [not is_partial(entry) and entry == NO_LABEL for entry in known]
        example_checks.refuse_unknown(np.where(is_unknown, NO_LABEL, 0), starts)
    return read_known(known, classes, starts, "y", noun="row")


def _list_names(known: list[Any], starts: np.ndarray, also: Mapping[int, Sequence[object]]) -> Iterator[object]:
    """The labels that are named; raises where they are not all integers, or all strings."""
    first: tuple[int, bool] | None = None
    seen: set[Any] = set()  # labels and sets, which come again and again
    for i, (lo, hi) in enumerate(pairwise(starts.tolist())):
        for entry in (*known[lo:hi], *([frozenset(also[i])] if i in also else [])):
            if not isinstance(entry, UNHASHABLE):
                if entry in seen:
                    continue
                seen.add(entry)
            is_named = isinstance(entry, (set, frozenset, Mapping))
            for label in entry if is_named else () if is_partial(entry) else (entry,):
                if not isinstance(label, (str, int, np.integer, np.bool_)):
                    raise TypeError(f"y[{i}] must be a list of integers or of strings.")
                first = first or (i, isinstance(label, str))
                if isinstance(label, str) != first[1]:
                    raise TypeError(f"y[{i}] holds labels of another type than y[{first[0]}].")
                yield label


def flatten_known(known: Any, lengths: np.ndarray, noun: str, name: str, *, is_stacked: bool) -> list[object]:
    """What is known of all nodes, in one list; `known` has an entry per example or, if stacked, may be such a list."""
    known = [*known] if isinstance(known, Iterator) else known
    is_long = is_stacked and hasattr(known, "__len__") and len(known) == lengths.sum() and not isinstance(known, str)
    if is_long and not any(isinstance(entry, (list, tuple, np.ndarray)) for entry in known):
        return [*known]
    example_checks.check_truths(known, len(lengths), f"one sequence of labels per {noun} of X", noun, name)
    flat: list[Any] = []
    for i, (entries, length) in enumerate(zip(known, lengths, strict=True)):
        if entries is None:
            flat += [None] * int(length)
            continue
        if not isinstance(entries, (Sequence, np.ndarray)) or isinstance(entries, str):
            raise TypeError(f"{name}[{i}] must be a list of what is known of each row, not {quote(entries)}.")
        if len(entries) != length:
            raise ValueError(
                f"{name}[{i}] has {count_of(len(entries), 'label')}, but X[{i}] has {count_of(length, 'row')}."
            )
        flat += entries.tolist() if isinstance(entries, np.ndarray) and entries.ndim == 1 else [*entries]
    return flat


def read_known(known: list[object], classes: np.ndarray, starts: np.ndarray, name: str, *, noun: str) -> Annotations:
    """What is known of nodes, given the classes; `name` and `noun`, what a node is, are for messages."""
    number = {label: k for k, label in enumerate(classes.tolist())}
    n_labels = len(classes)
    rows: list[np.ndarray] = []  # flags of labels that are allowed, once for what comes again and again
    seen: dict[Any, int] = {}
    which = np.zeros(len(known), np.int64)
    shares: np.ndarray | None = None

    def fail(t: int, what: str, kind: type[Exception] = ValueError) -> None:
        i, place = example_checks.locate(t, starts)
        raise kind(f"{name}[{i}] {what} at {noun} {place}.")

    for t, entry in enumerate(known):
        is_listed = not isinstance(entry, UNHASHABLE)
        if is_listed and entry in seen:
            which[t] = seen[entry]
            continue
        row = np.zeros(n_labels, bool)
        if not is_partial(entry):
            _allow(entry, number, row, t, fail)
        elif entry is None or isinstance(entry, (float, np.floating)):
            row[:] = True
        elif isinstance(entry, (set, frozenset)):
            if not entry:
                fail(t, "has an empty set of labels")
            for label in entry:
                _allow(label, number, row, t, fail)
        else:
            found = _read_shares(entry, number, n_labels, t, fail)
            row = found > 0 if found.max() < 1 else found == 1
            if found.max() < 1:
                shares = np.zeros((len(known), n_labels)) if shares is None else shares
                shares[t] = found
        which[t] = len(rows)
        rows.append(row)
        if is_listed:
            seen[entry] = which[t]
    allowed = np.reshape(rows, (len(rows), n_labels))[which]
    return Annotations(classes, np.argmax(allowed, axis=1), allowed, shares)


def _allow(label: object, number: dict[object, int], row: np.ndarray, t: int, fail: Fail) -> None:
    code = number.get(label, -1) if isinstance(label, (str, int, np.integer, np.bool_)) else -1
    if code < 0:
        fail(t, f"names {quote(label)}, which is not one of the labels that were seen in fit,")
    row[code] = True


def _read_shares(entry: object, number: dict[object, int], n_labels: int, t: int, fail: Fail) -> np.ndarray:
    """The probabilities of all labels."""
    row = np.zeros(n_labels)
    if isinstance(entry, Mapping):
        seen = np.zeros(n_labels, bool)
        for label, share in entry.items():
            _allow(label, number, seen, t, fail)
            row[number[label]] = share if isinstance(share, (int, float, np.number)) else np.nan
    else:
        values = np.asarray(entry)
        if values.shape != (n_labels,) or values.dtype.kind not in "biuf":
            fail(t, f"has {quote(entry)} in place of {n_labels} probabilities, one per label,")
        row[:] = values
    if not ((row >= 0).all() and abs(row.sum() - 1) <= SUM_OF_SHARES):
        fail(t, f"has {quote(entry)}, but probabilities are not negative and add up to 1,")
    return row / row.sum()
