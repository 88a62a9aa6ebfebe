"""Which transitions labellings may have: what users allow, and what a scheme of tags leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.encode.inputs.example_checks import check_array, locate
from maxmargin.encode.partial.annotations import Annotations
from maxmargin.problem import IMPOSSIBLE
from maxmargin.text.schemes import fitting_scheme, read_tags, scheme_named, scheme_table, violation


def transition_penalties(allowed: object, classes: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """The potentials of transitions before any weight: zero, or IMPOSSIBLE for those that are not allowed."""
    n_labels = len(classes)
    if allowed is None:
        return np.zeros((n_labels, n_labels), dtype)
    if isinstance(allowed, (set, frozenset, list, tuple)) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in allowed
    ):
        index = {label: k for k, label in enumerate(classes.tolist())}
        mask = np.zeros((n_labels, n_labels), bool)
        for before, after in allowed:
            for label in (before, after):
                if label not in index:
                    raise ValueError(f"allowed_transitions names {label!r}, which is not a label in y.")
            mask[index[before], index[after]] = True
    else:
        kind = f"a boolean matrix of shape ({n_labels}, {n_labels}) or a set of pairs of labels"
        mask = check_array(allowed, "allowed_transitions", kind, (n_labels, n_labels), dtypes="b")
    return np.where(mask, 0, IMPOSSIBLE).astype(dtype)


def check_transitions(penalty: np.ndarray, labels: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> None:
    """Raise where true labels have a transition that is not allowed."""
    is_excluded = penalty[labels[:-1], labels[1:]] != 0
    is_excluded[starts[1:-1] - 1] = False  # from one sequence to the next
    if is_excluded.any():
        token = int(np.flatnonzero(is_excluded)[0])
        before, after = classes[labels[token : token + 2]].tolist()
        i, _ = locate(token, starts)
        raise ValueError(f"y[{i}] goes from {before!r} to {after!r}, which allowed_transitions forbids.")


def scheme_penalties(
    constraints: object, known: Annotations, starts: np.ndarray, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """The potentials of transitions, (L, L), and of the first and last label, (2, L), that a scheme of tags leaves."""
    classes = known.classes
    if constraints is None:
        return np.zeros((len(classes), len(classes)), dtype), np.zeros((2, len(classes)), dtype)
    scheme = "auto" if constraints == "auto" else scheme_named(constraints, "constraints")
    sequences = np.split(classes[known.labels], starts[1:-1])
    if known.allowed is not None:
        is_weak = known.is_weak(starts)
        sequences = [tags[:0] if weak else tags for tags, weak in zip(sequences, is_weak, strict=True)]
        if scheme == "auto" and is_weak.all():
            raise ValueError('constraints="auto" needs a sequence in y whose labels are all known: name the scheme.')
        read_tags([[tag] for tag in classes.tolist()], "classes")
    tagging = read_tags(sequences)
    scheme = fitting_scheme(tagging) if scheme == "auto" else scheme
    broken = violation(tagging, scheme)
    if broken:
        raise ValueError(f"{broken} maxmargin.text.convert_tags(y, {scheme!r}) repairs tags, as conlleval reads them.")
    table = np.where(scheme_table(classes.tolist(), scheme), 0, IMPOSSIBLE).astype(dtype)
    return table[:-1, :-1], np.stack([table[-1, :-1], table[:-1, -1]])


def check_feasible(allowed: np.ndarray, ends_allowed: np.ndarray, lengths: np.ndarray) -> None:
    """Raise where no labelling of some sequence has only transitions, first and last labels that are allowed."""
    reachable, is_last = ends_allowed
    missing = np.unique(lengths)
    for length in range(1, int(lengths.max(initial=0)) + 1):
        if length in missing and not (reachable & is_last).any():
            i = int(np.flatnonzero(lengths == length)[0])
            raise ValueError(
                f"No labelling of X[{i}], of length {length}, keeps to allowed_transitions and constraints."
            )
        before, reachable = reachable, allowed[reachable].any(axis=0)
        if (before == reachable).all() and (reachable & is_last).any():  # and so for all that are longer
            return
