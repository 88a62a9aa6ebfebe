"""How weights lie: those of a model and those of a solver, and what their inner product is.

A model has its weights in the order of their names. A solver may have them in another order, which is faster, and more
of them: some that stay zero, some that follow from the others. Whoever has weights asks their layout, and need not know
what features they are of: a problem joins those of its features, each of which says by `lay_out` how its own lie.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays.vectors import inner
from maxmargin.features.linear_map import weight_shape
from maxmargin.problem import layout, new_weights
from maxmargin.runtime.dispatch import generic, supports


class WeightLayout:
    """Weights that are numbers of their own, with the ordinary inner product.

    Parameters
    ----------
    n_solved
        How many of them a solver has.
    place
        Where it has each weight of a model; None where both have the same.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.features.layout import WeightLayout
    >>> layout = WeightLayout(3, place=np.array([2, 0]))
    >>> layout.to_solver(np.array([5.0, 7.0]))
    array([7., 0., 5.])
    >>> layout.to_model(np.array([7.0, 0.0, 5.0]))
    array([5., 7.])
    """

    is_explicit = True  # whether solvers may change them one by one; else only by what examples add to them

    def __init__(self, n_solved: int, place: NDArray[np.integer] | None = None) -> None:
        self.n_solved, self.place = n_solved, place
        self.n_weights = n_solved if place is None else len(place)  # of the model

    @overload
    def to_solver(self, values: NDArray, other: float = 0.0) -> NDArray: ...

    @overload
    def to_solver(self, values: None, other: float = 0.0) -> None: ...

    def to_solver(self, values: NDArray | None, other: float = 0.0) -> NDArray | None:
        """Weights of a model, or bounds of them, as a solver has them; `other` is for those that the model lacks."""
        if self.place is None or values is None:
            return values
        moved = np.full(self.n_solved, other, np.result_type(values, np.float32))
        moved[self.place] = values
        return moved

    def to_model(self, w: NDArray) -> NDArray:
        """The weights of a model, of those of a solver."""
        return w if self.place is None else w[self.place]

    def put(self, w: NDArray, weights: NDArray) -> None:
        """Put a solver's weights in the place of those of a model."""
        weights[:] = self.to_model(w)

    def complete(self, w: NDArray) -> None:
        """Fill in, in place, what sums over examples leave out of a solver's weights."""

    def inner(self, a: NDArray, b: NDArray) -> float:
        """The inner product of two of a solver's weights, in float64."""
        return float(np.dot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))

    def squared_length(self, w: NDArray) -> float:
        """||w||^2 of a solver's weights, in float64; not below it, where more than this sum is rounded."""
        return float(inner(w, w))


class PartialLayout(WeightLayout):
    """Weights of a model of which a solver has some: those that a portion of the examples meets.

    Parameters
    ----------
    n_solved, place
        As of `WeightLayout`, of these.
    which
        Which of the model's weights they are.
    n_weights
        The number of the model's weights.
    """

    def __init__(self, n_solved: int, place: NDArray[np.integer], which: NDArray[np.integer], n_weights: int) -> None:
        super().__init__(n_solved, place)
        self.which, self.n_weights = which, n_weights

    def to_solver(self, values: Any, other: float = 0.0) -> Any:
        return None if values is None else super().to_solver(values[self.which], other)

    def to_model(self, w: NDArray) -> NDArray:
        """The weights of a model, zero where a solver does not have them."""
        moved = np.zeros(self.n_weights, w.dtype)
        self.put(w, moved)
        return moved

    def put(self, w: NDArray, weights: NDArray) -> None:
        weights[self.which] = w[self.place]


class ScaledLayout(WeightLayout):
    """Weights that a solver has divided by numbers of their own: the larger these, the less weights are regularized.

    Parameters
    ----------
    scale
        The numbers, one for each weight of the model.
    """

    def __init__(self, scale: NDArray) -> None:
        super().__init__(len(scale))
        self.scale = scale

    def to_solver(self, values: Any, other: float = 0.0) -> Any:
        return None if values is None else (values / self.scale).astype(values.dtype)

    def to_model(self, w: NDArray) -> NDArray:
        """The weights of a model; the gradient of a solver's weights, of that of a model's."""
        return (w * self.scale).astype(w.dtype)


class JoinedLayout(WeightLayout):
    """Weights of which each part has a layout of its own, one after the other."""

    def __init__(self, parts: tuple[WeightLayout, ...]) -> None:
        places, self.pieces, n_solved = [], [], 0
        for part in parts:
            place = np.arange(part.n_solved, dtype=np.uint32) if part.place is None else part.place
            places.append(n_solved + place)
            self.pieces.append((part, slice(n_solved, n_solved + part.n_solved)))
            n_solved += part.n_solved
        is_same = all(part.place is None for part in parts)
        super().__init__(n_solved, None if is_same else np.concatenate(places))
        self.is_explicit = all(part.is_explicit for part in parts)

    def complete(self, w: NDArray) -> None:
        for part, piece in self.pieces:
            part.complete(w[piece])

    def inner(self, a: NDArray, b: NDArray) -> float:
        return sum(part.inner(a[piece], b[piece]) for part, piece in self.pieces)

    def squared_length(self, w: NDArray) -> float:
        return sum(part.squared_length(w[piece]) for part, piece in self.pieces)


def join_layouts(*parts: WeightLayout) -> WeightLayout:
    """The layout of weights that stand one after the other."""
    joined = JoinedLayout(parts)
    if joined.place is None or not any(isinstance(part, PartialLayout) for part in parts):
        return WeightLayout(joined.n_solved, joined.place) if joined.is_explicit else joined
    *firsts, n_weights = accumulate((part.n_weights for part in parts), initial=0)
    which = [
        first + (part.which if isinstance(part, PartialLayout) else np.arange(part.n_weights, dtype=np.uint32))
        for first, part in zip(firsts, parts, strict=True)
    ]
    return PartialLayout(joined.n_solved, joined.place, np.concatenate(which), n_weights)


@generic
def lay_out(features, n_features, n_labels):
    """How the weights of features lie, where not as numbers of their own in the model's order: a `WeightLayout`."""


@generic
def keep_complete(field):
    """Features, or what holds some, with which steps on single examples leave weights complete.

    Fields of problems implement it where that is not always so.
    """


@generic
def drop_unmet(features):
    """Features of a portion of the examples, without the weights that these do not meet.

    Fields of problems implement it where they can tell.
    """


def layout_of_rows(features: object, n_features: int, n_labels: int) -> WeightLayout:
    """How the weights of features lie."""
    if supports(lay_out, features):
        return lay_out(features, n_features, n_labels)
    return WeightLayout(math.prod(weight_shape(features, n_features, n_labels)))


def layout_of(problem: object) -> WeightLayout:
    """How the weights of a problem lie."""
    return layout(problem) if supports(layout, problem) else WeightLayout(new_weights(problem).size)


def with_complete_steps(problem: Any) -> Any:
    """The problem whose steps on single examples leave weights complete."""
    found = {name: keep_complete(part) for name, part in problem._asdict().items() if supports(keep_complete, part)}
    return problem._replace(**found)


def without_unmet(problem: Any) -> Any:
    """The problem of a portion of the examples, without weights that these do not meet."""
    fields = {name: getattr(problem, name) for name in getattr(problem, "_fields", ())}  # none of those in Python
    found = {name: drop_unmet(part) for name, part in fields.items() if supports(drop_unmet, part)}
    return problem._replace(**found) if found else problem
