"""Mistakes in compiled structures from outside: indices out of bounds, a missing return, wrong types."""

import os
import subprocess
import sys

import numpy as np
import pytest

from examples.intervals import Intervals, make_intervals
from maxmargin import problem as generics
from maxmargin.problem import max_oracle, score_output, scores
from maxmargin.runtime import helper, implements, interpreted
from maxmargin.testing import Caller, check_structure

FAR = 100_000_000


def like_intervals(cls):
    """Implement what `Intervals` does."""
    for function in vars(generics).values():
        if Intervals in getattr(function, "implementations", {}):
            implements(function, cls)(function.implementations[Intervals])
    return cls


def made(cls):
    return cls(*make_intervals([np.ones((2, 1)), np.ones((1, 1))]))


@like_intervals
class Beyond(Intervals):
    """Reads a feature that is not there, when it is compiled."""


@helper(interpreted=lambda t: t)
def place(t):
    return t + FAR


@implements(scores, Beyond)
def beyond_scores(problem, w, i, theta):
    for t in range(theta.size // 2):
        theta[2 * t] = 0
        theta[2 * t + 1] = w[0] * problem.rows[place(problem.starts[i] + t), 0]


def test_bounds_are_checked_where_a_test_asks_for_it():
    with pytest.raises(IndexError, match="out of bounds"):
        check_structure(made(Beyond), check_bounds=True)


SWITCHED = """
import numpy as np
from maxmargin.problem import scores
from maxmargin.testing import Caller
from tests.runtime.test_own_mistakes import Beyond, made
try:
    Caller(made(Beyond))(scores, np.ones(1), 0, np.zeros(4))
except IndexError as error:
    print(error)
"""


def test_one_switch_checks_bounds_in_a_whole_process(tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "MAXMARGIN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SWITCHED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "out of bounds" in done.stdout


@like_intervals
class Outside(Intervals):
    """The same, also when it is interpreted."""


@implements(scores, Outside)
def outside_scores(problem, w, i, theta):
    theta[0] = problem.rows[FAR, 0]


def test_python_says_where_an_index_is_out_of_bounds_before_compiled_code_reads_there():
    with pytest.raises(IndexError, match=f"index {FAR} is out of bounds") as raised:
        check_structure(made(Outside))
    assert raised.traceback[-1].name == "outside_scores"


def test_a_missing_return_is_named():
    sentence = "must return a float, as score_output does, but it may end without a return statement"
    with pytest.raises(TypeError, match=f"^forgets {sentence}"):

        @implements(score_output, Outside)
        def forgets(problem, i, theta, y):
            theta[0] = 0

    with pytest.raises(TypeError, match=f"^sometimes {sentence}"):

        @implements(score_output, Outside)
        def sometimes(problem, i, theta, y):
            for value in theta:
                if y[0]:
                    return value
            return None

    @implements(score_output, Outside)
    def always(problem, i, theta, y):
        if y[0]:
            return theta[0]
        return 0.0

    assert score_output.implementations[Outside] is always


def test_what_cannot_be_compiled_begins_with_a_sentence():
    @implements(max_oracle, Outside)
    def wrong(problem, i, theta, y, work):
        return "best"

    def call():
        problem = made(Outside)
        work = generics.workspace(problem, 1)
        return Caller(problem)(max_oracle, 0, np.zeros(4), np.zeros(2, np.int32), work)

    with pytest.raises(TypeError, match=r"^wrong, which implements max_oracle for Outside, cannot be compiled as"):
        call()
    with interpreted():
        assert call() == "best"
