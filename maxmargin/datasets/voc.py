"""Photographs with the boxes of objects, in folders as those of PASCAL VOC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from maxmargin.checks import check_choice
from maxmargin.datasets.data_files import Dataset, find_file

SIDES = ("ymin", "xmin", "ymax", "xmax")


def load_voc(kind: str, year: int = 2007, folder: str | Path | None = None) -> Dataset:
    """Read the images of PASCAL VOC that show exactly one object of a kind, with its box.

    Parameters
    ----------
    kind : str
        The class of the object, such as "cat".
    year : int, default=2007
        Of the challenge. Those after 2007 have no public test images: the test part is empty then.
    folder : path, default=None
        The folder that contains ``VOCdevkit/VOC2007``, or ``VOC2007``, with ``JPEGImages``, ``Annotations`` and
        ``ImageSets``, by default that of the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of (H, W, 3) arrays of bytes; y: lists of boxes (top, left, bottom, right) in pixels, half-open.
        Objects that are marked as difficult count.

    References
    ----------
    Everingham, Van Gool, Williams, Winn, Zisserman (2010), The PASCAL visual object classes (VOC) challenge,
    http://host.robots.ox.ac.uk/pascal/VOC. Reading the images takes Pillow (extra ``vision``).

    Examples
    --------
    >>> from maxmargin.datasets import load_voc
    >>> cats = load_voc("cat")  # doctest: +SKIP
    >>> cats.X_train[0].shape, cats.y_train[0]  # doctest: +SKIP
    ((375, 500, 3), (114, 97, 277, 286))
    """
    places = [f"{place}VOC{year}/ImageSets/Main" for place in ("VOCdevkit/", "")]
    train = find_file([f"{place}/train.txt" for place in places], folder)
    parts = [path for name in ("train", "val", "test") if (path := train.with_name(f"{name}.txt")).is_file()]
    root = train.parents[2]
    kinds = {name for path in parts for image in path.read_text().split() for name, _ in read_objects(root, image)}
    check_choice("kind", kind, tuple(sorted(kinds)))
    read = {path.stem: read_part(path, kind) for path in parts}
    none: tuple[list, list] = ([], [])
    return Dataset(*read["train"], *read.get("test", none), *read.get("val", none))


def read_part(
    path: Path, kind: str, takes: Callable[[str], bool] = lambda name: True
) -> tuple[list[np.ndarray], list[tuple[int, ...]]]:
    """The images of a part, given its list of names, that show one object of the kind; those whose name it takes."""
    from PIL import Image

    root = path.parents[2]
    X, y = [], []
    for name in filter(takes, path.read_text().split()):
        boxes = [box for found, box in read_objects(root, name) if found == kind]
        if len(boxes) == 1:
            with Image.open(root / "JPEGImages" / f"{name}.jpg") as image:
                X.append(np.asarray(image.convert("RGB")))
            y.append(boxes[0])
    return X, y


def read_objects(root: Path, name: str) -> list[tuple[str, tuple[int, ...]]]:
    """The kinds and boxes of the objects in an image; sides are given from 1, the last pixels included."""
    objects: list[tuple[str, tuple[int, ...]]] = []
    for item in ElementTree.parse(root / "Annotations" / f"{name}.xml").getroot().findall("object"):
        box = item.find("bndbox")
        if box is not None:
            top, left, bottom, right = (int(float(box.findtext(side, ""))) for side in SIDES)
            objects.append((item.findtext("name", ""), (max(top - 1, 0), max(left - 1, 0), bottom, right)))
    return objects
