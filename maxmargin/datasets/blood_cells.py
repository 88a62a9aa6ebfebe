"""Blood cells under the microscope."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from maxmargin.datasets.base import Dataset, find_file

PARTS = ("train", "test", "val")
SIDES = ("ymin", "xmin", "ymax", "xmax")


def load_blood_cells(kind: str = "WBC", folder: str | Path | None = None) -> Dataset:
    """Read the images of BCCD that show exactly one blood cell of a kind, with its box.

    Parameters
    ----------
    kind : {"WBC", "RBC", "Platelets"}, default="WBC"
        White or red blood cells, or platelets.
    folder : path, default=None
        The folder that contains ``bccd``, with ``JPEGImages``, ``Annotations`` and ``ImageSets``, by default that of
        the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of (480, 640, 3) arrays of bytes; y: lists of boxes (top, left, bottom, right) in pixels, half-open.

    References
    ----------
    https://github.com/Shenggan/BCCD_Dataset, under the MIT licence. Reading the images takes Pillow (extra ``vision``).

    Examples
    --------
    >>> from maxmargin.datasets import load_blood_cells
    >>> cells = load_blood_cells()  # doctest: +SKIP
    >>> cells.X_train[0].shape, cells.y_train[0]  # doctest: +SKIP
    ((480, 640, 3), (314, 67, 480, 286))
    """
    if kind not in ("WBC", "RBC", "Platelets"):
        raise ValueError(f"kind must be WBC, RBC or Platelets, not {kind!r}.")
    train, test, dev = (_read_part(find_file(f"bccd/ImageSets/Main/{part}.txt", folder), kind) for part in PARTS)
    return Dataset(*train, *test, *dev)


def _read_part(path: Path, kind: str) -> tuple[list[np.ndarray], list[tuple[int, ...]]]:
    from PIL import Image

    root = path.parents[2]
    X, y = [], []
    for name in path.read_text().split():
        boxes = _read_boxes(root / "Annotations" / f"{name}.xml", kind)
        if len(boxes) == 1:
            with Image.open(root / "JPEGImages" / f"{name}.jpg") as image:
                X.append(np.asarray(image.convert("RGB")))
            y.append(boxes[0])
    return X, y


def _read_boxes(path: Path, kind: str) -> list[tuple[int, ...]]:
    """The boxes of one kind; their sides are given from 1, the last pixels included."""
    objects = ElementTree.parse(path).getroot().findall("object")
    found = [item.find("bndbox") for item in objects if item.findtext("name") == kind]
    sides = [[int(box.findtext(side, "")) for side in SIDES] for box in found if box is not None]
    return [(max(top - 1, 0), max(left - 1, 0), bottom, right) for top, left, bottom, right in sides]
