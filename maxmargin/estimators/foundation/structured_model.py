"""What all estimators share: arguments and training; what they do once they are fitted is in `fitted`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from maxmargin import inference
from maxmargin.checks import as_sample_weight, check_count, check_flag, check_positive, shown
from maxmargin.encode.inputs.base_encoder import Encoder, same
from maxmargin.estimators.foundation.arrangement import Arrangement
from maxmargin.estimators.foundation.convergence import warn_unless_solved
from maxmargin.estimators.foundation.fitted import FittedModel, as_list
from maxmargin.estimators.foundation.parameters import FitOptions, documents_fit, estimator, parameter
from maxmargin.execution.threads import count_threads
from maxmargin.garbage import give_back
from maxmargin.losses import Loss, find_loss
from maxmargin.metrics.scoring import find_metric
from maxmargin.persist import register
from maxmargin.problem import n_examples, part_sizes
from maxmargin.solvers import Solver, find_solver
from maxmargin.solvers.frame.checkpoint import check_checkpoint
from maxmargin.solvers.frame.held_out import HeldOut

MANY_PARTS = 1_000_000  # of all examples: reading them leaves much free memory behind


class Task(NamedTuple):
    """Training data as a solver sees it, the bounds of its weights, and how to read them and other data."""

    encoder: Encoder
    problem: Any
    order: Arrangement
    lower: np.ndarray | None
    upper: np.ndarray | None


@estimator
class StructuredModel(FittedModel):
    """Base of all models.

    Subclasses say how to learn an encoder from training data (`_learn`). What they predict, and how it is scored, is
    in the encoder.
    """

    C: float = parameter(
        "float",
        "Inverse strength of the regularization; infinite for none, where the solver can do without.",
        default=1.0,
    )
    solver: Any = parameter(
        "str or Solver",
        "The optimizer, by its name or as a `Solver` with options, such as ``BCFW(averaging=True)`` or "
        "``LBFGS(memory=20)``.",
        default="auto",
    )
    tol: float = parameter("float", "Relative duality gap, (primal - dual) / primal, at which to stop.", default=1e-3)
    max_passes: float | None = parameter(
        "float",
        "Passes over the examples after which to stop: by default 20 of the perceptron, else 1,000.",
        default=None,
    )
    time_limit: float | None = parameter(
        "float",
        "Seconds of training after which to stop, those of a first compilation and of the last certificate included; "
        "those of reading the data do not count.",
        default=None,
    )
    patience: int = parameter(
        "int",
        "With held-out data, the number of certificates without a better score there after which `fit` stops. They "
        "come after each pass at first, then after a fifth of the passes made so far, those of L-BFGS after each.",
        default=10,
    )
    scoring: Any = parameter(
        "str or callable",
        'What held-out data are scored by: a name, such as "entity_f1" (see `maxmargin.metrics.get_scorer`), or a '
        "function of y_true and y_pred, the higher the better; None is `score`.",
        default=None,
    )
    warm_start: bool = parameter(
        "bool",
        "Continue from the solution of the previous `fit`, if the examples are of the same sizes and kinds; else start "
        "afresh.",
        default=False,
    )
    n_jobs: int | None = parameter("int", "Threads of passes over all examples; None is 1, -1 all cores.", default=None)
    random_state: Any = parameter(
        "int, RandomState or Generator", "Seed, of the order of the examples for instance.", default=None
    )
    verbose: int = parameter("int", "Print the trace as it grows.", default=0)

    # what scikit-learn passes on, where metadata routing is enabled, unless told otherwise
    __metadata_request__fit: ClassVar = {"sample_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _loss = "hinge"  # what it minimises; models with a choice have an argument, `loss`

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        register(cls, get=cls._saved, make=cls._loaded)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        return tags

    # --- training -------------------------------------------------------------------------------------------------

    @documents_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : the examples
        y : their true outputs
        """
        return self._fit(X, y, sample_weight, **options)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        data: Mapping[str, Any] | None = None,
        data_dev: Mapping[str, Any] | None = None,
        *,
        X_dev: Any = None,
        y_dev: Any = None,
        callback: Any = None,
        checkpoint: Any = None,
        **unknown: Any,
    ) -> Self:
        """Train on examples, of which `data` and `data_dev` say more; a fit that fails leaves the model as it was."""
        if unknown:
            known = ", ".join(inspect.signature(self.fit).parameters)
            raise TypeError(f"fit of {type(self).__name__} takes no argument {next(iter(unknown))!r}, only {known}.")
        if checkpoint is not None:
            check_checkpoint(checkpoint)
        encoder, problem, order, lower, upper = self._encode(X, y, **(data or {}))
        solver, loss = self._method(problem)
        result = solver.solve(
            problem,
            self.C,
            self._sample_weight(sample_weight, problem, y),
            loss=loss,
            start=order.start(self._start(encoder, problem)),
            lower=lower,
            upper=upper,
            tol=self.tol,
            max_passes=self.max_passes,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=as_seed(self.random_state),
            verbose=self.verbose,
            callback=callback,
            checkpoint=checkpoint,
            held_out=order.held_out(self._held_out(encoder, X_dev, y_dev, data_dev or {})),
            **self._solver_options(),
        )
        result = result._replace(w=order.back(result.w))
        self._become(encoder, result.w)
        self.trace_ = result.trace
        self.status_ = result.status
        self.n_iter_ = int(np.ceil(result.trace.passes[-1]))
        self.certificate_ = result.certificate
        self._result = result if self.warm_start else None
        self._layout: Any = self._layout_of(encoder, problem)
        if X_dev is None and not solver.returns_last:
            warn_unless_solved(self, result, stacklevel=3)
        return self

    def _check_parameters(self) -> None:
        for name in ("C", "tol"):
            check_positive(name, getattr(self, name), allow_infinite=name == "C")
        for name in ("max_passes", "time_limit"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_count("patience", self.patience)
        for argument in fields(self):
            if argument.type == "bool":
                check_flag(argument.name, getattr(self, argument.name))
        if self.scoring is not None:
            find_metric(self.scoring)
        if isinstance(self.random_state, str):
            raise ValueError(f"random_state must be a seed or a generator, not {self.random_state!r}.")
        count_threads(self.n_jobs)  # or an error
        self._find_solver(self._find_loss())

    def _find_loss(self) -> Loss:
        return find_loss(getattr(self, "loss", self._loss))

    def _find_solver(self, loss: Loss) -> Solver:
        return find_solver(self.solver, loss)

    def _method(self, problem: Any) -> tuple[Solver, Loss]:
        """The solver for a problem, and the loss that it minimises."""
        loss = self._find_loss()
        return self._find_solver(loss), loss

    def _solver_options(self) -> dict[str, Any]:
        """Further arguments of the solver."""
        return {}

    def _learn(self, X: Any, y: Any, **data: Any) -> tuple[Encoder, Any]:
        """Check training data; return the encoder and the problem."""
        raise NotImplementedError

    def _named_bounds(self, encoder: Any) -> Any:
        """Bounds of the weights by the names of `coef_`."""
        return getattr(self, "bounds", None)

    def _encode(self, X: Any, y: Any, **data: Any) -> Task:
        """Check all arguments and training data, and put the optimization problem together."""
        self._check_parameters()
        encoder, problem = self._learn(as_list(X), y, **data)
        if part_sizes(problem).sum() >= MANY_PARTS:
            give_back()
        order = Arrangement(problem)
        lower, upper = encoder.limits(self._named_bounds(encoder), order.n_weights)
        return Task(encoder, problem, order, order.there(lower, -np.inf), order.there(upper, np.inf))

    def _sample_weight(self, sample_weight: Any, problem: Any, y: Any) -> np.ndarray | None:
        return None if sample_weight is None else as_sample_weight(sample_weight, len(part_sizes(problem)))

    def _start(self, encoder: Encoder, problem: Any) -> Any:
        """Where a warm start begins: at the last solution, if it is one of a problem of the same kind."""
        w = encoder.taken_over(self._encoder, self._w) if self.warm_start and hasattr(self, "_w") else None
        if w is None:
            return None
        if not hasattr(self, "_layout"):  # of a model that was loaded or pickled: weights of equal encoders will do
            return w
        if not same(self._layout, self._layout_of(encoder, problem)):
            return None
        return self._w if self._result is None else self._result

    def _layout_of(self, encoder: Encoder, problem: Any) -> tuple[Any, ...]:
        """What a dual point depends on besides the encoder."""
        return encoder.layout(problem)

    def _held_out(self, encoder: Any, X: Any, y: Any, data: Mapping[str, Any]) -> HeldOut | None:
        if (X is None) != (y is None):
            raise ValueError("X_dev and y_dev must be given together.")
        if X is None:
            return None
        y = [*y] if isinstance(y, Iterator) else y
        try:
            problem = encoder.problem(as_list(X), y, **data)
            if self.scoring is not None:
                metric, truth = find_metric(self.scoring), self._outputs(y, data)
                metric(truth, truth)  # raises, if it cannot judge such outputs, before training does
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"In the held-out data, X_dev and y_dev: {error}") from error

        def score(w: np.ndarray) -> float:
            outputs = inference.best_outputs(encoder.scored(problem, w), w, self.n_jobs)
            if self.scoring is None:
                return encoder.score(problem, outputs)
            return metric(truth, encoder.decode_all(problem, outputs))

        return HeldOut(score, self.patience, n_examples(problem), (problem, shown(self.scoring)))

    def _outputs(self, y: Any, data: Mapping[str, Any]) -> Any:
        """Checked true outputs in the form of predictions."""
        return y


def as_seed(random_state: Any) -> Any:
    """What NumPy's generators take, from what scikit-learn takes."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state
