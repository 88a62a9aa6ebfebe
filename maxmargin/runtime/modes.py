"""How loops run: compiled, compiled with all indices checked, or interpreted."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from numba.core import config

is_interpreted = contextvars.ContextVar("is_interpreted", default=bool(vars(config)["DISABLE_JIT"]))
checks_bounds = contextvars.ContextVar("checks_bounds", default=False)


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
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
    token = is_interpreted.set(True)
    try:
        yield
    finally:
        is_interpreted.reset(token)


@contextlib.contextmanager
def bounds_checked() -> Iterator[None]:
    """Check all indices of compiled code on problems that are made ready inside a with block.

    Without this, or ``NUMBA_BOUNDSCHECK=1`` for a whole process, an index out of bounds reads or writes any memory.
    """
    token = checks_bounds.set(True)
    try:
        yield
    finally:
        checks_bounds.reset(token)
