"""Photographs of 21 classes of things, with a label for each pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maxmargin.datasets.data_files import Dataset, find_file, read_image

MSRC_CLASSES = (
    *("void", "building", "grass", "tree", "cow", "horse", "sheep", "sky", "mountain", "aeroplane", "water", "face"),
    *("car", "bicycle", "flower", "sign", "bird", "book", "chair", "road", "cat", "dog", "body", "boat"),
)
TOO_RARE = "horse", "mountain"  # MSRC-21 leaves them out of MSRC v2
PERIOD, TRAINING = 5, 3  # of each five images, by name, three are for training


def load_msrc(folder: str | Path | None = None) -> Dataset:
    """Read the photographs of MSRC-21: 355 training and 236 test images, longest side 160 pixels.

    Pixels have the number of their class, an index of `MSRC_CLASSES`, or 0 if they are void: without a label, or of the
    rare classes horse and mountain. There is no official split: of each five images in the order of their names, the
    first three are for training.

    Needs scikit-image: ``pip install maxmargin[vision]``.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``msrc_v2`` with the folders ``images`` and ``labels``, by default that of the
        environment variable MAXMARGIN_DATA. Label maps have the names of the images, ending in ``.png``.

    Returns
    -------
    Dataset
        X: lists of (h, w, 3) arrays of bytes; y: lists of (h, w) arrays of integers.

    References
    ----------
    Shotton, Winn, Rother, Criminisi (2009), TextonBoost for image understanding.

    Examples
    --------
    >>> from maxmargin.datasets import MSRC_CLASSES, load_msrc
    >>> photos = load_msrc()  # doctest: +SKIP
    >>> photos.X_train[0].shape, MSRC_CLASSES[photos.y_train[0][0, 0]]  # doctest: +SKIP
    ((106, 160, 3), 'grass')
    """
    root = find_file("msrc_v2/images/1_1_s.jpg", folder).parents[1]
    names = sorted((path.stem for path in (root / "images").glob("*.jpg")), key=_numbers)
    train = [name for k, name in enumerate(names) if k % PERIOD < TRAINING]
    test = [name for k, name in enumerate(names) if k % PERIOD >= TRAINING]
    return Dataset(*_read(root, train), *_read(root, test))


def _numbers(name: str) -> list[int]:
    return [int(part) for part in name.split("_") if part.isdigit()]


def _read(root: Path, names: list[str]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    left_out = [MSRC_CLASSES.index(name) for name in TOO_RARE]
    labels = [read_image(root / "labels" / f"{name}.png").astype(int) for name in names]
    return (
        [read_image(root / "images" / f"{name}.jpg") for name in names],
        [np.where(np.isin(found, left_out), 0, found) for found in labels],
    )
