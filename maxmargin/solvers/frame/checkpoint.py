"""The state of a run on disk, from which the same run goes on after it was killed.

Between two certificates a solver has nothing but its state (`Run.take_up`), the weights, the dual point and the random
generator. All of it is written, as it is, and so are the counters, the trace and what held-out data have said; data
and arguments are not, but digests of them, by which a checkpoint of another run is told. A run that is resumed makes
the same steps as one that was never disturbed, with the same numbers in the same order, on the same machine, with the
same versions of all libraries and the same number of threads: it ends in the same weights, bit for bit. ("auto", which
chooses by the clock whether to keep a cache, does so once it has chosen.)
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_positive
from maxmargin.persist import container
from maxmargin.persist.container import Broken
from maxmargin.persist.files import check_writable
from maxmargin.persist.values import Reader, Writer
from maxmargin.problem import AnyProblem
from maxmargin.solvers.frame.run import Result, Run
from maxmargin.solvers.objective.latent_objective import LatentObjective
from maxmargin.solvers.objective.tilted_objective import TiltedObjective
from maxmargin.solvers.parted.parted_objective import PartedObjective
from maxmargin.trace import Certificate, Status
from maxmargin.version import __version__
from maxmargin.wording import name_type, quote

if TYPE_CHECKING:
    from maxmargin.solvers.frame.observation import Observer
    from maxmargin.solvers.frame.solve import Solver

EVERY = 60.0  # seconds
SHARE = 0.05  # of the time of a run, that writing may take
LIMITS = (Status.MAX_PASSES, Status.TIMEOUT, Status.INTERRUPTED)  # after which the same run may go on


class Checkpoint:
    """Keeps the state of a run in a file: at the first certificate after some time, then again and again.

    A file that is there is where the run goes on from, if it is of the same run; else it is refused. It goes away when
    the run ends, but stays where a limit or Ctrl-C has ended it, as then the same run with other limits may go on.

    Parameters
    ----------
    given
        The path, or a pair of it and of the seconds between two writes, 60 by default; more where writing takes more
        than a twentieth of the time.
    solver, run, observer
        What is run.
    problem
        The examples.

    Examples
    --------
    >>> from maxmargin.solvers import BCFW
    >>> from maxmargin.testing import toy_chains
    >>> BCFW().solve(toy_chains(), tol=0.1, random_state=0, checkpoint="run.checkpoint").status.name
    'OPTIMAL'
    """

    def __init__(self, given: object, solver: Solver, run: Run, observer: Observer, problem: AnyProblem) -> None:
        self.path, self.every = check_checkpoint(given)
        if not solver.resumes:
            raise ValueError(f"checkpoint must be None: {solver.known_as} keeps no state to go on from.")
        self.run, self.observer = run, observer
        self.problem: Any = problem  # some, of users, know more than the contract says
        self.given = {"run": run, "objective": run.objective, "bounds": run.objective.bounds}
        self.fingerprint = fingerprint(solver, run, problem)
        Writer(keeps_state=True)(self._ask_problem(), "checkpoint: what the problem has seen")  # raises before training
        self.last = time.perf_counter()

    def resume(self) -> None:
        """Go on from the file, if there is one."""
        name = str(self.path)
        if not self.path.exists():
            return
        try:
            with open(self.path, "rb") as file:
                content, arrays = container.read(file)
                if not (isinstance(content, dict) and "checkpoint" in content):
                    raise Broken("it is not a checkpoint")
                for what in {**self.fingerprint, **content["checkpoint"]}:
                    if content["checkpoint"].get(what) != self.fingerprint.get(what):
                        raise Broken(f"it is of a run with {what}")
                snapshot = Reader(arrays, self.given, keeps_state=True)(content["state"])
        except Broken as error:
            raise ValueError(f"{name!r} cannot be resumed from: {error}; remove it, or give another path.") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{name!r} cannot be resumed from: it holds no state of a run; remove it.") from error
        if snapshot["problem"] is not None:
            self.problem.restore(snapshot["problem"])
        self.run.restore(snapshot["run"])
        self.observer.restore(snapshot["observer"])

    def _ask_problem(self) -> object:
        """What a problem has come to know, if it is one that does: other than the rest, it is no mere data."""
        return self.problem.snapshot() if hasattr(self.problem, "snapshot") else None

    def observe(self, certificate: Certificate) -> bool:
        """Show a certificate to the observer, and write the state if it is time; return whether to stop."""
        if self.observer(certificate):
            return True
        if time.perf_counter() - self.last >= self.every:
            self.write()
        return False

    def write(self) -> None:
        """Write the state. Where that fails, as on a full disk, the run goes on, and says so."""
        began = time.perf_counter()
        writer = Writer(self.given, keeps_state=True)
        snapshot = {"run": self.run.snapshot(), "observer": self.observer.snapshot(), "problem": self._ask_problem()}
        content = {"checkpoint": self.fingerprint, "state": writer(snapshot, "The state")}
        try:
            container.write(self.path, content, writer.arrays)
        except OSError as error:
            warnings.warn(f"The checkpoint could not be written: {error}", UserWarning, stacklevel=2)
        self.last = time.perf_counter()
        self.every = max(self.every, (self.last - began) / SHARE if self.every else 0.0)

    def end(self, status: Status) -> None:
        """Remove the file, if the run ended by itself."""
        if status not in LIMITS:
            self.path.unlink(missing_ok=True)


def check_checkpoint(given: object) -> tuple[Path, float]:
    """The path and the seconds that an argument `checkpoint` stands for; raises if the file cannot be written."""
    path, every = given if isinstance(given, tuple) and len(given) == 2 else (given, EVERY)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path, or a pair of a path and seconds, not {quote(given)}.")
    if every != 0:
        check_positive("The seconds of checkpoint", every)
    return check_writable(path), float(every)


def fingerprint(solver: object, run: Run, problem: AnyProblem) -> dict[str, str]:
    """Digests of all that a run depends on, but for its limits, by what messages say where they differ."""
    objective, held_out = run.objective, run.held_out
    judged = None if held_out is None else (held_out.data, held_out.patience, held_out.n_examples)
    sought = objective.regularization, objective.l1, float(run.limits.tol), float(run.limits.abs_tol)
    parts = {
        "another version of maxmargin": __version__,
        "another solver": solver,
        "another loss": objective.loss,
        "another C, l1_ratio or tol": sought,
        "other examples": problem,
        "another sample_weight": objective.weight,
        "other bounds": objective.bounds[:3],
        "another n_jobs": objective.n_jobs,
        "another random_state": int(run.seed) if isinstance(run.seed, Integral) else None,
        "another start": run.start[:2] if isinstance(run.start, Result) else run.start,  # weights and dual point
        "other held-out data": judged,
    }
    if objective.linear is not None:
        parts["other soft labels"] = objective.linear
    if isinstance(objective, LatentObjective):
        known: Any = objective.consistent
        is_parted = isinstance(known, PartedObjective)
        parts["other labels that are known in part"] = (
            known.portions.identity() if is_parted else known.runner.problem.problem
        )
        if isinstance(objective, TiltedObjective):
            parts["another label_share"] = objective.share.direction, objective.share.expected
    return {what: digest(part) for what, part in parts.items()}


def digest(value: object) -> str:
    """A digest of data; raises a TypeError where there is anything else."""
    found = hashlib.blake2b(digest_size=16)
    _digest(value, found.update)
    return found.hexdigest()


def _digest(value: Any, update: Callable[[bytes | memoryview], None]) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        update(f"{value.dtype.str}{value.shape}".encode())
        update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif value is None or isinstance(value, bool | int | float | str | np.generic | np.dtype):
        update(f"{type(value).__name__}:{value!r};".encode("utf-8", "surrogatepass"))
    elif isinstance(value, tuple | list | dict | bytes):
        update(f"{type(value).__name__}{len(value)}".encode())
        for item in value.items() if isinstance(value, dict) else [value.hex()] if isinstance(value, bytes) else value:
            _digest(item, update)
    elif isinstance(value, set | frozenset):
        _digest(sorted(map(digest, value)), update)
    elif sp.issparse(value):
        rows = value.tocsr()
        _digest((*value.shape, rows.data, rows.indices, rows.indptr), update)
    elif hasattr(value, "identity"):
        _digest(value.identity(), update)
    elif is_dataclass(value):
        update(type(value).__name__.encode())
        for field in fields(value):
            _digest(getattr(value, field.name), update)
    else:
        raise TypeError(
            f"checkpoint must be None: {name_type(value)} is not data, so that a checkpoint of the same "
            "examples cannot be told from others."
        )
