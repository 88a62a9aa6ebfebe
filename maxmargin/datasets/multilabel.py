"""Rows of features with several labels each: scenes in photographs, and emotions that music evokes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maxmargin.datasets.base import Dataset, find_file


def load_scene(folder: str | Path | None = None) -> Dataset:
    """Read photographs of scenes: 1,211 training and 1,196 test images, 294 features of color, 6 labels.

    The labels are beach, sunset, fall foliage, field, mountain and urban.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``scene/scene.npz``, by default that of the environment variable MAXMARGIN_DATA. The
        file holds the arrays ``X_train``, ``y_train``, ``X_test`` and ``y_test``.

    Returns
    -------
    Dataset
        X: (n, 294) arrays; y: (n, 6) arrays of 0 and 1.

    References
    ----------
    Boutell, Luo, Shen, Brown (2004), Learning multi-label scene classification.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from maxmargin.datasets import load_scene
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scene", "scene.npz")
    ...     path.parent.mkdir()
    ...     X, y = np.ones((4, 294)), np.eye(4, 6, dtype=int)
    ...     np.savez(path, X_train=X, y_train=y, X_test=X[:2], y_test=y[:2])
    ...     scenes = load_scene(folder)
    >>> scenes, scenes.y_test.shape
    (Dataset(4 training, 2 test examples), (2, 6))
    """
    return _read("scene", folder)


def load_emotions(folder: str | Path | None = None) -> Dataset:
    """Read pieces of music and the emotions they evoke: 391 training and 202 test pieces, 72 features, 6 labels.

    The labels are amazed or surprised, happy or pleased, relaxing or calm, quiet or still, sad or lonely, and angry or
    aggressive.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``emotions/emotions.npz``, by default that of the environment variable MAXMARGIN_DATA.
        The file holds the arrays ``X_train``, ``y_train``, ``X_test`` and ``y_test``.

    Returns
    -------
    Dataset
        X: (n, 72) arrays; y: (n, 6) arrays of 0 and 1.

    References
    ----------
    Trohidis, Tsoumakas, Kalliris, Vlahavas (2008), Multilabel classification of music into emotions.

    Examples
    --------
    >>> from maxmargin.datasets import load_emotions
    >>> load_emotions()  # doctest: +SKIP
    Dataset(391 training, 202 test examples)
    """
    return _read("emotions", folder)


def _read(name: str, folder: str | Path | None) -> Dataset:
    with np.load(find_file(f"{name}/{name}.npz", folder)) as file:
        arrays = {key.lower(): file[key] for key in file.files}  # some files say Y
    X_train, X_test = arrays["x_train"], arrays["x_test"]
    return Dataset(X_train, arrays["y_train"].astype(int), X_test, arrays["y_test"].astype(int))
