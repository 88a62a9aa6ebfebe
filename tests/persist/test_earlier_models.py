"""Models that earlier versions have saved: they load, and say what they said then."""

from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin import SVRG, Casimir, Loss, RelaxedLoss

FOLDER = Path(__file__).parent / "earlier"
NAMES = sorted(path.name for path in FOLDER.glob("*.model"))


@pytest.mark.parametrize("name", NAMES)
def test_they_load(name):
    model = maxmargin.load(FOLDER / name)
    assert model.certificate_.gap >= 0
    assert repr(model)


def test_there_are_some():
    assert len(NAMES) > 10


def test_sequences_are_read_as_before(interpreted_loops):
    model = maxmargin.load(FOLDER / "chain_crf.model")
    assert not model.fit_intercept
    assert model.coef_.emissions.shape == (64, 10)
    assert [len(labels) for labels in model.predict([np.ones((3, 64))])] == [3]


def test_taggers_tag_as_before(interpreted_loops):
    tagger = maxmargin.load(FOLDER / "tagger.model")
    assert tagger.predict([["Bob", "lives", "in", "Rome"]]) == [["B-PER", "O", "O", "B-LOC"]]
    (names,) = tagger.features_.transform([["Bob"]])[0]
    assert {"prefix=B", "suffix=b"} <= {*names}  # in lower case since


EDGES = [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("name", "X", "expected"),
    [
        ("cut", [(np.eye(2)[[0, 0, 1]], EDGES), (np.eye(2)[[1, 1, 0]], EDGES)], [[0, 0, 1], [1, 1, 0]]),
        ("matching", [2 * np.eye(2)[:, :, None] - 1, 1 - 2 * np.eye(2)[:, :, None]], [[0, 1], [1, 0]]),
        ("kernel_chain", [np.eye(3)[[0, 1, 2]], np.eye(3)[[1, 0]]], [["a", "b", "a"], ["b", "a"]]),
    ],
)
def test_others_predict_as_before(name, X, expected, interpreted_loops):
    assert [output.tolist() for output in maxmargin.load(FOLDER / f"{name}.model").predict(X)] == expected


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hinge_loss", {"loss": Loss()}),
        ("smooth_loss", {"loss": Loss("l2", level=0.1, max_k=7), "solver": SVRG(level=0.5)}),
        ("entropy_loss", {"loss": Loss("entropy", level=0.3), "solver": Casimir(level=0.5, kappa=1.0)}),
        ("relaxed_loss", {"loss": RelaxedLoss(level=0.5, entropy="oriented_trees")}),
    ],
)
def test_levels_of_losses_and_solvers_are_those_they_had(name, options, tmp_path):
    model = maxmargin.load(FOLDER / f"{name}.model")
    assert {option: getattr(model, option) for option in options} == options
    model.save(tmp_path / "again.model")
    assert {option: getattr(maxmargin.load(tmp_path / "again.model"), option) for option in options} == options
