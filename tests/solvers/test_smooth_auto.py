"""The choice of "auto" for smooth losses: the same optimum as L-BFGS alone, true certificates, and what it notes."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import LBFGS, Auto, ExponentiatedGradient
from maxmargin.arrays.blocks import in_precision
from maxmargin.losses import NAMED, Loss
from maxmargin.solvers.automatic import smooth_auto
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains
from maxmargin.trace import Certificate

WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 1.5, 1.0])


@pytest.fixture
def begins_with_single_steps(monkeypatch):
    monkeypatch.setattr(smooth_auto, "ENOUGH_PARTS", 0)


@pytest.mark.parametrize(("C", "l1_ratio"), [(0.05, 0.0), (20.0, 0.0), (0.3, 0.2), (20.0, 0.5)])
@pytest.mark.parametrize("loss", ["log", Loss("entropy", level=0.5)], ids=str)
def test_the_optimum_of_lbfgs(C, l1_ratio, loss, begins_with_single_steps, interpreted_loops):
    problem = toy_chains(n=6, n_labels=3)
    best = LBFGS().solve(problem, C, WEIGHT, loss=loss, l1_ratio=l1_ratio, tol=1e-9)
    optimum = best.certificate.primal
    result = Auto().solve(problem, C, WEIGHT, loss=loss, l1_ratio=l1_ratio, tol=1e-6, random_state=0)
    assert np.array_equal(result.w == 0, best.w == 0)
    assert result.status.name == "OPTIMAL"
    assert result.trace.notes[0].startswith("Began")
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert (result.trace.dual <= optimum * (1 + 1e-9)).all()


def test_it_hands_over_where_steps_are_short(begins_with_single_steps):
    problem = toy_chains(n=20, n_labels=9)
    result = Auto().solve(problem, 50.0, loss="log", tol=1e-8, random_state=0)
    began, handed_over = result.trace.notes
    assert began.startswith("Began")
    assert handed_over.startswith("Handed over to L-BFGS after")
    assert result.status.name == "OPTIMAL"
    assert np.all(np.diff(result.trace.dual) >= 0)


def test_steps_that_lead_above_where_they_began_are_left(begins_with_single_steps):
    problem, limits = toy_chains(n=20, n_labels=9), {"loss": "log", "tol": 1e-8, "random_state": 0}
    alone = LBFGS().solve(problem, 1e6, max_passes=20, **limits)
    for patience in (None, 10**6):  # with held-out data, weights are looked at after each pass
        held_out = patience and HeldOut(lambda w: 0.0, patience=patience)
        result = Auto().solve(problem, 1e6, max_passes=20, held_out=held_out, **limits)
        assert result.trace.notes[1].startswith("Left to L-BFGS after")
        primal = result.trace.primal[1:]
        np.testing.assert_allclose(primal, alone.trace.primal[: len(primal)])
        assert np.all(np.diff(result.trace.dual) >= 0)


def test_more_certificates_for_held_out_data_do_not_end_the_steps_earlier(begins_with_single_steps):
    problem = toy_chains(n=20, n_labels=9)
    plain, watched = (
        Auto().solve(problem, 1.0, loss="log", tol=1e-8, random_state=0, held_out=held_out)
        for held_out in (None, HeldOut(lambda w: 0.0, patience=10**6))
    )
    assert len(watched.trace) > len(plain.trace)
    for result in (plain, watched):
        assert not any(note.startswith("Handed over") for note in result.trace.notes)


@pytest.mark.parametrize(("share", "passes"), [(0.0, 5), (0.7, 4), (1.5, 3)])
def test_passes_end_when_the_gap_seems_to_be_there(share, passes):
    run = SimpleNamespace(target=lambda primal: 0.1 * primal, passes_to_go=lambda most: most, must_stop=False)
    steps = SimpleNamespace(known_gap=1.0)
    steps.make_pass = lambda solver: setattr(steps, "known_gap", steps.known_gap / 2)
    state = SimpleNamespace(certificate=Certificate(np.zeros(1), 1.0, 0.0), share=share, steps=steps)
    known, enough = smooth_auto.make_passes(run, state, ExponentiatedGradient())
    assert (known, enough) == pytest.approx((0.5**passes, 0.1 * share))


def test_no_certificates_while_the_gap_falls_fast(begins_with_single_steps):
    result = Auto().solve(toy_chains(n=20, n_labels=9), 1.0, loss="log", tol=1e-5, random_state=0)
    assert result.status.name == "OPTIMAL"
    assert np.diff(result.trace.passes).max() > ExponentiatedGradient().gap_every


@pytest.mark.parametrize("l1_ratio", [0.0, 0.1])
def test_it_starts_from_weights_and_on_two_threads(l1_ratio, begins_with_single_steps):
    problem = toy_chains(n=20, n_labels=9)
    solve = partial(Auto().solve, problem, 0.1, loss="log", l1_ratio=l1_ratio, tol=1e-6, random_state=0)
    first = solve()
    again = solve(start=first.w, n_jobs=2)
    assert again.trace.primal[0] == pytest.approx(first.certificate.primal, rel=1e-9)
    assert again.status.name == "OPTIMAL"


def test_small_problems_and_others_are_left_to_lbfgs(begins_with_single_steps, monkeypatch):
    problem = toy_chains(n=6)
    assert not Auto().solve(problem, 1.0, loss="log", l1_ratio=1.0).trace.notes
    assert not Auto().solve(problem, 1.0, loss="smooth_hinge").trace.notes
    monkeypatch.setattr(smooth_auto, "ENOUGH_PARTS", 10**6)
    assert not Auto().solve(problem, 1.0, loss="log").trace.notes


def test_what_float32_cannot_certify_is_finished_in_float64():
    problem = toy_chains(n=20, n_labels=9, dtype="float32")
    assert LBFGS().solve(problem, 1.0, loss="log", tol=1e-9).status.name == "STALLED"
    result = Auto().solve(problem, 1.0, loss="log", tol=1e-9)
    assert result.status.name == "OPTIMAL"
    assert result.trace.notes[-1].startswith("Went on in float64")
    assert result.w.dtype == np.float32
    precise = Objective(in_precision(problem, np.float64), 1.0, loss=NAMED["log"])
    value = precise.evaluate(result.w.astype(float)).value
    assert value == pytest.approx(result.certificate.primal, rel=1e-12)
