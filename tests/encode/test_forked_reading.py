"""Names read on several processes: the same columns, rows and errors as on one."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import ChainSVM
from maxmargin.encode.names import forked_reading
from maxmargin.encode.names.forked_reading import reading_on
from maxmargin.encode.names.vocabulary import learn_names
from maxmargin.text import WindowFeatures

pytestmark = [
    pytest.mark.usefixtures("interpreted_loops"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone"),
]

names = st.sampled_from("abcdefgh")
values = st.integers(0, 3) | st.sampled_from(["x", "y"])
items = st.dictionaries(names, values, max_size=3) | st.lists(names, max_size=3)
sequences = st.lists(st.lists(items, min_size=1, max_size=3), min_size=2, max_size=7)


@pytest.fixture(scope="module", autouse=True)
def forks():
    """Little is read on several processes, too, beside the threads of a test runner, which wait; the pids are told."""
    pids = []

    class Child(forked_reading._Child):
        def __init__(self, *args):
            super().__init__(*args)
            pids.append(self.process.pid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forked_reading, "LEAST", 1)
        patch.setattr(forked_reading, "_can_fork", lambda: True)
        patch.setattr(forked_reading, "_Child", Child)
        yield pids
    assert pids


def learn(X, n_jobs, **options):
    with reading_on(n_jobs):
        return learn_names(X, **{"min_count": 1, "n_hashed": None, **options})


def assert_same(found, expected):
    (vocabulary, rows), (known, true) = found, expected
    assert [*vocabulary.columns] == [*known.columns]
    assert np.array_equal(rows.matrix.toarray(), true.matrix.toarray())
    assert rows.lengths.tolist() == true.lengths.tolist()


@settings(max_examples=8)
@given(sequences.filter(lambda X: any(item not in ([], {}) for x in X for item in x)), st.integers(2, 4))
def test_columns_are_those_of_one_process(X, n_jobs):
    X = [[["first"]], *X]
    assert_same(learn(X, n_jobs), learn(X, 1))
    known, _ = learn(X[:2], 1)
    with reading_on(n_jobs):
        found = known.rows(X)
    assert np.array_equal(found.matrix.toarray(), known.rows(X).matrix.toarray())


def test_hashed_names_counted_names_and_features_of_texts():
    X = [[["a", "b"], {"c": 2.5}], [["b"]], [["d"], ["a", "a"]]]
    for options in ({"n_hashed": 8}, {"min_count": 2}):
        expected, found = learn(X, 1, **options), learn(X, 3, **options)
        assert np.array_equal(found[1].matrix.toarray(), expected[1].matrix.toarray())
    texts = WindowFeatures().transform([["A", "word"], ["and", "another"], ["word", "is", "here"]])
    assert_same(learn(texts, 2), learn(texts, 1))


def test_models_are_equal():
    X, y = [[["a"], ["b"]], [["b"], {"c": 2}], [["d"]]], [[0, 1], [1, 0], [1]]
    one, two = (ChainSVM(n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 2))
    assert one.feature_names_in_.tolist() == two.feature_names_in_.tolist()
    assert [labels.tolist() for labels in two.predict(X)] == [labels.tolist() for labels in one.predict(X)]


def test_processes_are_forked_once_a_fit_on_threads_is_over():
    """In a process of its own, as pytest may have threads."""
    program = """
        import numpy as np
        from maxmargin import ChainCRF
        from maxmargin.encode.names.forked_reading import _can_fork
        assert _can_fork()
        model = ChainCRF(n_jobs=2, warm_start=True, max_passes=1).fit([np.eye(2)] * 4, [[0, 1]] * 4)
        model.predict([np.eye(2)] * 4)
        assert _can_fork()
    """
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True, env=environment)


def test_errors_name_the_example_and_no_process_is_left(forks):
    X = [[["a"]], [["b"]], [["c"]], [["d"], 3]]
    with pytest.raises(TypeError, match=r"X\[3\] has 3 at position 1"):
        learn(X, 2)
    for pid in forks:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_a_process_that_dies_was_to_read_is_read_here(monkeypatch):
    X = [[["a"]], [["b"]], [["c"]]]
    expected, parent, read = learn(X, 1), os.getpid(), forked_reading.read_codes

    def die(*args):
        return read(*args) if os.getpid() == parent else os._exit(1)

    monkeypatch.setattr(forked_reading, "read_codes", die)
    assert_same(learn(X, 2), expected)


def test_iterators_are_read_once():
    X = [[["a"]], [["b"]], [["c"]], [["d"]]]
    assert_same(learn([iter(x) for x in X], 2), learn(X, 1))
