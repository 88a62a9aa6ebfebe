"""People in sports, with the joints of their bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.io import loadmat

from maxmargin.datasets.data_files import Dataset, find_file

TRAINING_SHARE = 0.75


def load_lsp(folder: str | Path | None = None) -> Dataset:
    """Read 400 images of the Leeds Sports Pose Extended data: people in sports, with 14 joints each.

    The joints are right ankle, knee and hip, left hip, knee and ankle, right wrist, elbow and shoulder, left shoulder,
    elbow and wrist, neck, and top of the head. The first three quarters of the images are for training.

    Parameters
    ----------
    folder : path, default=None
        The folder that contains ``lsp_extended_400/joints.mat`` and ``lsp_extended_400/images``, by default that of the
        environment variable MAXMARGIN_DATA.

    Returns
    -------
    Dataset
        X: lists of paths of images; y: lists of (14, 3) arrays, the x and y of each joint in pixels and whether it is
        visible, 1 or 0. Joints that are not visible may lie anywhere.

    References
    ----------
    Johnson, Everingham (2011), Learning effective human pose estimation from inaccurate annotation.

    Examples
    --------
    >>> from maxmargin.datasets import load_lsp
    >>> load_lsp()  # doctest: +SKIP
    Dataset(300 training, 100 test examples)
    """
    path = find_file("lsp_extended_400/joints.mat", folder)
    joints = loadmat(path)["joints"].transpose(2, 0, 1).astype(np.float64)
    images = sorted((path.parent / "images").glob("*.jpg"))
    if len(images) != len(joints):
        raise ValueError(f"{path.parent} has joints of {len(joints)} images, but {len(images)} images.")
    cut = round(TRAINING_SHARE * len(images))
    return Dataset(images[:cut], list(joints[:cut]), images[cut:], list(joints[cut:]))
