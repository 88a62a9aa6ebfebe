"""Quality of labels: the plot of what is taken for what; the counts are in the tests of entities."""

import numpy as np
import pytest

from maxmargin.metrics import confusion


def test_the_plot_of_a_confusion_shows_shares_and_counts():
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    found = confusion([["a", "a", "a", "b"]], [["a", "b", "a", "b"]])
    assert found.plot(ax) is ax
    np.testing.assert_allclose(ax.get_images()[0].get_array(), [[2 / 3, 1 / 3], [0, 1]])
    assert {text.get_position(): text.get_text() for text in ax.texts} == {(0, 0): "2", (1, 0): "1", (1, 1): "1"}
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["a", "b"]
