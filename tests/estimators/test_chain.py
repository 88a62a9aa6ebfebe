import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score

from maxmargin import BCFW, ChainSVM, FrankWolfe, Status
from maxmargin.runtime.cache import COMPILING, LoopCache
from tests import naive


@pytest.fixture(scope="module")
def model(words):
    return ChainSVM(C=1.0, tol=1e-3, random_state=0).fit(*words)


def test_learns_and_certifies(model, words):
    X, y = words
    assert model.status_ is Status.OPTIMAL
    assert model.trace_.gap[-1] <= 1e-3 * model.trace_.primal[-1]
    assert model.score(X, y) > 0.9
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    assert model.n_iter_ == np.ceil(model.trace_.passes[-1])
    assert {name: part.shape for name, part in model.coef_.items()} == {
        "emissions": (3, 3),
        "transitions": (3, 3),
        "bias": (3,),
        "first": (3,),
        "last": (3,),
    }


def augmented(X):
    """Rows with the features of the three biases written out."""
    return [np.hstack([x, np.ones((len(x), 1)), np.eye(len(x))[:, [0]], np.eye(len(x))[:, [len(x) - 1]]]) for x in X]


def test_the_objective_is_the_documented_one(model, words):
    X, y = words
    short = [i for i in range(len(X)) if len(X[i]) <= 5][:8]
    sequences = augmented([X[i] for i in short])
    golds = [np.searchsorted(model.classes_, y[i]) for i in short]
    fitted = ChainSVM(C=0.7, random_state=0, dtype="float64").fit([X[i] for i in short], [y[i] for i in short])
    w = np.concatenate(
        [*(fitted.coef_[part].ravel() for part in ("emissions", "bias", "first", "last", "transitions"))]
    )
    blocks = naive.table(sequences, golds, 3)
    assert np.isclose(naive.primal(w, blocks, 0.7), fitted.trace_.primal[-1])
    _, optimum = naive.solve(blocks, 0.7)
    assert fitted.trace_.dual[-1] <= optimum <= fitted.trace_.primal[-1]


def test_predictions_are_the_best_labellings(model, words):
    X, _ = words
    short = [x for x in X if len(x) <= 4][:5]
    w = np.concatenate([model.coef_[part].ravel() for part in ("emissions", "bias", "first", "last", "transitions")])
    predicted, best, decisions = model.predict(short), model.predict_topk(short, 6), model.decision_function(short)
    for x, y, (labels, scores), decision in zip(augmented(short), predicted, best, decisions, strict=True):
        every = list(naive.labellings(len(x), 3))
        values = np.array([naive.chain_features(x, labelling, 3) @ w for labelling in every])
        order = np.argsort(-values)
        assert np.array_equal(y, model.classes_[every[order[0]]])
        assert np.allclose(scores, values[order[:6]][: len(scores)], atol=1e-4)
        assert np.array_equal(labels[0], y)
        assert len(labels) == min(6, len(every))
        has_label = np.array(every)[:, :, None] == np.arange(3)
        through = np.where(has_label, values[:, None, None], -np.inf).max(axis=0)
        assert np.allclose(decision, through, atol=1e-4)


def test_input_forms_are_equivalent(words, interpreted_loops):
    X, y = words
    options = {"solver": "bcfw", "random_state": 0, "max_passes": 5, "tol": 1e-9}  # "auto" chooses by the clock
    reference = ChainSVM(**options).fit(X, y)
    lengths = [len(x) for x in X]
    stacked = ChainSVM(**options).fit(np.concatenate(X), y, lengths=lengths)
    flat = ChainSVM(**options).fit(np.concatenate(X), np.concatenate(y), lengths=lengths)
    lists = ChainSVM(**options).fit([x.tolist() for x in X], [list(labels) for labels in y])
    sparse = ChainSVM(**options).fit([sp.csr_matrix(x) for x in X], y)
    together = ChainSVM(**options).fit(sp.csr_array(np.concatenate(X)), y, lengths=lengths)
    for other in (stacked, flat, lists):
        assert np.array_equal(reference.coef_.emissions, other.coef_.emissions)
    for other in (sparse, together):
        assert np.allclose(reference.coef_.emissions, other.coef_.emissions, atol=1e-3)
    assert reference.score(X, y) == reference.score(np.concatenate(X), np.concatenate(y), lengths=lengths)


def test_integer_labels_keep_their_type(words):
    X, y = words
    numbers = [[{"a": 7, "b": -5, "c": 3}[label] for label in labels] for labels in y]
    fitted = ChainSVM(random_state=0).fit(X, numbers)
    assert fitted.classes_.tolist() == [-5, 3, 7]
    assert fitted.predict(X)[0].dtype.kind == "i"


def test_forbidden_transitions_never_occur(words):
    X, y = words
    allowed = {(a, b) for labels in y for a, b in itertools.pairwise(labels)}
    fitted = ChainSVM(allowed_transitions=allowed, random_state=0).fit(X, y)
    rng = np.random.default_rng(1)
    noise = [rng.normal(size=(20, 3)) for _ in range(20)]
    for labels, _ in fitted.predict_topk(noise, 5):
        for labelling in labels:
            assert set(itertools.pairwise(labelling)) <= allowed
    mask = np.array([[(a, b) in allowed for b in "abc"] for a in "abc"])
    same = ChainSVM(allowed_transitions=mask, random_state=0).fit(X, y)
    assert np.array_equal(same.coef_.emissions, fitted.coef_.emissions)
    assert not mask.all()


@pytest.mark.parametrize("cost", ["hamming", "normalized_hamming", np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0.0]])])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0}])
def test_costs_are_the_documented_ones(words, cost, class_weight):
    X, y = ([s for s in part if len(s) <= 4][:6] for part in words)
    rng = np.random.default_rng(0)
    position = [rng.random(len(x)) for x in X]
    options = {"fit_intercept": False, "dtype": "float64", "random_state": 0, "tol": 1e-3}
    fitted = ChainSVM(C=1.0, cost=cost, class_weight=class_weight, **options)
    fitted.fit(X, y, position_weight=position)
    golds = [np.searchsorted(fitted.classes_, labels) for labels in y]
    counts = np.bincount(np.concatenate(golds))
    factors = {None: np.ones(3), "balanced": counts.sum() / (3 * counts)}.get(
        class_weight if not isinstance(class_weight, dict) else 0, np.array([3.0, 1, 1])
    )
    matrix = (1 - np.eye(3) if isinstance(cost, str) else cost) * factors[:, None]

    def true_cost(i, gold, labelling):
        scale = 1 / len(gold) if isinstance(cost, str) and cost.startswith("norm") else 1.0
        return naive.chain_cost(gold, labelling, matrix, scale * position[i])

    _, optimum = naive.solve(naive.table(X, golds, 3, cost=true_cost), 1.0)
    assert fitted.trace_.dual[-1] <= optimum * (1 + 1e-9)
    assert optimum <= fitted.trace_.primal[-1] * (1 + 1e-9)


def test_a_perceptron_makes_twenty_passes(words):
    X, y = words
    rng = np.random.default_rng(0)
    noise = [rng.permutation(labels) for labels in y]  # which no weights separate
    assert ChainSVM(solver="perceptron", random_state=0).fit(X, noise).n_iter_ == 20
    assert ChainSVM(solver="perceptron", max_passes=3, random_state=0).fit(X, noise).n_iter_ == 3


def test_warm_start_continues(words):
    X, y = words
    fitted = ChainSVM(C=1.0, tol=1e-2, warm_start=True, random_state=0).fit(X, y)
    first = fitted.n_iter_
    fitted.fit(X, y)
    assert fitted.n_iter_ == 0
    assert first > 0
    fitted.set_params(C=1.2).fit(X, y)
    cold = ChainSVM(C=1.2, tol=1e-2, random_state=0).fit(X, y)
    assert fitted.n_iter_ < cold.n_iter_
    fitted.fit(X[:10], y[:10])  # other sequences: starts afresh
    assert fitted.status_ is Status.OPTIMAL
    sums = ChainSVM(solver="sgd", warm_start=True, tol=0.1, random_state=0).fit(X, y)
    assert sums.set_params(fit_intercept=False).fit(X, y).status_ is Status.OPTIMAL  # fewer weights


@pytest.mark.parametrize("solver", ["auto", "bcfw", "frank-wolfe", BCFW(averaging=True), FrankWolfe()])
def test_solvers_by_name_and_by_object(words, solver):
    X, y = words
    assert ChainSVM(C=0.01, solver=solver, tol=0.05, random_state=0).fit(X, y).status_ is Status.OPTIMAL


def test_float64_and_threads_agree_with_the_default(words):
    X, y = words
    options = {"C": 0.1, "tol": 1e-3, "random_state": 0}
    default = ChainSVM(**options).fit(X, y)
    double = ChainSVM(**options, dtype="float64", n_jobs=2).fit(X, y)
    assert np.isclose(default.trace_.primal[-1], double.trace_.primal[-1], rtol=2e-3)
    assert default.coef_.emissions.dtype == np.float32
    assert double.coef_.emissions.dtype == np.float64


def test_verbose_prints_a_table(words, capsys):
    ChainSVM(C=0.01, verbose=1, random_state=0).fit(*words)
    lines = capsys.readouterr().out.removeprefix(f"{COMPILING}\n").splitlines()
    assert lines[0].startswith("Chose steps='pairwise'")
    assert lines[1].split() == ["passes", "oracle", "calls", "seconds", "primal", "dual", "gap", "relative"]
    assert lines[-1].startswith("OPTIMAL: ")


def test_verbose_tells_of_compiling(words, capsys):
    def compile_something(trace):
        LoopCache(compile_something, {}).load_overload(None, None)  # which finds nothing

    for verbose, times in ((0, 0), (1, 1)):
        ChainSVM(C=0.01, verbose=verbose, random_state=0).fit(*words, callback=compile_something)
        assert capsys.readouterr().out.count(COMPILING) == times


# --- scikit-learn ---------------------------------------------------------------------------------------------------


def test_model_selection(words):
    X, y = words
    scores = cross_val_score(ChainSVM(tol=0.05, random_state=0), X, y, cv=3)
    assert scores.shape == (3,)
    search = GridSearchCV(ChainSVM(tol=0.05, random_state=0), {"C": [0.01, 1.0]}, cv=2).fit(X, y)
    rare = [["rare", *y[0][1:]], *y[1:]]
    assert np.isfinite(cross_val_score(ChainSVM(tol=0.05, random_state=0), X, rare, cv=2)).all()
    assert search.best_params_["C"] == 1.0


def test_random_states_of_all_kinds(words):
    for state in (None, 0, np.random.RandomState(0), np.random.default_rng(0)):
        ChainSVM(C=0.01, tol=0.1, random_state=state).fit(*words)


def test_read_only_and_odd_arrays(words):
    X, y = words
    frozen = [x.astype(np.float32) for x in X]
    for x in frozen:
        x.flags.writeable = False
    weight = np.ones(len(X))
    weight.flags.writeable = False
    reference = ChainSVM(C=0.1, random_state=0).fit(frozen, y, sample_weight=weight)
    for variant in ([np.asfortranarray(x) for x in frozen], [x.astype(">f4") for x in frozen]):
        other = ChainSVM(C=0.1, random_state=0).fit(variant, [np.array(s, object) for s in y])
        assert np.array_equal(reference.coef_.emissions, other.coef_.emissions)


# --- bad input ------------------------------------------------------------------------------------------------------

GOOD = [np.eye(2), np.eye(2)]
LABELS = [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X must hold at least one sequence, but it is empty."),
        (GOOD, LABELS[:1], "X has 2 sequences, but y has 1."),
        (GOOD, [["a", "b"], ["a"]], r"y\[1\] has 1 label, but X\[1\] has 2 rows."),
        ([np.eye(2), np.array([[0, np.nan], [1, 0]])], LABELS, r"X\[1\] contains NaN or infinity, in row 0."),
        ([np.eye(2), np.array([[0, 1], [np.inf, 0]])], LABELS, r"X\[1\] contains NaN or infinity, in row 1."),
        ([np.eye(2), sp.csr_array([[0, 0], [0, np.nan]])], LABELS, r"X\[1\] contains NaN or infinity, in row 1."),
        ([np.eye(2), np.eye(3)[:2]], LABELS, r"X\[1\] has 3 features, but X\[0\] has 2."),
        ([np.eye(2), [[1, 2], [3]]], LABELS, r"X\[1\] has rows of different widths; it must be a \(T, F\) matrix."),
        ([np.eye(2), np.zeros((0, 2))], [["a", "b"], []], r"X\[1\] is empty: every sequence needs at least one row."),
        ([np.eye(2), np.ones(2)], LABELS, r"X\[1\] must be a \(T, F\) matrix, but has 1 dimension."),
        ([np.eye(2), np.eye(2) * 1j], LABELS, r"X\[1\] must hold numbers, but its dtype is complex128."),
        ([np.eye(2), []], LABELS, r"X\[1\] must be a \(T, F\) matrix, but is empty."),
        (
            [np.eye(2), [["x", "y"], ["z", "w"]]],
            LABELS,
            r"X\[1\] must be a \(T, F\) matrix of numbers, but holds dictionaries or strings, .*",
        ),
        (
            np.eye(2),
            ["a", "b"],
            "X is one matrix: pass a list of matrices, one per sequence, or the lengths of sequences.",
        ),
        ([np.zeros((2, 0))], [["a", "b"]], "X must have at least one feature, but its rows are empty."),
        (GOOD, [["a", "b"], [1, 2]], r"y\[1\] holds labels of another type than y\[0\]."),
        (GOOD, [[0.5, 1.0], [1.0, 1.0]], r"y\[0\] must be a list of integers or of strings."),
        (GOOD, [["a", 7], ["a", "b"]], r"y\[0\] must be a list of integers or of strings."),
        (GOOD, [["a", "b"], []], r"y\[1\] has 0 labels, but X\[1\] has 2 rows."),
        (None, LABELS, "X must be a list of matrices, or one matrix with lengths, not None."),
        ([np.eye(2), 1e40 * np.eye(2)], LABELS, r"X\[1\] contains 1e\+40, which is beyond 1e\+12, in row 0."),
        (GOOD, None, "y must be a list with one sequence of labels per sequence of X."),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        ChainSVM().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be a positive number, not 0."),
        ({"C": -1.0}, "C must be a positive number, not -1.0."),
        ({"C": "1"}, "C must be a positive number, not '1'."),
        ({"tol": 0.0}, "tol must be a positive number, not 0.0."),
        ({"max_passes": 0}, "max_passes must be a positive number, not 0."),
        ({"time_limit": -1}, "time_limit must be a positive number, not -1."),
        ({"dtype": "int32"}, "dtype must be float32 or float64, not 'int32'."),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer of at most 1024, not 0."),
        ({"n_jobs": 10**6}, "n_jobs must be None or a non-zero integer of at most 1024, not 1000000."),
        ({"solver": "newton"}, "solver must be a Solver of the hinge loss or one of .*, not 'newton'."),
        ({"solver": "lbfgs"}, "solver must be a Solver of the hinge loss or one of .*, not 'lbfgs'."),
        ({"cost": "edit"}, "cost must be one of hamming, normalized_hamming or a matrix, not 'edit'."),
        ({"cost": np.eye(3)}, r"cost must have shape \(2, 2\), one row per class, but has shape \(3, 3\)."),
        ({"cost": np.ones((2, 2))}, r"cost must hold numbers from 0 to 1e\+12, with zeros on its diagonal."),
        ({"class_weight": {"z": 1}}, "class_weight names 'z', which is not a label in y."),
        ({"class_weight": "heavy"}, "class_weight must be None, a dict or \"balanced\", not 'heavy'."),
        ({"class_weight": [1, 2]}, r"class_weight must be None, a dict or \"balanced\", not \[1, 2\]."),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, not 'no'."),
        ({"warm_start": 2}, "warm_start must be True or False, not 2."),
        ({"class_weight": {"a": -1}}, r"class_weight must hold numbers from 0 to 1e\+12."),
        ({"allowed_transitions": {("a", "z")}}, "allowed_transitions names 'z', which is not a label in y."),
        ({"allowed_transitions": np.ones((3, 3), bool)}, "allowed_transitions must be a boolean matrix of shape .*"),
        ({"allowed_transitions": {("a", "b")}}, r"y\[1\] goes from 'b' to 'a', which allowed_transitions forbids."),
        (
            {"allowed_transitions": np.zeros((2, 2), bool)},
            r"y\[0\] goes from 'a' to 'b', which allowed_transitions forbids.",
        ),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ChainSVM(**parameters).fit(GOOD, LABELS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": [1.0]}, r"sample_weight must hold 2 numbers, one per example, but has shape \(1,\)."),
        ({"sample_weight": [1.0, -1]}, r"sample_weight must hold numbers from 0 to 1e\+12, not all of them zero."),
        ({"sample_weight": [0.0, 0]}, r"sample_weight must hold numbers from 0 to 1e\+12, not all of them zero."),
        ({"position_weight": [[1.0, 1.0]]}, "X has 2 sequences, but position_weight has 1."),
        (
            {"position_weight": [[1.0, 1.0], [1.0]]},
            r"position_weight\[1\] must have the shape \(2,\), to go with X\[1\], but has \(1,\).",
        ),
        ({"position_weight": 1.0}, "position_weight must be a list with one array of weights per sequence."),
        ({"position_weight": [[1.0, 1.0], [1.0, -1]]}, r"position_weight\[1\] must hold numbers from 0 to 1e\+12."),
    ],
)
def test_bad_weights(arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        ChainSVM().fit(GOOD, LABELS, **arguments)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2], "lengths add up to 3, but X has 4 rows."),
        ([4, 0], "lengths must be a list of positive integers, one per sequence."),
        ([2.0, 2.0], "lengths must be a list of positive integers, one per sequence."),
        ([], "lengths must be a list of positive integers, one per sequence."),
    ],
)
def test_bad_lengths(lengths, message):
    with pytest.raises(ValueError, match=r"^X is a list of matrices: leave out lengths, which cut one matrix\.$"):
        ChainSVM().fit(GOOD, LABELS, lengths=[2, 2])
    with pytest.raises(ValueError, match=f"^{message}$"):
        ChainSVM().fit(np.concatenate(GOOD), LABELS, lengths=lengths)


def test_bad_predictions():
    fitted = ChainSVM(random_state=0, allowed_transitions={("a", "b"), ("b", "a")}).fit(GOOD, LABELS)
    with pytest.raises(ValueError, match=r"^X has 3 features, but the model was fitted with 2\.$"):
        fitted.predict([np.eye(3)])
    assert fitted.score(GOOD, [["a", "b"], ["z", "zz"]]) <= 0.5  # labels that cannot be predicted are wrong
    with pytest.raises(ValueError, match=r"^y contains no label that was seen in fit: 1 is none, for example\.$"):
        fitted.score(GOOD, [[1, 2], [1, 2]])
    with pytest.raises(ValueError, match=r"^k must be an integer, at least 1, not 0\.$"):
        fitted.predict_topk(GOOD, 0)


# --- real data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "bracket"), [("small", (203.06, 203.29)), ("large", (1941.95, 1945.1))], ids=["small", "large"]
)
def test_ocr_brackets_the_known_optimum(data_folder, size, bracket):
    letters = np.load(data_folder / "ocr_letters" / "letters.npz")
    is_training = (letters["folds"] == 0) == (size == "small")
    lengths = np.diff(letters["offsets"])
    rows = np.repeat(is_training, lengths)
    fitted = ChainSVM(C=0.1, fit_intercept=False, tol=0.01, random_state=0)
    fitted.fit(letters["pixels"][rows], letters["labels"][rows], lengths=lengths[is_training])
    scale = is_training.sum() * 0.1
    assert fitted.trace_.primal[-1] * scale >= bracket[0]
    assert fitted.trace_.dual[-1] * scale <= bracket[1]
    assert fitted.trace_.primal[-1] * scale <= bracket[1] * 1.01
    assert fitted.trace_.dual[-1] * scale >= bracket[0] * 0.99


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_bounds_hold_by_name(words):
    X, y = words
    cap = np.full((3, 3), 0.5)
    fitted = ChainSVM(bounds={"transitions": (0, cap), "bias": (None, 0.0)}, random_state=0).fit(X, y)
    assert fitted.status_ is Status.OPTIMAL
    assert (fitted.coef_.transitions >= 0).all()
    assert (fitted.coef_.transitions <= 0.5).all()
    assert (fitted.coef_.bias <= 0).all()
    assert (fitted.coef_.emissions < 0).any()
    free = ChainSVM(random_state=0).fit(X, y)
    assert fitted.trace_.dual[-1] > free.trace_.primal[-1]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"edges": (0, 1)}, "bounds names 'edges', but the weights are emissions, transitions, bias, first, last."),
        ({"bias": 0.0}, r"bounds\['bias'\] must be a pair of a lower and an upper bound, not 0.0."),
        ({"bias": (1, 0)}, r"bounds\['bias'\] must be numbers, the lower ones at most the upper ones."),
        ({"bias": (np.nan, 0)}, r"bounds\['bias'\] must be numbers, the lower ones at most the upper ones."),
        ({"bias": (np.zeros(3), None)}, r"bounds\['bias'\] has the shape \(3,\), but the part has \(2,\)."),
    ],
)
def test_bad_bounds(bounds, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        ChainSVM(bounds=bounds).fit(GOOD, LABELS)


def test_pickles_hold_the_weights_once():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 5000)) for _ in range(4)], [[0, 1, 2], [2, 1, 0], [0, 0, 1], [2, 2, 1]]
    model = ChainSVM(max_passes=1, random_state=0).fit(X, y)
    stored = pickle.dumps(model)
    assert len(stored) < 1.2 * model._w.nbytes
    loaded = pickle.loads(stored)
    loaded.coef_.emissions[:] = 0
    loaded.coef_.bias[:] = [0, 5, 0]
    loaded.coef_.transitions[:] = 0
    assert all((labels == 1).all() for labels in loaded.predict(X))
