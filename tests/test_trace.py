import builtins

import numpy as np
import pytest

from maxmargin.trace import COLUMNS, NO_WEIGHTS, Certificate, Trace


def make_trace():
    trace = Trace()
    for k, (primal, dual) in enumerate([(3.0, 1.0), (3.5, 2.0), (2.5, 1.5)]):
        trace.append(passes=k + 1, oracle_calls=10 * (k + 1), seconds=0.5 * k, primal=primal, dual=dual)
    return trace


def test_keeps_the_best_bounds():
    trace = make_trace()
    assert trace.primal.tolist() == [3.0, 3.0, 2.5]
    assert trace.dual.tolist() == [1.0, 2.0, 2.0]
    assert trace.gap.tolist() == [2.0, 1.0, 0.5]
    assert trace.oracle_calls.dtype.kind == "i"


def test_a_gap_is_never_negative():
    trace = Trace()
    trace.append(passes=1, oracle_calls=1, seconds=0.0, primal=1.0, dual=1.0 + 1e-12)
    assert trace.gap.tolist() == [0.0]


def test_certificates_are_told_as_shares_of_the_objective():
    told = str(Certificate(NO_WEIGHTS, 10.0, 0.002))  # that is 5,000 times the optimum, perhaps
    assert told == "objective 10, at most 10 (100 % of it) above the optimum"


def test_table_has_fixed_columns():
    lines = str(make_trace()).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1


def test_further_columns():
    trace = Trace()
    for k in range(2):
        trace.append(
            passes=k, oracle_calls=k, seconds=0.0, primal=1.0, dual=0.0, extras={"rho": 0.5, "violation": 2.0**-k}
        )
    assert trace.extras == {"rho": [0.5, 0.5], "violation": [1.0, 0.5]}
    header, *lines = str(trace).splitlines()
    assert header.split()[-2:] == ["rho", "violation"]
    assert lines[1].split()[-2:] == ["0.5", "0.5"]
    assert trace.to_frame()["violation"].tolist() == [1.0, 0.5]


def test_frame():
    frame = make_trace().to_frame()
    assert list(frame.columns) == list(COLUMNS[:-1])  # no held-out scores
    assert np.array_equal(frame["gap"], make_trace().gap)


@pytest.mark.parametrize("x", ["passes", "oracle_calls", "seconds"])
def test_plot(x):
    pytest.importorskip("matplotlib").use("Agg")
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    gaps = make_trace().plot(ax, x=x)
    assert ax.child_axes[-1].get_xlabel() == x.replace("_", " ")
    assert np.array_equal(gaps.get_lines()[0].get_ydata(), make_trace().gap)
    assert len(ax.child_axes) == 2
    assert make_trace().plot(x=x) is not None  # on new axes


def test_plot_has_held_out_scores_and_keeps_to_its_place():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    trace = Trace()
    for k in range(3):
        trace.append(passes=k, oracle_calls=k, seconds=k, primal=2.0, dual=k / 2, dev_score=0.1 * k)
    left, right = figure.subplots(1, 2)
    trace.plot(left)
    drawn = [line.get_ydata() for panel in left.child_axes for line in panel.get_lines()]
    assert any(np.array_equal(values, trace.dev_score) for values in drawn)
    figure.draw_without_rendering()
    assert max(axes.get_tightbbox().x1 for axes in [*figure.axes, *left.child_axes] if axes is not right) <= (
        right.get_window_extent().x0
    )


def test_plot_of_an_unknown_column():
    with pytest.raises(ValueError, match='x must be "passes", "oracle_calls" or "seconds", not \'gap\''):
        make_trace().plot(x="gap")


@pytest.mark.parametrize(("method", "package"), [("to_frame", "pandas"), ("plot", "matplotlib")])
def test_missing_packages_are_named(monkeypatch, method, package):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith(package):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=f"needs {package}: pip install"):
        getattr(make_trace(), method)()


def test_a_trace_is_shown_as_its_table():
    trace = make_trace()
    assert repr(trace) == str(trace)
