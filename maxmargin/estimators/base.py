"""What all estimators share: running the solver, keeping its result, and continuing from it."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin import inference
from maxmargin.losses import Loss, find_loss
from maxmargin.problem import new_weights
from maxmargin.runtime.blocks import Blocks
from maxmargin.solvers import find_solver


class Task(NamedTuple):
    """What an estimator asks of a solver."""

    problem: Any
    sample_weight: np.ndarray | None
    start: Any
    lower: np.ndarray | None
    upper: np.ndarray | None
    fitted: dict[str, Any]  # attributes that predictions need, set once the weights are there
    options: Mapping[str, Any] = MappingProxyType({})  # further arguments of the solver


class StructuredModel(BaseEstimator):
    """Base of all models.

    Subclasses define the constructor arguments read here: C, solver, tol, max_passes, time_limit, warm_start, n_jobs,
    random_state, verbose and dtype; and how examples become a problem (`_encode`, `_problem`) and rows of integers
    become outputs (`_decode`).
    """

    _loss = "hinge"  # what it minimises; models with a choice have an argument, `loss`

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        for name in ("C", "tol", "max_passes", "time_limit"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            is_finite_enough = is_number and (value < np.inf or name == "C")
            if not (value is None and name == "time_limit") and not (is_finite_enough and value > 0):
                raise ValueError(f"{name} must be a positive number, not {value!r}.")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, not {self.dtype!r}.")
        if isinstance(self.random_state, str):
            raise ValueError(f"random_state must be a seed or a generator, not {self.random_state!r}.")
        is_count = isinstance(self.n_jobs, Integral) and self.n_jobs != 0
        if not (self.n_jobs is None or is_count):
            raise ValueError(f"n_jobs must be None or a non-zero integer, not {self.n_jobs!r}.")
        find_solver(self.solver, self._find_loss())

    def _find_loss(self) -> Loss:
        return find_loss(getattr(self, "loss", self._loss))

    def _encode(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        """Check all input, keep what predictions need, and put the optimization problem together."""
        raise NotImplementedError

    def _set_weights(self, w: np.ndarray) -> None:
        """Take on trained weights."""
        self._w = w
        self.coef_ = w

    def _problem(self, X: Any) -> Any:
        """Check new examples and put their problem together; its true outputs and costs are never looked at."""
        raise NotImplementedError

    def _decode(self, problem: Any, i: int, output: np.ndarray) -> Any:
        """An output of example i as users know it, from its row of integers."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on examples.

        Parameters
        ----------
        X : the examples
        y : their true outputs
        sample_weight : (n,) weights of the examples' losses

        Returns
        -------
        self
        """
        self._set_weights(self._solve(self._encode(X, y, sample_weight)))
        return self

    def predict(self, X: Any) -> Any:
        """The best output of each example.

        Parameters
        ----------
        X : as in `fit`
        """
        problem = self._problem(X)
        outputs = inference.best_outputs(problem, self._w, self.n_jobs)
        return [self._decode(problem, i, y) for i, y in enumerate(per_example(outputs))]

    def predict_topk(self, X: Any, k: int) -> list[tuple[Any, np.ndarray]]:
        """The k best outputs of each example, best first, with their scores; all where there are fewer than k.

        Parameters
        ----------
        X : as in `fit`
        k : the number of outputs

        Returns
        -------
        list of pairs: outputs, (k,) array of scores
        """
        k, problem = check_k(k), self._problem(X)
        best = inference.best_k_outputs(problem, self._w, k, self.n_jobs)
        return [([self._decode(problem, i, y) for y in outputs], scores) for i, (outputs, scores) in enumerate(best)]

    def _solve(self, task: Task) -> np.ndarray:
        """Run the solver, keep its trace, status and, for a warm start, its dual point; return the weights."""
        loss, start = self._find_loss(), task.start
        if isinstance(start, np.ndarray) and start.size != new_weights(task.problem).size:
            start = None  # fit_bias was another one
        result = find_solver(self.solver, loss).solve(
            task.problem,
            self.C,
            task.sample_weight,
            loss=loss,
            start=start,
            lower=task.lower,
            upper=task.upper,
            tol=self.tol,
            max_passes=self.max_passes,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=self._seed(),
            verbose=self.verbose,
            **task.options,
        )
        self._take_on(task)
        self.trace_ = result.trace
        self.status_ = result.status
        self.n_iter_ = int(np.ceil(result.trace.passes[-1]))
        self._dual = result.dual if self.warm_start else None
        return result.w

    def _last_point(self) -> Any:
        """Where the last fit ended, for a solver to go on from: its dual point or its weights."""
        return self._w if self._dual is None else self._dual

    def _take_on(self, task: Task) -> None:
        """Become the model of a task, whose weights follow."""
        for name, value in task.fitted.items():
            setattr(self, name, value)

    def _seed(self) -> Any:
        return as_seed(self.random_state)


def as_seed(random_state: Any) -> Any:
    """What NumPy's generators take, from what scikit-learn takes."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state


def per_example(blocks: Blocks) -> list[np.ndarray]:
    """The block of each example."""
    return np.split(blocks.values, blocks.start[1:-1])


def check_k(k: Any) -> int:
    """Check the number of outputs asked of `predict_topk`."""
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k must be a positive integer, not {k!r}.")
    return int(k)
