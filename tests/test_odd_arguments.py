"""Arguments of odd types and sizes get one sentence that names them, or work."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from maxmargin import BCFW, SGD, CandidateSVM, ChainSVM, regularization_path
from maxmargin.testing import toy_chains

pytestmark = pytest.mark.usefixtures("interpreted_loops")

X, Y = [np.eye(2), np.eye(2)[::-1]], [[0, 1], [1, 0]]
ODD = [
    timedelta(seconds=1),
    np.timedelta64(1, "s"),
    10**400,
    -(10**400),
    "1",
    b"1",
    object(),
    [1.0],
    {},
    1j,
    np.nan,
    None,
]
NUMBERS = ["C", "tol", "max_passes", "time_limit"]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_odd_numbers_are_named(name, value):
    if name in ("max_passes", "time_limit") and value is None:
        return
    with pytest.raises(ValueError, match=f"{name} must be a positive number"):
        ChainSVM(**{name: value}).fit(X, Y)
    if not (name != "C" and value is None):
        with pytest.raises(ValueError, match=f"{name} must be a positive number"):
            BCFW().solve(toy_chains(), **{name: value})


def test_what_is_no_dictionary_or_function_is_named():
    with pytest.raises(TypeError, match=r"bounds must be a dictionary of pairs by the names of weights, not 3\."):
        ChainSVM(bounds=3).fit(X, Y)
    for fit in (ChainSVM().fit, lambda *_, **options: BCFW().solve(toy_chains(), **options)):
        with pytest.raises(TypeError, match=r"callback must be a function of a trace, not 3\."):
            fit(X, Y, callback=3)


@pytest.mark.parametrize("value", [Fraction(1, 2), np.float32(0.5), np.longdouble(0.5), True + 0.5])
def test_numbers_of_other_types_work(value):
    model = ChainSVM(C=value, tol=value, time_limit=value * 100, random_state=0).fit(X, Y)
    assert np.isfinite(model.trace_.primal).all()


@pytest.mark.parametrize("C", [5e-324, 1e-200, 1e200, 1e300, Decimal(1)])
def test_strengths_that_nobody_can_compute_with(C):
    with pytest.raises(ValueError, match="C must be"):
        CandidateSVM(C=C).fit(X, [0, 1])


@pytest.mark.parametrize("value", [[timedelta(1)] * 2, [object()] * 2, ["a", "b"], [[1.0], [1.0, 2.0]], [10**400, 1]])
def test_odd_lists_of_numbers_are_named(value):
    for error in (lambda: ChainSVM().fit(X, Y, sample_weight=value), lambda: BCFW().solve(toy_chains(n=2), 1.0, value)):
        with pytest.raises((TypeError, ValueError), match="sample_weight must hold"):
            error()
    with pytest.raises((TypeError, ValueError), match="cost must hold"):
        ChainSVM(cost=value).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match="lower must hold"):
        BCFW().solve(toy_chains(n=2), lower=value)
    with pytest.raises((TypeError, ValueError), match="start must hold"):
        SGD().solve(toy_chains(n=2), start=value)


@pytest.mark.parametrize("value", ["seed", -1, 1.5, object()])
def test_odd_seeds_are_named(value):
    with pytest.raises(ValueError, match="random_state must be a seed or a generator"):
        BCFW().solve(toy_chains(), random_state=value)


def test_columns_of_tables_are_lists():
    pd = pytest.importorskip("pandas")
    column = pd.Series(X * 3, index=range(6)[::-1])  # by place, not by label
    model = ChainSVM(random_state=0).fit(column, pd.Series(Y * 3), X_dev=column, y_dev=Y * 3)
    assert model.score(column, Y * 3) == 1
    assert [labels.tolist() for labels in model.predict(column)] == Y * 3


def test_a_class_is_no_model():
    with pytest.raises(TypeError, match=r"model must be an estimator or a problem, not a class: ChainSVM\(\)"):
        regularization_path(ChainSVM, X, Y)
    with pytest.raises(TypeError, match=r"model must be an estimator or a problem, not 'ChainSVM'"):
        regularization_path("ChainSVM", X, Y)


def test_paths_take_data_of_their_model_only():
    with pytest.raises(TypeError, match="regularization_path takes no argument 'C_max', and ChainSVM no such data"):
        regularization_path(ChainSVM(), X, Y, C_max=1.0)


def test_rows_of_numbers_in_object_arrays():
    mixed = [np.array(x, dtype=object) for x in X]  # as data frames with columns of several types are
    mixed[0][0, 0] = bool(X[0][0][0])
    plain = [np.asarray(x, float) for x in X]
    plain[0][0, 0] = mixed[0][0, 0]
    one, other = (ChainSVM(random_state=0).fit(rows, Y) for rows in (mixed, plain))
    assert one.certificate_ == other.certificate_
    mixed[0][0, 0] = None
    with pytest.raises(TypeError, match=r"X\[0\] must hold numbers, but its dtype is object"):
        one.predict(mixed)
