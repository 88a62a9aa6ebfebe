"""Runs that are killed and resumed end in the weights of runs that are not.

MAXMARGIN_KILLS is the number of times that a fit is killed.
"""

import json
import multiprocessing
import os
import random
import shutil
import time
from itertools import permutations

import numpy as np
import pytest

import maxmargin
from maxmargin import (
    BCFW,
    GDMM,
    IDAL,
    LBFGS,
    SGD,
    SVRG,
    Auto,
    Casimir,
    ChainCRF,
    ChainSVM,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    NSlack,
    OneSlack,
    Perceptron,
    SoftBCFW,
    SoftSDCA,
    Status,
    StructuredSVM,
)
from maxmargin.persist.container import PREFIX
from maxmargin.solvers import Solver, all_solvers
from maxmargin.testing import toy_chains
from maxmargin.trace import Certificate
from tests.small import make

pytestmark = pytest.mark.usefixtures("interpreted_loops")

N_KILLS = int(os.environ.get("MAXMARGIN_KILLS", "3"))
SOLVERS = [
    (FrankWolfe(), {}),
    (BCFW(averaging=True), {}),
    (BCFW(steps="pairwise", averaging="recent"), {}),
    (BCFW(steps="pairwise", sampling="gap", cache=5), {}),
    (BCFW(steps="away", exact_gaps=False), {}),
    (BCFW(), {"lower": 0.0}),
    (Auto(), {}),
    (NSlack(), {}),
    (OneSlack(), {}),
    (SGD(), {"lower": 0.0}),
    (SGD(schedule="decay", step=0.1, averaging=False), {"loss": "log"}),
    (Perceptron(), {"C": 1.0}),
    (SVRG(), {}),
    (Casimir(), {}),
    (Casimir(schedule="constant", warm_start="extrapolation", stop="gradient", smoothing="entropy"), {}),
    (LBFGS(), {"loss": "log"}),
    (LBFGS(), {"loss": "log", "l1_ratio": 0.5}),
    (LBFGS(), {"loss": "log", "lower": 0.0}),
    (ExponentiatedGradient(sampling="gap"), {"loss": "log"}),
    (ExponentiatedGradient(batch=True), {"loss": "log"}),
    (ExcessiveGap(), {}),
    (Extragradient(), {}),
    (IDAL(), {}),
    (SoftSDCA(), {}),
    (SoftBCFW(), {}),
    (GDMM(), {}),
]


def problem_for(solver):
    if isinstance(solver, IDAL | SoftSDCA | GDMM):
        model, X, y, _ = make("GraphSVM")
        return model._encode(X, y).problem
    return toy_chains()


def assert_same(a, b):
    """Whether two results are the same, bit for bit, but for the clock."""
    assert a.w.tobytes() == b.w.tobytes()
    assert (a.status, a.certificate) == (b.status, b.certificate)
    for name in ("passes", "oracle_calls", "primal", "dual", "cache_hits", "cache_misses", "dev_score"):
        np.testing.assert_array_equal(getattr(a.trace, name), getattr(b.trace, name))
    assert a.trace.extras == b.trace.extras


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


def copies_of(path, call):
    """The checkpoints of a run, one for each certificate but the last, and its result."""
    copies = []

    def keep(_):
        if path.exists():
            copies.append(shutil.copy(path, path.with_name(f"{len(copies)}.copy")))

    return call(callback=keep, checkpoint=(path, 0)), copies


@pytest.mark.parametrize(("solver", "options"), SOLVERS, ids=lambda value: type(value).__name__)
def test_every_solver_goes_on_from_every_checkpoint(solver, options, path):
    problem = problem_for(solver)
    options = {"tol": 1e-6, "max_passes": 21, "random_state": 0, "C": 2.0, **options}
    expected = solver.solve(problem, **options)
    whole, copies = copies_of(path, lambda **others: solver.solve(problem, **options, **others))
    assert_same(whole, expected)
    assert len(copies) >= 1
    assert path.exists() == (expected.status is Status.MAX_PASSES)
    for copy in {copies[0], copies[len(copies) // 2], copies[-1]}:
        again = solver.solve(problem, **options, checkpoint=copy)
        assert_same(again, expected)
        assert (np.diff(again.trace.seconds) >= 0).all()  # the clock goes on


def test_the_choice_for_smooth_losses_goes_on_before_and_after_it_hands_over(path, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.automatic.smooth_auto.ENOUGH_PARTS", 1)
    options = {"loss": "log", "C": 1000.0, "max_passes": 40}
    test_every_solver_goes_on_from_every_checkpoint(Auto(), options, path)
    result = Auto().solve(toy_chains(), **options, tol=1e-6, random_state=0)
    assert "Handed over to L-BFGS" in result.trace.notes[-1]


def test_every_solver_is_tried():
    assert {type(solver) for solver, _ in SOLVERS} == {type(solver) for solver in all_solvers().values()}


@pytest.mark.parametrize("model", [ChainSVM(solver="bcfw"), ChainCRF()])
def test_held_out_data_and_early_stopping_go_on(model, words, path):
    X, y = words
    model.set_params(random_state=0, tol=1e-9, patience=3)
    data = {"X": X[:20], "y": y[:20], "X_dev": X[20:], "y_dev": y[20:]}
    expected = model.fit(**data)._w, model.status_, model.trace_.dev_score
    _, copies = copies_of(path, lambda **others: model.fit(**data, **others))
    for copy in (copies[0], copies[-1]):
        again = model.fit(**data, checkpoint=copy)
        assert again._w.tobytes() == expected[0].tobytes()
        assert again.status_ is expected[1] is Status.EARLY_STOPPED
        np.testing.assert_array_equal(again.trace_.dev_score, expected[2])
        assert not os.path.exists(copy)
    with pytest.raises(ValueError, match="is of a run with other held-out data"):
        model.fit(X[:20], y[:20], X_dev=X[21:], y_dev=y[21:], checkpoint=copies[1])


def test_a_checkpoint_of_another_run_is_refused(words, path):
    X, y = words
    model = ChainSVM(solver="bcfw", random_state=0, tol=1e-9, max_passes=12).fit(X, y, checkpoint=(path, 0))
    before = path.read_bytes()
    for arguments, data, what in (
        ({"C": 7.0}, {}, "another C, l1_ratio or tol"),
        ({"solver": "frank-wolfe"}, {}, "another solver"),
        ({"solver": BCFW(steps="away")}, {}, "another solver"),
        ({"loss": "hinge", "random_state": 1}, {}, "another random_state"),
        ({"bounds": {"transitions": (0, None)}}, {}, "other bounds"),
        ({}, {"sample_weight": np.arange(1.0, 31.0)}, "another sample_weight"),
        ({}, {"X": [x + 1 for x in X]}, "other examples"),
        ({}, {"y": y[::-1], "X": X[::-1]}, "other examples"),
        ({"cost": "normalized_hamming"}, {}, "other examples"),
    ):
        other = ChainSVM(**{**model.get_params(), **arguments})
        with pytest.raises(ValueError, match=f"cannot be resumed from: it is of a run with {what}; remove it"):
            other.fit(**{"X": X, "y": y, **data}, checkpoint=path)
        assert not hasattr(other, "coef_")
    assert path.read_bytes() == before


def test_limits_may_change(words, path):
    model = ChainSVM(solver="bcfw", random_state=0, tol=1e-3)
    expected = model.fit(*words)
    w = expected._w.copy()
    model.set_params(max_passes=12).fit(*words, checkpoint=(path, 0))
    assert path.exists()
    model.set_params(max_passes=None, time_limit=1000.0, verbose=1).fit(*words, checkpoint=path)
    assert model._w.tobytes() == w.tobytes()
    assert model.status_ is Status.OPTIMAL
    assert not path.exists()


def test_files_that_are_no_checkpoints_are_refused_and_kept(words, path):
    model = ChainCRF(max_passes=4, tol=1e-9)
    model.fit(*words, checkpoint=(path, 0))
    whole = path.read_bytes()
    with pytest.raises(ValueError, match="cannot be loaded"):
        maxmargin.load(path)
    length = PREFIX.unpack(whole[: PREFIX.size])[3]
    assert "checkpoint" in json.loads(whole[PREFIX.size : PREFIX.size + length])["content"]
    model.save(path)
    for content, reason in (
        (path.read_bytes(), "it is not a checkpoint"),
        (whole[:-9], "it is truncated"),
        (whole[:300] + b"x" + whole[301:], "it is corrupted"),
        (b"notes", "it is not a file of this library"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"cannot be resumed from: {reason}"):
            model.fit(*words, checkpoint=path)
        assert path.read_bytes() == content


class Subgradient(Solver):
    """A solver whose state is its own."""

    def iterate(self, run):
        found = run.evaluate(run.w)
        yield Certificate(run.w, found.value, 0.0)


def test_what_cannot_be_kept_is_refused_before_training(words, path, tmp_path):
    def never(trace):
        raise AssertionError("it has begun")

    with pytest.raises(ValueError, match="checkpoint must be None: Subgradient keeps no state to go on from"):
        Subgradient().solve(toy_chains(), checkpoint=path, callback=never)
    model, X, y, _ = make("StructuredSVM")
    model.model.log = print
    with pytest.raises(TypeError, match="checkpoint must be None: a builtin_function_or_method is not data"):
        model.fit(X, y, checkpoint=path, callback=never)
    del model.model.log
    for target, error in ((tmp_path, IsADirectoryError), (tmp_path / "no" / "where", FileNotFoundError)):
        with pytest.raises(error, match="cannot be written"):
            ChainCRF().fit(*words, checkpoint=target, callback=never)
    for bad, error in ((7, TypeError), ((path, -1.0), ValueError), ((path, "x"), ValueError)):
        with pytest.raises(error, match="checkpoint"):
            ChainCRF().fit(*words, checkpoint=bad, callback=never)


def test_a_full_disk_does_not_end_a_fit(words, path, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    expected = ChainCRF().fit(*words)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.warns(UserWarning, match="The checkpoint could not be written: the disk is full"):
        model = ChainCRF().fit(*words, checkpoint=(path, 0))
    assert np.array_equal(model._w, expected._w)
    assert os.listdir(path.parent) == []


def test_it_is_written_now_and_then(words, path):
    model = ChainCRF(tol=1e-9, max_passes=6).fit(*words, checkpoint=path)
    assert not path.exists()  # a minute has not passed
    assert model.status_ is Status.MAX_PASSES


def test_a_warm_start_is_part_of_it(words, path):
    model = ChainSVM(solver="bcfw", random_state=0, warm_start=True, max_passes=3, tol=1e-9).fit(*words)
    first = model._w.copy(), model._result
    expected = model.set_params(max_passes=14).fit(*words)._w.copy()
    model._w, model._result = first
    _, copies = copies_of(path, lambda **others: model.fit(*words, **others))
    assert model._w.tobytes() == expected.tobytes()
    model._w, model._result = first
    assert model.fit(*words, checkpoint=copies[0])._w.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="is of a run with another start"):
        model.set_params(warm_start=False).fit(*words, checkpoint=copies[1])


KILLED = {
    "bcfw": lambda: ChainSVM(solver=BCFW(steps="pairwise", sampling="gap", gap_every=2), tol=1e-5, random_state=0),
    "crf": lambda: ChainCRF(tol=1e-7),
    "bounds": lambda: ChainSVM(solver="lbfgs", loss="smooth_hinge", bounds={"transitions": (0, None)}, tol=1e-6),
    "sgd": lambda: ChainSVM(solver=SGD(gap_every=1), max_passes=25, tol=1e-9, random_state=0),
    "python": lambda: StructuredSVM(Rankings(), solver=BCFW(steps="pairwise"), max_passes=15, tol=1e-9, random_state=0),
}


def fit_and_tell(name, data, path, found):
    model = KILLED[name]().fit(*data, checkpoint=(path, 0))
    np.save(f"{found}.npy", model._w)
    os.rename(f"{found}.npy", found)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
@pytest.mark.parametrize("name", KILLED)
def test_killed_at_any_moment(name, words, path):
    data = rankings(40) if name == "python" else (words[0][:15], words[1][:15])
    found, rng = path.with_name("weights"), random.Random(0)
    began = time.perf_counter()
    expected = KILLED[name]().fit(*data)._w
    seconds = time.perf_counter() - began
    context = multiprocessing.get_context("fork")
    n_killed = 0
    while n_killed < N_KILLS:
        path.unlink(missing_ok=True)
        found.unlink(missing_ok=True)
        while not found.exists():
            child = context.Process(target=fit_and_tell, args=(name, data, path, found))
            child.start()
            child.join(rng.uniform(0, 1.5 * seconds) if n_killed < N_KILLS else None)
            if child.is_alive():
                child.kill()  # SIGKILL
                child.join()
                n_killed += 1
            elif not found.exists():
                pytest.fail("a fit that was resumed has failed")
        assert np.load(found).tobytes() == expected.tobytes()
        assert {*os.listdir(path.parent)} <= {"weights", path.name}  # nothing that was half written


def test_what_a_killed_fit_has_left_goes_away(words, path):
    """Kills at random moments seldom meet one at which a file is half written."""
    left = path.with_name(f".{path.name}.0123456789ab.part")
    left.write_bytes(b"half")
    ChainCRF(max_passes=1).fit(words[0][:5], words[1][:5], checkpoint=path)
    assert not left.exists()


class Rankings:
    """Orders of rows, with outputs, but for the true one, that only its oracle knows; its attributes are part of it."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def features(self, x, order):
        return np.arange(len(order), 0, -1) @ x[list(order)] + self.shift

    def cost(self, true, order):
        return float(sum(a != b for a, b in zip(true, order, strict=True)))

    def argmax(self, x, w, y_true=None):
        return max(
            permutations(range(len(x))),
            key=lambda order: self.features(x, order) @ w + (0 if y_true is None else self.cost(y_true, order)),
        )


def rankings(n=12):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 4)) for _ in range(n)]
    return X, [tuple(np.argsort(x[:, 0] + 0.5 * rng.normal(size=3)).tolist()) for x in X]


@pytest.mark.parametrize("solver", [BCFW(steps="pairwise", sampling="gap", cache=3), NSlack(), SGD(gap_every=1)])
def test_structures_in_python_go_on_with_the_outputs_they_have_seen(solver, path):
    X, y = rankings()
    model = StructuredSVM(Rankings(), solver=solver, random_state=0, tol=1e-9, max_passes=10)
    expected = model.fit(X, y)._w.copy()
    _, copies = copies_of(path, lambda **others: model.fit(X, y, **others))
    for copy in (copies[0], copies[-1]):
        assert model.fit(X, y, checkpoint=copy)._w.tobytes() == expected.tobytes()
    for other, data in ((Rankings(shift=1.0), (X, y)), (Rankings(), (X[::-1], y[::-1]))):
        with pytest.raises(ValueError, match="it is of a run with other examples"):
            StructuredSVM(**{**model.get_params(deep=False), "model": other}).fit(*data, checkpoint=copies[1])


@pytest.mark.parametrize(
    "name", ["MulticlassSVM", "TreeCRF", "MatchingSVM", "GraphCutSVM", "DeformableSVM", "BoxSVM", "StructuredSVM"]
)
def test_other_models_go_on(name, path):
    model, X, y, _ = make(name)
    model.set_params(tol=1e-9, max_passes=25)
    if name != "TreeCRF":
        model.set_params(solver="bcfw")
    expected = model.fit(X, y)._w.copy()
    _, copies = copies_of(path, lambda **others: model.fit(X, y, **others))
    assert model.fit(X, y, checkpoint=copies[-1])._w.tobytes() == expected.tobytes()
