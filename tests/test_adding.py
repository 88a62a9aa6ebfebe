"""A structure is added by a problem, an encoder and an estimator: here the onsets of events, one in each sequence.

What stands between the lines would be a package in structures/, a file in encode/ and one in estimators/.
"""

from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np

from maxmargin import BCFW, LBFGS
from maxmargin import problem as generics
from maxmargin.arrays.vectors import first_best
from maxmargin.encode.inputs.base_encoder import RowEncoder
from maxmargin.encode.inputs.merits import Merits
from maxmargin.encode.inputs.rows import stack_rows
from maxmargin.estimators.foundation.arguments import MaxMargin, Precision
from maxmargin.estimators.foundation.fit_options import FitOptions, estimator
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.runtime import implements
from maxmargin.structures.choices import candidate_problem as choices
from maxmargin.supervision.weak import Learned
from maxmargin.testing import check_estimator, check_solver, check_structure

# --- structures/onsets/onset_problem.py -----------------------------------------------------------------------------


class OnsetProblem(NamedTuple):
    """An output is a position, whose row scores; it costs its distance from the true one."""

    rows: np.ndarray  # (N, F)
    starts: np.ndarray  # (n + 1,) int64
    labels: np.ndarray  # (n,) int32, the true positions


class OnsetWork(NamedTuple):
    direction: np.ndarray  # (F,)


@implements(generics.true_outputs, OnsetProblem)
def true_onsets(problem):
    return problem.labels[:, np.newaxis]


@implements(generics.new_weights, OnsetProblem)
def new_onset_weights(problem):
    return np.zeros(problem.rows.shape[1], problem.rows.dtype)


@implements(generics.part_sizes, OnsetProblem)
def onset_part_sizes(problem):
    return np.diff(problem.starts)


@implements(generics.workspace, OnsetProblem)
def onset_workspace(problem, n_best):
    return OnsetWork(new_onset_weights(problem))


@implements(generics.scores, OnsetProblem)
def onset_scores(problem, w, i, theta):
    for t in range(theta.size):
        theta[t] = 0
        for f in range(w.size):
            theta[t] += w[f] * problem.rows[problem.starts[i] + t, f]


@implements(generics.spread, OnsetProblem)
def spread_onset(problem, w, i, delta, scale):
    for t in range(delta.size):
        for f in range(w.size):
            w[f] += scale * delta[t] * problem.rows[problem.starts[i] + t, f]


@implements(generics.squared_norm, OnsetProblem)
def onset_squared_norm(problem, i, delta, work):
    generics.spread(problem, work.direction, i, delta, 1.0)
    total = 0.0
    for f in range(work.direction.size):
        total += work.direction[f] ** 2
        work.direction[f] = 0
    return total


@implements(generics.augment, OnsetProblem)
def augment_onset(problem, i, theta):
    for t in range(theta.size):
        theta[t] += abs(t - problem.labels[i])


@implements(generics.max_oracle, OnsetProblem)
def best_onset(problem, i, theta, y, work):
    y[0] = first_best(theta)
    return theta[y[0]]


implements(generics.add_output, OnsetProblem)(choices.add_choice)
implements(generics.score_output, OnsetProblem)(choices.score_choice)
implements(generics.topk_oracle, OnsetProblem)(choices.best_k_choices)
implements(generics.exp_oracle, OnsetProblem)(choices.softmax_of_choices)
implements(generics.max_marginals, OnsetProblem)(choices.scores_of_choices)

# --- encode/onset_encoder.py ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class OnsetEncoder(RowEncoder):
    """The encoder of onsets."""

    @classmethod
    def learn(cls, X, y, *, dtype):
        """The encoder and the problem of training data."""
        encoder = cls.of(stack_rows(X), dtype)
        if y is None:
            raise TypeError("y must be the true onsets.")
        return Learned(encoder, encoder.problem(X, y))

    def problem(self, X, y=None):
        rows = stack_rows(X, None, self.n_features_in)
        labels = np.zeros(len(rows.lengths), np.int32) if y is None else np.asarray(y, np.int32)
        if labels.shape != rows.lengths.shape:
            raise ValueError(f"There are {len(rows.lengths)} sequences, but {labels.size} onsets.")
        return OnsetProblem(np.ascontiguousarray(rows.matrix, self.dtype), rows.starts.astype(np.int64), labels)

    def dual_shape(self, problem):
        return (problem.starts,)

    def decode(self, problem, i, rows):
        return rows[:, 0]

    def judge(self, problem, outputs):
        return Merits(outputs.values == problem.labels)


# --- estimators/onset_models.py -------------------------------------------------------------------------------------


@estimator
class OnsetSVM(MaxMargin, Precision, StructuredModel):
    """Structural SVM of onsets: the position of each sequence at which something begins.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    """

    _encoder_type = OnsetEncoder

    def fit(self, X, y, sample_weight=None, **options: Unpack[FitOptions]):
        """Train on sequences.

        Parameters
        ----------
        X : list of (T_i, F) arrays
        y : (n,) the true onsets
        """
        return self._fit(X, y, sample_weight, options)


# --------------------------------------------------------------------------------------------------------------------


def onsets(n=8):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 2)) for length in rng.integers(2, 5, n)]
    return X, [int(np.argmax(x[:, 0] + 0.3 * rng.normal(size=len(x)))) for x in X]


def test_its_functions_agree():
    X, y = onsets(3)
    problem = OnsetEncoder.learn(X, y, dtype=np.float64).problem
    check_structure(problem, lambda i: [np.array([t]) for t in range(len(X[i]))], k=3)


def test_solvers_train_it():
    problem = OnsetEncoder.learn(*onsets(), dtype=np.float64).problem
    check_solver(BCFW(steps="pairwise"), problem)
    check_solver(LBFGS(), problem, loss="log")


def test_its_estimator_is_like_all_others():
    X, y = onsets()
    model = OnsetSVM(random_state=0)
    check_estimator(model, X, y, other=[np.eye(3)])
    assert model.fit(X, y).score(X, y) > 0.5
