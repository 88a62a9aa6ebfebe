"""What NumPy would drop without a word: the last character of labels, and masks."""

import numpy as np
import pytest

from maxmargin import ChainSVM, MatchingSVM, MulticlassSVM

pytestmark = pytest.mark.usefixtures("interpreted_loops")
ROWS = np.eye(2)


def test_labels_that_numpy_would_cut():
    with pytest.raises(ValueError, match=r"y\[0\] has the label 'a\\x00', which ends with a character that cannot"):
        ChainSVM().fit([ROWS], [["a", "a\0"]])
    with pytest.raises(ValueError, match=r"y has the label 'a\\x00'"):
        ChainSVM().fit(ROWS, ["a", "a\0"], lengths=[2])
    with pytest.raises(ValueError, match=r"y has the label 'a\\x00'"):
        MulticlassSVM().fit(ROWS, ["a", "a\0"])
    assert ChainSVM(max_passes=1).fit([ROWS], [["a", "\0a"]]).classes_.tolist() == ["\0a", "a"]


MASKED = np.ma.array(ROWS, mask=[[False, True], [False, False]])
LABELS = np.ma.array([0, 1], mask=[False, True])


@pytest.mark.parametrize(
    ("model", "X", "y", "options", "name"),
    [
        (ChainSVM(), [ROWS, MASKED], [[0, 1]] * 2, {}, r"X\[1\]"),
        (ChainSVM(), MASKED, [0, 1], {"lengths": [2]}, "X"),
        (ChainSVM(), [ROWS], [LABELS], {}, r"y\[0\]"),
        (ChainSVM(), ROWS, LABELS, {"lengths": [2]}, "y"),
        (ChainSVM(), [ROWS, ROWS], [[0, 1]] * 2, {"sample_weight": LABELS}, "sample_weight"),
        (MulticlassSVM(), MASKED, [0, 1], {}, "X"),
        (MulticlassSVM(), ROWS, LABELS, {}, "y"),
        (MatchingSVM(), [(MASKED, (2, 1))], [[0, -1]], {}, r"X\[0\]"),
    ],
)
def test_masks_are_refused(model, X, y, options, name):
    with pytest.raises(ValueError, match=f"^{name} is a masked array with masked entries"):
        model.fit(X, y, **options)


def test_masks_of_new_examples_are_refused():
    for model, new in (
        (ChainSVM(max_passes=1).fit([ROWS], [[0, 1]]), [MASKED]),
        (MulticlassSVM().fit(ROWS, [0, 1]), MASKED),
    ):
        with pytest.raises(ValueError, match="masked"):
            model.predict(new)
    unmasked = np.ma.array(ROWS)
    assert ChainSVM(max_passes=1).fit([unmasked], [[0, 1]]).classes_.tolist() == [0, 1]
