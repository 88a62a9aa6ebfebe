"""Functions compiled for given types, by Numba, with the options of this library."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numba
from numba.core.errors import NumbaError
from numba.core.typing.templates import Signature

from maxmargin.garbage import no_garbage_collection
from maxmargin.runtime import modes, numba_private
from maxmargin.runtime.cache import Arguments, LoopCache
from maxmargin.runtime.numba_private import Compiled
from maxmargin.runtime.reach import Function

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

# Strict IEEE order is not needed, but infinities and NaN never reach a loop, so comparisons can be vectorised.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"},
}
LOOP = {**OPTIONS, **numba_private.LOOP_OPTIONS, **numba_private.UNCOUNTED}
IMPLEMENTATION = {**OPTIONS, **numba_private.ADDRESS_OPTIONS}
INNER = OPTIONS if modes.asks_for_plain or numba_private.missing else {**OPTIONS, **numba_private.INNER_OPTIONS}

_dispatchers: dict[object, Any] = {}


def compile_implementation(function: Function, signature: Signature, options: dict[str, object]) -> Compiled:
    """An implementation of a generic, compiled to be called by address."""
    try:
        return compile_for(function, signature, {**IMPLEMENTATION, **numba_private.UNCOUNTED, **options})
    except NumbaError:  # it makes arrays: let Numba count them; or it is wrong
        return compile_for(function, signature, {**IMPLEMENTATION, **options})


def compile_for(function: Function, signature: Signature | Arguments, options: dict[str, object]) -> Compiled:
    """A function compiled for a signature, from this process, from disk, or anew."""
    key = function, "" if options is LOOP else str(options)  # which would take longer than a short pass
    dispatcher = _dispatchers.get(key)
    if dispatcher is None:
        dispatcher = _dispatchers.setdefault(key, _make_dispatcher(function, options))
    arguments = signature.args if isinstance(signature, Signature) else signature
    if arguments not in dispatcher.overloads:
        with no_garbage_collection:  # a seventh of the time
            dispatcher.compile(signature)
    return dispatcher.overloads[arguments]


def _make_dispatcher(function: Function, options: dict[str, Any]) -> Dispatcher:
    dispatcher = numba.njit(**options)(function)
    with contextlib.suppress(Exception):  # without a place for it, every process compiles for itself
        numba_private.keep_in(dispatcher, LoopCache(function, options))
    return dispatcher
