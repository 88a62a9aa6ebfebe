"""Rows of features with several labels each: scenes, emotions that music evokes, and what the site of Mulan has."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from maxmargin.datasets.data_files import Dataset, find_file
from maxmargin.wording import quote


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


def load_mulan(name: str = "yeast", folder: str | Path | None = None) -> Dataset:
    r"""Read a multi-label data set as Mulan has it, such as yeast: 1,500 training and 917 test genes, 14 labels.

    Parameters
    ----------
    name : str, default="yeast"
        The name of the data set.
    folder : path, default=None
        The folder that contains ``yeast/yeast-train.arff``, ``yeast/yeast-test.arff`` and ``yeast/yeast.xml``, which
        names the attributes that are labels; by default that of the environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: (n, features) arrays; y: (n, labels) arrays of 0 and 1, in the order of the XML file.

    References
    ----------
    Elisseeff, Weston (2001), A kernel method for multi-labelled classification. Tsoumakas, Spyromitros-Xioufis, Vilcek,
    Vlahavas (2011), Mulan: a Java library for multi-label learning.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.datasets import load_mulan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = pathlib.Path(folder, "yeast")
    ...     root.mkdir()
    ...     _ = (root / "yeast.xml").write_text('<labels><label name="Class1"/></labels>')
    ...     for part in ("train", "test"):
    ...         _ = (root / f"yeast-{part}.arff").write_text(
    ...             "@relation yeast\n@attribute Att1 numeric\n@attribute Class1 {0,1}\n@data\n0.5,1\n-0.1,0\n"
    ...         )
    ...     genes = load_mulan("yeast", folder)
    >>> genes, genes.X_train.ravel(), genes.y_train.ravel()
    (Dataset(2 training, 2 test examples), array([ 0.5, -0.1]), array([1, 0]))
    """
    path = find_file(f"{name}/{name}.xml", folder)
    labels = [
        element.attrib["name"]
        for element in ElementTree.parse(path).iter()
        if element.tag.rpartition("}")[2] == "label"
    ]
    halves: list[Any] = []
    for part in ("train", "test"):
        path = find_file(f"{name}/{name}-{part}.arff", folder)
        names, rows = _read_arff(path)
        if missing := sorted(set(labels) - set(names)):
            raise ValueError(f"{path} must have all labels of {name}.xml as attributes, but lacks {missing[0]!r}.")
        halves += [rows[:, ~np.isin(names, labels)], rows[:, [names.index(label) for label in labels]].astype(int)]
    return Dataset(*halves)


def _read_arff(path: Path) -> tuple[list[str], np.ndarray]:
    """The names of the attributes, and a row of numbers for each line of data, be they dense or sparse."""
    names: list[str] = []
    rows: list[np.ndarray] = []
    in_data = False
    for number, line in enumerate(map(str.strip, path.read_text(encoding="utf-8").splitlines()), 1):
        if not line or line.startswith("%"):
            continue
        if in_data:
            try:
                rows.append(_read_row(line, len(names)))
            except (ValueError, IndexError):
                raise ValueError(f"{path}, line {number}: expected {len(names)} numbers, not {quote(line)}.") from None
        elif line.lower().startswith("@attribute"):
            names.append(shlex.split(line)[1])
        in_data |= line.lower() == "@data"
    return names, np.array(rows)


def _read_row(line: str, size: int) -> np.ndarray:
    if not line.startswith("{"):
        return np.array(line.split(","), float).reshape(size)
    row = np.zeros(size)
    for entry in filter(None, line.strip("{}").split(",")):  # place and value of what is not zero
        at, value = entry.split()
        row[int(at)] = float(value)
    return row


def _read(name: str, folder: str | Path | None) -> Dataset:
    with np.load(find_file(f"{name}/{name}.npz", folder)) as file:
        arrays = {key.lower(): file[key] for key in file.files}  # some files say Y
    X_train, X_test = arrays["x_train"], arrays["x_test"]
    return Dataset(X_train, arrays["y_train"].astype(int), X_test, arrays["y_test"].astype(int))
