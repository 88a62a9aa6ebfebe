"""How loops run: compiled, with all indices checked, by plain Numba, or interpreted; and as if there was much data."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numba

from maxmargin.runtime import entries, numba_private, shipped, trial

is_interpreted = contextvars.ContextVar("is_interpreted", default=bool(vars(numba.config)["DISABLE_JIT"]))
checks_bounds = contextvars.ContextVar("checks_bounds", default=False)
seems_much = contextvars.ContextVar("seems_much", default=False)


@contextlib.contextmanager
def _set(flag: contextvars.ContextVar[bool]) -> Iterator[None]:
    token = flag.set(True)
    try:
        yield
    finally:
        flag.reset(token)


def interpreted() -> AbstractContextManager[None]:
    """Run loops as plain Python inside a with block, to step through them in a debugger.

    Examples
    --------
    >>> from maxmargin import BCFW
    >>> from maxmargin.runtime import interpreted
    >>> from maxmargin.testing import toy_chains
    >>> with interpreted():
    ...     result = BCFW(steps="pairwise").solve(toy_chains())
    >>> result.status.name
    'OPTIMAL'
    """
    return _set(is_interpreted)


def bounds_checked() -> AbstractContextManager[None]:
    """Check all indices of compiled code on problems that are made ready inside a with block.

    Without this, or ``NUMBA_BOUNDSCHECK=1`` for a whole process, an index out of bounds reads or writes any memory.
    """
    return _set(checks_bounds)


def as_on_much_data() -> AbstractContextManager[None]:
    """Take the roads that only pay on much data, inside a with block: a small fit compiles what large ones need."""
    return _set(seems_much)


def is_enough(amount: float, least: float) -> bool:
    """Whether there is as much to do as a road takes to pay."""
    return amount >= least or seems_much.get()


asks_for_plain = os.environ.get("MAXMARGIN_PLAIN_NUMBA", "0") not in ("", "0")


@functools.cache
def is_plain() -> bool:
    """Whether loops go by plain ``njit``: as the environment says, or as Numba's private parts are not as they were.

    They are tried out once for each version of all that matters: a file among the compiled loops, or in the package,
    says that it went well.
    """
    if asks_for_plain:
        return True
    passed = entries.folder_of(trial.try_out) / f"numba_private-{entries.surroundings()[:16]}{entries.ENDING}"
    for read in (lambda: entries.read(passed), lambda: shipped.read(passed.name)):
        with contextlib.suppress(OSError, ValueError):
            read()
            return False
    try:
        trial.try_out()
    except Exception as error:
        numba_private.in_use = False
        warnings.warn(
            f"Numba {numba.__version__} is not as maxmargin knows it ({type(error).__name__}: {error}): loops are "
            "compiled by plain njit, which takes longer; results are the same.",
            stacklevel=2,
        )
        return True
    with contextlib.suppress(OSError):
        entries.write(passed, b"")
        shipped.keep(passed.name, bytes)
    return False
