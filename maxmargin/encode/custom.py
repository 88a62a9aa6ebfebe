"""Examples of your own structure to a `CustomProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.encode.base import Encoder
from maxmargin.encode.checks import check_truths
from maxmargin.runtime.blocks import Blocks
from maxmargin.structures.custom import CustomProblem


@dataclass(frozen=True, eq=False, kw_only=True)
class CustomEncoder(Encoder):
    """The encoder of structures that are given by Python methods."""

    model: Any
    n_features: int

    @property
    def n_weights(self) -> int:
        return self.n_features

    @classmethod
    def learn(cls, X: Any, y: Any, *, model: Any) -> tuple[CustomEncoder, CustomProblem]:
        """The encoder and the problem of training data."""
        if y is None:
            raise TypeError("y must be a list with one output per example.")
        problem = CustomProblem(model, X, y)
        return cls(model=model, n_features=problem.n_features), problem

    def problem(self, X: Any, y: Any = None) -> CustomProblem:
        problem = CustomProblem(self.model, X, None, self.n_features)
        if y is not None:
            check_truths(y, len(problem.X), "one output per example", "example")
            problem.Y = [*y]
        return problem

    def layout(self, problem: CustomProblem) -> tuple[Any, ...]:
        return (problem,)  # which numbers the outputs it has seen

    def decode(self, problem: CustomProblem, i: int, rows: np.ndarray) -> list[Any]:
        return [problem.output(i, row) for row in rows]

    def judge(self, problem: CustomProblem, outputs: Blocks) -> tuple[np.ndarray, Any]:
        predicted = self.decode_all(problem, outputs)
        costs = [self.model.cost(truth, output) for truth, output in zip(problem.Y or [], predicted, strict=True)]
        return -np.array(costs, np.float64), 1
