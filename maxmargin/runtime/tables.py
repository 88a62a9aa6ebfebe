"""Functions by address: how loops call what structures and losses implement.

A loop knows nothing of a problem, or of a loss, but its table (`FunctionTable`), of the type `Table`:

    word 0            the address of its block
    words 1, 2, 3     numbers that loops read: of a problem the number of examples and the addresses of its true
                      outputs and of their starts; of a loss its flags, such as whether it has a margin
    words 4, ...      the addresses of the compiled functions that implement the generics of its interface, in the
                      order in which these were declared; zero where nobody has asked for one

A generic of an `Interface` has one signature per dtype, that of its declaration (`ARGUMENT_TYPES`), and a call of it on
a table is a call by address, in Numba's own calling convention: implementations need no wrapper, and errors are passed
on. On a `Stored` it is a direct call, which LLVM can inline. The cache stamps all code with this room, the interfaces
and the layouts, so code that was compiled for other ones is never called (`maxmargin.runtime.cache`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature, infer_global, signature
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic
from numba.np.numpy_support import from_dtype
from numpy.typing import DTypeLike

from maxmargin.runtime.abi import OPAQUE, Known, Packed, Stored, array_type, load, load_address, take_by_address
from maxmargin.runtime.numba_private import call_address, make_array, raise_if_null
from maxmargin.runtime.reach import Generic

_WORD = ir.IntType(64)
BLOCK, FIRST_NUMBER, FIRST_FUNCTION = 0, 1, 4  # words of a table
N_EXAMPLES, TRUE_OUTPUTS, TRUE_STARTS = 1, 2, 3  # of a problem


class Table(types.Type):
    """The address of the table of a problem or a loss, for numbers of a dtype."""

    def __init__(self, interface: str, dtype: types.Type) -> None:
        self.interface = interface
        self.dtype = dtype
        super().__init__(f"Table({interface}, {dtype})")


take_by_address(Table)


# What the annotations of a generic's arguments and result mean, for numbers of a dtype.
ARGUMENT_TYPES: dict[str, Callable[[types.Type], types.Type]] = {
    "Reals": lambda dtype: types.Array(dtype, 1, "C"),
    "Sums": lambda dtype: types.Array(types.float64, 1, "C"),
    "Draws": lambda dtype: types.Array(types.float64, 2, "C"),
    "Output": lambda dtype: types.Array(types.int32, 1, "C"),
    "Outputs": lambda dtype: types.Array(types.int32, 2, "C"),
    "int": lambda dtype: types.int64,
    "float": lambda dtype: types.float64,
    "bool": lambda dtype: types.boolean,
    "None": lambda dtype: types.none,
    "Attained": lambda dtype: types.UniTuple(types.float64, 4),
    "Problem": lambda dtype: Table("problem", dtype),
    "Work": lambda dtype: OPAQUE,
    "Scratch": lambda dtype: SCRATCH[dtype],
}
SCRATCH: dict[types.Type, Stored] = {}  # the layouts of the scratch space of loops (`maxmargin.execution.runner`)

# What they are in Python.
Reals: TypeAlias = np.ndarray
Sums: TypeAlias = np.ndarray
Draws: TypeAlias = np.ndarray
Output: TypeAlias = np.ndarray
Outputs: TypeAlias = np.ndarray
Attained: TypeAlias = tuple[float, float, float, float]
Problem: TypeAlias = Any
Work: TypeAlias = Any
Scratch: TypeAlias = Any


class Interface:
    """The generics that loops call by address on a problem, or on a loss, in the order of their declaration."""

    named: ClassVar[dict[str, Interface]] = {}

    def __init__(self, name: str, flags: tuple[str, ...] = ()) -> None:
        self.name = name
        self.flags = flags  # attributes that loops read
        self.generics: list[Generic] = []
        self.named[name] = self

    def add(self, function: Generic) -> None:
        """Let compiled code call `function` on tables of this interface."""
        words = {name: getattr(word, "__name__", str(word)) for name, word in function.__annotations__.items()}
        *arguments, function.result = (ARGUMENT_TYPES[word] for word in words.values())
        function.words, function.arguments = words, arguments
        function.signature = f"{function.__name__}{(*words.values(),)}"
        function.slot = FIRST_FUNCTION + len(self.generics)
        self.generics.append(function)

        class _OnTable(AbstractTemplate):
            key = function

            def generic(self, args, kws):
                if not args or not isinstance(args[0], Table):
                    return None
                expected = [argument(args[0].dtype) for argument in arguments]
                if len(args) != 1 + len(expected) or kws:
                    raise TypingError(f"{function.signature} takes {1 + len(expected)} arguments, in this order.")
                for given, one in zip(args[1:], expected, strict=True):
                    if isinstance(one, types.Array) and given != one and given != one.copy(readonly=True):
                        raise TypingError(f"{function.signature} takes a {one}, not a {given}.")
                return signature(function.result(args[0].dtype), args[0], *expected)

        infer_global(function, types.Function(_OnTable))

        @lower_builtin(function, Table, types.VarArg(types.Any))
        def _call(context, builder, sig, args):
            address = load(builder, args[0], function.slot)
            message = f"{function.__name__} is not in the table: the loop calls it by a name that was not found."
            raise_if_null(context, builder, address, message)
            values = [load_address(builder, args[0], BLOCK), *args[1:]]
            return call_address(context, builder, address, sig.return_type, [OPAQUE, *sig.args[1:]], values)

    @property
    def description(self) -> str:
        """What code that was compiled for this interface depends on."""
        return f"{self.name}: {', '.join(function.signature for function in self.generics)}"


class FunctionTable:
    """A problem or a loss with the table of its compiled functions, which takes its place as an argument of loops.

    Parameters
    ----------
    target
        The problem or the loss.
    interface
        Its generics.
    dtype
        Of its numbers.
    numbers
        The words of the table that loops read.
    options
        Of its functions, for Numba.
    kept
        What these are addresses of.
    """

    def __init__(
        self,
        target: object,
        interface: Interface,
        dtype: DTypeLike,
        numbers: Sequence[int],
        options: dict[str, bool],
        *kept: object,
    ) -> None:
        self.target = target
        self.interface = interface
        self.packed = Packed(target)
        self.work: types.Type = OPAQUE  # the type of its workspace, once there is one
        self.loss: FunctionTable | None = None  # the loss that loops were last called with on this problem
        self.known: Known = {}  # arguments of the last loop
        self.options = options
        self.dtype = np.dtype(dtype)
        self.type = Table(interface.name, from_dtype(self.dtype))
        self._kept = kept
        self._table = np.zeros(FIRST_FUNCTION + len(interface.generics), np.int64)
        self._table[BLOCK] = self.packed.address
        self._table[FIRST_NUMBER : FIRST_NUMBER + len(numbers)] = numbers
        self.address = self._table.ctypes.data

    def has(self, function: Generic) -> bool:
        """Whether the address of a generic's implementation is in the table."""
        return bool(self._table[function.slot])

    def signature_of(self, function: Generic) -> Signature:
        """The signature that an implementation of a generic is to be compiled for."""
        arguments = [argument(self.type.dtype) for argument in function.arguments]
        arguments = [self.work if argument is OPAQUE else argument for argument in arguments]
        return function.result(self.type.dtype)(self.packed.type, *arguments)

    def put(self, function: Generic, address: int) -> None:
        """Put the address of an implementation into the table."""
        self._table[function.slot] = address


def argument_type(value: object) -> types.Type:
    """The type of an argument of a loop."""
    if isinstance(value, np.ndarray):
        return array_type(value, "an argument of a loop")
    if isinstance(value, (Packed, FunctionTable)):
        return value.type
    if isinstance(value, (bool, np.bool_)):
        return types.boolean
    return types.int64 if isinstance(value, (int, np.integer)) else types.float64


@infer_getattr
class _TableNumbers(AttributeTemplate):
    key = Table

    def generic_resolve(self, value, attr):  # type: ignore[override]
        return types.boolean if attr in Interface.named[value.interface].flags else None


@lower_getattr_generic(Table)
def _load_flag(context, builder, table, base, name):
    word = FIRST_NUMBER + Interface.named[table.interface].flags.index(name)
    return builder.trunc(load(builder, base, word), ir.IntType(1))


def read_from_tables(n_examples: Callable[..., int], true_output: Callable[..., np.ndarray]) -> None:
    """Let compiled code read the number of examples and the true outputs from the table of a problem."""

    @infer_global(n_examples)
    @infer_global(true_output)
    class _FromTable(AbstractTemplate):
        key = true_output

        def generic(self, args, kws):
            if not args or not isinstance(args[0], Table):
                return None
            if len(args) == 1:
                return signature(types.int64, args[0])
            return signature(types.Array(types.int32, 1, "C"), args[0], types.int64)

    @lower_builtin(n_examples, Table)
    def _n_examples(context, builder, sig, args):
        return load(builder, args[0], N_EXAMPLES)

    @lower_builtin(true_output, Table, types.Integer)
    def _true_output(context, builder, sig, args):
        starts = builder.bitcast(load_address(builder, args[0], TRUE_STARTS), _WORD.as_pointer())
        begin, end = (builder.load(builder.gep(starts, [k])) for k in (args[1], builder.add(args[1], _WORD(1))))
        first = builder.add(load(builder, args[0], TRUE_OUTPUTS), builder.mul(begin, _WORD(4)))
        return make_array(context, builder, sig.return_type, first, [builder.sub(end, begin)])
