"""Constructor arguments that several estimators have."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxmargin.checks import check_choice, check_cost, check_count, check_positive
from maxmargin.execution.threads import count_threads
from maxmargin.metrics.scoring import find_metric
from maxmargin.parameters import arguments, parameter


def check_precision(name: str, value: Any) -> None:
    """Raise unless it is float32 or float64."""
    try:
        is_known = np.dtype(value) in (np.float32, np.float64)
    except TypeError:
        is_known = False
    if not is_known:
        raise ValueError(f"{name} must be float32 or float64, not {value!r}.")


def check_limit(name: str, value: object) -> None:
    """Raise unless it is a positive number, or there is none."""
    if value is not None:
        check_positive(name, value)


def check_scoring(name: str, value: object) -> None:
    """Raise unless it is a metric, or there is none."""
    if value is not None:
        find_metric(value)


def check_seed(name: str, value: object) -> None:
    """Raise where a seed is a string."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a seed or a generator, not {value!r}.")


@arguments
class TrainingArguments:
    """Of all estimators."""

    C: float = parameter(
        "float",
        "Inverse strength of the regularization; infinite for none, where the solver can do without.",
        default=1.0,
        check=partial(check_positive, allow_infinite=True),
    )
    solver: Any = parameter(
        "str or Solver",
        "The optimizer, by its name or as a `Solver` with options, such as ``BCFW(averaging=True)`` or "
        "``LBFGS(memory=20)``.",
        default="auto",
    )
    tol: float = parameter(
        "float", "Relative duality gap, (primal - dual) / primal, at which to stop.", default=1e-3, check=check_positive
    )
    max_passes: float | None = parameter(
        "float",
        "Passes over the examples after which to stop: by default 20 of the perceptron, else 1,000.",
        default=None,
        check=check_limit,
    )
    time_limit: float | None = parameter(
        "float",
        "Seconds of training after which to stop, those of a first compilation and of the last certificate included; "
        "those of reading the data do not count.",
        default=None,
        check=check_limit,
    )
    patience: int = parameter(
        "int",
        "With held-out data, the number of certificates without a better score there after which `fit` stops. They "
        "come after each pass at first, then after a fifth of the passes made so far, those of L-BFGS after each.",
        default=10,
        check=check_count,
    )
    scoring: Any = parameter(
        "str or callable",
        'What held-out data are scored by: a name, such as "entity_f1" (see `maxmargin.metrics.get_scorer`), or a '
        "function of y_true and y_pred, the higher the better; None is `score`.",
        default=None,
        check=check_scoring,
    )
    warm_start: bool = parameter(
        "bool",
        "Continue from the solution of the previous `fit`, if the examples are of the same sizes and kinds; else start "
        "afresh.",
        default=False,
    )
    weak_weight: float = parameter(
        "float",
        "Weight of the losses of examples whose outputs are known in part, or softly, besides that of the others, 1.",
        default=1.0,
        check=check_cost,
    )
    n_jobs: int | None = parameter(
        "int",
        "Threads of passes over all examples and, by default, of steps; None is 1, -1 all cores.",
        default=None,
        check=lambda name, value: count_threads(value),
    )
    random_state: Any = parameter(
        "int, RandomState or Generator",
        "Seed, of the order of the examples for instance.",
        default=None,
        check=check_seed,
    )
    verbose: int = parameter("int", "Print the trace as it grows.", default=0)


@arguments
class Precision:
    """Of models of the library's structures, whose features are arrays."""

    dtype: Any = parameter(
        '{"float32", "float64"}',
        "Precision of training; certificates are summed in float64 in either.",
        default="float32",
        check=check_precision,
    )


@arguments
class EndIntercepts(Precision):
    """Of models of sequences and trees."""

    fit_intercept: bool = parameter(
        "bool",
        "Add three weights per label: for every position, and for the first and the last of a sequence, or for roots "
        "and leaves of trees.",
        default=True,
    )


@arguments
class Names:
    """Of models of features that may have names."""

    min_count: int = parameter(
        "int",
        "Leave out features given by name that occur less often than that in the training examples; with `n_hashed`, "
        "hash these alone.",
        default=1,
    )
    n_hashed: int | None = parameter(
        "int",
        "Hash names onto that many features, and keep none of them: less memory, but those that meet share weights. "
        "With a `min_count` above 1, names that occur as often keep features of their own, and others, also "
        "those that are new in predictions, are hashed.",
        default=None,
    )


@arguments
class Observed(Names):
    """Of models of labels with weights of features, which may have names."""

    only_observed: bool | str = parameter(
        'bool, "features" or "transitions"',
        "Have weights only for the pairs of a feature and a label, and of two neighbouring labels (with each feature "
        "of edges), that occur in the training examples, as CRFsuite does by default, or only of the ones and all of "
        "the others; what has no weight counts as zero. Takes less memory and time on text, where most features go "
        "with one or two labels. Rows are then stored sparse, and so is ``coef_.emissions``.",
        default=False,
    )


@arguments
class Memory:
    """Of models of sequences whose labels depend on several before them."""

    order: int = parameter(
        "{1, 2}",
        "How many labels before it the score of a label depends on. With 2, each three labels in a row that occur in "
        "y, where they are known, have a weight besides those of their transitions; others have these alone, and are "
        "allowed unless a transition is not.",
        default=1,
        check=partial(check_choice, choices=(1, 2)),
    )


@arguments
class MaxMargin:
    """Of structural SVMs."""

    C: float = 0.1  # these three by `benchmarks.defaults`
    tol: float = 0.02
    patience: int = 5
    loss: Any = parameter(
        '{"hinge", "squared_hinge", "smooth_hinge"} or Loss',
        "The hinge loss above, half of its square or, for solvers that need it smooth, a smoothed one such as "
        '``Loss("l2", level=0.1)``.',
        default="hinge",
    )


@arguments
class LabelMaxMargin(MaxMargin):
    """Of structural SVMs of sequences and trees."""

    cost: Any = parameter(
        '{"hamming", "normalized_hamming"} or (L, L) array',
        "Cost of a labelling: the number of wrong labels, the same divided by the number of positions, or the sum of "
        "the entries [true label, predicted label] of a matrix in the order of `classes_`.",
        default="hamming",
    )
    class_weight: Any = parameter('dict or "balanced"', "Factors of the cost by true label.", default=None)


@arguments
class FeatureMaxMargin(LabelMaxMargin):
    """Of structural SVMs of labels whose weights are those of features."""

    bounds: Any = parameter(
        "dict",
        'Bounds of weights by the names of `coef_`, such as ``{"transitions": (0, None)}``: pairs of a lower and an '
        "upper bound, each None, a number or an array like that part of the weights.",
        default=None,
    )
    rescaling: str = parameter(
        '{"margin", "slack"}',
        "How costs enter the hinge loss: as above, or as max_y cost(y_i, y) {1 + score(y) - score(y_i)}, where costs "
        "must be multiples of one number and the solver one that needs the max oracle alone.",
        default="margin",
        check=partial(check_choice, choices=("margin", "slack")),
    )


@arguments
class RelaxableMaxMargin(MaxMargin):
    """Of structural SVMs on graphs."""

    loss: Any = parameter(
        '{"hinge", "squared_hinge", "smooth_hinge", "relaxed"} or Loss',
        "The hinge loss above, a smoothed one, or a relaxed one, whose maximum is over the local polytope, for `IDAL`.",
        default="hinge",
    )


@arguments
class Likelihood:
    """Of conditional random fields."""

    dtype: Any = "float64"


@arguments
class SoftmaxMargin(Likelihood):
    """Of conditional random fields of several labels."""

    cost: Any = parameter(
        "as of SVMs, or None",
        "Cost of a labelling: in training, wrong ones are taken to be exp(cost) times as likely as they are, so that "
        "those that cost most are pushed down furthest (softmax-margin, Gimpel and Smith 2010); None for the "
        "likelihood itself.",
        default=None,
    )
    class_weight: Any = parameter("as of SVMs", "Factors of the cost by true label.", default=None)


@arguments
class RelaxableLikelihood(SoftmaxMargin):
    """Of conditional random fields on graphs."""

    loss: Any = parameter(
        '{"auto", "log", "relaxed"} or Loss',
        'The log loss above, its relaxation ``RelaxedLoss(margin=False)``, or, "auto", whichever the treewidth of the '
        "graphs allows and the solver minimises.",
        default="auto",
    )
