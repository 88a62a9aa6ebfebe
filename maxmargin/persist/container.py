"""The file of a model: a prefix, a JSON text, and arrays, which are mapped into memory, not read.

    prefix   magic, version, checksum and length of the text, length of the file      32 bytes, little-endian
    text     {"arrays": [{"dtype", "shape", "at", "length", "check"}, ...], "content": anything}, UTF-8
    arrays   as they are in memory, each at a multiple of 64 bytes

An array of numbers most of which are zero is *packed*: a bit for each of its numbers, whether it is stored, and then
those that are. So no array is larger than 64 times its place in the file, and a small file cannot ask for much memory.
Everything is checked before it is used: a reader meets a file as it was written, or raises.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import struct
import zlib
from typing import Any, BinaryIO

import numpy as np

from maxmargin.persist.files import replacing

MAGIC = b"maxmargn"
VERSION = 1
PREFIX = struct.Struct("<8sIIQQ")
ALIGNMENT = 64
DTYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,8}")  # of arrays that hold no objects
LARGEST_CHARACTER = 0x10FFFF


class Broken(Exception):
    """What is wrong with a file, as the end of a sentence."""


def write(path: Any, content: Any, arrays: list[np.ndarray]) -> None:
    """Write a file that is there as a whole or, if writing fails, not at all: one that was there before stays.

    Parameters
    ----------
    path : where
    content : what JSON can hold
    arrays : what the content refers to by number: bools, numbers and strings
    """
    blocks, table, at = [], [], 0
    for array in arrays:
        entry, parts = _stored(array)
        length, check = sum(len(part) for part in parts), 0
        for part in parts:
            check = zlib.crc32(part, check)
        table.append({**entry, "at": at, "length": length, "check": check})
        blocks.append((parts, -length % ALIGNMENT))
        at += length + -length % ALIGNMENT
    text = json.dumps({"arrays": table, "content": content}, ensure_ascii=False, allow_nan=False)
    encoded = text.encode("utf-8", "surrogatepass")
    gap = -(PREFIX.size + len(encoded)) % ALIGNMENT
    size = PREFIX.size + len(encoded) + gap + at
    with replacing(path) as file:
        file.write(PREFIX.pack(MAGIC, VERSION, zlib.crc32(encoded), len(encoded), size))
        file.write(encoded)
        file.write(bytes(gap))
        for parts, padding in blocks:
            for part in parts:
                file.write(part)
            file.write(bytes(padding))


def _stored(array: np.ndarray) -> tuple[dict[str, Any], list[memoryview]]:
    """The entry of an array in the table, and its bytes."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    entry = {"dtype": flat.dtype.str, "shape": [*array.shape]}
    if flat.dtype.kind == "f" and flat.size:
        bits = flat.view(f"u{flat.itemsize}") != 0  # so that -0.0 is kept
        if np.count_nonzero(bits) * flat.itemsize + flat.size // 8 + 1 <= flat.nbytes // 2:
            return {**entry, "packed": True}, [_bytes(np.packbits(bits)), _bytes(flat[bits])]
    return entry, [_bytes(flat)]


def _bytes(flat: np.ndarray) -> memoryview:
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def read(file: BinaryIO) -> tuple[Any, Arrays]:
    """The content and the arrays of an open file that was written by `write`; raises `Broken`."""
    size = os.fstat(file.fileno()).st_size
    prefix = file.read(PREFIX.size)
    if prefix[: len(MAGIC)] != MAGIC[: len(prefix)] or not prefix:
        raise Broken("it is not a file of this library")
    if len(prefix) < PREFIX.size:
        raise Broken(f"it is truncated, after {size} bytes")
    _, version, check, length, whole = PREFIX.unpack(prefix)
    if version > VERSION:
        raise Broken(
            f"it was written by a newer version of maxmargin, in format {version}, and this one reads {VERSION}"
        )
    if size < whole:
        raise Broken(f"it is truncated: {size} of {whole} bytes are there")
    if size > whole or version < 1 or PREFIX.size + length > size:
        raise Broken("it is corrupted: its lengths do not fit")
    # A private map: arrays can be written to, which changes neither the file nor what others see.
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    encoded = mapped[PREFIX.size : PREFIX.size + length]
    if zlib.crc32(encoded) != check:
        raise Broken("it is corrupted: the checksum of its text is wrong")
    try:
        document = json.loads(encoded.decode("utf-8", "surrogatepass"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Broken("its text is no JSON that was written by this library") from None
    if not (isinstance(document, dict) and isinstance(document.get("arrays"), list) and "content" in document):
        raise Broken("its text lacks the arrays or the content")
    start = PREFIX.size + length
    return document["content"], Arrays(mapped, start + -start % ALIGNMENT, document["arrays"])


def _refuse(name: str) -> None:
    raise ValueError(name)


class Arrays:
    """The arrays of a file, each made when it is first asked for; then the same one again.

    They are mapped into memory; with `copies`, they are not.
    """

    copies = False

    def __init__(self, mapped: mmap.mmap, start: int, table: list[Any]) -> None:
        self.mapped, self.start, self.table = mapped, start, table
        self.made: dict[int, np.ndarray] = {}

    def __getitem__(self, k: Any) -> np.ndarray:
        if not (type(k) is int and 0 <= k < len(self.table)):
            raise Broken("it refers to an array that is not there")
        if k not in self.made:
            made = self._make(k, self.table[k])
            self.made[k] = made.copy() if self.copies else made
        return self.made[k]

    def _make(self, k: int, entry: Any) -> np.ndarray:
        try:
            name, shape, at, length, check = (entry[key] for key in ("dtype", "shape", "at", "length", "check"))
            are_sizes = all(type(n) is int and 0 <= n < 2**62 for n in [at, length, *shape])
            if not (are_sizes and len(shape) <= 32 and DTYPES.fullmatch(name)):
                raise ValueError
            dtype, count = np.dtype(name), math.prod(shape)
        except (TypeError, KeyError, ValueError):
            raise Broken(f"array {k} has a type or shape that cannot be") from None
        first = self.start + at
        if first + length > len(self.mapped):
            raise Broken(f"array {k} is not within the file")
        block = np.frombuffer(self.mapped, np.uint8, length, first)
        if zlib.crc32(block.data) != check:
            raise Broken(f"it is corrupted: the checksum of array {k} is wrong")
        flat = _unpacked(block, dtype, count) if entry.get("packed") else _viewed(block, dtype, count)
        if flat is None or not _is_sane(flat):
            raise Broken(f"array {k} has other bytes than its type and shape say")
        return flat.astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def _viewed(block: np.ndarray, dtype: np.dtype, count: int) -> np.ndarray | None:
    """The bytes of an array as its numbers, or None where they are not."""
    if len(block) != count * dtype.itemsize or (count and block.ctypes.data % dtype.alignment):
        return None
    return block.view(dtype) if count else np.zeros(0, dtype)


def _unpacked(block: np.ndarray, dtype: np.dtype, count: int) -> np.ndarray | None:
    """The numbers of a packed array, or None where it is not one."""
    n_bytes = (count + 7) // 8
    if dtype.kind != "f" or len(block) < n_bytes:
        return None
    bits = np.unpackbits(block[:n_bytes], count=count).view(bool)
    values = block[n_bytes:].tobytes()
    if len(values) != np.count_nonzero(bits) * dtype.itemsize:
        return None
    flat = np.zeros(count, dtype)
    flat[bits] = np.frombuffer(values, dtype)
    return flat


def _is_sane(flat: np.ndarray) -> bool:
    """Whether bools are 0 or 1, and characters are some, as NumPy takes for granted."""
    if flat.dtype.kind == "b":
        return not flat.size or int(flat.view(np.uint8).max()) <= 1
    if flat.dtype.kind == "U":
        return not flat.size or int(flat.view("<u4").max()) <= LARGEST_CHARACTER
    return True
