"""The Weizmann horses: images with masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maxmargin.datasets.data_files import Dataset, find_file, read_image


def load_horses(folder: str | Path | None = None) -> Dataset:
    """Read the Weizmann horses: 278 training and 49 test images, longest side 160 pixels, with masks of the horses.

    Needs scikit-image: ``pip install maxmargin[vision]``.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``weizmann_horses`` with the folders ``images_train``, ``masks_train``, ``images_test``
        and ``masks_test``, by default that of the environment variable MAXMARGIN_DATA. Masks have the names of the
        images, ending in ``.png``.

    Returns
    -------
    Dataset
        X: lists of (h, w, 3) arrays of bytes; y: lists of (h, w) arrays, 1 where there is a horse, else 0.

    References
    ----------
    Borenstein, Ullman (2002), Class-specific, top-down segmentation.

    Examples
    --------
    >>> from maxmargin.datasets import load_horses
    >>> load_horses()  # doctest: +SKIP
    Dataset(278 training, 49 test examples)
    """
    root = find_file("weizmann_horses/images_train/horse001.jpg", folder).parents[1]
    return Dataset(*_read(root, "train"), *_read(root, "test"))


def _read(root: Path, part: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    paths = sorted((root / f"images_{part}").glob("*.jpg"))
    masks = [read_image(root / f"masks_{part}" / f"{path.stem}.png") for path in paths]
    return [read_image(path) for path in paths], [(mask > 0).astype(int) for mask in masks]
