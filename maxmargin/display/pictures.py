"""Arrays as pictures in a page: PNG files inside it, small, without a library for images."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from maxmargin.display.markup import Markup, tag
from maxmargin.wording import quote

LARGEST = 128  # pixels across or down that a picture has


def as_pixels(image: np.ndarray) -> np.ndarray:
    """(h, w, 3) bytes of a gray or RGB image of any numbers: bytes as they are, others from the lowest to the highest.

    Large images lose rows and columns, evenly.
    """
    image = np.asarray(image)
    if image.ndim not in (2, 3) or not image.size or image.dtype.kind not in "biuf":
        raise ValueError(f"An image must be an (h, w) or (h, w, 3) array of numbers, not {quote(image)}.")
    step = max(1, -(-max(image.shape[:2]) // LARGEST))
    image = image[::step, ::step]
    if image.dtype != np.uint8:
        finite = np.nan_to_num(image.astype(np.float64))
        low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
        image = np.round((finite - low) * (255 / ((high - low) or 1.0))).astype(np.uint8)
    if image.ndim == 2:
        image = image[:, :, np.newaxis]
    return np.ascontiguousarray(
        np.broadcast_to(image[:, :, :3], (*image.shape[:2], 3)) if image.shape[2] < 3 else image[:, :, :3]
    )


def encode_png(pixels: np.ndarray) -> bytes:
    """A PNG file of (h, w, 3) RGB or (h, w, 4) RGBA bytes."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with the number of its filter, none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def as_link(pixels: np.ndarray) -> str:
    """The address of a picture that is in the page itself."""
    return "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode("ascii")


def as_picture(image: np.ndarray) -> Markup:
    """An image as an element."""
    pixels = as_pixels(image)
    return tag("img", src=as_link(pixels), alt="", class_="picture", width=max(pixels.shape[1], 48))
