"""Dense columns beside sparse names: the map, the solution and the predictions of the same columns stored sparse."""

import numpy as np
import pytest

import maxmargin
from maxmargin import CandidateSVM, ChainCRF, ChainSVM
from maxmargin.encode.inputs.rows import in_one_matrix
from maxmargin.encode.names.vocabulary import learn_names
from maxmargin.features import as_matrix, layout_of, split, squared_sums, with_gram
from maxmargin.features.linear_map import rows_of
from maxmargin.features.mixed import MixedFeatures
from maxmargin.inspection import explain
from maxmargin.problem import part_sizes, scores, spread, squared_norm, workspace
from maxmargin.runtime import interpreted
from maxmargin.testing import Caller
from maxmargin.text import DenseColumns, JoinedFeatures


class Shared(JoinedFeatures):
    """Items that share the rows of a table, two each, some of which are not there."""

    def dense_columns(self):
        items = [item for sequence in self.named for item in sequence]
        which = np.array([[int(item[0][1:]) % 4 - 1, len(item) - 2] for item in items], np.int32)
        return DenseColumns([f"v{k}" for k in range(6)], np.random.default_rng(3).normal(size=(3, 3)), which)


def make_data(n_labels, kind=JoinedFeatures, seed=0):
    """Sequences of items with numbers and with names, of which one goes with all labels."""
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, n_labels, length) for length in (1, 9, 12, 4)]
    named = [[[f"w{label}", *(["all"] if rng.random() < 0.6 else [])] for label in labels] for labels in y]
    return kind(named, [rng.normal(size=(len(labels), 5)) for labels in y]), y


def stored_sparse(X):
    """The same columns in sparse rows."""
    return in_one_matrix(learn_names(X, min_count=1, n_hashed=None)[1]).split()


CASES = [(3, False, False, JoinedFeatures), (9, False, False, Shared), (5, True, False, Shared)]
CASES += [(9, True, False, JoinedFeatures), (3, True, True, Shared), (9, True, True, Shared)]


@pytest.mark.parametrize(("n_labels", "only_observed", "is_split", "kind"), CASES)
def test_the_same_map_interpreted(n_labels, only_observed, is_split, kind, monkeypatch, interpreted_loops):
    check_map(n_labels, only_observed, is_split, kind, monkeypatch)


def test_the_same_map_compiled(monkeypatch):
    check_map(35, True, True, Shared, monkeypatch)


def check_map(n_labels, only_observed, is_split, kind, monkeypatch):
    """Scores, sums and norms are those of a model that has all columns sparse, and weights for all labels."""
    monkeypatch.setattr(split, "ENOUGH_VISITS", 0 if is_split else np.inf)
    X, y = make_data(n_labels, kind)
    full = ChainCRF(dtype="float64")._encode(stored_sparse(X), y).problem
    encoded = ChainCRF(only_observed=only_observed, dtype="float64")._encode(X, y)
    mixed, layout, rng = encoded.problem, layout_of(encoded.problem), np.random.default_rng(1)
    assert isinstance(mixed.features, MixedFeatures)
    w = rng.normal(size=layout.n_weights)
    names = encoded.encoder.names(w)
    tables = names.emissions.toarray() if only_observed else names.emissions, names.bias, names.first, names.last
    w_full = np.concatenate([np.ravel(table) for table in (*tables, names.transitions)])
    moved = layout.to_solver(w)
    precise = mixed._replace(features=with_gram(mixed.features, mixed.starts, mixed.n_features))
    has_norm = mixed if only_observed else precise  # features with all weights have none without Gram matrices
    call, call_full = Caller(mixed), Caller(full)
    sums, sums_full = np.zeros_like(moved), np.zeros_like(w_full)
    for i, size in enumerate(part_sizes(mixed)):
        found, expected, alone = np.zeros(size), np.zeros(size), np.zeros_like(moved)
        call(scores, moved, i, found)
        with interpreted():
            call_full(scores, w_full, i, expected)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        delta = rng.normal(size=size)
        call(spread, sums, i, delta, 0.5)
        call(spread, alone, i, delta, 1.0)
        with interpreted():
            call_full(spread, sums_full, i, delta, 0.5)
        norm = Caller(has_norm)(squared_norm, i, delta, workspace(has_norm, 1))
        assert np.isclose(norm, alone @ alone)
        assert Caller(precise)(squared_norm, i, delta, workspace(precise, 1)) >= norm * (1 - 1e-6)
    np.testing.assert_allclose(layout.to_model(sums), sums_full[w_full != 0], atol=1e-12)
    counts = rows_of(mixed.starts)
    if not only_observed:
        np.testing.assert_allclose(squared_sums(mixed.features, counts), squared_sums(full.features, counts))
        assert as_matrix(mixed.features, int(full.starts[-1])).shape[0] == int(full.starts[-1])


@pytest.mark.parametrize(
    "model", [ChainCRF(C=2.0, tol=1e-6), ChainSVM(C=0.1, tol=1e-2, dtype="float64", random_state=0)]
)
def test_the_same_solution(model, tmp_path, interpreted_loops):
    X, y = make_data(3)
    fitted = model.set_params(only_observed="transitions").fit(X, y)
    other = type(model)(**model.get_params()).fit(stored_sparse(X), y)
    assert fitted.certificate_.relative_gap <= model.tol
    assert np.isclose(fitted.certificate_.primal, other.certificate_.primal, rtol=2 * model.tol)
    fitted.save(tmp_path / "any.model")
    loaded = maxmargin.load(tmp_path / "any.model")
    for a, b in zip(loaded.predict(X), fitted.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(fitted.predict(X[1:2])[0], fitted.predict(X)[1])
    found = explain(fitted, X[1:2], 0)
    assert {f"dense:{k}" for k in range(5)} <= {contribution.of for contribution in found.contributions}
    score = sum(contribution.value for contribution in found.contributions)
    assert np.isclose(score, found.margin)


def test_the_scale_of_numbers_does_not_matter(tmp_path, interpreted_loops):
    X, y = make_data(3)
    larger = JoinedFeatures(X.named, [1e3 * numbers for numbers in X.dense])
    fits = [ChainCRF(only_observed=True, solver="lbfgs", tol=1e-3).fit(rows, y) for rows in (X, larger)]
    assert np.isclose(fits[0].certificate_.primal, fits[1].certificate_.primal, rtol=2e-3)
    fits[1].save(tmp_path / "any.model")
    for rows in (larger, larger[:1]):
        for a, b in zip(maxmargin.load(tmp_path / "any.model").predict(rows), fits[1].predict(rows), strict=True):
            np.testing.assert_array_equal(a, b)
    as_they_are = JoinedFeatures(X.named, X.dense, length=None)
    assert ChainCRF(solver="lbfgs", tol=0.1).fit(as_they_are, y)._encoder.vocabulary.dense_factor == 1


def test_other_models_and_names(interpreted_loops):
    X, y = make_data(3)
    hashed = ChainCRF(n_hashed=16, tol=0.1).fit(X, y)
    assert hashed.n_features_in_ == 16 + 5
    assert len(hashed.predict(X)[1]) == 9
    first = CandidateSVM(tol=0.1).fit(X, [0] * 4)
    assert first.n_features_in_ == 4 + 5
    sparse = ChainCRF(solver="lbfgs", only_observed=True, tol=0.1).fit(X, y)
    assert sparse.coef_.emissions[-5:].nnz == 15


def test_bad_dense_columns():
    named = [[["a"], ["b"]], [["c"]]]
    good = [np.ones((2, 3)), np.ones((1, 3))]
    with pytest.raises(ValueError, match=r"dense must have an array for 2 sequences, but has 1."):
        JoinedFeatures(named, good[:1])
    with pytest.raises(ValueError, match=r"dense\[1\] must be of the shape \(T, 3\), not \(1, 2\)."):
        JoinedFeatures(named, [good[0], np.ones((1, 2))])
    with pytest.raises(ValueError, match=r"dense\[1\] has 2 rows, but named\[1\] has 1 item."):
        JoinedFeatures(named, [good[0], np.ones((2, 3))])
    with pytest.raises(ValueError, match=r"dense\[0\] contains NaN or infinity, in row 1."):
        JoinedFeatures(named, [np.array([[1.0, 1, 1], [np.nan, 1, 1]]), good[1]])
    with pytest.raises(
        TypeError, match=r"named\[1\] has \{'c': 2\} at position 0, but an item must be a list of names."
    ):
        ChainCRF().fit(JoinedFeatures([named[0], [{"c": 2}]], good), [["x", "y"], ["x"]])
    with pytest.raises(TypeError, match=r"strings; arrays go beside names, by maxmargin.text.JoinedFeatures."):
        ChainCRF().fit([[{"vector": np.ones(3)}]], [["x"]])
    with interpreted():
        model = ChainCRF(max_passes=1, tol=0.5).fit(JoinedFeatures(named, good), [["x", "y"], ["x"]])
    with pytest.raises(ValueError, match=r"X has 0 dense columns, but the model was fitted with 3."):
        model.predict(named)
    with pytest.raises(ValueError, match=r"names must differ from each other."):
        ChainCRF().fit(JoinedFeatures(named, good, ["a", "e", "f"]), [["x", "y"], ["x"]])
