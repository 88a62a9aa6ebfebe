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

import dis
import functools
import inspect
import itertools
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload, register_jitable
from numpy.typing import DTypeLike

from maxmargin.runtime.abi import OPAQUE, Known, Packed
from maxmargin.runtime.compiling import INNER, LOOP, compile_for, compile_implementation
from maxmargin.runtime.modes import checks_bounds, is_interpreted, is_plain
from maxmargin.runtime.numba_private import address_of
from maxmargin.runtime.reach import Generic, Reach
from maxmargin.runtime.tables import FunctionTable, Interface, argument_type
from maxmargin.wording import name_type

__all__ = ["generic", "helper", "implements", "loop", "supports"]

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

PROBLEM, LOSS = Interface("problem"), Interface("loss", flags=("margin",))

_compiled_types: set[type] = set()  # NamedTuple classes with implementations of generics


def runs_compiled(target: object) -> bool:
    """Whether loops run compiled on a problem, features or a loss."""
    if type(target) not in _compiled_types or is_interpreted.get():
        return False
    base = getattr(target, "base", None)  # of a problem that is made of another
    return base is None or runs_compiled(base)


@typing.overload
def generic(declaration: Function) -> Generic: ...
@typing.overload
def generic(*, interface: Interface | None = None, like: Generic | None = None) -> Callable[[Function], Generic]: ...
def generic(
    declaration: Function | None = None, *, interface: Interface | None = None, like: Generic | None = None
) -> Generic | Callable[[Function], Generic]:
    """Declare a generic function; its body is never run, its signature and docstring are the contract.

    Parameters
    ----------
    declaration
        The function that is decorated.
    interface
        If loops call it by address; its arguments and result then need annotations.
    like
        Another generic, whose implementations it shares, for arguments of other types.

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
        return functools.partial(_declare, interface=interface, like=like)
    return _declare(declaration, interface, like)


def _declare(declaration: Function, interface: Interface | None, like: Generic | None) -> Generic:
    name = declaration.__name__ if like is None else like.__name__
    table: dict[type, Function] = {} if like is None else like.implementations

    @functools.wraps(declaration)
    def resolve(target: object, *args: object) -> Any:
        target = target.problem if type(target) is Bound else target
        implementation = table.get(type(target))
        if implementation is not None:
            return implementation(target, *args)
        method = getattr(target, name, None)
        if method is None:
            raise NotImplementedError(f"{type(target).__name__} has no {name}().")
        return method(*args)

    def select(*args: types.Type) -> Function | None:
        if is_plain():
            from maxmargin.runtime import plain

            return plain.select(cast(Generic, resolve), args[0])
        return table.get(getattr(args[0], "instance_class", type(None)))

    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(declaration).parameters.values()]
    select.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    overload(resolve, jit_options=cast(Any, INNER))(select)
    function = cast(Generic, resolve)
    function.implementations = table
    function.options = {} if like is None else like.options
    function.interface = interface
    if interface is not None:
        interface.add(function)
    return function


@typing.overload
def helper(function: F) -> F: ...
@typing.overload
def helper(function: None = None, *, interpreted: Function | None = None, **options: object) -> Callable[[F], F]: ...
def helper(function: Function | None = None, *, interpreted: Function | None = None, **options: object) -> Any:
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

    def decorate(function: Function) -> Function:
        function.options = options  # type: ignore[attr-defined]
        jit_options: Any = {**INNER, **options}
        if interpreted is None:
            return register_jitable(**jit_options)(function)
        functools.update_wrapper(interpreted, function)
        interpreted.compiled = function  # type: ignore[attr-defined]
        overload(interpreted, jit_options=jit_options, strict=False)(lambda *args: function)
        return interpreted

    return decorate if function is None else decorate(function)


def supports(function: Generic, target: Any) -> bool:
    """Whether the generic `function` is implemented for `target`."""
    target = target.problem if type(target) is Bound else target
    implementation = function.implementations.get(type(target))
    if implementation is None:
        return hasattr(target, function.__name__)
    return not hasattr(implementation, "asks_base") or supports(function, target.base)


def implements(function: Generic, *classes: type, **options: object) -> Callable[[F], F]:
    """Register the decorated function as the implementation of a generic for NamedTuple classes.

    It must be written in the subset of Python that Numba compiles; `options` go to ``numba.njit``. The first
    parameter is the instance of the class.
    """
    expected = list(inspect.signature(function).parameters)
    if options and function.interface is None:
        raise TypeError(f"{function.__name__} is compiled as part of what calls it: it takes no options.")

    def register(implementation: F) -> F:
        found = list(inspect.signature(implementation).parameters)
        if found != expected:
            raise TypeError(f"{function.__name__} takes ({', '.join(expected)}), not ({', '.join(found)}).")
        _check_returns(function, implementation)
        for cls in classes:
            function.implementations[cls] = implementation
            function.options[cls] = options
            _compiled_types.add(cls)
        return implementation

    return register


def _check_returns(function: Generic, implementation: Function) -> None:
    """Raise where a generic returns a value and its implementation may end without one, as Numba takes pages to say."""
    if function.interface is None or function.words["return"] == "None":
        return
    steps = [(step.opname, step.argval) for step in dis.get_instructions(implementation)]
    loads_none = {("LOAD_CONST", None), ("LOAD_COMMON_CONSTANT", None)}  # the second since Python 3.15
    ends = [before for before, last in itertools.pairwise(steps) if last[0] == "RETURN_VALUE"]
    if ("RETURN_CONST", None) in steps or loads_none & {*ends}:
        raise TypeError(
            f"{implementation.__name__} must return a {function.words['return']}, as {function.__name__} "
            "does, but it may end without a return statement."
        )


class Bound:
    """A problem made ready for loops: with its true outputs at hand and, compiled, the table of its functions.

    Parameters
    ----------
    problem
        The problem.
    truth
        Its true outputs, as blocks of int32.
    dtype
        Of its weights.
    """

    def __init__(self, problem: Any, truth: Any, dtype: DTypeLike) -> None:
        self.problem = problem
        self.truth = truth
        self.dtype = dtype
        self.is_compiled = runs_compiled(problem)
        self.table: FunctionTable | None = None
        self.options = {"boundscheck": True} if checks_bounds.get() else {}  # of its functions, for Numba
        if self.is_compiled and not is_plain():
            numbers = len(truth.starts) - 1, truth.values.ctypes.data, truth.starts.ctypes.data
            self.table = FunctionTable(problem, PROBLEM, dtype, numbers, self.options, truth)

    def sibling(self, problem: object) -> Bound:
        """A problem of the same type, examples and workspace, made ready in its turn."""
        other = Bound(problem, self.truth, self.dtype)
        if self.table is not None and other.table is not None:
            other.table.work = self.table.work
        return other

    def pack(self, scratch: Any) -> Any:
        """Scratch space, with a workspace of the problem in it, as loops take it."""
        if self.table is None:
            return scratch
        work = _Nothing() if scratch.work is None else scratch.work
        if not isinstance(work, tuple):
            raise TypeError(f"workspace must return a NamedTuple of arrays, or None, not {name_type(work)}.")
        packed = Packed(work)
        if self.table.work not in (OPAQUE, packed.type):  # which its functions were compiled for
            raise TypeError("workspace must always return the same NamedTuple, with arrays of the same dtypes.")
        self.table.work = packed.type
        return Packed(scratch._replace(work=packed))


class _Nothing(NamedTuple):
    """A workspace of problems that need none."""


def loop(function: Function) -> Function:
    """Compile `function` once for all problems whose type implements generics; interpret it for others.

    The first argument is a problem made ready by `bind`. It can also be a NamedTuple, such as
    features, or an array: then the loop is compiled for that type, and what it calls is inlined.

    Loops are the only compiled functions that Python calls. They release the GIL and are cached on disk.
    """

    @functools.wraps(function)
    def call(target: object, *args: object) -> Any:
        table = target.table if type(target) is Bound else None
        if table is None:
            is_compiled = target.is_compiled if type(target) is Bound else runs_compiled(target)
            is_array = isinstance(target, np.ndarray) and not is_interpreted.get()
            if not (is_compiled or is_array):
                return function(target, *args)
            if is_plain():
                return _call_plain(function, target, args)
        met: Known = {}
        values = [_as_argument(value, table, met) for value in (table or target, *args)]
        if table is not None:
            table.known = met  # of the last call only: solvers make many alike
            _link(table, function)
        arguments = tuple(map(argument_type, values))
        options = {**LOOP, **table.options} if table is not None and table.options else LOOP
        key = len(options), *map(id, arguments)  # of types that are kept: their hashes take long
        found = entry_points.get(key)
        if found is None:
            found = entry_points[key] = compile_for(function, arguments, options).entry_point, arguments
        return found[0](*values)

    entry_points: dict[tuple[int, ...], tuple[Function, object]] = {}
    call.interpreted = function  # type: ignore[attr-defined]
    return call


def _call_plain(function: Function, target: Any, args: tuple[object, ...]) -> object:
    from maxmargin.runtime import plain  # which few need, and takes a while to load

    is_bound = type(target) is Bound
    opened = plain.Opened(target.problem, target.truth.values, target.truth.starts) if is_bound else target
    return plain.call(function, (opened, *args), target.options if is_bound else {})


def _as_argument(value: object, table: FunctionTable | None, met: Known) -> Any:
    """What compiled code takes in the place of a value; a loss is linked, and the problem to what the loss calls."""
    if not (isinstance(value, tuple) or type(value) in _compiled_types):
        return value
    losses = [function for function in LOSS.generics if type(value) in function.implementations]
    if table is None or not losses:
        return Packed(value, None if table is None else table.known, met)
    loss, nested = table.loss, tuple(map(type, value)) if isinstance(value, tuple) else ()
    if loss is None or loss.target is not value:
        loss = FunctionTable(
            value, LOSS, table.dtype, [int(getattr(value, flag)) for flag in LOSS.flags], table.options
        )
        for function in losses:
            _fill(loss, function)
            _link(table, function.implementations[type(value)], nested)
        table.loss = loss
    return loss


def _link(table: FunctionTable, function: Function, classes: tuple[type, ...] = ()) -> None:
    """Compile or load the implementations of all generics that a function calls, and put their addresses there."""
    for needed in _generics_of(function, classes):
        if needed.interface is table.interface and not table.has(needed):
            _fill(table, needed)


def _fill(table: FunctionTable, function: Generic) -> None:
    cls = type(table.target)
    if cls not in function.implementations:
        raise NotImplementedError(f"{cls.__name__} has no {function.__name__}().")
    implementation, options = function.implementations[cls], function.options[cls]
    key = function, implementation, id(table.packed.type), id(table.work), table.dtype, len(table.options)
    try:
        if key not in _addresses:  # of types that are kept
            signature = table.signature_of(function)
            compiled = compile_implementation(implementation, signature, {**options, **table.options})
            _addresses[key] = address_of(compiled)
    except NumbaError as error:
        what = f"{implementation.__name__}, which implements {function.__name__} for {cls.__name__},"
        raise TypeError(f"{what} cannot be compiled as {function.signature}. Numba says:\n{error}") from None
    table.put(function, _addresses[key])


_addresses: dict[object, int] = {}


@functools.cache
def _generics_of(function: Function, classes: tuple[type, ...]) -> tuple[Generic, ...]:
    return tuple(Reach(function, classes).generics)
