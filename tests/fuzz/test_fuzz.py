"""Hostile inputs end in a result or in one sentence, in a process of their own that must survive them.

``MAXMARGIN_FUZZ=5000 pytest tests/fuzz -n 0 -m long`` tries thousands of them, on compiled code.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maxmargin import BCFW, Casimir
from maxmargin.losses import find_loss
from tests.fuzz.certified import false_certificate, objective_of_chains
from tests.fuzz.hostile import attempt
from tests.fuzz.long_chains import KINDS, long_chains
from tests.small import CASES, make

N_INPUTS = int(os.environ.get("MAXMARGIN_FUZZ", "240"))
IS_COMPILED = "MAXMARGIN_FUZZ" in os.environ


def run(first, last):
    """Try the seeds first:last; return what became of them, where the last may have ended the process."""
    command = [sys.executable, "-m", "tests.fuzz.child", str(first), str(last), str(int(IS_COMPILED))]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2], check=False)
    return dict(map(json.loads, child.stdout.splitlines())), child.returncode


def test_false_certificates_are_found(interpreted_loops):
    for name in CASES:
        model, X, y, _ = make(name)
        X, y = X[:4], y[:4]
        model.fit(X, y)
        primal, dual = certified = model.certificate_
        assert false_certificate(model, X, y, None, model) is None
        for false in (replace(certified, primal=0.99 * primal), replace(certified, dual=dual + 0.05 * primal)):
            model.certificate_ = false
            assert "is certified" in (found := false_certificate(model, X, y, None, model)) or "bound" in found, name


@pytest.mark.parametrize("n_inputs", [40, pytest.param(N_INPUTS, marks=pytest.mark.long)])
def test_hostile_inputs(n_inputs):
    outcomes: dict[int, str] = {}
    while len(outcomes) < n_inputs:
        found, code = run(len(outcomes), n_inputs)
        outcomes |= {
            seed: f"the process ended with {code}" if what == "begun" else what for seed, what in found.items()
        }
        assert found, "the process did not start"
    findings = {seed: what for seed, what in outcomes.items() if what not in ("fitted", "refused")}
    assert not findings, "\n".join(f"{seed}: {attempt(seed).how}: {what}" for seed, what in findings.items())
    assert 0.2 * n_inputs < sum(what == "fitted" for what in outcomes.values()) < 0.9 * n_inputs


def test_certificates_of_long_chains():
    """In float32, whose sums they outgrow: objectives are those of float64 or a little more, bounds are below them."""
    for seed in range(N_INPUTS // 40):
        rng = np.random.default_rng(seed)
        n_labels, C = int(rng.integers(2, 5)), 10 ** rng.uniform(-5, 0)
        lengths = (10 ** rng.uniform(1, 4, rng.integers(1, 4))).astype(int)
        problem = long_chains(rng, lengths, n_labels, int(rng.integers(1, 30)), KINDS[seed % len(KINDS)])
        results = [
            solver.solve(problem, C, tol=1e-6, max_passes=20, random_state=seed) for solver in (BCFW(), Casimir())
        ]
        true = [objective_of_chains(problem, result.w, C, find_loss("hinge")) for result in results]
        for result, value in zip(results, true, strict=True):
            assert value <= result.certificate.primal <= value * (1 + 1e-4), seed
            assert result.certificate.dual <= min(true), seed
