"""When a fit warns that it has ended too far from the optimum."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import CandidateSVM, ChainCRF, MulticlassSVM
from maxmargin.crfsuite import CRF
from maxmargin.estimators.foundation.convergence import NOT_SOLVED, warn_unless_solved
from maxmargin.solvers.frame.run import Result
from maxmargin.trace import Certificate, Status, Trace

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 2)), np.arange(12) % 3


def test_limits_warn_at_the_line_that_fits(data):
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-09: .* % of .* \(MAX_PASSES\): raise max") as all_:
        MulticlassSVM(tol=1e-9, max_passes=1).fit(*data)
    assert all_[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"\(TIMEOUT\): raise time_limit"):
        MulticlassSVM(C=100.0, tol=1e-9, time_limit=1e-6).fit(*data)


@pytest.mark.parametrize(
    ("options", "fitted"),
    [
        ({"tol": 0.5}, {}),
        ({"solver": "perceptron", "max_passes": 1}, {}),
        ({"tol": 1e-9, "max_passes": 2}, {"X_dev": np.eye(3, 2), "y_dev": [0, 1, 2]}),
        ({"tol": 1e-9}, {"callback": lambda trace: True}),
    ],
    ids=["solved", "perceptron", "held out", "interrupted"],
)
def test_others_do_not(data, options, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MulticlassSVM(random_state=0, **options).fit(*data, **fitted)


@pytest.mark.parametrize(
    ("status", "relative_gap", "warns"),
    [
        (Status.STALLED, 0.05, False),
        (Status.STALLED, 0.5, True),
        (Status.INEXACT, 0.5, True),
        (Status.SURROGATE, 0.5, True),
        (Status.DIVERGED, 0.05, True),
        (Status.MAX_PASSES, np.inf, True),
        (Status.HELD_OUT, 0.5, False),
    ],
)
def test_large_gaps_warn_whatever_the_reason(status, relative_gap, warns):
    certificate = Certificate(np.zeros(1), np.inf if np.isinf(relative_gap) else 1.0, 1 - min(relative_gap, 1.0))
    result = Result(certificate, None, Trace(), status)
    for C in (1.0, np.inf):  # without regularization, no gap is known
        with warnings.catch_warnings(record=True) as all_:
            warnings.simplefilter("always")
            warn_unless_solved(CandidateSVM(C=C, tol=0.01), result, 1)
        assert len(all_) == (warns and C == 1.0)


def test_the_drop_in_is_as_quiet_as_what_it_stands_in_for():
    X, y = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}, {"c": 1.0}]], [["A", "B"], ["B", "A"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF(max_iterations=1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=NOT_SOLVED):
        ChainCRF(max_passes=1).fit(X, y)


def test_fits_that_are_solved_do_not_load_scikit_learn():
    program = "import sys, maxmargin.estimators.foundation.convergence; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_warning_does_not_load_scikit_learn():
    """Which takes longer than many fits."""
    code = """
import sys, warnings
import numpy as np
from maxmargin import CandidateSVM
from maxmargin.runtime import interpreted

with interpreted(), warnings.catch_warnings(record=True) as all_:
    warnings.simplefilter("always")
    CandidateSVM(max_passes=1, tol=1e-9, random_state=0).fit([np.eye(2), np.ones((2, 2))], [0, 1])
print([w.category.__name__ for w in all_], "sklearn" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[0] == "['UserWarning'] False"
