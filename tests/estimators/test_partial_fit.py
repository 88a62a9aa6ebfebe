"""Going on with a fitted model on other data: the prior that it is, what is new, and what stays."""

import numpy as np
import pytest

import maxmargin
from maxmargin import (
    AlignmentCRF,
    AlignmentSVM,
    ChainCRF,
    ChainSVM,
    KernelChainSVM,
    MulticlassSVM,
    MultiLabelCRF,
    Perceptron,
)

X = [[["the", "e"], ["dog", "g"]], [["a", "a"], ["cat", "t"]], [["dog", "g"], ["ran", "n"]]]
y = [["D", "N"], ["D", "N"], ["N", "V"]]
LATER = [[["Rome", "e"], ["ran", "n"], ["off", "f"]]], [["E", "V", "P"]]


def test_later_examples_bring_features_and_labels():
    model = ChainCRF(only_observed=True).fit(X, y)
    before = {(name, label): value for name, label, value in weights(model)}
    assert model.partial_fit(*LATER) is model
    assert model.classes_.tolist() == ["D", "E", "N", "P", "V"]
    assert {"Rome", "off", "the", "cat"} <= {*model.feature_names_in_}
    assert model.n_seen_ == 4
    after = {(name, label): value for name, label, value in weights(model)}
    assert after["cat", "N"] == before["cat", "N"]  # later examples say nothing of it
    assert model.predict(LATER[0])[0].tolist() == LATER[1][0]


def weights(model):
    emissions = model.coef_.emissions.tocoo()
    names = model.feature_names_in_[emissions.row]
    return zip(names.tolist(), model.classes_[emissions.col].tolist(), emissions.data.tolist(), strict=True)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("model", [ChainSVM(C=0.7, dtype="float64", tol=1e-4), ChainCRF(C=0.7, tol=1e-4)], ids=repr)
def test_the_objective_is_the_one_that_is_documented(model):
    """C is divided by 1 + m / n after m examples, and ||w - w_prior||^2 is in the place of ||w||^2."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(2, 2)) for _ in range(5)]
    tags = [rng.integers(2, size=2) for _ in range(4)] + [np.array([0, 1])]
    model.set_params(fit_intercept=False)
    model.fit(rows[:3], tags[:3])
    prior = flat(model)
    model.partial_fit(rows[3:], tags[3:])
    C, n = 0.7 / (1 + 3 / 2), 2
    losses = []
    for row, truth in zip(rows[3:], tags[3:], strict=True):
        values = np.array([score(path, row, model) + cost(path, truth, model) for path in np.ndindex(2, 2)])
        top = values.max() if isinstance(model, ChainSVM) else np.logaddexp.reduce(values)
        losses.append(top - score(truth, row, model))
    change = flat(model) - prior
    value = change @ change / (2 * n * C) + np.mean(losses)
    assert np.isclose(model.certificate_.primal, value, rtol=1e-6)
    assert 0 <= model.certificate_.gap <= 1e-4 * value * (1 + 1e-9)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("model", [ChainSVM(C=0.7, dtype="float64", tol=1e-4), ChainCRF(C=0.7, tol=1e-4)], ids=repr)
def test_weights_that_are_new_are_regularized_as_in_a_fit(model):
    """As nothing is known of them: C is divided by 1 + m / n for the others alone."""
    items, tags = [[["a"], ["b"]], [["b"], ["a", "b"]], [["a"], ["a"]]], [[0, 1], [1, 0], [0, 0]]
    later, truth = [["c"], ["a", "c"]], (1, 1)
    model.set_params(fit_intercept=False)
    model.fit(items, tags)
    prior = flat(model)
    model.partial_fit([later], [truth])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    row = np.array([[0, 0, 1], [1, 0, 1]])
    values = np.array([score(path, row, model) + cost(path, truth, model) for path in np.ndindex(2, 2)])
    top = values.max() if isinstance(model, ChainSVM) else np.logaddexp.reduce(values)
    new = model.coef_.emissions[2]
    change = np.delete(flat(model), [4, 5]) - prior
    value = ((1 + 3) * change @ change + new @ new) / (2 * 0.7) + top - score(truth, row, model)
    assert np.abs(new).min() > 0
    assert np.isclose(model.certificate_.primal, value, rtol=1e-6)
    assert 0 <= model.certificate_.gap <= 1e-4 * value * (1 + 1e-9)
    by_steps = ChainSVM(solver="bcfw").fit(items, tags).partial_fit([later], [truth])
    assert by_steps.feature_names_in_.tolist() == ["a", "b", "c"]


def flat(model):
    return np.append(model.coef_.emissions, model.coef_.transitions).copy()


def score(path, row, model):
    return sum(row[t] @ model.coef_.emissions[:, path[t]] for t in range(2)) + model.coef_.transitions[path[0], path[1]]


def cost(path, truth, model):
    return float(np.sum(np.asarray(path) != truth)) if isinstance(model, ChainSVM) else 0.0


def test_a_prior_of_another_model_and_of_a_file(tmp_path):
    yesterday = ChainSVM(C=1.0).fit(X, y)
    yesterday.save(tmp_path / "old.model")
    loaded = maxmargin.load(tmp_path / "old.model")
    assert loaded.n_seen_ == 3
    today = ChainSVM(C=1e-6).fit(*LATER, prior=loaded)  # so small that nothing moves
    assert today.n_seen_ == 1
    assert [tags.tolist() for tags in today.predict(X)] == [tags.tolist() for tags in yesterday.predict(X)]
    again = loaded.partial_fit(*LATER)
    assert again.n_seen_ == 4


def test_rows_of_a_matrix():
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(12, 3)), np.repeat([0, 1, 2], 4)
    model = MulticlassSVM().partial_fit(rows[:8], classes[:8], classes=[0, 1, 2]).partial_fit(rows[8:], classes[8:])
    assert model.classes_.tolist() == [0, 1, 2]
    labels = (rows > 0).astype(int)
    both = MultiLabelCRF(graph="tree").partial_fit(rows[:8], labels[:8])
    edges = both.edges_.tolist()
    assert both.partial_fit(rows[8:], labels[8:]).edges_.tolist() == edges


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("model", [AlignmentSVM(), AlignmentSVM(warp=True), AlignmentCRF()], ids=repr)
def test_strings_bring_symbols(model):
    model.fit([("bd", "bad"), ("bb", "db")], ["MIM", "MM"])
    before = named_pairs(model)
    model.partial_fit([("ad", "acd")], ["MIM"])
    after = named_pairs(model)
    assert {*before} <= {*after}
    assert ("a", "c") in {*after} - {*before}
    assert after["b", "b"] == before["b", "b"] != 0  # later examples say nothing of it
    assert model.coef_.same != 0
    assert model.n_seen_ == 3


def named_pairs(model):
    return dict(zip(map(tuple, model.pairs_.tolist()), model.coef_.pairs.tolist(), strict=True))


def test_what_cannot_go_on_says_so():
    model = ChainSVM().fit(X, y)
    with pytest.raises(TypeError, match="prior must be a fitted ChainSVM, not ChainCRF"):
        ChainSVM().fit(X, y, prior=ChainCRF().fit(X, y))
    with pytest.raises(TypeError, match=r"prior must be a fitted ChainSVM, not ChainSVM\(\)"):
        ChainSVM().fit(X, y, prior=ChainSVM())
    with pytest.raises(ValueError, match="needs true outputs"):
        ChainSVM(solver=Perceptron()).fit(X, y, prior=model)
    rows = [np.ones((2, 2))]
    with pytest.raises(ValueError, match="Kernel models cannot go on with other data"):
        KernelChainSVM().fit(rows, [[0, 1]]).partial_fit([np.zeros((2, 2))], [[0, 1]])
    with pytest.raises(TypeError, match=r"X\[0\] must hold two strings"):
        AlignmentSVM().fit([("a", "a")], ["M"]).partial_fit([np.ones((1, 1, 1))], [[0]])
    with pytest.raises(ValueError, match="L2 regularization"):
        ChainCRF(C=np.inf).fit(X, y, prior=ChainCRF().fit(X, y))
    assert model.n_seen_ == 3
