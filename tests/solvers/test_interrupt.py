"""Ctrl-C: once, and again."""

import signal
from types import SimpleNamespace

import pytest

from maxmargin.solvers.frame import interrupt
from maxmargin.solvers.frame.interrupt import PATIENCE, Interruptible


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(interrupt.time, "monotonic", lambda: now.seconds)
    return now


def press():
    signal.raise_signal(signal.SIGINT)


def test_presses_soon_after_the_first_mean_the_same(clock):
    run = SimpleNamespace(interrupted=False)
    with Interruptible(run):
        for clock.seconds in (0.0, 0.3, PATIENCE):
            press()
            assert run.interrupted
        clock.seconds = PATIENCE + 0.1
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_run_within_another_passes_it_on(clock):
    whole, part = SimpleNamespace(interrupted=False), SimpleNamespace(interrupted=False)
    with Interruptible(whole):
        with Interruptible(part):
            press()
        assert whole.interrupted
        clock.seconds = 0.3
        press()
        clock.seconds = PATIENCE + 0.1
        with pytest.raises(KeyboardInterrupt):
            press()
