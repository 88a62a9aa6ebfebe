"""Every fit on shards: the same optimum and a true certificate, whatever the number of shards."""

import warnings

import numpy as np
import pytest

from maxmargin import ChainCRF, ChainSVM, MulticlassSVM, MultiLabelSVM
from maxmargin.data.sharding import Shards
from maxmargin.estimators.foundation.fitting import prepare
from maxmargin.solvers.objective.evaluation import Objective
from tests.small import CASES, chains, make

NAMES = [
    [["the", "bias"], ["dog"]],
    [["a"], ["cat", "dog"]],
    [["the"], ["bird", "bias"], ["sings"]],
    [["it"], ["sings"]],
]
TAGS = [["D", "N"], ["D", "N"], ["D", "N", "V"], ["P", "V"]]


def named(n_copies=3):
    """Sentences of which the last have names and labels that the first have not."""
    return NAMES[:2] * n_copies + NAMES[2:] * n_copies, TAGS[:2] * n_copies + TAGS[2:] * n_copies


@pytest.mark.parametrize("only_observed", [False, True])
@pytest.mark.parametrize("Model", [ChainSVM, ChainCRF])
def test_any_number_of_shards_has_the_columns_and_the_optimum_of_all(Model, only_observed):
    X, y = named()
    model = Model(C=1.0, tol=1e-3, only_observed=only_observed, random_state=0)
    whole = Model(**model.get_params()).fit(X, y)
    objective = Objective(prepare(model, X, y).problem, 1.0, loss=model._trainer.find_loss(model))
    for n_shards in (1, 3, 10):
        model.fit(Shards.cut(X, y, n_shards=n_shards))
        assert model.classes_.tolist() == whole.classes_.tolist()
        assert model.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
        assert model.status_.name == "OPTIMAL"
        assert model.n_seen_ == len(X)
        value = objective.evaluate(objective.layout.to_solver(model._w)).value
        assert value == pytest.approx(model.certificate_.primal, rel=1e-5)
        assert model.certificate_.dual <= whole.certificate_.primal * (1 + 1e-6)
        assert whole.certificate_.dual <= model.certificate_.primal * (1 + 1e-6)
        if n_shards == 1:
            np.testing.assert_array_equal(model._w, whole._w)


def test_rare_names_and_balanced_labels_are_counted_in_all_shards():
    X, y = named()
    model = ChainSVM(C=1.0, tol=1e-3, min_count=4, class_weight="balanced", random_state=0)
    whole = ChainSVM(**model.get_params()).fit(X, y)
    assert whole.feature_names_in_.tolist() == ["the", "bias", "dog", "sings"]
    for n_shards in (3, 10):
        model.fit(Shards.cut(X, y, n_shards=n_shards))
        assert model.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
        assert model.certificate_.dual <= whole.certificate_.primal
        assert whole.certificate_.dual <= model.certificate_.primal


def test_labels_that_only_some_shards_know_in_part(tmp_path):
    X, y = named()
    y[4], y[-1] = [None, "N"], ["P", {"N", "V"}]
    model = ChainCRF(C=1.0, tol=1e-3, solver="lbfgs", weak_weight=0.5)
    whole = ChainCRF(**model.get_params()).fit(X, y)
    for n_shards in (1, 3, 10):
        model.fit(Shards.cut(X, y, n_shards=n_shards))
        assert model.status_.name == "STATIONARY"
        assert model.certificate_.is_local
        np.testing.assert_allclose(model._w, whole._w, atol=1e-6)
    model.set_params(tol=1e-9, max_passes=8)
    file = tmp_path / "run", 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not solved
        model.fit(Shards.cut(X, y, n_shards=10), checkpoint=file)
    with pytest.raises(ValueError, match="cannot be resumed from"):
        model.fit(Shards.cut(X, [*y[:-1], ["P", None]], n_shards=10), checkpoint=file)


@pytest.mark.parametrize(
    ("Model", "known", "message"),
    [(ChainSVM, None, "need all examples in one place for the hinge loss"), (ChainCRF, {"D": 0.5, "N": 0.5}, "softly")],
)
def test_outputs_that_need_all_examples_in_one_place(Model, known, message):
    X, y = named()
    with pytest.raises(ValueError, match=message):
        Model().fit(Shards.cut(X, [[known, "N"], *y[1:]], n_shards=3))


@pytest.mark.parametrize("Model", [MulticlassSVM, MultiLabelSVM])
def test_classes_are_balanced_over_all_shards(Model, interpreted_loops):
    rows = np.random.default_rng(0).normal(size=(12, 2))
    y = np.repeat([0, 1, 2], [2, 3, 7]) if Model is MulticlassSVM else np.eye(2, dtype=int)[[0] * 11 + [1]]
    model = Model(C=0.1, tol=1e-2, class_weight="balanced", random_state=0)
    whole = Model(**model.get_params()).fit(rows, y).certificate_
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a shard lacks a label tells nothing
        found = model.fit(Shards.cut(rows, y, n_shards=3)).certificate_
    assert found.dual <= whole.primal
    assert whole.dual <= found.primal


def test_shards_on_disk_sample_weights_held_out_data_and_bounds(tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    weight = np.arange(1.0, len(X) + 1)
    shards = Shards.write([(X[:3], y[:3]), (X[3:], y[3:])], tmp_path / "s")
    model = ChainSVM(C=1.0, tol=1e-3, random_state=0, bounds={"transitions": (0, None)})
    whole = ChainSVM(**model.get_params()).fit(X, y, weight)
    model.fit(shards, sample_weight=weight)
    assert model.certificate_.dual <= whole.certificate_.primal
    assert whole.certificate_.dual <= model.certificate_.primal
    assert (model.coef_.transitions >= 0).all()
    model.fit(shards, X_dev=X, y_dev=y)
    assert np.isfinite(model.trace_.dev_score).all()
    assert [path.name for path in (tmp_path / "s").iterdir() if "shard" not in path.name] == []


@pytest.mark.parametrize(
    ("arguments", "shards", "y", "message"),
    [
        ({}, [([np.eye(2)], [[0, 1]]), ([np.eye(3)], [[0, 1, 1]])], None, "In portion 1 of the data: .*features"),
        ({}, [([np.eye(2)], [[0, 1]]), ([[["a"]]], [[0]])], None, "In portion 1 of the data: "),
        ({}, [([np.eye(2)], [[0, 1]]), ([np.eye(2)], [["a", "b"]])], None, "In portion 1 of the data: "),
        (
            {},
            [([np.eye(2)], [[0, 1]]), ([np.eye(2)], [[0, 1, 1]])],
            None,
            "In portion 1 of the data: y\\[0\\] has 3 labels",
        ),
        ({}, [([np.eye(2)], None), ([np.eye(2)], None)], None, "In portion 0 of the data: there is no y"),
        ({}, [([np.eye(2)], [[0, 1]])] * 2, [[0, 1]] * 2, "y must be None where X is Shards"),
        ({"min_count": 3}, [([[["a"]]], [["x"]])] * 2, None, "min_count=3 leaves none"),
    ],
)
def test_shards_that_cannot_be_trained_on(arguments, shards, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ChainSVM(**arguments).fit(Shards.write(shards), y)


def test_a_shard_that_changes_between_two_passes():
    reads = []

    def read(shard):
        reads.append(shard)
        return shard if len(reads) <= 2 else shard._replace(X=[[["new"]]], y=[["z"]])

    shards = Shards.cut([[["a"]], [["b"], ["c"]]], [["x"], ["y", "x"]], n_shards=2)
    with pytest.raises(ValueError, match="Shard 0 has changed since it was read first"):
        ChainSVM().fit(shards.map(read))


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_fits_on_shards_go_on_from_checkpoints(solver, tmp_path):
    X, y, _ = chains(np.random.default_rng(0))
    shards, lengths = Shards.cut(X, y, n_shards=2), []

    def fit(max_passes, **options):
        model = ChainSVM(solver=solver, max_passes=max_passes, tol=1e-9, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(shards, **options)

    whole = fit(24)
    fit(12, checkpoint=(tmp_path / "run", 0))
    resumed = fit(24, checkpoint=(tmp_path / "run", 0), callback=lambda trace: lengths.append(len(trace.primal)))
    assert lengths[0] > 1  # as it did not start afresh
    np.testing.assert_array_equal(resumed._w, whole._w)
    np.testing.assert_array_equal(resumed.trace_.dual, whole.trace_.dual)


@pytest.mark.parametrize("case", [case for case in CASES if not str(case).startswith(("Kernel", "Deformable"))])
def test_every_estimator_takes_shards(case, interpreted_loops):
    model, X, y, _ = make(case)
    model.set_params(max_passes=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = type(model)(**model.get_params(deep=False)).fit(X, y)
        model.fit(Shards.cut(X, y, n_shards=2))
    assert model._w.shape == whole._w.shape
    assert model.certificate_.dual <= whole.certificate_.primal * (1 + 1e-6)
    assert whole.certificate_.dual <= model.certificate_.primal * (1 + 1e-6)


@pytest.mark.usefixtures("interpreted_loops")
def test_predictions_of_shards_are_those_of_all_examples():
    X, y, _ = chains(np.random.default_rng(0))
    model = ChainCRF(tol=0.1).fit(X, y)
    shards = Shards.cut(X, y, n_shards=2)
    for name in ("predict", "decision_function", "predict_marginals", "predict_posterior", "predict_transitions"):
        for found, expected in zip(getattr(model, name)(shards), getattr(model, name)(X), strict=True):
            np.testing.assert_array_equal(found, expected)
    rows, labels = np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0]
    classes = MulticlassSVM().fit(rows, labels)
    assert classes.predict(Shards.cut(rows, labels, n_shards=2)).tolist() == classes.predict(rows).tolist()
    with pytest.raises(TypeError, match="not be Shards: score one after the other"):
        model.score(shards, None)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("scoring", [None, lambda true, found: float(np.mean(np.asarray(true) == np.asarray(found)))])
def test_held_out_shards_are_scored_as_all_examples(scoring):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(3, size=30)
    model = MulticlassSVM(scoring=scoring, max_passes=5, random_state=0)
    scores = model.fit(X, y, X_dev=X[:11], y_dev=y[:11]).trace_.dev_score
    assert len(set(scores.tolist())) > 1
    shards = Shards.write([(X[lo:hi], y[lo:hi]) for lo, hi in ((0, 2), (2, 3), (3, 11))])
    np.testing.assert_allclose(model.fit(X, y, X_dev=shards).trace_.dev_score, scores, rtol=1e-12)
    with pytest.raises(ValueError, match="y_dev must be None where X_dev is Shards"):
        model.fit(X, y, X_dev=shards, y_dev=y[:11])
