"""Calibration: by hand, and of probabilities that are what they say."""

import numpy as np
import pytest

from maxmargin.metrics import expected_calibration_error, find_temperature, reliability, temper


@pytest.fixture
def honest():
    """Labels drawn from the probabilities given."""
    rng = np.random.default_rng(0)
    marginals = [rng.dirichlet([0.5, 0.5, 0.5], size=length) for length in rng.integers(1, 40, 300)]
    classes = np.array(["a", "b", "c"])
    return [classes[[rng.choice(3, p=p) for p in table]] for table in marginals], marginals, classes


def test_reliability_by_hand():
    marginals = [np.array([[0.55, 0.45], [1.0, 0.0]]), np.array([[0.4, 0.6], [0.3, 0.7]])]
    found = reliability([["a", "a"], ["a", "?"]], marginals, ["a", "b"], n_bins=4)
    assert found.counts.tolist() == [0, 0, 3, 1]
    assert np.allclose(found.confidence[2:], [(0.55 + 0.6 + 0.7) / 3, 1])
    assert np.allclose(found.accuracy[2:], [1 / 3, 1])
    assert np.isclose(found.ece, 3 / 4 * ((0.55 + 0.6 + 0.7) / 3 - 1 / 3))


def test_a_temperature_undoes_another(honest):
    y, marginals, classes = honest
    assert abs(np.log(find_temperature(y, marginals, classes))) < 0.1
    assert expected_calibration_error(y, marginals, classes) < 0.03
    for temperature in (0.3, 3.0):
        spoiled = temper(marginals, temperature)
        assert expected_calibration_error(y, spoiled, classes) > 0.1
        found = find_temperature(y, spoiled, classes)
        assert abs(np.log(found * temperature)) < 0.1
        assert expected_calibration_error(y, temper(spoiled, found), classes) < 0.03


def test_one_table_and_zeros():
    table = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    assert np.allclose(temper(table, 2.0), table)
    assert 1 < find_temperature(np.array([0, 1, 0]), table, [0, 1]) <= 100
    assert reliability(np.array([0, 1, 0]), table, [0, 1]).counts.sum() == 3


@pytest.mark.parametrize(
    ("y", "marginals", "message"),
    [
        ([["a"]], [], "y_true and marginals must hold as many sequences, not 1 and 0."),
        ([["a"]], [np.ones((2, 2)) / 2], r"marginals\[0\] must have the shape \(1, 2\), but has \(2, 2\)."),
        ([["a"]], [np.ones((1, 2))], r"marginals\[0\] must hold probabilities, whose rows add up to 1."),
        ([["a"]], [np.full((1, 2), np.nan)], r"marginals\[0\] must hold probabilities, whose rows add up to 1."),
        ([["z"]], [np.ones((1, 2)) / 2], "y_true must hold at least one label that is in classes."),
    ],
)
def test_bad_input(y, marginals, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        find_temperature(y, marginals, ["a", "b"])


def test_the_plot_shows_shares_and_counts():
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    found = reliability([["a", "b"]], [[[0.9, 0.1], [0.7, 0.3]]], ["a", "b"])
    shares = found.plot(ax)
    ideal, points = shares.get_lines()
    np.testing.assert_array_equal(points.get_xydata().T, [found.confidence, found.accuracy])
    assert np.array_equal(ideal.get_xdata(), ideal.get_ydata())
    assert points.get_label() == "calibration error 0.400"
    below = ax.child_axes[1]
    assert [bar.get_height() for bar in below.patches] == found.counts.tolist()
    assert [bar.get_x() for bar in below.patches] == found.edges[:-1].tolist()
