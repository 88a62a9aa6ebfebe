import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import BCFW, MultiLabelSVM
from maxmargin.structures.graphs.independent import IndependentProblem
from maxmargin.testing import check_solver, check_structure


def problem_of(n_labels, matrix=np.asarray, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(4, 3)) * (rng.random((4, 3)) < 0.8), rng.integers(0, 2, (4, n_labels))
    y[:2] = [[0] * n_labels, [1] * n_labels]
    model = MultiLabelSVM(graph=None, cost=1.0 + np.arange(n_labels), dtype="float64")
    return model._encode(matrix(X), y).problem


def label_sets(n_labels):
    return lambda i: [np.array(y) for y in itertools.product((0, 1), repeat=n_labels)]


def test_oracles_equal_enumeration():
    problem = problem_of(3)
    assert isinstance(problem, IndependentProblem)
    check_structure(problem, label_sets(3), k=5)


def test_sparse_rows(interpreted_loops):
    check_structure(problem_of(3, sp.csr_array), label_sets(3), k=5)


@pytest.mark.parametrize("n_labels", [1, 4])
def test_any_number_of_labels(n_labels, interpreted_loops):
    check_structure(problem_of(n_labels, seed=1), label_sets(n_labels), random_state=1, k=20)


def test_a_solver_trains_them(interpreted_loops):
    check_solver(BCFW(), problem_of(2))
