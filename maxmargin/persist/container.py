"""The file of a model: a prefix, a JSON text, and arrays.

    prefix   magic, version, checksum and length of the text, length of the file      32 bytes, little-endian
    text     {"arrays": [{"dtype", "shape", "at", "length", "check"}, ...], "content": anything}, UTF-8
    arrays   as they are in memory, one after the other, each at a multiple of 64 bytes

An array of numbers most of which are zero is *packed*: a bit for each of its numbers, whether it is stored, and then
those that are. So no array is larger than 64 times its place in the file, which it shares with no other, and all of
them together than 64 times the file. Everything is checked before it is used: a reader meets a file as it was written,
or raises. What is checked is the reader's own copy, which nobody can change after that; only numbers that are never
indices can be mapped into memory instead.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import struct
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from maxmargin.persist.files import Location, replacing

MAGIC = b"maxmargn"
VERSION = 1
PREFIX = struct.Struct("<8sIIQQ")
ALIGNMENT = 64
DTYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,8}")  # of arrays that hold no objects
LARGEST_CHARACTER = 0x10FFFF


class Broken(Exception):
    """What is wrong with a file, as the end of a sentence."""


def write(path: Location, content: object, arrays: list[np.ndarray]) -> None:
    """Write a file that is there as a whole or, if writing fails, not at all: one that was there before stays.

    Parameters
    ----------
    path
        Where.
    content
        What JSON can hold.
    arrays
        What the content refers to by number: bools, numbers and strings.
    """
    blocks, table, at = [], [], 0
    for array in arrays:
        entry, parts = _store(array)
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


def _store(array: np.ndarray) -> tuple[dict[str, object], list[memoryview]]:
    """The entry of an array in the table, and its bytes."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    entry: dict[str, object] = {"dtype": flat.dtype.str, "shape": [*array.shape]}
    if flat.dtype.kind == "f" and flat.size:
        bits = flat.view(f"u{flat.itemsize}") != 0  # so that -0.0 is kept
        if np.count_nonzero(bits) * flat.itemsize + flat.size // 8 + 1 <= flat.nbytes // 2:
            return {**entry, "packed": True}, [_bytes(np.packbits(bits)), _bytes(flat[bits])]
    return entry, [_bytes(flat)]


def _bytes(flat: np.ndarray) -> memoryview:
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def read(file: BinaryIO, *, maps: bool = False) -> tuple[object, Arrays]:
    """The content and the arrays of an open file that was written by `write`; raises `Broken`.

    The file must stay open until all arrays are made. `maps` says whether weights are mapped into memory.
    """
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
    encoded = file.read(length)
    if zlib.crc32(encoded) != check:
        raise Broken("it is corrupted: the checksum of its text is wrong")
    try:
        document = json.loads(encoded.decode("utf-8", "surrogatepass"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Broken("its text is no JSON that was written by this library") from None
    if not (isinstance(document, dict) and isinstance(document.get("arrays"), list) and "content" in document):
        raise Broken("its text lacks the arrays or the content")
    start = PREFIX.size + length
    return document["content"], Arrays(file, size, start + -start % ALIGNMENT, document["arrays"], maps)


def _refuse(name: str) -> None:
    raise ValueError(name)


class Place(NamedTuple):
    """Where an array is in a file, and what it is."""

    dtype: np.dtype
    shape: tuple[int, ...]
    at: int
    length: int
    check: int
    packed: bool

    @classmethod
    def of(cls, entry: Any, k: int) -> Place:
        """Of entry k of the table."""
        try:
            name, shape, at, length, check = (entry[key] for key in ("dtype", "shape", "at", "length", "check"))
            are_sizes = all(type(n) is int and 0 <= n < 2**62 for n in [at, length, *shape])
            if not (are_sizes and len(shape) <= 32 and DTYPES.fullmatch(name)):
                raise ValueError
            return cls(np.dtype(name), tuple(shape), at, length, check, bool(entry.get("packed")))
        except (TypeError, KeyError, ValueError):
            raise Broken(f"array {k} has a type or shape that cannot be") from None


class Arrays:
    """The arrays of a file, each made when it is first asked for; then the same one again."""

    def __init__(self, file: BinaryIO, size: int, start: int, table: list[object], maps: bool) -> None:
        self.file, self.size, self.start = file, size, start
        # A private map: arrays can be written to, which changes neither the file nor what others see.
        self.mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if maps else None
        self.places = [Place.of(entry, k) for k, entry in enumerate(table)]
        self.made: dict[int, np.ndarray] = {}
        end = 0
        for k, place in enumerate(self.places):
            if place.at < end or place.at % ALIGNMENT:
                raise Broken(f"array {k} is not at a place of its own")
            end = place.at + place.length
            if start + end > size:
                raise Broken(f"array {k} is not within the file")

    def __getitem__(self, k: object) -> np.ndarray:
        if not (type(k) is int and 0 <= k < len(self.places)):
            raise Broken("it refers to an array that is not there")
        if k not in self.made:
            self.made[k] = self._make(k, self.places[k])
        return self.made[k]

    def _make(self, k: int, place: Place) -> np.ndarray:
        count = math.prod(place.shape)
        stored = self._read(place, count)
        if stored is not None and zlib.crc32(stored.view(np.uint8).data) != place.check:
            raise Broken(f"it is corrupted: the checksum of array {k} is wrong")
        flat = _unpack(stored, place.dtype, count) if stored is not None and place.packed else stored
        if flat is None or not _is_sane(flat):
            raise Broken(f"array {k} has other bytes than its type and shape say")
        return flat.astype(place.dtype.newbyteorder("="), copy=False).reshape(place.shape)

    def _read(self, place: Place, count: int) -> np.ndarray | None:
        """The numbers of an array, or the bytes of a packed one: copies, but for those that are mapped; or None."""
        dtype, n = (np.dtype(np.uint8), place.length) if place.packed else (place.dtype, count)
        if place.length != n * dtype.itemsize:
            return None
        if self.mapped is not None and dtype.kind == "f" and n:
            return np.frombuffer(self.mapped, dtype, n, self.start + place.at)
        stored = np.empty(n, dtype)
        self.file.seek(self.start + place.at)
        if self.file.readinto(stored.view(np.uint8)) != place.length:  # type: ignore[attr-defined]
            raise Broken("it was truncated while it was read")
        return stored


def _unpack(block: np.ndarray, dtype: np.dtype, count: int) -> np.ndarray | None:
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
