import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import BCFW, LBFGS, CustomProblem, FrankWolfe, Status
from maxmargin.testing import check_solver, check_structure
from tests import naive
from tests.toy import Labels, LabelsByArgmax, label_data


class OnlyArgmax:
    """The same, without the K best."""

    def __init__(self):
        self.features, self.cost, self.argmax = LabelsByArgmax().features, Labels().cost, LabelsByArgmax().argmax


def all_rows(problem):
    return lambda i: [np.array([problem.number(i, y)]) for y in Labels().outputs(None)]


@pytest.fixture(scope="module")
def optimum():
    X, Y = label_data()
    blocks = []
    for x, truth in zip(X, Y, strict=True):
        phi = np.array([Labels().features(x, y) for y in Labels().outputs(x)])
        costs = np.array([Labels().cost(truth, y) for y in Labels().outputs(x)])
        blocks.append((Labels().features(x, truth) - phi, costs))
    return naive.solve(blocks, C=0.5)[1]


@pytest.mark.parametrize("model", [Labels(), LabelsByArgmax()])
def test_oracles_equal_enumeration(model):
    problem = CustomProblem(model, *label_data())
    check_structure(problem, all_rows(problem), k=10)  # more than there are outputs


@pytest.mark.parametrize("steps", ["fw", "pairwise", "away"])
def test_bcfw_reaches_the_optimum(steps, optimum):
    problem = CustomProblem(LabelsByArgmax(), *label_data())
    tol = 1e-2 if steps == "fw" else 1e-4
    result = BCFW(steps=steps).solve(problem, 0.5, tol=tol, random_state=0)
    assert result.status is Status.OPTIMAL
    assert result.trace.dual[-1] - 1e-9 <= optimum <= result.trace.primal[-1] + 1e-9


def test_negative_parts_are_kept_by_frank_wolfe_steps(optimum):
    """Features are of either sign, so mean parts are, too."""
    problem = CustomProblem(Labels(), *label_data())
    check_solver(BCFW(), problem, optimum, C=0.5, tol=2e-2)


def test_other_solvers():
    problem = CustomProblem(Labels(), *label_data())
    assert FrankWolfe().solve(problem, tol=0.1).status is Status.OPTIMAL
    assert LBFGS().solve(problem).status is Status.OPTIMAL


def test_only_the_oracles_of_the_model_are_there():
    problem = CustomProblem(OnlyArgmax(), *label_data())
    check_structure(problem, all_rows(problem))
    with pytest.raises(TypeError, match="LBFGS needs the exp oracle for the log loss, which CustomProblem"):
        LBFGS().solve(problem)


@pytest.mark.parametrize(
    "outputs",
    [
        [[1, 2], [2, 1]],
        [np.array([1, 2]), np.array([2, 1])],
        [{1, 2}, {1}],
        [{"a": [1]}, {"a": [2]}],
        ["ab", "ba"],
        [frozenset([(0, 1)]), frozenset()],
    ],
)
def test_outputs_of_any_kind(outputs):
    class Two:
        def features(self, x, y):
            return [float(repr(y) == repr(outputs[0]))]

        def cost(self, y_true, y):
            return float(repr(y_true) != repr(y))

        def outputs(self, x):
            return outputs

    problem = CustomProblem(Two(), [None], [outputs[0]])
    assert [problem.number(0, y) for y in [*outputs, *outputs]] == [0, 1, 0, 1]
    assert problem.output(0, [1]) is outputs[1]
    check_structure(problem, problem.rows)


def broken(**methods):
    kind = type("Broken", (), {"features": lambda self, x, y: [x], "cost": lambda self, a, b: float(a != b), **methods})
    return kind()


@pytest.mark.parametrize(
    ("model", "X", "Y", "sentence"),
    [
        (type(broken()), [1.0], [0], r"model must be an object, not a class: Broken\(\)"),
        (broken(), [1.0], [0], r"Broken needs a method argmax or outputs\(x\)"),
        (broken(features=None, outputs=lambda self, x: [0]), [1.0], [0], "Broken needs a method features"),
        (broken(outputs=lambda self, x: [0, 1]), [], [], "X must hold at least one example"),
        (broken(outputs=lambda self, x: [0, 1]), 3, [0], "X must be a list of examples, not an int"),
        (broken(outputs=lambda self, x: [0, 1]), [1.0], 7, "y must be a list of outputs, not an int"),
        (broken(outputs=lambda self, x: [0, 1]), [1.0], [0, 1], "X has 1 examples, but y has 2"),
        (broken(outputs=lambda self, x: [0, 1]), [1.0, 2.0], [0, 3], r"y\[1\], 3, is not among outputs\(X\[1\]\)"),
        (broken(outputs=lambda self, x: []), [1.0], [0], r"outputs\(X\[0\]\) must yield at least one"),
        (broken(outputs=lambda self, x: [0, 1]), [1.0, np.nan], [0, 1], r"features\(X\[1\], 0\) .* holds NaN"),
        (
            broken(outputs=lambda self, x: [0, 1], features=lambda self, x, y: [x] * (1 + y)),
            [1.0],
            [0],
            r"features\(X\[0\], 1\) must be 1 finite numbers, but has shape \(2,\)",
        ),
        (
            broken(outputs=lambda self, x: [0], features=lambda *_: "a"),
            [1.0],
            [0],
            r"features\(X\[0\], 0\) .* not 'a",
        ),
        (
            broken(outputs=lambda self, x: [0], cost=lambda *_: None),
            [1.0],
            [0],
            r"cost\(y\[0\], 0\) .* not None",
        ),
        (
            broken(outputs=lambda self, x: [0, 1], cost=lambda self, a, b: 1.0),
            [1.0],
            [0],
            r"cost\(y\[0\], y\[0\]\) must be 0, but it is 1",
        ),
        (
            broken(outputs=lambda self, x: [0, 1], cost=lambda self, a, b: a - b),
            [1.0],
            [0],
            r"cost\(y\[0\], 1\) must be finite and not negative, but it is -1",
        ),
        (broken(outputs=lambda self, x: [bytearray()]), [1.0], [0], "must be hashable, but a bytearray is not"),
    ],
)
def test_bad_models(model, X, Y, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        CustomProblem(model, X, Y)


def test_an_argmax_that_returns_nothing_is_found():
    with pytest.raises(TypeError, match=r"The model returned None as an output of X\[0\]"):
        FrankWolfe().solve(CustomProblem(broken(argmax=lambda *_: None), [1.0], [0]))


class ForgetsCosts(LabelsByArgmax):
    """Its argmax takes the true output and does nothing with it."""

    def argmax(self, x, w, y_true=None):
        return super().argmax(x, w)


def test_an_argmax_that_forgets_the_cost_is_found():
    X, y = label_data(6)
    check_structure(CustomProblem(LabelsByArgmax(), X, y))
    with pytest.raises(AssertionError, match="does it leave out costs"):
        check_structure(CustomProblem(ForgetsCosts(), X, y))


@pytest.mark.parametrize("shape", [(1, 9), (9,)])
def test_sparse_joint_features(shape):
    class Sparse(Labels):
        def features(self, x, y):
            dense = super().features(x, y)
            indices = np.flatnonzero(dense)
            places, values = np.tile(indices, 2), np.tile(dense[indices] / 2, 2)  # entries of one place are added
            coordinates = (places,) if len(shape) == 1 else (np.zeros_like(places), places)
            return sp.coo_array((values, coordinates), shape)

    X, y = label_data(4)
    problem, dense = CustomProblem(Sparse(), X, y), CustomProblem(Labels(), X, y)
    check_structure(problem, outputs=problem.rows)
    assert problem.n_features == dense.n_features
    assert np.allclose(problem.squared_diameters(), dense.squared_diameters())
    solved, expected = (BCFW(steps="pairwise").solve(p, random_state=0) for p in (problem, dense))
    assert np.allclose(solved.w, expected.w, atol=1e-6)


def test_sparse_features_of_another_size_are_refused():
    class Short(Labels):
        def features(self, x, y):
            return sp.coo_array(np.ones((1, 9 if y is truth else 8)))

    X, y = label_data(2)
    truth = y[0]
    with pytest.raises(ValueError, match=r"must be 9 finite numbers, but has shape \(1, 8\)"):
        CustomProblem(Short(), X, y)
