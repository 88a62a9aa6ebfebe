"""The structures of the examples, from outside the package."""

import itertools

import numpy as np
import pytest

from examples.intervals import make_intervals
from examples.word_segmentation import LONGEST, Segmentation, boundaries, f1
from maxmargin import BCFW, CCCP, CustomProblem, ProblemModel, Status
from maxmargin.arrays.blocks import Blocks
from maxmargin.problem import restrict
from maxmargin.supervision.weak import Weak
from maxmargin.testing import check_solver, check_structure, toy_chains
from tests import naive
from tests.toy import Candidates


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


class Choice(Candidates):
    """Candidates of which any may be true."""

    def __init__(self, X, y=None):
        self.y = np.zeros(len(X), int) if y is None else y
        super().__init__(X, [np.arange(len(x)) != label for x, label in zip(X, self.y, strict=True)])

    def true_outputs(self):
        return np.array(self.y)[:, np.newaxis]


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


@pytest.mark.usefixtures("interpreted_loops")
def test_a_problem_of_outputs_known_in_part():
    """It is trained as estimators of the library are."""

    def make_problem(X, y=None):
        problem = toy_chains(len(X), n_labels=3, max_length=3)
        if y is None:
            return problem
        is_wrong = np.arange(3) != problem.supervision.labels[:, np.newaxis]
        is_wrong[::2], problem.supervision.weight[::2] = False, 0.0
        return problem, Weak(restrict(problem, Blocks(is_wrong.ravel(), 3 * problem.starts)))

    model = ProblemModel(make_problem, C=1.0, tol=1e-3, random_state=0, warm_start=True)
    X, y = [*range(6)], [*range(6)]
    assert model.fit(X, y).status_ is Status.STATIONARY
    problem, weak = make_problem(X, y)
    result = CCCP().solve(problem, weak=weak, tol=1e-3, random_state=0)
    assert np.array_equal(model.coef_, result.w)
    assert model.score(X, y) <= 0
    assert len(model.predict(X)) == 6
    assert model.fit(X, y).status_ is Status.STATIONARY  # a warm start, which certifies the weights at once
    assert len(model.trace_) == 1
    with pytest.raises(TypeError, match="make_problem must return a problem, or a pair of it and a Weak, not"):
        ProblemModel(lambda X, y=None: (toy_chains(2), None)).fit(X, y)
