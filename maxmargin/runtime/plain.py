"""Loops by plain ``numba.njit``: by nothing but what Numba documents.

So loops run with MAXMARGIN_PLAIN_NUMBA=1, and with versions of Numba whose private parts are not what the library
knows (`maxmargin.runtime.modes`). A loop takes problems and losses as NamedTuples, and is compiled for each type of
them with all that it calls: that takes longer, and results are the same. Numba's own cache keeps it, in a folder whose
name is a hash of all that it depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import overload

from maxmargin.runtime import entries
from maxmargin.runtime.abi import array_type, field_names
from maxmargin.runtime.cache import tell_of_compiling
from maxmargin.runtime.compiling import OPTIONS
from maxmargin.runtime.reach import Function, Generic, Reach, as_text

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher


class Opened(NamedTuple):
    """A problem with its true outputs, as loops take it."""

    problem: Any
    true_outputs: np.ndarray
    starts: np.ndarray


_classes: dict[type, type] = {}  # of dataclasses, by those of the NamedTuples that stand for them
_dispatchers: dict[object, Dispatcher] = {}


# --- from Python ----------------------------------------------------------------------------------------------------


def call(function: Function, arguments: Iterable[object], options: dict[str, bool]) -> Any:
    """Call a loop, compiled."""
    values = [as_argument(argument, "an argument of a loop") for argument in arguments]
    classes = tuple(dict.fromkeys(classes_of(map(numba.typeof, values))))
    key = function, classes, len(options)
    dispatcher = _dispatchers.get(key)
    if dispatcher is None:
        tell_of_compiling(function)
        dispatcher = _dispatchers[key] = _make_dispatcher(function, classes, options)
    return dispatcher(*values)


def as_argument(value: object, name: str) -> object:
    """What compiled code takes in the place of a value: a dataclass becomes a NamedTuple."""
    if isinstance(value, np.ndarray):
        array_type(value, name)
        return value
    if isinstance(value, tuple) or is_dataclass(value):
        names = field_names(value)
        fields = [as_argument(getattr(value, field), f"{name}.{field}") for field in names]
        return (type(value) if isinstance(value, tuple) else _tuple_of(type(value), names))(*fields)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _tuple_of(cls: type, names: tuple[str, ...]) -> type:
    """A NamedTuple for the fields of a dataclass; it is found in this module, so that files can name it."""
    digest = hashlib.sha256(repr((cls.__module__, cls.__qualname__, names)).encode()).hexdigest()[:12]
    name = f"{cls.__name__}_{digest}"
    if _classes.get(globals().get(name, Opened)) is not cls:
        globals()[name] = namedtuple(name, names)
        _classes[globals()[name]] = cls
    return globals()[name]


def classes_of(arguments: Iterable[Any]) -> Iterator[type]:
    """The classes of arguments that are NamedTuples, nested ones included."""
    for argument in arguments:
        if hasattr(argument, "instance_class"):
            yield _classes.get(argument.instance_class, argument.instance_class)
            yield from classes_of(argument)


def _make_dispatcher(function: Function, classes: tuple[type, ...], options: dict[str, bool]) -> Dispatcher:
    dispatcher = numba.njit(**{**OPTIONS, **options})(function)
    parts = Reach(function, classes).digest, [str(cls) for cls in classes], entries.surroundings(), as_text(options)
    folder = entries.folder_of(function) / f"plain-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"
    settings = vars(numba.config)
    before, settings["CACHE_DIR"] = settings["CACHE_DIR"], str(folder)
    with contextlib.suppress(Exception):  # without a place for it, every process compiles for itself
        dispatcher.enable_caching()
    settings["CACHE_DIR"] = before
    return dispatcher


# --- in compiled code -----------------------------------------------------------------------------------------------

CASTS: dict[str, Function] = {"int": np.int64, "float": np.float64, "bool": np.bool_}


@numba.njit
def _as_floats(values):
    return np.float64(values[0]), np.float64(values[1]), np.float64(values[2]), np.float64(values[3])


def select(function: Generic, target: Any) -> Function | None:
    """The implementation of a generic for an argument of this type, with numbers as its declaration says."""
    cls = next(classes_of([target[0] if _is_opened(target) else target]), type(None))
    implementation = function.implementations.get(cls)
    if implementation is None or function.interface is None:
        return implementation
    first, *others = inspect.signature(function).parameters
    words = function.words
    arguments = [f"{words[name]}({name})" if words[name] in CASTS else name for name in others]
    arguments.insert(0, f"{first}.problem" if _is_opened(target) else first)
    call = f"{words['return'].replace('None', '')}(implementation({', '.join(arguments)}))"
    compiled = numba.njit(**{**OPTIONS, **function.options[cls]})(implementation)
    names = {**CASTS, "Attained": _as_floats, "implementation": compiled}
    return eval(f"lambda {', '.join([first, *others])}: {call}", names)


def read_from_tuples(n_examples: Callable[..., int], true_output: Callable[..., np.ndarray]) -> None:
    """Let compiled code read the number of examples and the true outputs of an opened problem."""

    @overload(n_examples)
    def _n_examples(problem):
        return (lambda problem: problem.starts.size - 1) if _is_opened(problem) else None

    @overload(true_output)
    def _true_output(problem, i):
        if not _is_opened(problem):
            return None
        return lambda problem, i: problem.true_outputs[problem.starts[i] : problem.starts[i + 1]]


def _is_opened(problem: types.Type) -> bool:
    return getattr(problem, "instance_class", None) is Opened
