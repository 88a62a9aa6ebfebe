"""Labels of nodes that are known in part, or softly: chains, trees, graphs and cuts."""

import itertools

import numpy as np
import pytest

from maxmargin import (
    ChainCRF,
    ChainSVM,
    Graph,
    GraphCRF,
    GraphCutSVM,
    GraphSVM,
    KernelChainSVM,
    MulticlassSVM,
    Status,
    Tree,
    TreeCRF,
    TreeSVM,
)
from maxmargin import problem as generics
from maxmargin.losses import find_loss
from maxmargin.solvers.objective.latent_objective import LatentObjective

pytestmark = pytest.mark.usefixtures("interpreted_loops")

CHAINS = ChainSVM, ChainCRF, KernelChainSVM
TREES = TreeSVM, TreeCRF
GRAPHS = GraphSVM, GraphCRF
SECOND = ["a", "b"], ["a", {"a", "b"}], [None, None]
ALL = *CHAINS, *TREES, *GRAPHS, GraphCutSVM


def make_data(make, n=6, n_labels=3, random_state=0):
    """Small examples with labels "a" to "c", or "a" and "b" for cuts."""
    rng = np.random.default_rng(random_state)
    rows = [rng.normal(size=(size, 2)) for size in rng.integers(1, 4, n)]
    n_labels = 2 if make is GraphCutSVM else n_labels
    w = rng.normal(size=(2, n_labels))
    y = [[*np.array([*"abc"])[np.argmax(x @ w, axis=1)].tolist()] for x in rows]
    y[0][0], y[1][0], y[2][0] = "a", "b", "abc"[n_labels - 1]
    if make in CHAINS:
        return rows, y
    edges = [[(t - 1, t) for t in range(1, len(x))] for x in rows]
    if make in TREES:
        return [*map(Tree, rows, edges)], y
    return [Graph(*pair) if make in GRAPHS else pair for pair in zip(rows, edges, strict=True)], y


def hide(y, random_state=0):
    """None for some labels, sets for others; every class stays known somewhere."""
    rng = np.random.default_rng(random_state)
    names = sorted({label for labels in y for label in labels})
    hidden = []
    for i, labels in enumerate(y):
        kinds = rng.integers(0, 3, len(labels)) if i > 2 else np.zeros(len(labels), int)
        hidden.append([(label, None, {label, names[0]})[kind] for label, kind in zip(labels, kinds, strict=True)])
    return hidden


def agrees(known, label):
    return known is None or label == known or (isinstance(known, set | frozenset) and label in known)


def every_output(encoder, problem, i):
    """All rows of integers of example i, and their labels."""
    for row in itertools.product(range(len(encoder.classes)), repeat=generics.true_output(problem, i).size):
        y = np.array(row, np.int32)
        yield y, encoder.decode(problem, i, y[np.newaxis])[0].tolist()


@pytest.mark.parametrize("make", ALL)
def test_singletons_are_labels(make):
    """Sets of one label, and certain probabilities, train the same model, bit for bit."""
    X, y = make_data(make)
    plain = make(random_state=0, max_passes=3).fit(X, y)
    for kind in (lambda label: {label}, lambda label: {label: 1.0}):
        known = [[kind(label) for label in labels] for labels in y]
        model = make(random_state=0, max_passes=3).fit(X, known)
        assert np.array_equal(model._w, plain._w)
        assert model.certificate_ == plain.certificate_
        assert model.classes_.tolist() == plain.classes_.tolist()


@pytest.mark.parametrize("make", ALL)
def test_what_is_learned_agrees_with_what_is_known(make):
    """All outputs that agree cost nothing, the completion is one of them, and `consistent` has no others."""
    X, y = make_data(make)
    partial = hide(y)
    encoder, problem, weak = make(cost="hamming")._learn(X, partial)
    assert weak.is_weak.tolist() == [any(known is None or len(known) > 1 for known in labels) for labels in partial]
    assert weak.target is None
    w = np.abs(np.random.default_rng(1).normal(size=generics.new_weights(problem).size)).astype(
        generics.new_weights(problem).dtype
    )
    for i, labels in enumerate(partial):
        theta, restricted, costs = np.zeros((3, generics.part_sizes(problem)[i]), w.dtype)
        generics.scores(problem, w, i, theta)
        generics.scores(weak.consistent, w, i, restricted)
        generics.augment(problem, i, costs)
        for row, named in every_output(encoder, problem, i):
            cost, score = (
                generics.score_output(problem, i, costs, row),
                generics.score_output(weak.consistent, i, restricted, row),
            )
            if all(map(agrees, labels, named)):
                assert cost == 0
                assert np.isclose(score, generics.score_output(problem, i, theta, row), rtol=1e-5, atol=1e-5)
            else:
                assert cost >= 1 - 1e-6
                assert score < -1e20
    for labels, completion in zip(
        partial, encoder.decode_all(problem, generics.all_true_outputs(problem)), strict=True
    ):
        assert all(map(agrees, labels, completion.tolist()))
    assert all(map(np.array_equal, generics.all_true_outputs(problem), generics.all_true_outputs(weak.consistent)))


@pytest.mark.parametrize("make", [ChainCRF, TreeCRF, GraphCRF, GraphCutSVM])
def test_soft_labels_are_mean_parts(make):
    """Those of labels that are independent of each other, by enumeration; costs are expected ones."""
    X, y = make_data(make, n=4)
    rng = np.random.default_rng(0)
    names = sorted({label for labels in y for label in labels})
    shares = [rng.dirichlet(np.ones(len(names)), len(labels)) for labels in y]
    shares[0][0] = np.eye(len(names))[0]  # of which it is certain
    soft = [[dict(zip(names, row.tolist(), strict=True)) for row in table] for table in shares]
    encoder, problem, weak = make(cost="hamming")._learn(X, soft)
    assert weak.consistent is None
    assert weak.is_weak.all() or len(y[0]) == 1
    for i, table in enumerate(shares):
        expected, costs = np.zeros((2, generics.part_sizes(problem)[i]))
        generics.augment(problem, i, costs)
        for row, named in every_output(encoder, problem, i):
            places = [names.index(label) for label in named]
            share = np.prod(table[np.arange(len(places)), places])
            generics.add_output(problem, i, row, share, expected)
            wrong = np.sum(1 - table[np.arange(len(places)), places])
            assert np.isclose(generics.score_output(problem, i, costs, row), wrong, atol=1e-5)
        assert np.allclose(weak.target.values[weak.target.starts[i] : weak.target.starts[i + 1]], expected, atol=1e-5)


def test_rows_of_probabilities():
    X, y = make_data(ChainCRF)
    shares = [np.random.default_rng(0).dirichlet(np.ones(3), len(labels)) for labels in y]
    by_name = [[dict(zip("abc", row, strict=True)) for row in table] for table in shares]
    one, other = (ChainCRF(max_passes=5).fit(X, known) for known in (shares, by_name))
    assert np.array_equal(one._w, other._w)
    assert one.classes_.tolist() == [0, 1, 2]  # nobody names them
    assert other.classes_.tolist() == [*"abc"]
    named = [["c", *table[1:]] if i == 0 else table for i, table in enumerate(shares)]
    with pytest.raises(ValueError, match="in place of 1 probabilities, one per label, at row 0"):
        ChainCRF().fit(X[1:] + X[:1], named[1:] + named[:1])


@pytest.mark.parametrize("make", [ChainCRF, TreeCRF, GraphCRF])
def test_predictions_under_what_is_allowed(make):
    X, y = make_data(make)
    model = make(max_passes=5).fit(X, y)
    known = hide(y, random_state=3)
    problem = model._problem(X)
    log_p, best = model.log_likelihood(X, known), model.predict(X, allowed=known)
    marginals = model.predict_marginals(X, allowed=known)
    for i, labels in enumerate(known):
        theta = np.zeros(generics.part_sizes(problem)[i], model._w.dtype)
        generics.scores(problem, model._w, i, theta)
        outputs = [*every_output(model._encoder, problem, i)]
        values = np.array([generics.score_output(problem, i, theta, row) for row, _ in outputs])
        is_left = np.array([all(map(agrees, labels, named)) for _, named in outputs])
        total = np.logaddexp.reduce(values[is_left])
        assert np.isclose(log_p[i], total - np.logaddexp.reduce(values), atol=1e-4)
        assert best[i].tolist() == outputs[int(np.argmax(np.where(is_left, values, -np.inf)))][1]
        p = np.exp(values[is_left] - total)
        share = sum(p[k] for k, (_, named) in enumerate(np.array(outputs, object)[is_left]) if named[0] == "a")
        assert np.isclose(marginals[i][0, 0], share, atol=1e-4)
    assert np.allclose(model.log_likelihood(X, [None] * len(X)), 0, atol=1e-5)


def test_classes_are_what_is_named_and_balanced_counts_shares():
    learned = ChainSVM(class_weight="balanced")._learn([np.eye(2)] * 2, [["a", {"b", "c"}], [None, "a"]])
    assert learned.encoder.classes.tolist() == [*"abc"]
    weights = 3 / (3 * np.array([2, 0.5, 0.5]))
    supervision = learned.problem.supervision
    assert np.allclose(supervision.cost[:3], weights[:, np.newaxis] * (1 - np.eye(3)))
    assert np.allclose(supervision.cost[supervision.annotation[1]], [weights[1], 0, 0])  # of the set of b and c
    assert not supervision.cost[supervision.annotation[2]].any()  # of what is unknown


def test_completions_keep_to_transitions_and_schemes():
    X = [np.eye(3), np.eye(3)]
    y = [["O", None, {"I-X", "I-Y"}], [None, None, "I-Y"]]
    y[1][0] = {"O", "B-X", "B-Y"}
    learned = ChainSVM(constraints="bio")._learn(X, y)
    labels = learned.encoder.classes[learned.problem.supervision.labels]
    assert labels[2].startswith("I-")
    assert labels[1] in (f"B-{labels[2][2:]}", labels[2])
    assert labels[5] == "I-Y"
    with pytest.raises(ValueError, match='constraints="auto" needs a sequence in y whose labels are all known'):
        ChainSVM(constraints="auto").fit(X, y)
    message = r"y\[1\] leaves no labelling: no label at position 1 keeps to what it says there"
    with pytest.raises(ValueError, match=message):
        ChainSVM(constraints="bio").fit(X, [["O", "B-X", None], ["O", {"I-X"}, None]])
    with pytest.raises(ValueError, match=message):
        ChainSVM(allowed_transitions={("a", "b"), ("b", "a")}).fit(X, [["a", "b", None], ["a", {"a"}, None]])
    model = ChainSVM(constraints="bio", random_state=0).fit(X, [["O", "B-X", "I-X"]] * 2)
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no labelling: no label at position 0"):
        model.predict(X, allowed=[[{"I-X"}, None, None], None])


@pytest.mark.parametrize("make", [ChainSVM, TreeSVM, GraphSVM, GraphCutSVM])
@pytest.mark.parametrize(
    ("known", "message"),
    [
        (set(), r"y\[1\] has an empty set of labels at row 0"),
        ({"a": 0.5, "b": 0.4}, r"y\[1\] has .*, but probabilities are not negative and add up to 1, at row 0"),
        ({"a": 1.5, "b": -0.5}, "probabilities are not negative"),
        ([0.5, "a"], "has .* in place of . probabilities, one per label, at row 0"),
        (np.inf, r"y\[1\] .*"),
    ],
)
def test_bad_annotations(make, known, message):
    X, y = make_data(make)
    y = [[*labels] for labels in y]
    y[1][0], y[2][0] = known, None
    y[0][0], y[3][0], y[4][0] = [*"abc"][: 2 if make is GraphCutSVM else 3] + ["b"] * (make is GraphCutSVM)
    with pytest.raises((TypeError, ValueError), match=message):
        make().fit(X, y)


@pytest.mark.parametrize("make", [ChainSVM, TreeSVM, GraphSVM, GraphCutSVM])
def test_bad_input(make):
    X, y = make_data(make)
    with pytest.raises(ValueError, match="y must hold at least one label, but nothing of it is known"):
        make().fit(X, [[None] * len(labels) for labels in y])
    mixed = [[*labels] for labels in y]
    long = next(i for i, labels in enumerate(y) if len(labels) > 1)
    mixed[long][0], mixed[long][1] = None, {"a": 0.5, "b": 0.5}
    with pytest.raises(
        ValueError, match=rf"y\[{long}\] has probabilities of the labels at place 1, but the label at place 0"
    ):
        make().fit(X, mixed)
    model = make(random_state=0, max_passes=1).fit(X, y)
    for allowed, message in (
        ([None], "X has 6 examples, but allowed has 1"),
        ([[None] * 9] + [None] * 5, r"allowed\[0\] has 9 labels, but X\[0\] has"),
        ([None, [{"z"}] * len(y[1]), *[None] * 4], r"allowed\[1\] names 'z', which is not one of the labels"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X, allowed=allowed)
    with pytest.raises(ValueError, match=r"y must hold one label of each \w+ to compare predictions with"):
        model.score(X, [*y[:3], [None] * len(y[3]), *y[4:]])


def test_labels_that_trees_rule_out():
    tree = Tree(np.eye(2), [(0, 1)], allowed=[{"a"}, None])
    learned = TreeSVM()._learn([tree] * 2, [["a", "b"], [None, {"a", "b"}]])
    assert learned.problem.supervision.labels[2] == 0
    with pytest.raises(ValueError, match=r"y\[1\] leaves no label for node 0, .* not allowed there"):
        TreeSVM().fit([tree] * 2, [["a", "b"], [{"b"}, None]])
    model = TreeSVM(random_state=0).fit([tree], [["a", "b"]])
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no label for node 0: its tree allows only others"):
        model.predict([tree], allowed=[["b", None]])


@pytest.mark.parametrize("sure", [[1.0, 1e-20], {"a": 1.0, "b": 1e-20}, [1.0, 0.0]])
def test_probabilities_that_round_to_one_are_labels(sure):
    learned = ChainSVM()._learn([np.eye(2)] * 2, [["a", "b"], [sure, "b"]])
    assert learned.weak is None
    assert learned.problem.supervision.labels.tolist() == [0, 1, 0, 1]


def test_known_labels_in_a_pandas_series():
    pd = pytest.importorskip("pandas")
    X, y = make_data(ChainCRF)
    known = [[None, *labels[1:]] if i == 3 else labels for i, labels in enumerate(y)]
    model, same = (ChainCRF().fit(X, given) for given in (known, pd.Series(known)))
    assert np.array_equal(model.coef_.emissions, same.coef_.emissions)
    assert np.array_equal(model.log_likelihood(X, known), model.log_likelihood(X, pd.Series(known)))
    some = [labels[:1] + [None] * (len(labels) - 1) for labels in y]
    for found, expected in zip(model.predict(X, allowed=pd.Series(some)), model.predict(X, allowed=some), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["list", "object", None])
def test_known_classes_in_a_pandas_series(dtype):
    pd = pytest.importorskip("pandas")
    y = ["a", np.nan if dtype == "list" else None, "b"]
    model = MulticlassSVM(random_state=0).fit(np.eye(3), y if dtype == "list" else pd.Series(y, dtype=dtype))
    assert model.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("make", [ChainSVM, TreeSVM, GraphSVM])
def test_flat_labels_need_lengths(make):
    """Those that are known in part as others do."""
    X, y = make_data(make)
    flat = [label for labels in y for label in labels]
    for known in (flat, [None, *flat[1:]]):
        with pytest.raises(ValueError, match=rf"X has 6 .*s, but y has {len(flat)}"):
            make().fit(X, known)


@pytest.mark.parametrize("make", [ChainCRF, TreeCRF, GraphCRF])
def test_predictions_agree_with_no_probabilities(make):
    X, y = make_data(make)
    model = make().fit(X, y)
    soft = [*y[:1], [{"a": 0.5, "b": 0.5}, *[None] * (len(y[1]) - 1)], *y[2:]]
    what = "node" if make is GraphCRF else "position"
    for predict, name in (
        (lambda: model.predict(X, allowed=soft), "allowed"),
        (lambda: model.log_likelihood(X, soft), "y"),
    ):
        with pytest.raises(ValueError, match=rf"{name}\[1\] has probabilities at {what} 0, which only y of fit may"):
            predict()


def test_types_of_nodes_have_labels_of_their_own():
    graph = Graph(np.eye(3), [(0, 1), (1, 2)], node_types=["x", "y", "y"])
    known = [["a", "b", None], [None, {"b", "c"}, "c"]]
    learned = GraphSVM()._learn([graph] * 2, known)
    assert learned.encoder.state.tolist() == [[0, -1, -1], [-1, 0, 1]]
    assert learned.weak.is_weak.tolist() == [True, True]
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no label for node 0: nodes of its type have others"):
        GraphSVM(random_state=0, max_passes=1).fit([graph] * 2, known).predict([graph], allowed=[["b", None, None]])


@pytest.mark.parametrize("make", [ChainCRF, TreeCRF])
def test_observed_weights_are_of_all_that_agrees(make):
    rows = [np.ones((2, 2))] * 2
    X = rows if make is ChainCRF else [Tree(x, [(0, 1)]) for x in rows]
    known, some, unknown = (make(only_observed=True)._learn(X, [["a", "b"], second]).encoder for second in SECOND)
    assert known.n_weights < some.n_weights < unknown.n_weights == make()._learn(X, [["a", "b"]] * 2).encoder.n_weights


def test_soft_labels_and_unknown_ones_of_one_sequence():
    """The loss is minus the expected logarithm of the probability of what is known, by enumeration."""
    X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 1]]]
    y = [[{"a": 0.3, "b": 0.7}, "b", {"a", "c"}], ["c", "a"]]
    _, problem, weak = ChainCRF(dtype="float64")._learn(X, y)
    objective = LatentObjective(weak, problem, 1.0, loss=find_loss("log"))
    objective.pull_towards(weak.target)
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    every = [{}, {}]
    for i, x in enumerate(X):
        theta = np.zeros(generics.part_sizes(problem)[i])
        generics.scores(problem, w, i, theta)
        for row in itertools.product(range(3), repeat=len(x)):
            every[i][row] = generics.score_output(problem, i, theta, np.array(row, np.int32))
    known = sum(p * np.logaddexp(every[0][s, 1, 0], every[0][s, 1, 2]) for s, p in ((0, 0.3), (1, 0.7)))
    loss = sum(np.logaddexp.reduce([*scored.values()]) for scored in every) - known - every[1][2, 0]
    assert np.isclose(objective.evaluate(w).value, w @ w / 4 + loss / 2)
    for model in (ChainCRF(), ChainSVM(random_state=0)):
        assert model.fit(X, y).status_ is Status.STATIONARY


def test_what_pandas_does_not_know():
    pandas = pytest.importorskip("pandas")
    X, y = make_data(ChainCRF)
    some = [[None if (i + t) % 3 == 0 else label for t, label in enumerate(labels)] for i, labels in enumerate(y)]
    expected = ChainCRF().fit(X, some)
    as_na = [[pandas.NA if label is None else label for label in labels] for labels in some]
    for given in (as_na, pandas.Series(as_na), [pandas.Series(labels, dtype="string") for labels in as_na]):
        assert np.array_equal(ChainCRF().fit(X, given)._w, expected._w)
    assert np.array_equal(expected.log_likelihood(X, as_na), expected.log_likelihood(X, some))
    for a, b in zip(expected.predict(X, allowed=as_na), expected.predict(X, allowed=some), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("make", [ChainCRF, TreeCRF, GraphCRF])
def test_where_any_label_agrees_nothing_is_learned(make):
    X, y = make_data(make)
    model = make().fit(X, [[{"a", "b", "c"}] * len(labels) for labels in y])
    assert not model._w.any()
    assert np.allclose([model.certificate_.primal, model.certificate_.gap], 0, atol=1e-6)
