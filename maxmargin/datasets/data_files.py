"""What all data sets share: the object they come as and the search for their files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER_VARIABLE = "MAXMARGIN_DATA"


@dataclass(frozen=True)
class Dataset:
    """Examples and their true outputs, ready for `fit` and `predict`.

    Attributes
    ----------
    X_train, X_test : lists of examples, such as sequences, or arrays with a row for each
    y_train, y_test
        The same of their true outputs, such as the labels of each sequence.
    X_dev, y_dev
        The same for model selection; empty where a data set has no such part.

    Examples
    --------
    >>> from maxmargin.datasets import Dataset
    >>> Dataset([["a", "dog"]], [["DT", "NN"]], [["the", "dog"]], [["DT", "NN"]])
    Dataset(1 training, 1 test examples)
    """

    X_train: list[Any]
    y_train: list[Any]
    X_test: list[Any]
    y_test: list[Any]
    X_dev: list[Any] = field(default_factory=list)
    y_dev: list[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        dev = f" {len(self.X_dev)} development," if self.X_dev else ""
        return f"Dataset({len(self.X_train)} training,{dev} {len(self.X_test)} test examples)"


def find_file(name: str | Sequence[str], folder: str | Path | None) -> Path:
    """The path of a data file below `folder`, by default below the folder that MAXMARGIN_DATA names.

    It may have one of several names.
    """
    names = [name] if isinstance(name, str) else name
    root = os.environ.get(FOLDER_VARIABLE) if folder is None else folder
    for known in names:
        if root and (Path(root) / known).is_file():
            return Path(root) / known
    searched = f"not found in {str(root)!r}" if root else "not found"
    raise FileNotFoundError(
        f"{' or '.join(names)} was {searched}: pass folder=... or set the environment variable {FOLDER_VARIABLE} to "
        f"the folder that contains {Path(names[0]).parts[0]}."
    )


def read_image(path: Path) -> np.ndarray:
    """The array of an image, by scikit-image."""
    try:
        from skimage.io import imread
    except ImportError as error:
        raise ImportError("Reading images needs scikit-image: pip install maxmargin[vision].") from error
    return imread(path)
