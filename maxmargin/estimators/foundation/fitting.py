"""From a model and its training data to a solver, and from weights back to a model."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import inference
from maxmargin.data.shard_predictions import join_found
from maxmargin.data.sharding import Shard, Shards
from maxmargin.encode.inputs.base_encoder import Encoder, same
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.names.forked_reading import reading_on
from maxmargin.features import WeightLayout, layout_of
from maxmargin.features.layout import ScaledLayout
from maxmargin.garbage import give_back
from maxmargin.losses import BaseLoss
from maxmargin.metrics.scoring import find_metric
from maxmargin.persist.spilled import SpillFile
from maxmargin.problem import AnyProblem, all_true_outputs, n_examples, part_sizes
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.run import Result
from maxmargin.solvers.frame.solve import Solver
from maxmargin.solvers.objective.active_sets import without_means
from maxmargin.solvers.parted.portions import LocalPortions, Portion, Portions
from maxmargin.solvers.parted.spilled_portions import SpilledPortions
from maxmargin.supervision.weak import Learned, Weak
from maxmargin.trace import NO_WEIGHTS, Certificate, Status, Trace
from maxmargin.wording import name_type, quote

if TYPE_CHECKING:
    from maxmargin.estimators.foundation.structured_model import StructuredModel

Model = TypeVar("Model", bound="StructuredModel")

MANY_PARTS = 1_000_000  # of all examples: reading them leaves much free memory behind


class Task(NamedTuple):
    """Training data as a solver sees it, the bounds of its weights, and how to read them and other data."""

    encoder: Encoder
    problem: Any
    layout: WeightLayout
    lower: np.ndarray | None
    upper: np.ndarray | None
    sample_weight: np.ndarray | None
    dual_shape: tuple[Any, ...]  # what a dual point depends on besides the encoder
    weak: Weak | None = None  # what is known where that is not one true output each

    @property
    def is_parted(self) -> bool:
        """Whether the examples are in portions."""
        return isinstance(self.problem, Portions)

    @property
    def like(self) -> Any:
        """A problem at hand that tells what the one of all examples is like."""
        return self.problem.like if self.is_parted else self.problem

    @property
    def n_examples(self) -> int:
        """How many there are."""
        return int(self.problem.sizes.sum()) if self.is_parted else len(part_sizes(self.problem))


def find_loss(model: StructuredModel) -> BaseLoss:
    """What a model minimises."""
    return model._trainer.find_loss(model)


def solver_options(model: StructuredModel) -> dict[str, Any]:
    """The arguments of a model that are for solvers alone."""
    return {name: getattr(model, name) for name in model._solver_options}


def prepare(
    model: StructuredModel,
    X: object,
    y: object,
    sample_weight: ArrayLike | None = None,
    former: Encoder | None = None,
    **data: object,
) -> Task:
    """Check all arguments and training data, of which `data` say more, and put the optimization problem together.

    What a `former` encoder knows stays known.
    """
    model._check_parameters()
    model._trainer.check_data(model, data)
    y = as_known(y)
    if former is not None and "former" in model._encoder_type.argument_names():
        data["former"] = former
    with reading_on(model.n_jobs):
        encoder, problem, weak = Learned(*model._learn(as_list(X), y, **data))
    if part_sizes(problem).sum() >= MANY_PARTS:
        give_back(of_names=getattr(encoder, "vocabulary", None) is not None)
    layout, dual_shape = layout_of(problem), encoder.dual_shape(problem)
    lower, upper = encoder.limits(model._named_bounds(encoder), layout.n_weights)
    lower, upper = layout.to_solver(lower, -np.inf), layout.to_solver(upper, np.inf)
    if getattr(model, "rescaling", "margin") == "slack":
        if weak is not None and weak.is_weak is not None:
            i = int(np.argmax(weak.is_weak))
            raise ValueError(f'rescaling="slack" needs one true output of each example, but of y[{i}] less is known.')
        from maxmargin.structures.derived.rescaled import rescaled  # which few models need

        problem, dual_shape = rescaled(problem), ("slack", *dual_shape)
    weights = model._sample_weight(sample_weight, problem, y)
    if weak is not None and weak.is_weak is not None:
        weights = np.where(weak.is_weak, model.weak_weight, 1.0) * (1.0 if weights is None else weights)
    return Task(encoder, problem, layout, lower, upper, weights, dual_shape, weak)


def find_start(model: StructuredModel, task: Task) -> Result | np.ndarray | None:
    """Where a warm start begins: at the last solution, if it is one of a problem of the same kind, or its weights."""
    if not (model.warm_start and hasattr(model, "_w")):
        return None
    last = getattr(model, "_result", None)  # else it was loaded or pickled
    if last is not None and task.encoder == model._encoder and same(model._dual_shape, task.dual_shape):
        if not np.array_equal(model._truth, all_true_outputs(task.problem).values):
            last = last._replace(dual=without_means(last.dual))  # which are less those of the true outputs
        return last.with_weights(task.layout.to_solver(last.w))
    w = task.encoder.weights_of(model._encoder, model._w)
    return None if w is None or w.size != task.layout.n_weights else task.layout.to_solver(w)


def find_prior(model: StructuredModel, prior: object) -> StructuredModel | None:
    """The fitted model whose weights those of another are drawn to, checked to be one of the same kind."""
    if prior is None:
        return None
    if type(prior) is not type(model) or not hasattr(prior, "_w"):
        raise TypeError(f"prior must be a fitted {type(model).__name__}, not {quote(prior)}.")
    return prior


def prior_weights(prior: StructuredModel, task: Task) -> np.ndarray:
    """The weights of a model as a solver of other data has them."""
    w = task.encoder.weights_of(prior._encoder, prior._w)
    if w is None or not task.layout.is_explicit:
        raise ValueError(f"The weights of {name_type(prior)} of other data cannot be taken over.")
    return task.layout.to_solver(w)


def free_new_weights(task: Task, prior: StructuredModel, solver: Solver, times: float) -> Task:
    """The task with weights that the prior does not know regularized so many times less than those that it knows.

    The task itself, where there are none, or where the solver asks for more than sums over all examples.
    """
    is_known = task.encoder.weights_of(prior._encoder, np.ones(prior._w.shape)) != 0
    asks_for_sums = solver.takes_portions and not isinstance(solver, BCFW)
    if np.all(is_known) or not asks_for_sums or task.weak is not None:
        return task
    scale = np.where(is_known, 1.0, np.sqrt(times))
    problem = task.problem if task.is_parted else LocalPortions([Portion(task.problem, task.sample_weight)])
    problem.layout = layout = ScaledLayout(scale)
    lower, upper = (
        None if bound is None else layout.to_solver(task.layout.to_model(bound)) for bound in (task.lower, task.upper)
    )
    return Task(task.encoder, problem, layout, lower, upper, None, ())


def read_held_out(
    model: StructuredModel, encoder: Encoder, X: object, y: object, data: Mapping[str, object]
) -> HeldOut | None:
    """Held-out data, which are scored as the model says; None if there are none."""
    if (X is None) != (y is None) and not isinstance(X, Shards):
        raise ValueError("X_dev and y_dev must be given together.")
    if X is None:
        return None
    if isinstance(X, Shards):
        portions, truths = spill_held_out(model, encoder, X, {"y": y, **data})
    else:
        known = Shard(as_list(X), [*y] if isinstance(y, Iterator) else as_known(y))
        problem, truth = read_examples(model, encoder, known, data)
        portions, truths = LocalPortions([Portion(problem)]), [truth]

    def score(w: np.ndarray) -> float:
        found = []
        for k in range(len(truths)):
            problem = portions.open(k).problem
            outputs = inference.best_outputs(encoder.scored(problem, w), w, model.n_jobs)
            judge = encoder.judge if model.scoring is None else encoder.decode_all
            found.append(judge(problem, outputs))
        if model.scoring is None:
            return Merits.joined(found).mean()
        return find_metric(model.scoring)(join_found(truths), join_found(found))

    return HeldOut(score, model.patience, int(portions.sizes.sum()), (portions, quote(model.scoring)))


def spill_held_out(
    model: StructuredModel, encoder: Encoder, shards: Shards, data: Mapping[str, object]
) -> tuple[LocalPortions, list[Any]]:
    """Shards of held-out examples, encoded and out of memory, and their true outputs as `read_examples` has them."""
    for name, value in data.items():
        if value is not None:
            raise ValueError(f"{name}_dev must be None where X_dev is Shards, which hold examples alone.")
    home, kept, sizes, truths = SpillFile(shards.folder), [], [], []
    for k, shard in enumerate(shards):
        if shard.y is None:
            raise TypeError(f"Shard {k} of X_dev has no y.")
        problem, truth = read_examples(model, encoder, shard, {})
        kept.append(home.put((problem, None)))
        sizes.append(n_examples(problem))
        truths.append(truth)
    return SpilledPortions(kept, sizes), truths


def read_examples(
    model: StructuredModel, encoder: Encoder, examples: Shard, data: Mapping[str, object]
) -> tuple[AnyProblem, Any]:
    """The problem of held-out examples, and their true outputs as predictions are, where a metric asks for these."""
    try:
        with reading_on(model.n_jobs):
            problem = encoder.problem(examples.X, examples.y, **data)
        if model.scoring is None:
            return problem, None
        truth = model._as_predicted(examples.y, data)
        find_metric(model.scoring)(truth, truth)  # raises, if it cannot judge such outputs, before training does
        return problem, truth
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In the held-out data, X_dev and y_dev: {error}") from error


def complete(
    model: Model, encoder: Encoder, trace: Trace, status: Status, certificate: Certificate, n_seen: int
) -> Model:
    """Make a model one of the weights that training has ended with, which have seen so many examples."""
    model._set_weights(*encoder.fitted(certificate.w))
    n_iter = int(np.ceil(trace.passes[-1]))
    proven = replace(certificate, w=NO_WEIGHTS)
    vars(model).update(trace_=trace, status_=status, certificate_=proven, n_iter_=n_iter, n_seen_=n_seen, command_=None)
    return model


def as_seed(random_state: object) -> Any:
    """What NumPy's generators take, from what scikit-learn takes."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state


def as_list(X: Any) -> Any:
    """Examples, or outputs; those in a pandas Series, a column of a table, as a list."""
    return X.tolist() if hasattr(X, "iloc") and X.ndim == 1 else X


def as_known(y: object) -> Any:
    """What is known of outputs, as `as_list`, with None in place of the NA of pandas."""
    missing = getattr(sys.modules.get("pandas"), "NA", None)
    return as_list(y) if missing is None else _with_none(as_list(y), missing)


def _with_none(known: Any, missing: object) -> object:
    if known is missing:
        return None
    if hasattr(known, "iloc"):
        known = known.tolist() if known.ndim == 1 else known.to_numpy(object) if known.isna().any(axis=None) else known
    is_array = isinstance(known, np.ndarray) and known.dtype == object and known.ndim > 0
    if not (is_array or isinstance(known, (list, tuple))):
        return known
    if not any(
        entry is missing or isinstance(entry, (list, tuple, np.ndarray)) or hasattr(entry, "iloc") for entry in known
    ):
        return known
    found = [_with_none(entry, missing) for entry in known]
    return known if all(map(operator.is_, known, found)) else found
