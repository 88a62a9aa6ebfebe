"""The weights of a model in the order in which solvers have them, there and back."""

from __future__ import annotations

from typing import Any

from maxmargin.features.layout import layout_of
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.run import Result


class Arrangement:
    """The way of weights from a model to the solver of a problem, and back.

    Parameters
    ----------
    problem : what is to be solved
    """

    def __init__(self, problem: Any) -> None:
        self.layout = layout_of(problem)
        self.n_weights, self.there, self.back = self.layout.n_weights, self.layout.to_solver, self.layout.to_model

    def start(self, start: Any) -> Any:
        """What a run starts from: weights, or the result of an earlier one."""
        return start._replace(w=self.there(start.w)) if isinstance(start, Result) else self.there(start)

    def held_out(self, held_out: HeldOut | None) -> HeldOut | None:
        """Held-out data, which judge weights of the model."""
        if held_out is None or self.layout.place is None:
            return held_out
        return HeldOut(lambda w: held_out.score(self.back(w)), held_out.patience, held_out.n_examples, held_out.data)
