"""What encoders know of several data: names, labels and pairs of one after those of the other; weights by them."""

import numpy as np
import pytest

from maxmargin import (
    CandidateSVM,
    ChainCRF,
    ChainSVM,
    DependencyCRF,
    Graph,
    GraphCutSVM,
    GraphSVM,
    MulticlassSVM,
    MultiLabelSVM,
    SpanSVM,
    Tree,
    TreeCRF,
)
from maxmargin.estimators.foundation.fitting import prepare
from maxmargin.features import layout_of
from maxmargin.problem import all_true_outputs, part_sizes, score_output, scores

RNG = np.random.default_rng(0)
WORDS = [["the", "dog", "ran"], ["a", "cat"], ["cats", "ran", "off"], ["dog", "Rome"], ["the", "end"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["N", "V", "P"], ["N", "E"], ["D", "N"]]
ITEMS = [[[word, word[-1]] for word in words] for words in WORDS]
ROWS = RNG.normal(size=(8, 3))
GRAPHS = [
    Graph(RNG.normal(size=(3, 2)), edges=[(0, 1), (1, 2)], node_types=[*types]) for types in ("aab", "abb", "cab")
]

CASES = {
    "chain": (ChainCRF(), ITEMS, TAGS),
    "observed": (ChainCRF(only_observed=True), ITEMS, TAGS),
    "rows": (ChainSVM(), [RNG.normal(size=(len(tags), 2)) for tags in TAGS], TAGS),
    "hashed": (ChainSVM(n_hashed=16), ITEMS, TAGS),
    "trees": (TreeCRF(), [Tree(items, [(0, k) for k in range(1, len(items))]) for items in ITEMS], TAGS),
    "observed trees": (TreeCRF(only_observed=True), [Tree(items, [(0, 1)]) for items in ITEMS], TAGS),
    "classes": (MulticlassSVM(), ROWS, np.array([2, 2, 0, 0, 1, 1, 2, 3])),
    "candidates": (CandidateSVM(), ITEMS, [0, 1, 0, 1, 1]),
    "parses": (DependencyCRF(), WORDS, [[2, 3, 0], [2, 0], [2, 0, 2], [0, 1], [2, 0]]),
    "graphs": (GraphSVM(), [*GRAPHS, *GRAPHS[:2]], [list("xyx"), list("yyx"), list("zzy"), list("xxx"), list("yyy")]),
    "cuts": (GraphCutSVM(), [graph[:2] for graph in [*GRAPHS, *GRAPHS[:2]]], [[0, 1, 1]] * 5),
    "label sets": (MultiLabelSVM(graph="tree"), ROWS, (ROWS + RNG.normal(size=(8, 3)) > 0).astype(int)),
}
# of words as lists of characters: a label of the arcs of some sentences only
CASES["parses"] = (
    DependencyCRF(),
    [[[f"{a}{b}", a] for b in words for a in ["root", *words]] for words in WORDS],
    [[(h, "x" if len(tree) < 3 else "y") for h in tree] for tree in CASES["parses"][2]],
)

CASES["constituents"] = (
    SpanSVM(),
    [[[a, f"{a}{b}"] for k, a in enumerate(words) for b in words[k:]] for words in WORDS],
    [[(0, len(words), "xy"[len(words) > 2]), (0, 1, "z")] for words in WORDS],
)


def halves(name, at=2):
    model, X, y = CASES[name]
    return model, (X[:at], y[:at]), (X[at:], y[at:])


@pytest.mark.parametrize("name", CASES)
def test_one_half_after_the_other_is_as_good_as_all_at_once(name):
    model, X, y = CASES[name]
    whole = prepare(model, X, y).encoder
    _, first, second = halves(name)
    before = prepare(model, *first).encoder
    task = prepare(model, *second, None, before)
    assert task.encoder == whole
    again = prepare(model, *second, None, whole)  # nothing is new: the problem is that of all data
    assert again.encoder == whole
    assert task.layout.n_weights == whole.n_weights


@pytest.mark.parametrize("name", sorted({*CASES} - {"label sets"}))  # whose graphs are learned, and may be others
def test_encoders_are_joined_without_data(name):
    model, first, second = halves(name)
    before, other = prepare(model, *first).encoder, prepare(model, *second).encoder
    known = prepare(model, *second, None, before).encoder
    joined = before.joined(other)
    if hasattr(joined, "penalty"):  # what is allowed of labels that are never in one half, those of all data tell
        joined = prepare(model, *second, None, joined).encoder
        assert (joined.penalty == 0).all()
    assert joined == known
    assert joined.joined(before) == joined
    assert joined.joined(other) == joined


@pytest.mark.parametrize("rules", [{"constraints": "iob2"}, {"allowed_transitions": "observed"}])
def test_joined_encoders_keep_the_rules_of_all_data(rules):
    model, X = ChainCRF(**rules), [[["a"]] * 4] * 3
    parts = [["B-A", "I-A", "O", "O"]], [["O", "B-B", "I-B", "O"]], [["B-C", "I-C", "B-C", "O"]]
    whole = prepare(model, X, [tags for part in parts for tags in part]).encoder
    assert (whole.penalty < 0).any()
    first, *others = (prepare(model, X[:1], part).encoder for part in parts)
    for other in others:
        first = first.joined(other)
    known = [prepare(model, X[:1], part, None, first).encoder for part in parts]
    assert all(np.array_equal(one.penalty, whole.penalty) for one in known)
    assert all(np.array_equal(one.end_penalty, whole.end_penalty) for one in known)


@pytest.mark.parametrize(
    "name", ["chain", "observed", "rows", "hashed", "trees", "classes", "candidates", "parses", "constituents"]
)
def test_weights_keep_their_meaning(name):
    model, first, second = halves(name)
    before = prepare(model, *first)
    w = RNG.normal(size=before.layout.n_weights)
    joined = before.encoder.joined(prepare(model, *second).encoder)
    moved = joined.weights_of(before.encoder, w)
    assert np.array_equal(before.encoder.weights_of(joined, moved), w)
    assert np.isclose(np.square(moved).sum(), np.square(w).sum())  # nothing is there twice
    mine, its = (
        scores_of_truth(encoder.problem(*first), encoder, weights)
        for encoder, weights in ((before.encoder, w), (joined, moved))
    )
    assert np.allclose(mine, its, rtol=1e-5)


def scores_of_truth(problem, encoder, w):
    """The scores of the true outputs of all examples."""
    w = layout_of(problem).to_solver(w).astype(encoder.dtype)
    found, truth = [], all_true_outputs(problem)
    for i, size in enumerate(part_sizes(problem)):
        theta = np.zeros(size, encoder.dtype)
        scores(problem, w, i, theta)
        found.append(score_output(problem, i, theta, truth.values[truth.starts[i] : truth.starts[i + 1]]))
    return np.array(found)


def test_what_does_not_fit_is_said():
    chain, rows = prepare(ChainCRF(), ITEMS, TAGS).encoder, prepare(ChainCRF(), [np.ones((2, 3))], [["A", "B"]]).encoder
    with pytest.raises(TypeError, match="X must hold features by name, or none of them, as before"):
        chain.joined(rows)
    with pytest.raises(ValueError, match="X has 2 features, but 3 before"):
        rows.joined(prepare(ChainCRF(), [np.ones((2, 2))], [["A", "B"]]).encoder)
    with pytest.raises(TypeError, match="y holds labels of another type than before, such as 3"):
        prepare(ChainCRF(), [np.ones((2, 3))], [[3, 4]], None, rows)
    hashed = prepare(ChainCRF(n_hashed=16), ITEMS, TAGS).encoder
    with pytest.raises(ValueError, match="n_hashed must be 16, as before, not 8"):
        prepare(ChainCRF(n_hashed=8), ITEMS, TAGS, None, hashed)
    with pytest.raises(ValueError, match="only_observed must be what it was before"):
        prepare(ChainCRF(only_observed=True), ITEMS, TAGS, None, chain)
    assert rows.weights_of(chain, np.zeros(chain.n_weights)) is None
