import itertools
import warnings

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from maxmargin import MultiLabelCRF, MultiLabelSVM
from maxmargin.encode.inputs import label_graphs
from maxmargin.encode.inputs.label_graphs import ENTRIES_PER_LABEL, edges_of, most_informative, price_of
from maxmargin.structures.graphs.elimination_plan import NONE, count_entries
from maxmargin.structures.graphs.graph_problem import EliminationProblem, LoopyProblem


def correlated(n_labels, n=200, seed=0):
    """Labels that follow a few hidden causes."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(n, 3)) @ rng.normal(size=(3, n_labels))
    return (causes + rng.normal(size=(n, n_labels)) > 1).astype(int)


def test_a_number_of_pairs_are_those_that_tell_most_of_each_other():
    y = correlated(6)
    told = {(a, b): mutual_info_score(y[:, a], y[:, b]) for a, b in itertools.combinations(range(6), 2)}
    best = sorted(told, key=told.get, reverse=True)
    assert [*map(tuple, edges_of(4, y).tolist())] == best[:4]
    assert len(edges_of(100, y)) == 15  # there are no more


@pytest.mark.parametrize(("n_labels", "n_pairs"), [(6, 15), (8, 28), (9, 18), (14, 28)])
def test_auto_joins_all_of_few_labels_and_two_pairs_per_label_of_many(n_labels, n_pairs):
    assert len(edges_of("auto", correlated(n_labels))) == n_pairs


def test_pairs_that_would_make_the_treewidth_large_are_left_out():
    y = correlated(14)
    every = most_informative(y, 91)
    assert 28 < len(every) < 91
    assert count_entries([2] * 14, every.tolist()) <= ENTRIES_PER_LABEL * 14
    ranked = [tuple(pair) for pair in most_informative(y, 28).tolist()]
    assert ranked == [tuple(pair) for pair in every.tolist()][:28]  # the first ones all fit


@pytest.mark.parametrize("graph", [0, -3, True, 2.5])
def test_other_numbers_of_pairs_are_refused(graph):
    with pytest.raises(ValueError, match="graph"):
        edges_of(graph, correlated(4))


def test_elimination_is_for_few_labels_or_sums(interpreted_loops):
    """Tables of all pairs of 16 labels take longer than approximate inference; those of 10 do not."""
    for n_labels, kind in ((10, EliminationProblem), (16, LoopyProblem)):
        y = correlated(n_labels, n=40)
        assert isinstance(MultiLabelSVM(graph="full")._encode(np.ones((40, 1)), y).problem, kind)
        assert isinstance(MultiLabelCRF(graph="full")._encode(np.ones((40, 1)), y).problem, EliminationProblem)
    fitted = MultiLabelSVM(graph="full", max_passes=1, random_state=0).fit(np.ones((4, 1)), correlated(16, n=4, seed=1))
    assert (fitted._encoder.problem(np.ones((2, 1))).plan.which != NONE).all()  # predictions are exact as before


def test_many_pairs_come_with_a_warning(monkeypatch):
    edges = np.array([*itertools.combinations(range(159), 2)])
    price = price_of(edges, 159, 4880, takes_sums=False)
    assert price.n_bytes > 4e9
    assert price.seconds > 60
    monkeypatch.setattr(label_graphs, "LONG", 1e-6)
    with pytest.warns(UserWarning, match=r"9 labels joined by 36 pairs take about .* GB, and .* s for each pass.*auto"):
        MultiLabelSVM(graph="full")._encode(np.ones((20, 1)), correlated(9, n=20))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiLabelSVM()._encode(np.ones((200, 1)), correlated(53))
