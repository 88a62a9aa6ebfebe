"""The weights of a model in the order in which solvers have them, there and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.problem import new_weights, places
from maxmargin.runtime.dispatch import supports
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.run import Result


class Arrangement:
    """The way of weights from a model to the solver of a problem, and back.

    Parameters
    ----------
    problem : what is to be solved
    """

    def __init__(self, problem: Any) -> None:
        self.place: np.ndarray | None = places(problem) if supports(places, problem) else None
        self.n_solved = new_weights(problem).size
        self.n_weights = self.n_solved if self.place is None else len(self.place)  # of the model

    def there(self, values: Any, other: float = 0.0) -> Any:
        """Weights, or bounds of them, in the solver's order; `other` is what those have that the model does not."""
        if self.place is None or values is None:
            return values
        moved = np.full(self.n_solved, other, np.result_type(values, np.float32))
        moved[self.place] = values
        return moved

    def start(self, start: Any) -> Any:
        """What a run starts from: weights, or the result of an earlier one."""
        return start._replace(w=self.there(start.w)) if isinstance(start, Result) else self.there(start)

    def held_out(self, held_out: HeldOut | None) -> HeldOut | None:
        """Held-out data, which judge weights of the model."""
        if held_out is None or self.place is None:
            return held_out
        return HeldOut(lambda w: held_out.score(self.back(w)), held_out.patience, held_out.n_examples, held_out.data)

    def back(self, w: np.ndarray) -> np.ndarray:
        """Weights of the model."""
        return w if self.place is None else w[self.place]
