"""Generic functions resolved by type, and loops compiled once for all types.

A *generic* is a function of a problem (or of its features, or of a loss) that each type implements in its own file. A
*loop* over examples is written with generics only: one source that runs compiled on NamedTuples with implementations,
and interpreted on a user's own class.

Compiled, a generic is resolved in one of two ways. Those of an `Interface`, which loops call on problems and losses,
are called by address: loops are compiled once for all structures, structures once for all loops, and only what a
loop reaches is compiled at all (`maxmargin.runtime.tables`). The others, such as those of features, are resolved
while the structure that calls them is compiled, and inlined.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import errors
from numba.extending import overload, register_jitable

from maxmargin.garbage import no_garbage_collection
from maxmargin.runtime.abi import OPAQUE, Packed
from maxmargin.runtime.cache import LoopCache, Reach
from maxmargin.runtime.inner import InnerCompiler, LoopCompiler
from maxmargin.runtime.modes import is_interpreted
from maxmargin.runtime.tables import KINDS, FunctionTable, Interface, address_of, kind_of

__all__ = ["generic", "helper", "implements", "loop", "supports"]

PROBLEM, LOSS = Interface("problem"), Interface("loss")

# Strict IEEE order is not needed, but infinities and NaN never reach a loop, so comparisons can be vectorised.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"},
    "no_cfunc_wrapper": True,
    "pipeline_class": LoopCompiler,
}
# Implementations are called by address, and need no way in from Python.
_BY_ADDRESS = {**_OPTIONS, "no_cpython_wrapper": True}
# Other functions of compiled code are only linked into their callers.
_INNER = {**_BY_ADDRESS, "pipeline_class": InnerCompiler}
# Arrays are not counted: compiled code makes none, and those it is given outlive it. Inner functions follow.
_UNCOUNTED = {"_nrt": False}
_KERNEL = {**_OPTIONS, **_UNCOUNTED}

_compiled_types: set[type] = set()  # NamedTuple classes with implementations of generics


def runs_compiled(target: Any) -> bool:
    """Whether loops run compiled on a problem, features or a loss."""
    if type(target) not in _compiled_types or is_interpreted.get():
        return False
    base = getattr(target, "base", None)  # of a problem that is made of another
    return base is None or runs_compiled(base)


def generic(declaration: Callable | None = None, *, interface: Interface | None = None, like: Any = None) -> Callable:
    """Declare a generic function; its body is never run, its signature and docstring are the contract.

    Parameters
    ----------
    declaration : the function that is decorated
    interface : if loops call it by address; its arguments and result then need annotations
    like : another generic, whose implementations it shares, for arguments of other types

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from maxmargin.runtime import generic, implements
    >>> @generic
    ... def area(shape): "The area of a shape."
    >>> class Square(NamedTuple):
    ...     side: float
    >>> @implements(area, Square)
    ... def area_square(shape): return shape.side**2
    >>> area(Square(3.0))
    9.0
    """
    if declaration is None:
        return functools.partial(generic, interface=interface, like=like)
    name = declaration.__name__ if like is None else like.__name__
    table: dict[type, Callable] = {} if like is None else like.implementations

    @functools.wraps(declaration)
    def resolve(target: Any, *args: Any) -> Any:
        target = target.problem if type(target) is Bound else target
        implementation = table.get(type(target))
        if implementation is not None:
            return implementation(target, *args)
        method = getattr(target, name, None)
        if method is None:
            raise NotImplementedError(f"{type(target).__name__} has no {name}().")
        return method(*args)

    def select(*args: Any) -> Callable | None:
        return table.get(getattr(args[0], "instance_class", None)) if args else None  # type: ignore[arg-type]

    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(declaration).parameters.values()]
    select.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    jit_options: Any = _INNER
    overload(resolve, jit_options=jit_options)(select)
    resolve.implementations = table  # type: ignore[attr-defined]
    resolve.options = {} if like is None else like.options  # type: ignore[attr-defined]
    resolve.interface = interface  # type: ignore[attr-defined]
    if interface is not None:
        interface.add(resolve)
    return resolve


def helper(function: Callable | None = None, *, interpreted: Callable | None = None, **options: Any) -> Callable:
    """Let compiled code call a function, which stays a plain function in Python; `options` go to ``numba.njit``.

    `interpreted` is what Python calls in its place: the same by NumPy, where a loop over single numbers would be slow.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.runtime import helper
    >>> @helper(interpreted=lambda array: array.fill(1))
    ... def set_to_one(array):
    ...     for p in range(array.size):
    ...         array[p] = 1
    >>> numbers = np.zeros(2)
    >>> set_to_one(numbers)
    >>> numbers
    array([1., 1.])
    """

    def decorate(function: Callable) -> Callable:
        function.options = options  # type: ignore[attr-defined]
        jit_options: Any = {**_INNER, **options}
        if interpreted is None:
            return register_jitable(**jit_options)(function)
        functools.update_wrapper(interpreted, function)
        interpreted.compiled = function  # type: ignore[attr-defined]
        overload(interpreted, jit_options=jit_options, strict=False)(lambda *args: function)
        return interpreted

    return decorate if function is None else decorate(function)


def supports(function: Callable, target: Any) -> bool:
    """Whether the generic `function` is implemented for `target`."""
    target = target.problem if type(target) is Bound else target
    implementation = function.implementations.get(type(target))  # type: ignore[attr-defined]
    if implementation is None:
        return hasattr(target, function.__name__)
    return not hasattr(implementation, "asks_base") or supports(function, target.base)


def implements(function: Callable, *classes: type, **options: Any) -> Callable[[Callable], Callable]:
    """Register the decorated function as the implementation of a generic for NamedTuple classes.

    It must be written in the subset of Python that Numba compiles; `options` go to ``numba.njit``. The first
    parameter is the instance of the class.
    """
    expected = list(inspect.signature(function).parameters)
    if options and function.interface is None:  # type: ignore[attr-defined]
        raise TypeError(f"{function.__name__} is compiled as part of what calls it: it takes no options.")

    def register(implementation: Callable) -> Callable:
        found = list(inspect.signature(implementation).parameters)
        if found != expected:
            raise TypeError(f"{function.__name__} takes ({', '.join(expected)}), not ({', '.join(found)}).")
        _check_returns(function, implementation)
        for cls in classes:
            function.implementations[cls] = implementation  # type: ignore[attr-defined]
            function.options[cls] = options  # type: ignore[attr-defined]
            _compiled_types.add(cls)
        return implementation

    return register


def _check_returns(function: Any, implementation: Callable) -> None:
    """Raise where a generic returns a value and its implementation may end without one, as Numba takes pages to say."""
    if function.interface is None or function.result is KINDS["None"]:
        return
    steps = [(step.opname, step.argval) for step in dis.get_instructions(implementation)]
    ends = [last for last in itertools.pairwise(steps) if last[1][0] == "RETURN_VALUE"]
    if ("RETURN_CONST", None) in steps or any(before == ("LOAD_CONST", None) for before, _ in ends):
        raise TypeError(
            f"{implementation.__name__} must return a {function.__annotations__['return']}, as {function.__name__} "
            "does, but it may end without a return statement."
        )


class Bound:
    """A problem made ready for loops: with its true outputs at hand and, compiled, the table of its functions.

    Parameters
    ----------
    problem : the problem
    truth : its true outputs, as blocks of int32
    dtype : of its weights
    """

    def __init__(self, problem: Any, truth: Any, dtype: Any) -> None:
        self.problem = problem
        self.truth = truth
        self.table: FunctionTable | None = None
        if runs_compiled(problem):
            numbers = len(truth.starts) - 1, truth.values.ctypes.data, truth.starts.ctypes.data
            self.table = FunctionTable(problem, PROBLEM, dtype, numbers, truth)

    def sibling(self, problem: Any) -> Bound:
        """A problem of the same type, examples and workspace, made ready in its turn."""
        other = Bound(problem, self.truth, self.table.dtype if self.table else None)
        if self.table is not None and other.table is not None:
            other.table.work = self.table.work
        return other

    def pack(self, scratch: Any) -> Any:
        """Scratch space, with a workspace of the problem in it, as loops take it."""
        if self.table is None:
            return scratch
        work = _Nothing() if scratch.work is None else scratch.work
        if not isinstance(work, tuple):
            raise TypeError(f"workspace must return a NamedTuple of arrays, or None, not a {type(work).__name__}.")
        packed = Packed(work)
        if self.table.work not in (OPAQUE, packed.kind):  # which its functions were compiled for
            raise TypeError("workspace must always return the same NamedTuple, with arrays of the same dtypes.")
        self.table.work = packed.kind
        return Packed(scratch._replace(work=packed))


class _Nothing(NamedTuple):
    """A workspace of problems that need none."""


def loop(function: Callable) -> Callable:
    """Compile `function` once for all problems whose type implements generics; interpret it for others.

    The first argument is a problem made ready by `bind`. It can also be a NamedTuple, such as
    features, or an array: then the loop is compiled for that type, and what it calls is inlined.

    Loops are the only compiled functions that Python calls. They release the GIL and are cached on disk.
    """

    @functools.wraps(function)
    def call(target: Any, *args: Any) -> Any:
        table = target.table if type(target) is Bound else None
        if table is None and not (runs_compiled(target) or _is_compiled_array(target)):
            return function(target, *args)
        values = [_as_argument(target if table is None else table, None), *(_as_argument(arg, table) for arg in args)]
        if table is not None:
            _link(table, function)
        kinds = tuple(map(kind_of, values))
        options = {**_KERNEL, **table.options} if table is not None and table.options else _KERNEL
        key = len(options), *map(id, kinds)  # of types that are kept: their hashes take long
        found = entry_points.get(key)
        if found is None:
            found = entry_points[key] = _compiled(function, kinds, options).entry_point, kinds
        return found[0](*values)

    entry_points: dict[tuple[Any, ...], tuple[Any, Any]] = {}
    call.interpreted = function  # type: ignore[attr-defined]
    return call


def _is_compiled_array(target: Any) -> bool:
    return isinstance(target, np.ndarray) and not is_interpreted.get()


def _as_argument(value: Any, table: FunctionTable | None) -> Any:
    """What compiled code takes in the place of a value; a loss is linked, and the problem to what the loss calls."""
    if not (isinstance(value, tuple) or type(value) in _compiled_types):
        return value
    losses = [function for function in LOSS.generics if type(value) in function.implementations]
    if table is None or not losses:
        return Packed(value)
    loss = table.loss
    if loss is None or loss.target is not value:
        loss = FunctionTable(value, LOSS, table.dtype, [int(value.margin)])
        loss.options = table.options
        for function in losses:
            _fill(loss, function)
            _link(table, function.implementations[type(value)])
        table.loss = loss
    return loss


def _link(table: FunctionTable, function: Callable) -> None:
    """Compile or load the implementations of all generics that a function calls, and put their addresses there."""
    for needed in _generics_of(function):
        if needed.interface is table.interface and not table.has(needed):
            _fill(table, needed)


def _fill(table: FunctionTable, function: Any) -> None:
    cls = type(table.target)
    if cls not in function.implementations:
        raise NotImplementedError(f"{cls.__name__} has no {function.__name__}().")
    implementation, options = function.implementations[cls], function.options[cls]
    key = function, implementation, id(table.packed.kind), id(table.work), table.dtype, len(table.options)
    try:
        if key not in _addresses:  # of types that are kept
            signature = table.signature_of(function)
            _addresses[key] = address_of(_implementation(implementation, signature, {**options, **table.options}))
    except errors.NumbaError as error:
        what = f"{implementation.__name__}, which implements {function.__name__} for {cls.__name__},"
        raise TypeError(f"{what} cannot be compiled as {function.signature}. Numba says:\n{error}") from None
    table.put(function, _addresses[key])


_addresses: dict[Any, int] = {}


def _implementation(function: Callable, signature: Any, options: dict[str, Any]) -> Any:
    try:
        return _compiled(function, signature, {**_BY_ADDRESS, **_UNCOUNTED, **options})
    except errors.NumbaError as error:
        if "NRT" not in str(error) and "returning of array" not in str(error):
            raise
    return _compiled(function, signature, {**_BY_ADDRESS, **options})  # it makes arrays: let Numba count them


@functools.cache
def _generics_of(function: Callable) -> tuple[Any, ...]:
    return tuple(Reach(function).generics)


def _compiled(function: Callable, signature: Any, options: dict[str, Any]) -> Any:
    """A function compiled for a signature, from this process, from disk, or anew."""
    key = function, "" if options is _KERNEL else str(options)  # which would take longer than a short pass
    dispatcher = _dispatchers.get(key)
    if dispatcher is None:
        dispatcher = _dispatchers.setdefault(key, _make_dispatcher(function, options))
    kinds = getattr(signature, "args", signature)
    found = dispatcher.overloads.get(kinds)
    if found is None:
        with no_garbage_collection:  # a seventh of the time
            dispatcher.compile(signature)
        found = dispatcher.overloads[kinds]
    return found


_dispatchers: dict[Any, Any] = {}


def _make_dispatcher(function: Callable, options: dict[str, Any]) -> Any:
    dispatcher = numba.njit(**options)(function)
    with contextlib.suppress(Exception):  # without a place for it, every process compiles for itself
        dispatcher._cache = LoopCache(function, options)
    return dispatcher
