"""The binary interface between loops and what they call: how compiled code sees NamedTuples of arrays and numbers.

Loops and structures are compiled separately and meet at run time, so what one passes to the other has a fixed form
in memory, made of 8-byte words; `maxmargin.runtime.tables` says how they find functions. A NamedTuple is written into
a block (`Packed`):

    number, bool      one word
    array             its address, then its shape, one word per axis; C-contiguous
    NamedTuple        its own words, in place; so is a dataclass, without its fields that hold text or None
    Packed            the address of its block, which compiled code can only pass on (`OPAQUE`)

Compiled code takes the address of a block, of the type `Stored`, and loads the fields it uses. Nothing writes to a
block while compiled code runs, so loads move out of loops. A block holds bare addresses: a `Packed` keeps the arrays
alive, and whoever passes it must keep it alive.
"""

from __future__ import annotations

import hashlib
import struct
from array import array as array_of
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import from_dtype

from maxmargin.runtime.numba_private import make_array

_WORD = ir.IntType(64)


# --- types ----------------------------------------------------------------------------------------------------------


class Stored(types.Type):
    """The address of a block that holds a NamedTuple."""

    owners: ClassVar[dict[str, type]] = {}  # Numba takes types of one name for the same

    def __init__(self, cls: type, names: tuple[str, ...], fields: tuple[types.Type, ...]) -> None:
        self.instance_class = cls
        self.names = names
        self.fields = fields
        members = ", ".join(f"{name}:{field}" for name, field in zip(names, fields, strict=True))
        digest = hashlib.sha256(f"{cls.__module__}.{cls.__qualname__}({members})".encode()).hexdigest()[:12]
        name = f"{cls.__name__}@{digest}"
        while self.owners.setdefault(name, cls) is not cls:  # defined once more, as in a notebook
            name += "'"
        super().__init__(name)

    def field(self, name: str) -> tuple[int, types.Type]:
        """The first word and the type of a field."""
        k = self.names.index(name)
        return sum(map(_n_words, self.fields[:k])), self.fields[k]


class Opaque(types.Type):
    """An address that compiled code only passes on."""

    def __init__(self) -> None:
        super().__init__("Opaque")


OPAQUE = Opaque()


def _n_words(field: types.Type) -> int:
    if isinstance(field, Stored):
        return sum(map(_n_words, field.fields))
    return 1 + field.ndim if isinstance(field, types.Array) else 1


# --- from Python to blocks ------------------------------------------------------------------------------------------


Known = dict[int, tuple[object, list[int], types.Type]]  # NamedTuples by their ids, with their words and types


class Packed:
    """A NamedTuple with its block, as an argument of compiled code; keeps its arrays alive.

    Parameters
    ----------
    value
        The NamedTuple.
    known
        NamedTuples that were packed before, and need not be read again where they are part of this one.
    met
        Takes those that are part of it, for the next time.
    """

    __slots__ = ("address", "block", "type", "value")

    def __init__(self, value: object, known: Known | None = None, met: Known | None = None) -> None:
        words: list[int] = []
        self.value = value
        self.type = _write(value, words, type(value).__name__, known or {}, {} if met is None else met)
        self.block = array_of("q", words)
        self.address = self.block.buffer_info()[0]

    def __getattr__(self, name: str) -> Any:
        if name == "value":  # not there yet
            raise AttributeError(name)
        return getattr(self.value, name)


_types: dict[object, types.Type] = {}  # which are kept: loops are told apart by their ids


def array_type(array: np.ndarray, name: str) -> types.Type:
    """The type of an array, which must be C-contiguous, of numbers that the processor knows."""
    key = (array.dtype, array.ndim)
    found = _types.get(key)
    if found is None:
        if array.dtype.kind not in "biuf" or not array.dtype.isnative or array.dtype.itemsize not in (1, 2, 4, 8):
            raise TypeError(f"{name} must be an array of numbers, but its dtype is {array.dtype}.")
        if array.dtype == np.float16:
            raise TypeError(f"{name} must not be of dtype float16, which compiled code does not know.")
        found = _types[key] = types.Array(from_dtype(array.dtype), array.ndim, "C")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise TypeError(f"{name} must be a C-contiguous array: compiled code takes no other.")
    return found


def _write(value: object, words: list[int], name: str, known: Known, met: Known) -> types.Type:
    """Append the words of a value; return its type."""
    if isinstance(value, np.ndarray):
        words.append(value.__array_interface__["data"][0])
        words.extend(value.shape)
        return array_type(value, name)
    if isinstance(value, Packed):
        words.append(value.address)
        return OPAQUE
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        found = met[id(value)] = known.get(id(value)) or _write_fields(value, name, known, met)
        words.extend(found[1])
        return found[2]
    if is_dataclass(value):  # whose fields may change
        _, inner, found_type = _write_fields(value, name, known, met)
        words.extend(inner)
        return found_type
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


def _write_fields(value: object, name: str, known: Known, met: Known) -> tuple[object, list[int], types.Type]:
    words: list[int] = []
    names = field_names(value)
    members = tuple([_write(getattr(value, field), words, f"{name}.{field}", known, met) for field in names])
    key = (type(value), names, *map(id, members))  # types are kept, and hashing them takes longer than a short pass
    found = _types.get(key)
    if found is None:
        found = _types[key] = Stored(type(value), names, members)
    return value, words, found


def field_names(value: Any) -> tuple[str, ...]:
    """The fields that compiled code can read: all of a NamedTuple, of a dataclass those without text or None."""
    if hasattr(value, "_fields"):
        return value._fields
    return tuple(field.name for field in fields(value) if not isinstance(getattr(value, field.name), str | None))


@typeof_impl.register(Packed)
def _typeof_packed(value, context):
    return value.type


def _unbox_address(address_type, value, c):
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


def take_by_address(address_type: type[types.Type]) -> None:
    """Let compiled code take what is of a type by its `address`."""
    register_model(address_type)(models.OpaqueModel)
    unbox(address_type)(_unbox_address)


take_by_address(Stored)
take_by_address(Opaque)


# --- from blocks to compiled code -----------------------------------------------------------------------------------


def load(builder: ir.IRBuilder, base: ir.Value, k: int, as_type: ir.Type = _WORD) -> ir.Value:
    """Word k after the address `base`."""
    pointer = builder.gep(builder.bitcast(base, _WORD.as_pointer()), [ir.Constant(ir.IntType(32), k)])
    value = builder.load(builder.bitcast(pointer, as_type.as_pointer()))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def load_address(builder: ir.IRBuilder, base: ir.Value, k: int) -> ir.Value:
    """The same, as a pointer."""
    return builder.inttoptr(load(builder, base, k), cgutils.voidptr_t)


@infer_getattr
class _StoredFields(AttributeTemplate):
    key = Stored

    def generic_resolve(self, stored, name):  # type: ignore[override]
        return stored.field(name)[1] if name in stored.names else None


@lower_getattr_generic(Stored)
def _load_field(context, builder, stored, base, name):
    first, field = stored.field(name)
    if isinstance(field, Stored):
        pointer = builder.gep(builder.bitcast(base, _WORD.as_pointer()), [ir.Constant(ir.IntType(32), first)])
        return builder.bitcast(pointer, cgutils.voidptr_t)
    if isinstance(field, types.Array):
        address, *shape = (load(builder, base, first + k) for k in range(_n_words(field)))
        return make_array(context, builder, field, address, shape)
    if isinstance(field, Opaque):
        return load_address(builder, base, first)
    if field == types.boolean:
        return builder.trunc(load(builder, base, first), ir.IntType(1))
    return load(builder, base, first, context.get_value_type(field))
