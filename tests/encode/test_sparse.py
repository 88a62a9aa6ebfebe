"""Sparse matrices whose indices lead out of them are refused, before SciPy or a loop follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import (
    CandidateSVM,
    ChainCRF,
    ChainSVM,
    GraphCutSVM,
    MatchingSVM,
    MulticlassSVM,
    MultiLabelSVM,
    Tree,
    TreeSVM,
)

pytestmark = pytest.mark.usefixtures("interpreted_loops")


def whole(kind=sp.csr_array):
    return kind(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))


def broken(how):
    matrix = whole(sp.csc_array if "csc" in how else sp.coo_array if "coo" in how else sp.csr_array)
    if how == "coo beyond":
        matrix.coords[1][0] = 10**6
    elif "beyond" in how:
        matrix.indices[0] = 10**6
    elif how == "negative":
        matrix.indices[0] = -5
    elif how == "falling":
        matrix.indptr[1] = 3
        matrix.indptr[2] = 1
    elif how == "too long":
        matrix.indptr[2] = 10**6
    elif how == "begins late":
        matrix.indptr[0] = 1
    elif how == "short":
        matrix.indptr = matrix.indptr[:-1]
    return matrix


WAYS = ["beyond", "negative", "falling", "too long", "begins late", "short", "csc beyond", "coo beyond"]
EDGES = [(0, 1)]
TASKS = {
    "ChainSVM": (ChainSVM, lambda x: [x, x], [[0, 1], [1, 0]]),
    "ChainCRF": (lambda: ChainCRF(only_observed=True), lambda x: [x, x], [[0, 1], [1, 0]]),
    "CandidateSVM": (CandidateSVM, lambda x: [x, x], [0, 1]),
    "MulticlassSVM": (MulticlassSVM, lambda x: x, [0, 1]),
    "MultiLabelSVM": (MultiLabelSVM, lambda x: x, [[0, 1], [1, 0]]),
    "TreeSVM": (TreeSVM, lambda x: [Tree(x, EDGES), Tree(x, EDGES)], [[0, 1], [1, 0]]),
    "GraphCutSVM": (GraphCutSVM, lambda x: [(x, EDGES), (x, EDGES)], [[0, 1], [1, 0]]),
    "MatchingSVM": (MatchingSVM, lambda x: [(x, (1, 2)), (x, (1, 2))], [[0], [1]]),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("how", WAYS)
def test_broken_matrices_are_refused(task, how):
    make, arrange, y = TASKS[task]
    message = r"X(\[0\])? is a broken sparse matrix: its indices do not fit its shape, \(2, 3\)"
    with pytest.raises(ValueError, match=message):
        make().fit(arrange(broken(how)), y)
    model = make().set_params(max_passes=1).fit(arrange(whole()), y)
    with pytest.raises(ValueError, match="broken sparse matrix"):
        model.predict(arrange(broken(how)))


def test_broken_edge_features_are_refused():
    tree = Tree(np.eye(3), edges=[(0, 1), (0, 2)], edge_features=broken("beyond"))
    with pytest.raises(ValueError, match=r"The edge features of X\[0\] is a broken sparse matrix"):
        TreeSVM().fit([tree], [[0, 1, 0]])


def test_duplicates_and_unsorted_indices_work():
    matrix = sp.csr_array((np.ones(5), [2, 0, 2, 1, 1], [0, 3, 5]), shape=(2, 3))
    dense = matrix.toarray()
    one, two = (ChainSVM(random_state=0, max_passes=5).fit([x, x[::-1]], [[0, 1], [1, 0]]) for x in (matrix, dense))
    assert np.allclose(one.coef_.emissions, two.coef_.emissions, atol=1e-5)
