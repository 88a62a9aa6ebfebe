"""What can be known of the box of an image, without knowing the box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PRESENT, ABSENT, UNKNOWN_BOX = "present", "absent", "unknown"


@dataclass(frozen=True)
class KnownBox:
    """There is a box in the image, and this is known of it.

    In place of a box in the y of `BoxSVM.fit`, or in `allowed` of its predictions; so are the words "present" (there is
    a box somewhere), "absent" (there is none) and "unknown" (there may be one).

    Parameters
    ----------
    contains
        A cell (row, column) that is inside the box, or a box (top, left, bottom, right) that is.
    inside
        A box (top, left, bottom, right) that the box does not go beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import BoxSVM, KnownBox
    >>> X = [np.array([[0, 0, 1, 1], [0, 0, 1, 1]]), np.array([[0, 1], [0, 0]]), np.zeros((2, 2), int)]
    >>> model = BoxSVM(C=10.0, random_state=0).fit(X, [(0, 2, 2, 4), (0, 1, 1, 2), None])
    >>> two = np.array([[1, 1, 0, 1], [1, 0, 0, 0]])
    >>> model.predict([two, two], allowed=[KnownBox(contains=(0, 3)), KnownBox(inside=(1, 0, 2, 4))]).tolist()
    [[0, 0, 1, 4], [1, 0, 2, 1]]
    """

    contains: Any = None
    inside: Any = None
