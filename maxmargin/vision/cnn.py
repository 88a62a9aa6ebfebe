"""Features of boxes from convolutional networks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_count
from maxmargin.vision.proposals import check_inside
from maxmargin.wording import name_type

if TYPE_CHECKING:
    from torch import nn

__all__ = ["cnn_features"]


def cnn_features(
    images: Sequence[ArrayLike],
    boxes: Sequence[ArrayLike],
    backbone: object,
    size: int = 64,
    batch_size: int = 256,
    cache: str | Path | None = None,
    progress: bool = False,
) -> list[np.ndarray]:
    """Crop boxes out of images, rescale them and pass them through a network (R-CNN; *Smoother*, section 7.1.2).

    Needs PyTorch: ``pip install "maxmargin[torch]"``.

    Parameters
    ----------
    images
        (H, W, 3) arrays of bytes.
    boxes
        For each image its (K_i, 4) boxes.
    backbone
        A `torch.nn.Module` that makes features, of any shape, of crops: (B, 3, size, size) numbers from 0 to 1.
    size
        The side of the crops in pixels.
    batch_size
        How many crops to pass at once.
    cache
        A folder where to keep the features of each image, under a hash of its pixels, its boxes, `size` and the
        network; None to keep nothing.
    progress
        Show a progress bar.

    Returns
    -------
    For each image a (K_i, ...) array of float32

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from maxmargin.vision import cnn_features
    >>> backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.AdaptiveAvgPool2d(3))  # doctest: +SKIP
    >>> features, = cnn_features([image], [[[0, 0, 9, 9], [5, 5, 20, 30]]], backbone)  # doctest: +SKIP
    >>> features.shape  # doctest: +SKIP
    (2, 5, 3, 3)
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError('cnn_features needs PyTorch: pip install "maxmargin[torch]".') from None
    from rich.progress import track

    check_count("size", size)
    check_count("batch_size", batch_size)
    if len(images) != len(boxes):
        raise ValueError(f"boxes must be of {len(images)} images, one list each, but there are {len(boxes)} lists.")
    if not isinstance(backbone, torch.nn.Module):
        raise TypeError(f"backbone must be a torch.nn.Module, not {name_type(backbone)}.")
    arrays = [_check_image(image, f"images[{i}]") for i, image in enumerate(images)]
    places = [np.asarray(some) for some in boxes]
    for i, (image, some) in enumerate(zip(arrays, places, strict=True)):
        check_inside(some, image.shape, f"boxes[{i}]", "pixels")
    network = hashlib.sha256(repr(backbone).encode())
    if cache is not None:
        for name, tensor in sorted(backbone.state_dict().items()):
            network.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    pairs = zip(arrays, places, strict=True)
    found, was_training = [], backbone.training
    backbone.eval()
    try:
        for image, some in track(pairs, "Features", total=len(arrays), disable=not progress):
            path = None
            if cache is not None:
                digest = network.copy()
                digest.update(f"{size} {image.shape} {some.shape}".encode() + image.tobytes() + some.tobytes())
                path = Path(cache) / f"{digest.hexdigest()[:32]}.npy"
            found.append(_of_image(image, some, backbone, size, batch_size, path))
    finally:
        backbone.train(was_training)
    return found


def _check_image(image: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(image)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
        raise ValueError(f"{name} must be an (H, W, 3) array of bytes, not of shape {array.shape} and {array.dtype}.")
    return np.ascontiguousarray(array)


def _of_image(
    image: np.ndarray, boxes: np.ndarray, backbone: nn.Module, size: int, batch_size: int, path: Path | None
) -> np.ndarray:
    """The features of the boxes of one image, from disk where they are."""
    import torch
    from torch.nn.functional import interpolate

    if path is not None and path.exists():
        return np.load(path)
    first = next(backbone.parameters(), torch.zeros(0))
    pixels, rows = torch.tensor(image).permute(2, 0, 1)[None].to(first.device), []
    with torch.no_grad():
        for some in np.array_split(boxes, max(1, -(-len(boxes) // batch_size))):
            crops = [
                interpolate(
                    pixels[:, :, top:bottom, left:right].to(first.dtype) / 255,
                    (size, size),
                    mode="bilinear",
                    antialias=True,
                )
                for top, left, bottom, right in some.tolist()
            ]
            rows.append(backbone(torch.cat(crops)).float().cpu().numpy())
    features = np.concatenate(rows)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part.npy")
        np.save(temporary, features)
        temporary.replace(path)
    return features
