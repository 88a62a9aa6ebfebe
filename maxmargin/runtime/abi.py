"""The binary interface between kernels and what they call: how compiled code sees NamedTuples and functions.

Kernels and structures are compiled separately and meet at run time, so what one passes to the other has a fixed form
in memory, made of 8-byte words.

*Blocks.* A NamedTuple of arrays and numbers is written into a block (`Packed`):

    number, bool      one word
    array             its address, then its shape, one word per axis; C-contiguous
    NamedTuple        its own words, in place; so is a dataclass, without its fields that hold text or None
    Packed            the address of its block, which compiled code can only pass on (`OPAQUE`)

Compiled code takes the address of a block, of the type `Stored`, and loads the fields it uses. Nothing writes to a
block while compiled code runs, so loads move out of loops. A block holds bare addresses: a `Packed` keeps the arrays
alive, and whoever passes it must keep it alive.

*Tables.* A kernel knows nothing of a problem, or of a loss, but its table (`FunctionTable`), of the type `Table`:

    word 0            the address of its block
    words 1, 2, 3     numbers that kernels read: of a problem the number of examples and the addresses of its true
                      outputs and of their starts; of a loss whether it has a margin
    words 4, ...      the addresses of the compiled functions that implement the generics of its interface, in the
                      order in which these were declared; zero where nobody has asked for one

A generic of an `Interface` has one signature per dtype, that of its declaration (`KINDS`), and a call of it on a table
is a call by address, in Numba's own calling convention: implementations need no wrapper, and errors are passed on. On
a `Stored` it is a direct call, which LLVM can inline. The cache stamps all code with this file, the interfaces and
the layouts, so code that was compiled for other ones is never called (`maxmargin.runtime.cache`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    builtin_registry,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import NativeValue, lower_builtin, register_model, typeof_impl, unbox
from numba.np.numpy_support import from_dtype

_WORD = ir.IntType(64)
BLOCK, FIRST_NUMBER, FIRST_FUNCTION = 0, 1, 4  # words of a table
N_EXAMPLES, TRUE_OUTPUTS, TRUE_STARTS = 1, 2, 3  # of a problem
MARGIN = 1  # of a loss


# --- types ----------------------------------------------------------------------------------------------------------


class Stored(types.Type):
    """The address of a block that holds a NamedTuple."""

    owners: ClassVar[dict[str, type]] = {}  # Numba takes types of one name for the same

    def __init__(self, cls: type, names: tuple[str, ...], kinds: tuple[types.Type, ...]) -> None:
        self.instance_class = cls
        self.names = names
        self.kinds = kinds
        fields = [f"{name}:{kind}" for name, kind in zip(names, kinds, strict=True)]
        digest = hashlib.sha256(f"{cls.__module__}.{cls.__qualname__}({', '.join(fields)})".encode()).hexdigest()[:12]
        name = f"{cls.__name__}@{digest}"
        while self.owners.setdefault(name, cls) is not cls:  # defined once more, as in a notebook
            name += "'"
        super().__init__(name)

    def field(self, name: str) -> tuple[int, types.Type]:
        """The first word and the type of a field."""
        k = self.names.index(name)
        return sum(map(_n_words, self.kinds[:k])), self.kinds[k]


class Opaque(types.Type):
    """An address that compiled code only passes on."""

    def __init__(self) -> None:
        super().__init__("Opaque")


class Table(types.Type):
    """The address of the table of a problem or a loss, for numbers of a dtype."""

    def __init__(self, interface: str, dtype: types.Type) -> None:
        self.interface = interface
        self.dtype = dtype
        super().__init__(f"Table({interface}, {dtype})")


OPAQUE = Opaque()
ADDRESSES = (Stored, Opaque, Table)
for _address in ADDRESSES:
    register_model(_address)(models.OpaqueModel)


def _n_words(kind: types.Type) -> int:
    if isinstance(kind, Stored):
        return sum(map(_n_words, kind.kinds))
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


# --- from Python to blocks ------------------------------------------------------------------------------------------


class Packed:
    """A NamedTuple with its block, as an argument of compiled code; keeps its arrays alive."""

    __slots__ = ("address", "block", "kind", "value")

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        self.value = value
        self.kind = _write(value, words, type(value).__name__)
        self.block = np.array(words, np.int64)
        self.address = self.block.ctypes.data

    def __getattr__(self, name: str) -> Any:
        if name == "value":  # not there yet
            raise AttributeError(name)
        return getattr(self.value, name)


_kinds: dict[Any, types.Type] = {}


def array_kind(array: np.ndarray, name: str) -> types.Type:
    """The type of an array, which must be C-contiguous, of numbers that the processor knows."""
    key = (array.dtype, array.ndim)
    kind = _kinds.get(key)
    if kind is None:
        if array.dtype.kind not in "biuf" or not array.dtype.isnative or array.dtype.itemsize not in (1, 2, 4, 8):
            raise TypeError(f"{name} must be an array of numbers, but its dtype is {array.dtype}.")
        if array.dtype == np.float16:
            raise TypeError(f"{name} must not be of dtype float16, which compiled code does not know.")
        kind = _kinds[key] = types.Array(from_dtype(array.dtype), array.ndim, "C")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise TypeError(f"{name} must be a C-contiguous array: compiled code takes no other.")
    return kind


def _write(value: Any, words: list[int], name: str) -> types.Type:
    """Append the words of a value; return its type."""
    if isinstance(value, np.ndarray):
        words.append(value.__array_interface__["data"][0])
        words.extend(value.shape)
        return array_kind(value, name)
    if isinstance(value, Packed):
        words.append(value.address)
        return OPAQUE
    if hasattr(value, "_fields") or is_dataclass(value):
        names = _field_names(value)
        kinds = tuple([_write(getattr(value, field), words, f"{name}.{field}") for field in names])
        key = (type(value), names, *map(id, kinds))  # types are kept, and hashing them takes longer than a short pass
        kind = _kinds.get(key)
        if kind is None:
            kind = _kinds[key] = Stored(type(value), names, kinds)
        return kind
    if isinstance(value, (bool, np.bool_)):
        words.append(int(value))
        return types.boolean
    if isinstance(value, (int, np.integer)) and -(2**63) <= value < 2**63:
        words.append(int(value))
        return types.int64
    if isinstance(value, (float, np.floating)):
        words.append(struct.unpack("<q", struct.pack("<d", value))[0])
        return types.float64
    raise TypeError(f"{name} is a {type(value).__name__}: compiled code takes arrays, numbers and NamedTuples of them.")


def _field_names(value: Any) -> tuple[str, ...]:
    """The fields that compiled code can read: all of a NamedTuple, of a dataclass those without text or None."""
    if hasattr(value, "_fields"):
        return value._fields
    return tuple(field.name for field in fields(value) if not isinstance(getattr(value, field.name), str | None))


def kind_of(value: Any) -> types.Type:
    """The type of an argument of a kernel."""
    if isinstance(value, np.ndarray):
        return array_kind(value, "an argument of a kernel")
    if isinstance(value, (Packed, FunctionTable)):
        return value.kind
    if isinstance(value, (bool, np.bool_)):
        return types.boolean
    return types.int64 if isinstance(value, (int, np.integer)) else types.float64


@typeof_impl.register(Packed)
def _typeof_packed(value, context):
    return value.kind


def _unbox_address(kind, value, c):
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


for _address in ADDRESSES:
    unbox(_address)(_unbox_address)


# --- from blocks to compiled code -----------------------------------------------------------------------------------


def _load(builder: Any, base: Any, k: int, kind: Any = _WORD) -> Any:
    """Word k after the address `base`."""
    pointer = builder.gep(builder.bitcast(base, _WORD.as_pointer()), [ir.Constant(ir.IntType(32), k)])
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _load_address(builder: Any, base: Any, k: int) -> Any:
    return builder.inttoptr(_load(builder, base, k), cgutils.voidptr_t)


def make_array(context: Any, builder: Any, kind: types.Array, address: Any, shape: Sequence[Any]) -> Any:
    """A C-contiguous array at an address, which owns nothing."""
    data_type = context.get_data_type(kind.dtype)
    itemsize = _WORD(context.get_abi_sizeof(data_type))
    n_items, strides = shape[0], [itemsize]
    for size in shape[:0:-1]:
        n_items = builder.mul(n_items, size)
        strides.insert(0, builder.mul(strides[0], size))
    fields = {
        "nitems": n_items,
        "itemsize": itemsize,
        "data": builder.inttoptr(address, data_type.as_pointer()),
        "shape": cgutils.pack_array(builder, shape, ty=_WORD),
        "strides": cgutils.pack_array(builder, strides, ty=_WORD),
    }
    model = context.data_model_manager[kind]
    array = ir.Constant(model.get_value_type(), None)  # zeros: nothing to count
    for name, value in fields.items():
        array = model.set(builder, array, value, name)
    return array


@infer_getattr
class _StoredFields(AttributeTemplate):
    key = Stored

    def generic_resolve(self, stored, name):  # type: ignore[override]
        return stored.field(name)[1] if name in stored.names else None


@lower_getattr_generic(Stored)
def _load_field(context, builder, stored, base, name):
    first, kind = stored.field(name)
    if isinstance(kind, Stored):
        pointer = builder.gep(builder.bitcast(base, _WORD.as_pointer()), [ir.Constant(ir.IntType(32), first)])
        return builder.bitcast(pointer, cgutils.voidptr_t)
    if isinstance(kind, types.Array):
        address, *shape = (_load(builder, base, first + k) for k in range(_n_words(kind)))
        return make_array(context, builder, kind, address, shape)
    if isinstance(kind, Opaque):
        return _load_address(builder, base, first)
    if kind == types.boolean:
        return builder.trunc(_load(builder, base, first), ir.IntType(1))
    return _load(builder, base, first, context.get_value_type(kind))


# --- functions by address -------------------------------------------------------------------------------------------

# What the annotations of a generic's arguments and result mean, for numbers of a dtype.
KINDS: dict[str, Callable[[types.Type], types.Type]] = {
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
SCRATCH: dict[types.Type, Stored] = {}  # the layouts of the scratch space of kernels (`maxmargin.runtime.passes`)

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
    """The generics that kernels call by address on a problem, or on a loss, in the order of their declaration."""

    named: ClassVar[dict[str, Interface]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.generics: list[Any] = []
        self.named[name] = self

    def add(self, function: Any) -> None:
        """Let compiled code call `function` on tables of this interface."""
        slot = FIRST_FUNCTION + len(self.generics)
        annotations = {name: getattr(kind, "__name__", str(kind)) for name, kind in function.__annotations__.items()}
        result = annotations.pop("return")
        arguments = [KINDS[annotation] for annotation in annotations.values()]
        function.arguments, function.result, function.slot = arguments, KINDS[result], slot
        function.signature = f"{function.__name__}{(*annotations.values(), result)}"
        self.generics.append(function)

        class _OnTable(AbstractTemplate):
            key = function

            def generic(self, args, kws):
                if not args or not isinstance(args[0], Table):
                    return None
                kinds = [kind(args[0].dtype) for kind in arguments]
                if len(args) != 1 + len(kinds) or kws:
                    raise errors.TypingError(f"{function.signature} takes {1 + len(kinds)} arguments, in this order.")
                for found, kind in zip(args[1:], kinds, strict=True):
                    if isinstance(kind, types.Array) and found != kind and found != kind.copy(readonly=True):
                        raise errors.TypingError(f"{function.signature} takes a {kind}, not a {found}.")
                return signature(function.result(args[0].dtype), args[0], *kinds)

        builtin_registry.register_global(function, types.Function(_OnTable))

        @lower_builtin(function, Table, types.VarArg(types.Any))
        def _call(context, builder, sig, args):
            kinds = [OPAQUE, *sig.args[1:]]
            pointer = context.call_conv.get_function_type(sig.return_type, kinds).as_pointer()
            address = _load(builder, args[0], slot)
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, address)):
                message = f"{function.__name__} is not in the table: the kernel calls it by a name that was not found."
                context.call_conv.return_user_exc(builder, RuntimeError, (message,))
            callee = builder.inttoptr(address, pointer)
            values = [_load_address(builder, args[0], BLOCK), *args[1:]]
            status, value = context.call_conv.call_function(builder, callee, sig.return_type, kinds, values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

    @property
    def description(self) -> str:
        """What code that was compiled for this interface depends on."""
        return f"{self.name}: {', '.join(function.signature for function in self.generics)}"


class FunctionTable:
    """A problem or a loss with the table of its compiled functions, which takes its place as an argument of kernels.

    Parameters
    ----------
    target : the problem or the loss
    interface : its generics
    dtype : of its numbers
    numbers : the words of the table that kernels read
    kept : what these are addresses of
    """

    def __init__(self, target: Any, interface: Interface, dtype: Any, numbers: Sequence[int], *kept: Any) -> None:
        self.target = target
        self.interface = interface
        self.packed = Packed(target)
        self.work: types.Type = OPAQUE  # the type of its workspace, once there is one
        self.loss: FunctionTable | None = None  # the loss that kernels were last called with on this problem
        self.dtype = np.dtype(dtype)
        self.kind = Table(interface.name, from_dtype(self.dtype))
        self._kept = kept
        self._table = np.zeros(FIRST_FUNCTION + len(interface.generics), np.int64)
        self._table[BLOCK] = self.packed.address
        self._table[FIRST_NUMBER : FIRST_NUMBER + len(numbers)] = numbers
        self.address = self._table.ctypes.data

    def has(self, function: Any) -> bool:
        """Whether the address of a generic's implementation is in the table."""
        return bool(self._table[function.slot])

    def signature_of(self, function: Any) -> Any:
        """The signature that an implementation of a generic is to be compiled for."""
        kinds = [kind(self.kind.dtype) for kind in function.arguments]
        return function.result(self.kind.dtype)(self.packed.kind, *(self.work if k is OPAQUE else k for k in kinds))

    def put(self, function: Any, compiled: Any) -> None:
        """Put the address of an implementation into the table."""
        address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        self._table[function.slot] = address


@infer_getattr
class _TableNumbers(AttributeTemplate):
    key = Table

    def resolve_margin(self, table):
        return types.boolean if table.interface == "loss" else None


@lower_getattr_generic(Table)
def _load_margin(context, builder, table, base, name):
    return builder.trunc(_load(builder, base, MARGIN), ir.IntType(1))


def read_from_tables(n_examples: Callable, gold: Callable) -> None:
    """Let compiled code read the number of examples and the true outputs from the table of a problem."""

    @infer_global(n_examples)
    @infer_global(gold)
    class _FromTable(AbstractTemplate):
        key = gold

        def generic(self, args, kws):
            if not args or not isinstance(args[0], Table):
                return None
            if len(args) == 1:
                return signature(types.int64, args[0])
            return signature(types.Array(types.int32, 1, "C"), args[0], types.int64)

    @lower_builtin(n_examples, Table)
    def _n_examples(context, builder, sig, args):
        return _load(builder, args[0], N_EXAMPLES)

    @lower_builtin(gold, Table, types.Integer)
    def _gold(context, builder, sig, args):
        starts = builder.bitcast(_load_address(builder, args[0], TRUE_STARTS), _WORD.as_pointer())
        begin, end = (builder.load(builder.gep(starts, [k])) for k in (args[1], builder.add(args[1], _WORD(1))))
        first = builder.add(_load(builder, args[0], TRUE_OUTPUTS), builder.mul(begin, _WORD(4)))
        return make_array(context, builder, sig.return_type, first, [builder.sub(end, begin)])
