"""Taskar's handwritten words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maxmargin.datasets.data_files import Dataset, find_file


def load_ocr(train_on_fold_zero: bool = True, folder: str | Path | None = None) -> Dataset:
    """Read Taskar's OCR words: 6,877 handwritten words, each letter an image of 16x8 binary pixels.

    The first letter of each word, a capital, is missing, and only 55 different words occur.

    Parameters
    ----------
    train_on_fold_zero : bool, default=True
        Train on fold 0, of 626 words, and test on the other nine ("OCR-small"), or the reverse ("OCR-large").
    folder : path, default=None
        The folder that contains ``ocr_letters/letters.npz``, by default that of the environment variable
        MAXMARGIN_DATA. The file holds the arrays ``pixels`` (N, 128), ``labels`` (N,) from 0 to 25, ``folds`` (n,)
        and ``offsets`` (n + 1,): word i is made of the rows offsets[i] to offsets[i + 1].

    Returns
    -------
    Dataset
        X: lists of (T_i, 128) arrays; y: lists of (T_i,) arrays of integers, 0 for "a" to 25 for "z".

    References
    ----------
    Taskar, Guestrin, Koller (2003), Max-margin Markov networks. The original is at
    https://ai.stanford.edu/~btaskar/ocr/.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from maxmargin.datasets import load_ocr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ocr_letters", "letters.npz")
    ...     path.parent.mkdir()
    ...     np.savez(path, pixels=np.ones((5, 128)), labels=[0, 13, 0, 19, 14], offsets=[0, 3, 5], folds=[0, 1])
    ...     words = load_ocr(folder=folder)
    >>> words.y_train, words.y_test
    ([array([ 0, 13,  0])], [array([19, 14])])
    """
    with np.load(find_file("ocr_letters/letters.npz", folder)) as file:
        inner = file["offsets"][1:-1]
        X = np.split(file["pixels"].astype(np.uint8), inner)
        y = np.split(file["labels"].astype(int), inner)
        is_training = (file["folds"] == 0) == train_on_fold_zero
    train, test = np.flatnonzero(is_training), np.flatnonzero(~is_training)
    return Dataset([X[i] for i in train], [y[i] for i in train], [X[i] for i in test], [y[i] for i in test])
