"""Blood cells under the microscope."""

from __future__ import annotations

import csv
from pathlib import Path

from maxmargin.checks import check_choice
from maxmargin.datasets.data_files import Dataset, find_file
from maxmargin.datasets.voc import read_part

PARTS = ("train", "test", "val")
KINDS = ("WBC", "RBC", "Platelets")
WHITE_CELLS = ("NEUTROPHIL", "EOSINOPHIL", "LYMPHOCYTE", "MONOCYTE", "BASOPHIL")


def load_blood_cells(kind: str = "WBC", folder: str | Path | None = None) -> Dataset:
    """Read the images of BCCD that show exactly one blood cell of a kind, with its box.

    Parameters
    ----------
    kind : {"WBC", "RBC", "Platelets"}, or a subtype of white blood cells, default="WBC"
        White or red blood cells, or platelets. The images of a subtype, "NEUTROPHIL", "EOSINOPHIL", "LYMPHOCYTE",
        "MONOCYTE" or "BASOPHIL", show one white blood cell, and ``bccd/labels.csv`` says that it is one of these: a
        table of the ``Image`` numbers and their ``Category``.
    folder : path, default=None
        The folder that contains ``bccd``, with ``JPEGImages``, ``Annotations`` and ``ImageSets``, by default that of
        the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of (480, 640, 3) arrays of bytes; y: lists of boxes (top, left, bottom, right) in pixels, half-open.

    References
    ----------
    https://github.com/Shenggan/BCCD_Dataset, under the MIT licence; the table of subtypes is that of
    https://www.kaggle.com/datasets/paultimothymooney/blood-cells. Reading the images takes Pillow (extra ``vision``).

    Examples
    --------
    >>> from maxmargin.datasets import load_blood_cells
    >>> cells = load_blood_cells()  # doctest: +SKIP
    >>> cells.X_train[0].shape, cells.y_train[0]  # doctest: +SKIP
    ((480, 640, 3), (314, 67, 480, 286))
    """
    check_choice("kind", kind, (*KINDS, *WHITE_CELLS))
    subtypes = {} if kind in KINDS else _read_subtypes(find_file("bccd/labels.csv", folder))
    train, test, dev = (
        read_part(
            find_file(f"bccd/ImageSets/Main/{part}.txt", folder),
            "WBC" if subtypes else kind,
            lambda name: not subtypes or subtypes.get(name) == kind,
        )
        for part in PARTS
    )
    return Dataset(*train, *test, *dev)


def _read_subtypes(path: Path) -> dict[str, str]:
    """The categories of images, by name; of several cells, several."""
    with open(path, newline="") as file:
        return {f"BloodImage_{int(row['Image']):05d}": row["Category"].strip() for row in csv.DictReader(file)}
