"""The base of all estimators: arguments, training, predictions, scores, copies and files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_sample_weight, check_flag
from maxmargin.data.sharding import Shards
from maxmargin.drawings.outcomes import TEXTS, Drawing
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.encode.inputs.file_guard import check_encoder
from maxmargin.estimators.foundation import fitting
from maxmargin.estimators.foundation.arguments import TrainingArguments
from maxmargin.estimators.foundation.convergence import warn_unless_solved
from maxmargin.estimators.foundation.fit_options import FitOptions, Weights, document_fit, estimator
from maxmargin.estimators.foundation.fitting import Task
from maxmargin.estimators.foundation.predictor import Predictor
from maxmargin.estimators.foundation.trainers import Trainer
from maxmargin.execution.threads import count_threads
from maxmargin.persist import Location, register, save
from maxmargin.problem import AnyProblem, all_true_outputs, part_sizes
from maxmargin.sklearn_contract import Estimator
from maxmargin.supervision.weak import Learned
from maxmargin.trace import Certificate, Status, Trace

if TYPE_CHECKING:
    from sklearn.utils import Tags

RENAMED = {"fit_bias": "fit_intercept"}  # arguments that models saved by earlier versions have under another name
LEARNED = {  # by a fit, but for training data
    "_encoder": Encoder,
    "_w": np.ndarray,
    "trace_": Trace,
    "status_": Status,
    "n_iter_": int,
    "certificate_": Certificate,
    "n_seen_": int,
    "command_": str | None,
}


@estimator
class StructuredModel(TrainingArguments, Predictor, Estimator):
    """Base of all models.

    Subclasses hold an `_encoder_type`, which learns an encoder from training data, and a `_trainer`, which says what
    is minimised. What they predict, and how it is scored, is in the encoder; how it looks, in their `_drawing`.
    """

    # what scikit-learn passes on, where metadata routing is enabled, unless told otherwise
    __metadata_request__fit: ClassVar = {"sample_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _encoder_type: ClassVar[Any]
    _trainer: ClassVar[Trainer] = Trainer()
    _drawing: ClassVar[Drawing] = TEXTS  # of outputs, in pages
    _solver_options: ClassVar[tuple[str, ...]] = ()  # arguments that `solve` of the solver takes by the same names

    def __init_subclass__(cls) -> None:
        document_fit(cls)  # before scikit-learn, if it is loaded, reads its signature
        super().__init_subclass__()
        register(cls, get=cls._pack, make=cls._unpack)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        return tags

    # --- training -------------------------------------------------------------------------------------------------

    def fit(self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]) -> Self:
        """Train on examples.

        Parameters
        ----------
        X, y
            The examples and their true outputs.
        """
        return self._fit(X, y, sample_weight, options)

    def partial_fit(
        self, X: object, y: object = None, sample_weight: Weights = None, **options: Unpack[FitOptions]
    ) -> Self:
        """Go on from a fitted model with further examples; their features and labels may be new.

        It is a `fit` to these n examples with the model itself as `prior`: what they say nothing of stays as it was. A
        model that has seen m examples before counts accordingly: of weights that it has, C is divided by 1 + m / n. Of
        new features and labels it knows nothing: of their weights C stays what it is, where the solver asks for nothing
        but sums over all examples, as the default one then does; with others, C is the same for all weights. On a model
        that is not fitted it is `fit`.

        Parameters
        ----------
        X, y, sample_weight, options
            As in `fit`.

        Returns
        -------
        self
        """
        if hasattr(self, "_w"):
            options.setdefault("prior", self)
        return self.fit(X, y, sample_weight, **options)

    def _fit(self, X: object, y: object, sample_weight: ArrayLike | None, options: FitOptions) -> Self:
        """Train on examples; a fit that fails leaves the model as it was."""
        self._check_options(options)
        more = {name: value for name, value in options.items() if name not in FitOptions.__annotations__}
        data_dev = {name.removesuffix("_dev"): more.pop(name) for name in [*more] if name.endswith("_dev")}
        checkpoint, X_dev = options.get("checkpoint"), options.get("X_dev")
        prior = fitting.find_prior(self, options.get("prior"))
        former, client = None if prior is None else prior._encoder, options.get("client")
        if client is not None:
            from maxmargin.estimators.foundation.clustered import prepare_on  # which needs Dask

            task = prepare_on(client, self, X, y, sample_weight, former, more)
        elif isinstance(X, Shards):
            from maxmargin.estimators.foundation.portioned import prepare_shards  # which few need

            task = prepare_shards(self, X, y, sample_weight, former, more)
        else:
            task = fitting.prepare(self, X, y, sample_weight, former, **more)
        solver, loss = self._trainer.choose(self, task.like)
        solver = self._trainer.complete(solver, loss, task.weak, task.like)
        held_out = fitting.read_held_out(self, task.encoder, X_dev, options.get("y_dev"), data_dev)
        n_seen = self.n_seen_ if prior is self else 0
        times = 1 + n_seen / task.n_examples
        if prior is self:
            task = fitting.free_new_weights(task, prior, solver, times)
        mean = None if prior is None else fitting.prior_weights(prior, task)
        try:
            result = solver.solve(
                task.problem,
                self.C / times,
                task.sample_weight,
                loss=loss,
                weak=task.weak,
                start=fitting.find_start(self, task) if mean is None else mean,
                prior=mean,
                lower=task.lower,
                upper=task.upper,
                tol=self.tol,
                max_passes=self.max_passes,
                time_limit=self.time_limit,
                n_jobs=self.n_jobs,
                random_state=fitting.as_seed(self.random_state),
                verbose=self.verbose,
                callback=options.get("callback"),
                checkpoint=checkpoint,
                held_out=held_out,
                **fitting.solver_options(self),
            )
        finally:
            if client is not None:
                task.problem.tasks.end()
        result = result.with_weights(task.layout.to_model(result.w))
        n_seen += task.n_examples
        fitting.complete(self, task.encoder, result.trace, result.status, result.certificate, n_seen)
        keeps = self.warm_start and not task.is_parted
        self._result = result if keeps else None
        self._truth: Any = all_true_outputs(task.problem).values if keeps else None
        self._dual_shape: Any = task.dual_shape
        if X_dev is None and not solver.returns_last:
            warn_unless_solved(self, result, stacklevel=3)
        return self

    def _check_options(self, options: FitOptions) -> None:
        """Raise where there is an option that the `fit` of the library, which a user's may have called, has not."""
        fits = (vars(cls)["fit"] for cls in type(self).__mro__ if hasattr(vars(cls).get("fit"), "own_doc"))
        _, *known = inspect.signature(next(fits)).parameters
        for name in options:
            if name not in known:
                raise TypeError(f"fit of {type(self).__name__} takes no argument {name!r}, only {', '.join(known)}.")

    def _check_parameters(self) -> None:
        """Raise unless the arguments will do, before training."""
        for argument in fields(self):
            check = argument.metadata["check"] or (check_flag if argument.type == "bool" else None)
            if check is not None:
                check(argument.name, getattr(self, argument.name))
        self._trainer.find_solver(self, self._trainer.find_loss(self))

    def _arguments(self) -> dict[str, object]:
        """What `learn` of the encoder takes: constructor arguments, by the same names, and what training asks for."""
        names, loss = self._encoder_type.argument_names(), self._trainer.find_loss(self)
        known = self.get_params(deep=False)
        known |= {"loss": loss, "with_grams": self._trainer.find_solver(self, loss).needs_norms(loss)}
        return {name: value for name, value in known.items() if name in names}

    def _learn(self, X: object, y: object, **data: Any) -> Learned:
        """Check training data; return what they teach."""
        return self._encoder_type.learn(X, y, **{**self._arguments(), **data})

    def _named_bounds(self, encoder: Any) -> object:
        """Bounds of the weights by the names of `coef_`."""
        return getattr(self, "bounds", None)

    def _encode(self, X: object, y: object, **data: Any) -> Task:
        """The optimization problem of training data."""
        return fitting.prepare(self, X, y, **data)

    def _sample_weight(self, sample_weight: ArrayLike | None, problem: AnyProblem, y: object) -> np.ndarray | None:
        return None if sample_weight is None else as_sample_weight(sample_weight, len(part_sizes(problem)))

    def _as_predicted(self, y: object, data: Mapping[str, object]) -> object:
        """Checked true outputs in the form of predictions."""
        return y

    # --- weights, copies and files --------------------------------------------------------------------------------

    def _set_weights(self, encoder: Encoder, w: np.ndarray) -> None:
        """Take these weights, and the encoder that knows what they are."""
        self._encoder: Any = encoder
        self._w = w
        for name, value in self._encoder.attributes(w).items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, object]:
        """What is pickled and copied: the weights once, without the views of them that have names; no training data."""
        state = dict(vars(self))
        views = self._encoder.attributes(self._w) if hasattr(self, "_w") else ()
        for name in ("_result", "_dual_shape", "_truth", "_trained_on", *views):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        if "_w" in state:
            self._set_weights(self._encoder, self._w)

    def save(self, path: Location) -> None:
        """Write the model to a file, in place of what is there, from which `maxmargin.load` makes it again."""
        save(self, path)

    def _pack(self) -> dict[str, object]:
        """What is saved: constructor arguments and, of a fitted model, what it has learned."""
        fitted = None
        if hasattr(self, "_w"):
            fitted = {name: getattr(self, name) for name in LEARNED}
            fitted["_encoder"], fitted["_w"] = self._encoder.compact(self._w)
        return {**self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def _unpack(cls, fitted: Any, **arguments: Any) -> Self:
        """The model of what was saved, which need not have been one."""
        model = cls(**{RENAMED.get(name, name): value for name, value in arguments.items()})
        if fitted is not None:
            fitted = {"n_seen_": 0, "command_": None, **fitted}  # files of earlier versions do not tell
            for name, kind in LEARNED.items():
                if not isinstance(fitted[name], kind):
                    raise TypeError(f"{name} is a {type(fitted[name]).__name__}")
            check_encoder(fitted["_encoder"], fitted["_w"])
            count_threads(model.n_jobs)
            vars(model).update({name: fitted[name] for name in LEARNED})
            model._set_weights(fitted["_encoder"], fitted["_w"])
        return model
