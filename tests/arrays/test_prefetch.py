"""Memory that is asked for ahead: where it is, and that asking changes nothing."""

import numpy as np
import pytest

from maxmargin.arrays.prefetch import COUNTED, LINE, lines_of, prefetch_example, prefetch_range, prefetch_row
from maxmargin.features import DenseFeatures
from maxmargin.problem import all_true_outputs, prepare, stretches
from maxmargin.runtime.dispatch import loop
from maxmargin.testing import toy_chains


@loop
def ask_for_all(table, lines):
    for i in range(lines.shape[0]):
        prefetch_row(lines, i)
        prefetch_example(lines, i)
    prefetch_range(table, 1, table.size)


def test_asking_changes_nothing():
    table = np.arange(100.0)
    ask_for_all(table, lines_of([(table, np.array([0, 40]), np.array([40, 100]))]))
    ask_for_all(table, lines_of([]))
    assert (table == np.arange(100)).all()


def test_lines_are_those_of_the_stretch():
    table = np.zeros((100, 3), np.float32)
    begin, end = np.array([0, 7, 30, 99]), np.array([7, 30, 30, 100])
    (numbers, counts), base = np.divmod(lines_of([(table, begin, end)])[:, 0], COUNTED), table.ctypes.data
    for k in (0, 1, 3):
        assert numbers[k] * LINE <= base + 12 * begin[k] < (numbers[k] + 1) * LINE
        assert (numbers[k] + counts[k] - 1) * LINE < base + 12 * end[k] <= (numbers[k] + counts[k]) * LINE
    assert counts[2] == 0


@pytest.mark.parametrize("is_dense", [False, True])
def test_stretches_of_sequences_lie_in_their_arrays(is_dense):
    problem = toy_chains(n=6)
    if is_dense:
        n_rows = int(problem.starts[-1])
        rows = np.ones((n_rows, problem.n_features))
        problem = problem._replace(features=DenseFeatures(rows, problem.features.gram))
    problem = prepare(problem, np.float64)
    found = stretches(problem)
    for array, begin, end in found:
        assert len(begin) == len(end) == len(all_true_outputs(problem).starts) - 1
        assert (begin >= 0).all()
        assert (begin <= end).all()
        assert (end <= len(array)).all()
    gram = problem.features.gram
    n_read = sum(int((end - begin).sum()) for array, begin, end in found if array is gram.values)
    assert n_read == gram.values.size > 0
