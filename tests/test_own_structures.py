"""The structures of the examples, from outside the package."""

import itertools

import numpy as np
import pytest

from examples.intervals import make_intervals
from examples.word_segmentation import LONGEST, Segmentation, boundaries, f1
from maxmargin import BCFW, CustomProblem, ProblemModel
from maxmargin.testing import check_solver, check_structure
from tests import naive


def segmentations(text):
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        ends = [k + 1 for k, cut in enumerate(cuts) if cut]
        yield tuple(text[a:b] for a, b in itertools.pairwise([0, *ends, len(text)]))


def test_segmentation_is_a_structure():
    X, y = ["theend", "a", "atend"], [("the", "end"), ("a",), ("at", "end")]
    problem = CustomProblem(Segmentation(["the", "a", "end"]), X, y)
    check_structure(problem, lambda i: [np.array([problem.number(i, words)]) for words in segmentations(X[i])])
    assert problem.n_features == 3 + LONGEST
    result = BCFW(steps="pairwise").solve(problem, C=10.0, random_state=0)
    predicted = [problem.model.argmax(x, result.w) for x in X]
    assert predicted == y
    assert boundaries(y[0]) == {3}
    assert f1(y, predicted) == 1


@pytest.fixture(scope="module")
def intervals():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 2)) for length in (1, 3, 5, 4)]
    return X, [(0, 1), (1, 3), (2, 4), (0, 4)]


def all_intervals(length):
    return [np.array(y, np.int32) for y in itertools.combinations(range(length + 1), 2)]


def test_intervals_are_a_structure(intervals):
    X, y = intervals
    check_structure(make_intervals(X, y), lambda i: all_intervals(len(X[i])))


def test_intervals_train_compiled(intervals):
    X, y = intervals
    blocks = []
    for x, (start, stop) in zip(X, y, strict=True):
        outputs = all_intervals(len(x))
        phi = x[start:stop].sum(axis=0) - np.array([x[a:b].sum(axis=0) for a, b in outputs])
        costs = [len(set(range(start, stop)) ^ set(range(a, b))) for a, b in outputs]
        blocks.append((phi, np.array(costs, float)))
    check_solver(BCFW(steps="pairwise"), make_intervals(X, y), naive.solve(blocks, 0.5)[1], C=0.5)


def test_a_model_of_intervals(intervals):
    X, y = intervals
    model = ProblemModel(make_intervals, C=10.0, random_state=0).fit(X, y)
    predicted = model.predict(X)
    costs = [len({*range(*a)} ^ {*range(*b)}) for a, b in zip(y, predicted, strict=True)]
    assert model.score(X, y) == -np.mean(costs)
    pairs = ProblemModel(make_intervals, decode=lambda problem, i, row: (i, *row.tolist()), random_state=0).fit(X, y)
    assert [i for i, *_ in pairs.predict(X)] == [0, 1, 2, 3]


class Choice:
    """Candidates with all oracles a CRF needs, in Python."""

    def __init__(self, X, y=None):
        self.X, self.y = X, np.zeros(len(X), int) if y is None else y

    def new_weights(self):
        return np.zeros(self.X[0].shape[1])

    def part_sizes(self):
        return np.array([len(x) for x in self.X])

    def true_outputs(self):
        return np.array(self.y)[:, np.newaxis]

    def workspace(self, n_best):
        return None

    def scores(self, w, i, theta):
        theta[:] = self.X[i] @ w

    def spread(self, w, i, delta, scale):
        w += scale * (delta @ self.X[i])

    def squared_norm(self, i, delta, work):
        return np.sum((delta @ self.X[i]) ** 2)

    def augment(self, i, theta):
        theta += np.arange(len(theta)) != self.y[i]

    def add_output(self, i, y, scale, mu):
        mu[y[0]] += scale

    def score_output(self, i, theta, y):
        return theta[y[0]]

    def max_oracle(self, i, theta, y, work):
        y[0] = np.argmax(theta)
        return theta[y[0]]

    def topk_oracle(self, i, theta, outputs, values, level, work):
        best = np.argsort(-theta, kind="stable")[: len(values)]
        outputs[: len(best), 0], values[: len(best)] = best, theta[best]
        return len(best)

    def exp_oracle(self, i, theta, mu, work):
        mu[:] = np.exp(theta - theta.max())
        total = mu.sum()
        mu /= total
        return np.log(total) + theta.max()


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_a_model_of_a_python_class(loss):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(20)]
    y = [int(np.argmax(x[:, 0])) for x in X]
    model = ProblemModel(Choice, loss=loss, C=10.0, tol=1e-3, random_state=0, warm_start=True).fit(X, y)
    assert model.score(X, y) >= -0.1
    assert model.certificate_.gap <= 1e-3 * model.certificate_.primal
    outputs, values = model.predict_topk(X[:1], 3)[0]
    assert outputs[0] == model.predict(X[:1])[0]
    assert np.allclose(values, np.sort(X[0] @ model.coef_)[: -1 - 3 : -1])
    assert model.fit(X, y).trace_.passes[-1] <= 1


def test_what_is_no_problem():
    with pytest.raises(TypeError, match="make_problem must be a function"):
        ProblemModel(None).fit([0], [0])
    with pytest.raises(TypeError, match="make_problem must return a problem, but its list lacks new_weights"):
        ProblemModel(lambda X, y=None: X).fit([0], [0])
    with pytest.raises(TypeError, match="y must hold the true outputs"):
        ProblemModel(Choice).fit([np.eye(2)], None)
