"""Your own structure, from two or three Python methods.

The parts of an output are its joint features, then its cost: s(y) = (phi(x, y), cost(y)). Potentials are therefore the
weights themselves, then 0, or 1 once costs are added. Outputs are any Python objects: each example numbers those it has
seen, and an output's row of integers is its number. A dual point takes n (d + 1) numbers for n examples of d features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.arrays.vectors import add_scaled, inner
from maxmargin.losses.smoothing import EVERY, has_weight
from maxmargin.problem import IMPOSSIBLE
from maxmargin.structures.derived.seen_outputs import SeenOutputs, count_features, key_of, non_zeros, squared_distances
from maxmargin.supervision.exclusions import NoFlags
from maxmargin.wording import name_type, quote

FIRST_K = 6  # outputs asked of a model first: it cannot go on where it ended


class CustomProblem:
    """Training examples of a structure that is described by a model: an object with these methods.

    ``features(x, y)``
        The joint features of an input and an output, (d,) numbers or, where most of them are zero, a SciPy sparse array
        of the shape (d,) or (1, d); the score of y is <w, features(x, y)>.
    ``cost(y_true, y)``
        What it costs to predict y, not negative, 0 for the true output.
    ``argmax(x, w, y_true=None)``
        An output of the highest score; with `y_true`, of the highest score plus cost.
    ``outputs(x)``
        All outputs, in place of `argmax` where they are few: every oracle is then there, by enumeration.
    ``k_best(x, w, k, y_true=None)``
        Optional: the k best outputs in the sense of `argmax`, best first; fewer if there are fewer.
    ``agrees(known, y)``, or with `argmax` ``complete(x, w, known)``
        Optional: whether an output agrees with what is known, or one of the highest score that does; any one where w is
        None. Then y may hold whatever says less than an output, which `cost` and `argmax` take in place of `y_true`:
        all that agrees with it costs 0. An output agrees with itself alone.

    Outputs may be numbers, strings, tuples, lists, sets, dictionaries, arrays or any hashable objects.

    Parameters
    ----------
    model
        The object with these methods.
    X
        The inputs.
    Y
        The true outputs; None for problems that are only predicted on.
    n_features
        The number of features d, where there are no true outputs to tell it.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import BCFW, CustomProblem
    >>> from maxmargin.testing import check_structure
    >>> class Ranking:
    ...     def features(self, x, order):  # those placed early count more
    ...         return np.arange(len(order), 0, -1) @ x[list(order)]
    ...     def cost(self, true, order):
    ...         return sum(a != b for a, b in zip(true, order))
    ...     def outputs(self, x):
    ...         from itertools import permutations
    ...         return permutations(range(len(x)))
    >>> problem = CustomProblem(Ranking(), [np.array([[1.0, 2], [3, 1], [2, 5]])], [(1, 2, 0)])
    >>> check_structure(problem, outputs=problem.rows)
    >>> BCFW(steps="pairwise").solve(problem, random_state=0).status.name
    'OPTIMAL'
    """

    def __init__(self, model: Any, X: Iterable[object], Y: Iterable[Any] | None = None, n_features: int = 0) -> None:
        self.model = model
        self.X = _as_list(X, "X must be a list of examples")
        self.Y = None if Y is None else _as_list(Y, "y must be a list of outputs")
        self._can_enumerate = hasattr(model, "outputs")
        self._check_methods()
        if not self.X:
            raise ValueError("X must hold at least one example, but it is empty.")
        self._seen = [SeenOutputs() for _ in self.X]
        self._tables: dict[int, sp.csr_array] = {}  # the parts of all outputs, where these can be enumerated
        self.n_features = n_features
        self._truth = np.full((len(self.X), 1), -1, np.int32)
        self.is_weak = np.zeros(len(self.X), bool)  # of which examples less than an output is known
        self._left: list[Any] = [None] * len(self.X)  # where outputs are ruled out: what is known, or all that agree
        if self.Y is not None:
            if len(self.Y) != len(self.X):
                raise ValueError(f"X has {len(self.X)} examples, but y has {len(self.Y)}.")
            truths = [self.complete(i, y) for i, y in enumerate(self.Y)]
            self.n_features = count_features(model.features(self.X[0], truths[0]))
            for i, y in enumerate(truths):
                self._check_truth(i, y)
                self._truth[i] = self.number(i, y)
                self.is_weak[i] = y is not self.Y[i]

    def _check_methods(self) -> None:
        if isinstance(self.model, type):
            raise TypeError(f"model must be an object, not a class: {self.model.__name__}().")
        for name in ("features", "cost", *(() if self._can_enumerate else ("argmax",))):
            if not callable(getattr(self.model, name, None)):
                also = " or outputs(x)" if name == "argmax" else ""
                raise TypeError(
                    f"{type(self.model).__name__} needs a method {name}{also}: see maxmargin.CustomProblem."
                )
        self._find_oracles()

    def _find_oracles(self) -> None:
        """An oracle that the model does not allow must not be there: that is how solvers know."""
        if self._can_enumerate or hasattr(self.model, "k_best"):
            self.topk_oracle = self._topk_oracle
        if self._can_enumerate:
            self.exp_oracle = self._exp_oracle
            self.squared_diameters = self._squared_diameters

    def complete(self, i: int, known: Any, name: str = "y") -> Any:
        """An output of example i that agrees with what is known: itself, if it is an output."""
        if not self._can_enumerate:
            output = self.model.complete(self.X[i], None, known) if hasattr(self.model, "complete") else known
            return known if output is known or key_of(output) == key_of(known) else output
        if not hasattr(self.model, "agrees"):
            return known
        outputs = [*self.model.outputs(self.X[i])]
        if any(key_of(output) == key_of(known) for output in outputs):
            return known
        for output in outputs:
            if self.model.agrees(known, output):
                return output
        raise ValueError(f"{name}[{i}], {quote(known)}, leaves no output of X[{i}].")

    def _agreeing(self, i: int, known: object) -> np.ndarray:
        """Which outputs of example i, by number, agree with what is known."""
        seen = self._enumerate(i)
        number = seen.numbers.get(key_of(known))
        if number is not None:
            return np.arange(len(seen.outputs)) == number
        return np.array([bool(self.model.agrees(known, y)) for y in seen.outputs])

    def restrict(self, known: list[object]) -> CustomProblem:
        """With only those outputs that agree with what is known of each example; None where nothing is."""
        method = "agrees" if self._can_enumerate else "complete"
        if isinstance(known, Blocks):
            raise NoFlags("Outputs of your own are restricted by what is known of each, not by flags of features.")
        if not hasattr(self.model, method):
            raise TypeError(f"{type(self.model).__name__} needs a method {method}: see maxmargin.CustomProblem.")
        other = copy(self)
        other._left = [*self._left]
        for i, what in enumerate(known):
            if what is not None and self._can_enumerate:
                is_left = self._agreeing(i, what)
                other._left[i] = is_left if self._left[i] is None else is_left & self._left[i]
            elif what is not None:
                other._left[i] = what
        vars(other).pop("topk_oracle", None)
        if self._can_enumerate:
            other._find_oracles()
        return other

    def _check_truth(self, i: int, y: Iterable[object]) -> None:
        cost = self._cost(i, y)
        if cost != 0:
            same = f"y[{i}]" if y is self.Y[i] else quote(y)  # type: ignore[index]
            raise ValueError(f"cost(y[{i}], {same}) must be 0, but it is {cost:g}.")
        if self._can_enumerate and key_of(y) not in self._enumerate(i).numbers:
            raise ValueError(f"y[{i}], {quote(y)}, is not among outputs(X[{i}]).")

    # --- checkpoints ------------------------------------------------------------------------------------------------

    def identity(self) -> tuple[object, ...]:
        """What tells it from other problems: the model, by its class and attributes, and the examples."""
        kind = type(self.model)
        return f"{kind.__module__}.{kind.__qualname__}", getattr(self.model, "__dict__", {}), self.X, self.Y

    def snapshot(self) -> list[list[object]]:
        """The outputs that were seen so far, by number."""
        return [seen.outputs for seen in self._seen]

    def restore(self, snapshot: list[list[object]]) -> None:
        """Number outputs as they were."""
        for i, outputs in enumerate(snapshot):
            for y in outputs:
                self.number(i, y)

    # --- outputs as numbers -----------------------------------------------------------------------------------------

    def number(self, i: int, y: object) -> int:
        """The number of an output of example i, a new one if it was not seen before."""
        if y is None:
            raise TypeError(f"The model returned None as an output of X[{i}], which stands for one that is not known.")
        seen, key = self._seen[i], key_of(y)
        if key not in seen.numbers:
            seen.add(key, y, self._parts_of(i, y))
        return seen.numbers[key]

    def output(self, i: int, row: np.ndarray) -> object:
        """The output of example i with the number row[0]."""
        return self._seen[i].outputs[row[0]]

    def rows(self, i: int) -> Iterator[np.ndarray]:
        """All outputs of example i as rows of integers, for `check_structure`; needs `outputs` of the model."""
        for y in self.model.outputs(self.X[i]):
            yield np.array([self.number(i, y)], np.int32)

    def _cost(self, i: int, y: object) -> float:
        cost = self.model.cost(self.Y[i], y)  # type: ignore[index]
        try:
            return float(cost)
        except (TypeError, ValueError):
            raise TypeError(f"cost(y[{i}], {quote(y)}) must be a number, not {quote(cost)}.") from None

    def _parts_of(self, i: int, y: object) -> tuple[np.ndarray, np.ndarray]:
        """The parts of an output that are not zero: their numbers and values."""
        indices, values = non_zeros(self.model.features(self.X[i], y), self.n_features, f"features(X[{i}], {y!r})")
        cost = 0.0 if self.Y is None else self._cost(i, y)
        if not 0 <= cost < np.inf:
            raise ValueError(f"cost(y[{i}], {y!r}) must be finite and not negative, but it is {cost}.")
        return (np.append(indices, self.n_features), np.append(values, cost)) if cost else (indices, values)

    def _enumerate(self, i: int) -> SeenOutputs:
        """Number all outputs of example i, in the order of the model, and keep the table of their parts."""
        if i not in self._tables:
            for y in self.model.outputs(self.X[i]):
                self.number(i, y)
            if not self._seen[i].outputs:
                raise ValueError(f"outputs(X[{i}]) must yield at least one output.")
            indices, values = zip(*self._seen[i].parts, strict=True)
            ends = starts_of([len(row) for row in indices])
            entries = np.concatenate(values), np.concatenate(indices), ends
            self._tables[i] = sp.csr_array(entries, (len(indices), self.n_features + 1))
        return self._seen[i]

    def _values(self, i: int, theta: np.ndarray) -> np.ndarray:
        """The scores of all outputs of example i."""
        self._enumerate(i)
        values = self._tables[i] @ theta
        return values if self._left[i] is None else np.where(self._left[i], values, IMPOSSIBLE)

    # --- sizes ------------------------------------------------------------------------------------------------------

    def true_outputs(self) -> np.ndarray:
        return self._truth

    def new_weights(self) -> np.ndarray:
        return np.zeros(self.n_features)

    def part_sizes(self) -> np.ndarray:
        return np.full(len(self.X), self.n_features + 1)

    def workspace(self, n_best: int) -> None:
        return None

    def _squared_diameters(self) -> np.ndarray:
        """By the largest distance from the mean of an example's outputs."""
        for i in range(len(self.X)):
            self._enumerate(i)
        tables = (self._tables[i][:, :-1] for i in range(len(self.X)))
        return np.array([4 * squared_distances(table).max() for table in tables])

    # --- the linear map: potentials are weights ---------------------------------------------------------------------

    def scores(self, w: np.ndarray, i: int, theta: np.ndarray) -> None:
        theta[:-1] = w
        theta[-1] = 0

    def spread(self, w: np.ndarray, i: int, delta: np.ndarray, scale: float) -> None:
        add_scaled(w, delta[:-1], scale)

    def squared_norm(self, i: int, delta: np.ndarray, work: object) -> float:
        return inner(delta[:-1], delta[:-1])

    # --- outputs and costs ------------------------------------------------------------------------------------------

    def augment(self, i: int, theta: np.ndarray) -> None:
        theta[-1] += 1

    def add_output(self, i: int, y: np.ndarray, scale: float, mu: np.ndarray) -> None:
        indices, values = self._seen[i].parts[y[0]]
        mu[indices] += scale * values

    def score_output(self, i: int, theta: np.ndarray, y: np.ndarray) -> float:
        indices, values = self._seen[i].parts[y[0]]
        return float(theta.take(indices) @ values)

    # --- oracles ----------------------------------------------------------------------------------------------------

    def _question(self, i: int, theta: np.ndarray) -> tuple[object, ...]:
        """What to ask the model: potentials (w, c) rank outputs as the weights w/c with costs, or w without."""
        w, weight = theta[:-1].copy(), theta[-1]
        if weight > 0:
            return (w if weight == 1 else w / weight), self.Y[i]  # type: ignore[index]
        return w, None

    def max_oracle(self, i: int, theta: np.ndarray, y: np.ndarray, work: object) -> float:
        if self._left[i] is not None and not self._can_enumerate:
            y[0] = self.number(i, self.model.complete(self.X[i], theta[:-1].copy(), self._left[i]))
        elif self._left[i] is None and hasattr(self.model, "argmax"):
            w, truth = self._question(i, theta)
            y[0] = self.number(i, self.model.argmax(self.X[i], w, truth))
        else:
            y[0] = np.argmax(self._values(i, theta))
        return self.score_output(i, theta, y)

    def _topk_oracle(
        self, i: int, theta: np.ndarray, outputs: np.ndarray, values: np.ndarray, level: float, work: object
    ) -> int:
        """Asks a model for a few outputs first, and for twice as many while all of them have a weight."""
        k = len(values) if level == EVERY or self._can_enumerate else min(FIRST_K, len(values))
        while True:
            best = self._best_numbers(i, theta, k)
            for rank, number in enumerate(best):
                outputs[rank] = number
                values[rank] = self.score_output(i, theta, outputs[rank])
            if len(best) < k or k == len(values) or not has_weight(values, k - 1, level):
                return len(best)
            k = min(2 * k, len(values))

    def _best_numbers(self, i: int, theta: np.ndarray, k: int) -> list[int]:
        if self._left[i] is not None or not hasattr(self.model, "k_best"):
            values = self._values(i, theta)
            return np.argsort(-values, kind="stable")[: min(k, int((values > IMPOSSIBLE / 2).sum()))].tolist()
        w, truth = self._question(i, theta)
        return [self.number(i, y) for y in self.model.k_best(self.X[i], w, k, truth)][:k]

    def _exp_oracle(self, i: int, theta: np.ndarray, mu: np.ndarray, work: object) -> float:
        values = self._values(i, theta)
        shares = np.exp(values - values.max())
        mu[:] = self._tables[i].T @ (shares / shares.sum())
        return float(values.max() + np.log(shares.sum()))


def _as_list(values: Iterable[object], message: str) -> list[object]:
    try:
        return list(values)
    except (TypeError, ValueError):
        raise TypeError(f"{message}, not {name_type(values)}.") from None
