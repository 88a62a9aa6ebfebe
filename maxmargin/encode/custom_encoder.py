"""Examples of your own structure to a `CustomProblem`, or to a problem of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import inference
from maxmargin import problem as generics
from maxmargin.arrays.blocks import Blocks, as_blocks
from maxmargin.encode.inputs.base_encoder import Encoder, P
from maxmargin.encode.inputs.example_checks import check_truths
from maxmargin.encode.inputs.merits import Merits
from maxmargin.problem import AnyProblem
from maxmargin.runtime.dispatch import supports
from maxmargin.structures.derived.custom_problem import CustomProblem
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.wording import quote


class OwnEncoder(Encoder[P]):
    """What encoders of users' own structures share."""

    def is_of(self, **arguments: object) -> bool:
        """Whether it was learned with these very objects."""
        raise NotImplementedError

    def dual_shape(self, problem: P) -> tuple[object, ...]:
        return (problem,)  # which alone knows what its outputs are


@dataclass(frozen=True, eq=False, kw_only=True)
class CustomEncoder(OwnEncoder[CustomProblem]):
    """The encoder of structures that are given by Python methods."""

    model: Any
    n_features: int

    @property
    def n_weights(self) -> int:
        return self.n_features

    def is_of(self, *, model: object) -> bool:  # type: ignore[override]
        return self.model is model

    @classmethod
    def learn(cls, X: Iterable[object], y: Iterable[object] | None, *, model: object) -> Learned:
        """The encoder and the problem of training data."""
        if y is None:
            raise TypeError("y must be a list with one output per example.")
        problem = CustomProblem(model, X, y)
        encoder = cls(model=model, n_features=problem.n_features)
        if not problem.is_weak.any():
            return Learned(encoder, problem)
        return Learned(encoder, problem, Weak(problem.restrict(problem.Y or []), is_weak=problem.is_weak))

    def problem(self, X: Any, y: Any = None) -> CustomProblem:
        problem = CustomProblem(self.model, X, None, self.n_features)
        if y is not None:
            y = check_truths(y, len(problem.X), "one output per example", "example")
            problem.Y = [*y]
        return problem

    def exclusions(self, problem: CustomProblem, known: object, name: str) -> list[object]:
        known = check_truths(known, len(problem.X), "what is known of each example", "example", name)
        for i, what in enumerate(known):
            if what is not None:
                problem.complete(i, what, name)
        return [*known]

    def decode(self, problem: CustomProblem, i: int, rows: np.ndarray) -> list[object]:
        return [problem.output(i, row) for row in rows]

    def judge(self, problem: CustomProblem, outputs: Blocks) -> Merits:
        predicted = self.decode_all(problem, outputs)
        costs = [self.model.cost(truth, output) for truth, output in zip(problem.Y or [], predicted, strict=True)]
        return Merits(-np.array(costs, np.float64), best=0.0)


NEEDED = (
    generics.new_weights,
    generics.part_sizes,
    generics.true_outputs,
    generics.workspace,
    generics.scores,
    generics.spread,
    generics.squared_norm,
    generics.augment,
    generics.add_output,
    generics.score_output,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProblemEncoder(OwnEncoder[AnyProblem]):
    """The encoder of problems that users make themselves."""

    make_problem: Callable[..., Any]
    decode_row: Callable[[Any, int, np.ndarray], Any] | None
    size: int

    @property
    def n_weights(self) -> int:
        return self.size

    def is_of(self, *, make_problem: object, decode: object) -> bool:  # type: ignore[override]
        return self.make_problem is make_problem and self.decode_row is decode

    @classmethod
    def learn(cls, X: object, y: object, *, make_problem: Callable[..., AnyProblem], decode: Any) -> Learned:
        """The encoder and the problem of training data."""
        for name, function in (("make_problem", make_problem), ("decode", decode)):
            if not (callable(function) or (name == "decode" and function is None)):
                raise TypeError(f"{name} must be a function, not {function!r}.")
        if y is None:
            raise TypeError("y must hold the true outputs of X, but it is None.")
        problem, weak = _read(make_problem(X, y))
        encoder = cls(make_problem=make_problem, decode_row=decode, size=generics.new_weights(problem).size)
        return Learned(encoder, problem, weak)

    def exclusions(self, problem: AnyProblem, known: object, name: str) -> Blocks:
        sizes = generics.part_sizes(problem)
        known = check_truths(known, len(sizes), "flags of the parts that an output may have", "example", name)
        flags = [np.zeros(0, bool) if what is None else np.asarray(what) for what in known]
        for i, (what, size) in enumerate(zip(flags, sizes, strict=True)):
            if what.ndim != 1 or what.dtype != bool or what.size > size:
                raise ValueError(f"{name}[{i}] must be at most {size} flags, True for parts that an output may have.")
        excluded = as_blocks([~what for what in flags], bool)
        inference.possible_outputs(generics.restrict(problem, excluded), name)
        return excluded

    def problem(self, X: object, y: object = None) -> AnyProblem:
        return _read(self.make_problem(X) if y is None else self.make_problem(X, y))[0]

    def decode(self, problem: AnyProblem, i: int, rows: np.ndarray) -> Any:
        return rows if self.decode_row is None else [self.decode_row(problem, i, row) for row in rows]

    def judge(self, problem: AnyProblem, outputs: Blocks) -> Merits:
        return Merits(-inference.costs_of(problem, outputs), best=0.0)


def _read(made: object) -> tuple[AnyProblem, Weak | None]:
    """What `make_problem` returned: a problem, which must have all functions that solvers call, and what is known."""
    problem, *others = made if type(made) is tuple else (made,)  # problems may be named tuples
    missing = [function.__name__ for function in NEEDED if not supports(function, problem)]
    if missing:
        raise TypeError(
            f"make_problem must return a problem, but its {type(problem).__name__} lacks {', '.join(missing)}: "
            "see maxmargin.problem."
        )
    if not others:
        return problem, None
    if len(others) != 1 or not isinstance(others[0], Weak):
        raise TypeError(f"make_problem must return a problem, or a pair of it and a Weak, not {quote(made)}.")
    return problem, others[0]
