"""Constraints of chains: labellings that break the rules of a scheme have no share in training and predictions."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import ChainCRF, ChainSVM
from maxmargin import problem as generics
from maxmargin.encode.partial.completions import mean_paths
from maxmargin.text import check_tags, convert_tags
from tests import naive

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture
def tagged():
    """Noisy sequences of two types of entities, of lengths 1 to 4, in IOB2."""
    rng = np.random.default_rng(0)
    tags = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    y = convert_tags([rng.choice(tags, size=rng.integers(1, 5)) for _ in range(12)], "IOB2")
    return [np.eye(5)[[tags.index(tag) for tag in row]] + rng.normal(size=(len(row), 5)) for row in y], y


def labels_of(model, y):
    return [np.searchsorted(model.classes_, row) for row in y]


def is_valid(tags, scheme):
    try:
        check_tags([tags], scheme)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("constraints", "scheme"), [("bio", "IOB2"), ("auto", "BILOU"), ("IOBES", "IOBES")])
def test_probabilities_are_those_of_valid_labellings(tagged, constraints, scheme):
    X, y = tagged[0], convert_tags(tagged[1], scheme)
    model = ChainCRF(constraints=constraints).fit(X, y)
    assert model.status_.name == "OPTIMAL"
    unclear = [np.random.default_rng(k).normal(size=(length, 5)) for k, length in enumerate([1, 2, 3])]
    for x, marginals, predicted in zip(unclear, model.predict_marginals(unclear), model.predict(unclear), strict=True):
        labellings = [*naive.labellings(len(x), len(model.classes_))]
        valid = [labels for labels in labellings if is_valid(model.classes_[labels], scheme)]
        likelihoods = np.exp([model.log_likelihood([x], [model.classes_[labels]])[0] for labels in valid])
        assert np.isclose(likelihoods.sum(), 1)
        expected = sum(p * np.eye(len(model.classes_))[labels] for p, labels in zip(likelihoods, valid, strict=True))
        assert np.allclose(marginals, expected, atol=1e-8)
        assert predicted.tolist() == model.classes_[valid[int(np.argmax(likelihoods))]].tolist()
    for outputs, _ in model.predict_topk(unclear, 9):
        check_tags(outputs, scheme)
    for samples in model.sample(unclear, 9, random_state=0):
        check_tags(samples, scheme)


@pytest.mark.parametrize("solver", ["bcfw", "one-slack", "sgd"])
def test_the_margin_is_that_of_valid_labellings(tagged, solver):
    X, y = tagged
    model = ChainSVM(C=1.0, constraints="bio", fit_intercept=False, dtype="float64", solver=solver, random_state=0)
    model = model.set_params(max_passes=40).fit(X, y)
    w, n = model._w, len(X)
    losses = []
    for x, labels in zip(X, labels_of(model, y), strict=True):
        [(psi, costs)] = naive.table([x], [labels], len(model.classes_))
        outputs = naive.labellings(len(labels), len(model.classes_))
        valid = [is_valid(model.classes_[output], "IOB2") for output in outputs]
        losses.append((costs - psi @ w)[valid].max())
    objective, bound = model.certificate_
    assert np.isclose(objective, w @ w / (2 * n) + np.mean(losses))
    free = clone(model).set_params(constraints=None).fit(X, y)
    assert bound <= free.certificate_.primal + 1e-9  # fewer rivals, a lower optimum
    check_tags(model.predict(X), "IOB2")


def test_what_is_ruled_out_has_minus_infinity(tagged):
    X, y = tagged
    for model in (ChainCRF(constraints="bio"), ChainSVM(constraints="bio", random_state=0)):
        decision = model.fit(X, y).decision_function(X)
        is_inside = np.char.startswith(model.classes_, "I-")
        for table in decision:
            assert (np.isneginf(table[0]) == is_inside).all()
            assert np.isfinite(table[1:]).all()
    crf = ChainCRF(constraints="bio").fit(X, y)
    assert crf.log_likelihood(X[:2], [["I-X"] * len(row) for row in y[:2]]).tolist() == [-np.inf, -np.inf]
    assert np.isfinite(crf.log_likelihood(X, y)).all()


def test_constraints_join_allowed_transitions(tagged):
    X, y = tagged
    classes = np.unique(np.concatenate(y))
    pairs = {(a, b) for a in classes for b in classes if (a, b) != ("B-X", "B-Y")} | {
        pair for row in y for pair in pairwise(row)
    }
    model = ChainCRF(constraints="bio", allowed_transitions=pairs).fit(X, y)
    found = model.predict([np.random.default_rng(k).normal(size=(6, 5)) for k in range(5)])
    check_tags(found, "IOB2")
    assert {(a, b) for row in found for a, b in pairwise(row)} <= pairs


def test_a_model_without_tags_for_a_length():
    model = ChainCRF(constraints="bilou").fit([np.eye(2)], [["B-X", "L-X"]])
    with pytest.raises(
        ValueError, match=r"^No labelling of X\[1\], of length 3, keeps to allowed_transitions and .*\.$"
    ):
        model.predict([np.eye(2), np.eye(2)[[0, 1, 1]]])
    assert model.predict([np.eye(2)[[0, 1, 0, 1]]])[0].tolist() == ["B-X", "L-X"] * 2


@pytest.mark.parametrize(
    ("constraints", "y", "message"),
    [
        (
            "bio",
            [["O", "I-X"]],
            r"y\[0\] goes from 'O' to 'I-X' at position 1, which IOB2 forbids. "
            r"maxmargin.text.convert_tags\(y, 'IOB2'\) repairs tags, as conlleval reads them.",
        ),
        ("bio", [["I-X", "I-X"]], r"y\[0\] begins with 'I-X', which IOB2 forbids. maxmargin.*"),
        ("bio", [["O", None], ["I-X", "I-X"]], r"y\[1\] begins with 'I-X', which IOB2 forbids. maxmargin.*"),
        ("bilou", [["O", "B-X"]], r"y\[0\] ends with 'B-X', which BILOU forbids. maxmargin.*"),
        ("auto", [["B-X", "O"], ["O", "I-X"]], r"y breaks the rules of IOB2, .*"),
        ("auto", [["N", "V"]], r"y\[0\] has 'N' at position 0, but tags are O, .*"),
        ("bio", [[1, 2]], r"y\[0\] has 1 at position 0, but tags are O, .*"),
        ("bip", [["N", "V"]], "constraints must be one of IOB2, .*, not 'bip'."),
    ],
)
def test_tags_that_break_rules(constraints, y, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ChainSVM(constraints=constraints).fit([np.eye(2)] * len(y), y)


SOFT = [
    [{"O": 0.5, "I-X": 0.3, "B-X": 0.2}, {"O": 0.6, "I-X": 0.4}, {"I-X": 0.7, "B-X": 0.3}, "O"],
    ["O", "B-X", {"O": 0.5, "I-X": 0.5}, "O"],
    ["B-X", {"O": 0.5, "I-X": 0.5}, "I-X", {"O": 0.9, "I-X": 0.1}],
    ["O", "O", {"O": 0.5, "I-X": 0.5}],  # where only one of them can be
    ["B-X", "I-X", "I-X"],
]
MANY = [(f"B-{k}", f"I-{k}") for k in range(32)]
RULES = {
    "first order": {},
    "few transitions": {"allowed_transitions": {*product(("O", "B-X", "I-X"), repeat=2), *MANY}},
    "second order": {"order": 2},
    "edge features": {"edge_features": True},
}


INSIDE = {"I-X": 0.5, "I-Y": 0.5}


@pytest.mark.parametrize("rules", RULES)
def test_soft_labels_are_expected_of_valid_labellings(rules):
    """Their mean parts are those of independent labels, given that they are valid, by enumeration."""
    options = {"constraints": "bio", **RULES[rules]}
    known = [*SOFT, *map(list, MANY)] if rules == "few transitions" else SOFT
    rows = [np.eye(4)[: len(labels)] for labels in known]
    given = {"edge_features": [x[1:] for x in rows]} if options.pop("edge_features", False) else {}
    model = ChainCRF(dtype="float64", **options)
    encoder, problem, weak = model._learn(rows, known, **given)
    assert (encoder.few_transitions is None) == (rules != "few transitions")
    names = encoder.classes.tolist()
    for i, sequence in enumerate(SOFT):
        tables = [label if isinstance(label, dict) else {label: 1.0} for label in sequence]
        expected, total = np.zeros(generics.part_sizes(problem)[i]), 0.0
        for labels in product(*tables):
            if is_valid(labels, "IOB2"):
                share = np.prod([table[label] for table, label in zip(tables, labels, strict=True)])
                output = np.array([names.index(label) for label in labels], np.int32)
                generics.add_output(problem, i, output, share, expected)
                total += share
        found = weak.target.values[weak.target.starts[i] : weak.target.starts[i + 1]]
        assert np.allclose(found, expected / total, atol=1e-12)
    assert model.fit(rows, known, **given).certificate_.primal > 0


@pytest.mark.parametrize(
    ("labels", "position"),
    [([INSIDE, "O"], 0), (["B-X", "O", INSIDE], 2), ([{"O": 0.5, "B-Y": 0.5}, {"I-X": 1.0}], 1)],
)
def test_soft_labels_of_which_none_is_valid(labels, position):
    y = [["B-X", "I-X"], ["O", {"O": 0.5, "B-X": 0.5}], labels, ["B-Y", "I-Y"]]
    with pytest.raises(ValueError, match=rf"^y\[2\] leaves no labelling: no label at position {position} keeps to"):
        ChainCRF(constraints="bio").fit([np.eye(3)[: len(row)] for row in y], y)


def test_probabilities_that_are_too_small_together():
    may_follow, may_end = np.eye(2, dtype=bool), np.ones((2, 2), bool)
    with pytest.raises(ValueError, match=r"^y\[1\] leaves no labelling: no label at position 0 .* before the labels"):
        mean_paths(np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]), may_follow, may_end, np.array([0, 1, 3]))


def test_expected_shares_count_soft_labels_of_valid_labellings():
    """The second of two tokens is an O for certain, as nothing begins the I-X."""
    y = [["O", {"O": 0.5, "I-X": 0.5}], ["B-X", None]]
    learned = ChainCRF(constraints="bio", label_share={"O": 0.75})._learn([np.eye(2)] * 2, y)
    assert learned.problem.supervision.labels[3] != 2  # the completion, which is no O
    assert learned.weak.share.expected.tolist() == [1.5 - 2, 1.5 - 0]
