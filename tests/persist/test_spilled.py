"""Values whose arrays are out of memory."""

import errno
from typing import NamedTuple

import numpy as np
import pytest

from maxmargin.persist.spilled import SpillFile


class Pair(NamedTuple):
    values: np.ndarray
    name: str


def test_values_come_back_and_changes_are_kept_where_they_are_stored():
    large, small = np.arange(2000.0).reshape(2, 1000), np.arange(3, dtype=np.int32)
    home = SpillFile()
    first, second = home.put({"a": Pair(large, "x"), "b": [small, large, None]}), home.put(large + 1)
    found = first.load()
    np.testing.assert_array_equal(found["a"].values, large)
    assert found["a"].values is found["b"][1]
    assert (found["a"].name, found["b"][2]) == ("x", None)
    assert found["a"].values.flags.writeable
    found["a"].values[0, 0] = 7
    assert first.load()["a"].values[0, 0] == 0
    first.store(found)
    assert first.load()["a"].values[0, 0] == 7
    first.store(np.arange(9000))  # which has grown beyond its place
    np.testing.assert_array_equal(first.load(), np.arange(9000))
    for maps in (False, True):
        np.testing.assert_array_equal(second.load(maps=maps), large + 1)


def test_a_full_disk_is_told(monkeypatch, tmp_path):
    home = SpillFile(tmp_path)

    class Full:
        def seek(self, at):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(home, "file", Full())
    with pytest.raises(OSError, match=r"Portions of the data cannot be kept in .*: No space left on device"):
        home.put(np.arange(2000.0))
    assert not [*tmp_path.iterdir()]
