import gc
import os
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ["MAXMARGIN_BITCODE"] = "0"  # functions are compiled from what is written, whatever a build has left here

from maxmargin.runtime import interpreted

settings.register_profile("default", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def pytest_collection_finish():
    """Python looks for unused memory less often: among all that is imported it takes a tenth of the time."""
    gc.set_threshold(50_000, 20, 100)
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data, from MAXMARGIN_DATA or beside the repository."""
    for folder in (os.environ.get("MAXMARGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("real data is not here: set MAXMARGIN_DATA to its folder")


@pytest.fixture(scope="session")
def words():
    """Thirty short labelled sequences in which features and transitions both matter."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(30):
        labels = [int(rng.integers(3))]
        while len(labels) < rng.integers(2, 7):
            labels.append((labels[-1] + int(rng.random() < 0.8)) % 3)
        X.append(np.eye(3)[labels] + 0.6 * rng.normal(size=(len(labels), 3)))
        y.append([["a", "b", "c"][label] for label in labels])
    return X, y


@pytest.fixture
def interpreted_loops():
    """Loops run as Python, where compiling them is not the point."""
    with interpreted():
        yield


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
def loops_either_way(request):
    """Loops run as Python, and compiled where there is time."""
    with interpreted() if request.param == "interpreted" else nullcontext():
        yield
