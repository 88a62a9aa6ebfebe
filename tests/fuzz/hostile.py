"""Hostile inputs: the small data of an estimator, changed in a few odd ways that follow from a seed.

Half of them are odd in their numbers only, so that most of these are fitted.
"""

from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import BCFW, GDMM, SVRG, Casimir, ExcessiveGap, ExponentiatedGradient, Loss, OneSlack, RelaxedLoss, Tree
from maxmargin.estimators import all_estimators
from maxmargin.solvers import all_solvers
from maxmargin.solvers.relaxed.idal import IDAL
from tests.fuzz.odd_graphs import OF_GRAPHS
from tests.fuzz.odd_names import OF_NAMES
from tests.small import CASES

SCALES = [1e-300, 1e-30, 1e-8, 1e-3, 1e3, 1e6, 1e8, 1e10, 2e11, 1e13, 1e39, 1e300]
ODD_NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e-30, 1e-8, 1e8, 1e30, 1e300, 10**400, "1", None, 1j, True]
STRENGTHS = [1e-30, 1e-12, 1e-3, 0.1, 10.0, 1e3, 1e6, 1e12, 1e30, np.inf, Fraction(1, 3), 5e-324, 1e300, -1.0, np.nan]
LOSSES = [
    "hinge",
    "smooth_hinge",
    "log",
    Loss("entropy", level=0.1),
    Loss("l2", level=1e-3),
    Loss("entropy", level=1e-9),
]
LOSSES += [Loss("l2", level=1e30), Loss(margin=False), "squared_hinge"]
RELAXED = [
    "relaxed",
    RelaxedLoss(level=1e-3),
    RelaxedLoss(level=1e-9),
    RelaxedLoss(level=1e30),
    RelaxedLoss(margin=False),
]
RELAXED += [RelaxedLoss(level=0.1, entropy="oriented_trees"), RelaxedLoss(margin=False, entropy="oriented_trees")]
RELAXED += [RelaxedLoss(entropy="oriented_trees", epsilon=0.5)]
SOLVERS = [*all_solvers(), BCFW(steps="pairwise", sampling="gap", cache=5), BCFW(steps="away", exact_gaps=False)]
SOLVERS += [ExponentiatedGradient(batch=True), ExponentiatedGradient(sampling="gap"), ExcessiveGap(adaptive=False)]
SOLVERS += [BCFW(steps="best", cache=3), OneSlack(cache=0, damped=False)]
SOLVERS += [Casimir(smoothing=None), SVRG(smoothing=None), Casimir(inner="saga")]
SOLVERS += [Casimir(smoothing="entropy"), SVRG(smoothing="entropy"), IDAL(steps="exact"), IDAL(rho=1e-3, inner=3.0)]
RELAXED_SOLVERS = ["auto", "idal", "gdmm", "soft-bcfw", "soft-sdca", IDAL(steps="line_search"), IDAL(rho=1e6), "bcfw"]
RELAXED_SOLVERS += [IDAL(order="uniform", multipliers="global"), GDMM(active="factors")]
KINDS = ["float16", "float32", "int8", "uint64", "bool", "object", "str", "complex64", "longdouble", "datetime64[s]"]


class Attempt(NamedTuple):
    """A model, what to fit it to, what to predict, and how the input came about."""

    model: Any
    X: Any
    y: Any
    sample_weight: Any
    options: dict[str, Any]  # of `fit`: held-out data
    unseen: Any
    how: str


def attempt(seed: int) -> Attempt:
    """The hostile input of a seed."""
    rng = np.random.default_rng(seed)
    name = [*CASES][seed % len(CASES)]
    options, data = CASES[name]
    X, y, _ = data(rng)
    n = int(rng.integers(1, 7))
    model = all_estimators()[name](random_state=0, max_passes=20, time_limit=5.0, **options)
    hostile = Hostile(rng, model, X[:n], y[:n])
    special = [
        *OF_NAMES * hasattr(model, "n_hashed"),
        *OF_GRAPHS * (isinstance(X[0], tuple) or hasattr(model, "graph")),
    ]
    kind = rng.random()
    if special and kind < 0.3:
        changes = [*rng.choice(special, size=2), rng.choice(OF_NUMBERS)]
    elif kind < 0.65:
        changes = rng.choice(OF_NUMBERS, size=rng.integers(2, 6))
    else:
        changes = rng.choice(CHANGES, size=2)
    for change in changes:
        hostile.make(change)
    unseen = hostile.X
    if rng.random() < 0.3:
        fitted, hostile.X = hostile.X, X[:n]
        hostile.how.append("and to be predicted")
        hostile.make(rng.choice(OF_FEATURES))
        unseen, hostile.X = hostile.X, fitted
    how = f"{name}: {', '.join(hostile.how)}"
    return Attempt(model, hostile.X, hostile.y, hostile.sample_weight, hostile.options, unseen, how)


class Hostile:
    """An input as it becomes hostile."""

    def __init__(self, rng, model, X, y):
        self.rng, self.model, self.X, self.y = rng, model, X, y
        self.sample_weight: Any = None
        self.options: dict[str, Any] = {}
        self.how: list[str] = []

    def make(self, change):
        """Make a change, if it can be made of what the input has become."""
        self.how.append(change.__name__)
        with suppress(AttributeError, LookupError, TypeError, ValueError, OverflowError):
            change(self)

    def pick(self, choices):
        """One of several values, of any types, which is noted."""
        value = choices[self.rng.integers(len(choices))]
        self.how.append(repr(value)[:40])
        return value

    def change_features(self, change, share=0.5):
        """Change the features of some examples, inside tuples, too."""

        def changed(x):
            if isinstance(x, tuple) and x:
                return type(x)(*(changed(x[0]), *x[1:])) if hasattr(x, "_fields") else (changed(x[0]), *x[1:])
            return change(np.array(x, float))

        if isinstance(self.X, np.ndarray) and self.X.ndim == 2:
            self.X = change(self.X)
        else:
            chosen = self.rng.random(len(self.X)) < share
            self.X = [changed(x) if is_chosen else x for x, is_chosen in zip(self.X, chosen, strict=True)]


def scaled(hostile):
    scale = hostile.pick(SCALES)
    hostile.change_features(lambda x: x * scale, share=1.0)


def scaled_in_part(hostile):
    scale = hostile.pick(SCALES)
    hostile.change_features(lambda x: x * scale)


def with_odd_entries(hostile):
    value = hostile.pick([np.nan, np.inf, -np.inf, 1e13, 1e300, -1e39, 0.0])

    def put(x):
        x.flat[hostile.rng.integers(0, max(x.size, 1), 2 if x.size else 0)] = value
        return x

    hostile.change_features(put)


def of_another_kind(hostile):
    kind = hostile.pick(KINDS)
    hostile.change_features(lambda x: x.astype("int64").astype(kind) if "datetime" in kind else x.astype(kind))


def constant(hostile):
    value = hostile.pick([0.0, 1.0, -1e6])
    hostile.change_features(lambda x: np.full_like(x, value), share=1.0)


def of_other_shapes(hostile):
    reshape = hostile.pick(["empty", "flat", "wide", "no columns", "one row", "deep", "scalar", "fortran", "negative"])
    shapes = {
        "empty": lambda x: x[:0],
        "flat": np.ravel,
        "wide": lambda x: np.concatenate([x, x], axis=-1),
        "no columns": lambda x: x[..., :0],
        "one row": lambda x: x[:1],
        "deep": lambda x: x[np.newaxis],
        "scalar": lambda x: x.sum(),
        "fortran": np.asfortranarray,
        "negative": lambda x: x[::-1, ::-1],
    }
    hostile.change_features(shapes[reshape], share=0.7)


def sparse(hostile):
    kind = hostile.pick([sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array, sp.dok_array])
    hostile.change_features(lambda x: kind(x) if x.ndim == 2 else x, share=0.8)


def masked(hostile):
    hostile.change_features(lambda x: np.ma.array(x, mask=hostile.rng.random(x.shape) < 0.3))


def broken_sparse(hostile):
    how = hostile.pick(["beyond", "negative", "falling", "long", "late", "short", "nan", "unsorted", "float"])

    def broken(x):
        if x.ndim != 2 or not x.any():
            return x
        matrix = sp.csr_array(x)
        if how == "beyond":
            matrix.indices[0] = 10**6
        elif how == "negative":
            matrix.indices[-1] = -3
        elif how == "falling":
            matrix.indptr = matrix.indptr[::-1].copy()
        elif how == "long":
            matrix.indptr[-1] = 10**6
        elif how == "late":
            matrix.indptr[0] = 1
        elif how == "short":
            matrix.data = matrix.data[:-1]
        elif how == "nan":
            matrix.data[0] = np.nan
        elif how == "unsorted":
            matrix.indices = matrix.indices[::-1].copy()
        else:
            matrix.indptr = matrix.indptr.astype(float)
        return matrix

    hostile.change_features(broken, share=0.8)


def not_a_list(hostile):
    hostile.X = hostile.pick(
        [None, 3, "text", {}, [], np.zeros(0), [None], ["a", "b"], iter([]), np.array("x", object)]
    )


def with_odd_truth(hostile):
    n = len(hostile.X) if hasattr(hostile.X, "__len__") else 1
    odd = [
        None,
        [],
        [None] * n,
        ["x"] * n,
        [[]] * n,
        [1.5] * n,
        [[-1]] * n,
        [["a", "a\0"]] * n,
        [10**400] * n,
        np.zeros((n, 2, 2)),
        7,
    ]
    hostile.y = hostile.pick([*odd, [[np.nan]] * n, np.full(n, "a"), [{}] * n, [hostile.y] * n])


def with_truth_of_another_length(hostile):
    hostile.y = hostile.pick([hostile.y[:-1], [*hostile.y, hostile.y[0]], [*hostile.y][::-1]])


def of_one_label(hostile):
    hostile.y = [np.full_like(truth, np.ravel(hostile.y[0])[0]) for truth in hostile.y]


def one_example(hostile):
    hostile.X, hostile.y = hostile.X[:1], hostile.y[:1]


def repeated(hostile):
    hostile.X, hostile.y = [hostile.X[0]] * len(hostile.X), [hostile.y[0]] * len(hostile.y)


def contradictory(hostile):
    hostile.X = [hostile.X[0]] * len(hostile.X)


def weighted(hostile):
    n = len(hostile.y) if hasattr(hostile.y, "__len__") else 1
    values = [0.0, 1e-300, 1e-12, 1.0, 3.0, 1e6, 1e12, 1e300, np.nan, -1.0, np.inf]
    odd = [hostile.rng.choice(values[:6], n), hostile.rng.choice(values, n), np.zeros(n), np.full(n, 1e300), "heavy"]
    hostile.sample_weight = hostile.pick([*odd, [None] * n, np.ones(n + 1), np.full(n, 1e12), np.full(n, 1e-300)])


def of_a_strength(hostile):
    hostile.model.set_params(C=hostile.pick(STRENGTHS))


def with_a_solver(hostile):
    hostile.model.set_params(solver=hostile.pick(SOLVERS))


def with_a_loss(hostile):
    if "loss" in hostile.model.get_params(deep=False):
        hostile.model.set_params(loss=hostile.pick(LOSSES), solver=hostile.pick(SOLVERS))


def with_a_relaxed_loss(hostile):
    if "loss" in hostile.model.get_params(deep=False):
        hostile.model.set_params(loss=hostile.pick(RELAXED), solver=hostile.pick(RELAXED_SOLVERS))


def with_held_out_data(hostile):
    hostile.options = {"X_dev": hostile.X[:2], "y_dev": hostile.pick([hostile.y[:2], hostile.y[:2], hostile.y[:1]])}
    hostile.model.set_params(scoring=hostile.pick([None, None, "token_accuracy", "entity_f1", "nonsense", 3]))


def fitted_twice(hostile):
    hostile.model.set_params(warm_start=True)


def with_odd_parameters(hostile):
    names = ["C", "tol", "max_passes", "time_limit", "patience", "n_jobs", "random_state", "solver", "dtype", "verbose"]
    known = hostile.model.get_params(deep=False)
    name = hostile.pick([name for name in names if name in known and name != "verbose"])
    hostile.model.set_params(**{name: hostile.pick([*ODD_NUMBERS, "float64", [], {}])})


def in_double_precision(hostile):
    if "dtype" in hostile.model.get_params(deep=False):
        hostile.model.set_params(dtype="float64")


def with_observed_weights(hostile):
    if "only_observed" in hostile.model.get_params(deep=False):
        hostile.model.set_params(only_observed=True)


def with_rescaled_slacks(hostile):
    if "rescaling" in hostile.model.get_params(deep=False):
        hostile.model.set_params(rescaling="slack", cost=hostile.pick(["hamming", "normalized_hamming"]))


def with_impossible_parts(hostile):
    if "allowed_transitions" in hostile.model.get_params(deep=False):
        used = {pair for truth in hostile.y for pair in pairwise(truth)}
        hostile.model.set_params(allowed_transitions={*used, ("a", "b"), ("b", "a"), ("c", "c")})
    elif isinstance(hostile.X[0], Tree):
        hostile.X = [
            tree._replace(allowed=[{label, "a"} for label in truth])
            for tree, truth in zip(hostile.X, hostile.y, strict=True)
        ]


OF_FEATURES = [
    scaled,
    scaled_in_part,
    with_odd_entries,
    of_another_kind,
    constant,
    of_other_shapes,
    sparse,
    broken_sparse,
    masked,
    not_a_list,
]
OF_NUMBERS = [
    scaled,
    scaled_in_part,
    constant,
    of_one_label,
    one_example,
    repeated,
    contradictory,
    weighted,
    of_a_strength,
    with_a_solver,
    with_a_loss,
    in_double_precision,
    with_a_relaxed_loss,
    with_held_out_data,
    fitted_twice,
    with_observed_weights,
    with_impossible_parts,
    with_rescaled_slacks,
]
CHANGES = [
    *OF_FEATURES,
    *OF_NUMBERS,
    *OF_NAMES,
    *OF_GRAPHS,
    with_odd_truth,
    with_truth_of_another_length,
    with_odd_parameters,
]
