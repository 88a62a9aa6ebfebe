"""Weights in the order in which a problem is solved fastest, behind the back of whoever asks for its solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import arranged, new_weights
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.held_out import HeldOut
from maxmargin.solvers.run import Result


class Arrangement:
    """A problem as solvers take it, and the way of weights there and back.

    Parameters
    ----------
    problem : the examples
    """

    def __init__(self, problem: Any) -> None:
        found = arranged(problem) if supports(arranged, problem) else None
        self.problem: Any = problem
        self.place: np.ndarray | None = None
        if found is not None:
            self.problem, self.place = found

    def there(self, values: Any, other: float = 0.0) -> Any:
        """Weights, or bounds of them, in the solver's order; `other` is what weights without an old place have."""
        if self.place is None or np.ndim(values) != 1 or len(values) != len(self.place):
            return values
        moved = np.full(new_weights(self.problem).size, other, np.result_type(np.asarray(values), np.float32))
        moved[self.place] = values
        return moved

    def start(self, start: Any) -> Any:
        """What a run starts from."""
        if isinstance(start, Result):
            return start._replace(w=self.there(start.w))
        return self.there(start) if isinstance(start, (np.ndarray, list)) else start

    def held_out(self, held_out: HeldOut | None) -> HeldOut | None:
        """Held-out data, which judge weights in their own order."""
        if held_out is None or self.place is None:
            return held_out
        return HeldOut(lambda w: held_out.score(self.back(w)), held_out.patience, held_out.n_examples, held_out.data)

    def back(self, w: np.ndarray) -> np.ndarray:
        """Weights in their own order."""
        return w if self.place is None else w[self.place]
