"""Words of handwritten digits, made from the images that come with scikit-learn."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from maxmargin.datasets.data_files import Dataset

STEPS = (1, 3, 6)  # from a digit to the next, modulo 10: few digits that look alike can follow the same one
STEP_CHANCES = (0.5, 0.3, 0.2)
SHORTEST, LONGEST = 4, 8
NOISE = 0.25  # standard deviation; a linear SVM then misreads an eighth of the digits


def digit_words(n_train: int = 200, n_test: int = 200, random_state: int | np.random.Generator = 0) -> Dataset:
    """Make words of four to eight handwritten digits that follow a simple grammar.

    A word starts with any digit; each further digit is the one before plus 1, 3 or 6 (modulo 10), with chances 0.5,
    0.3 and 0.2. The digits are images of 8x8 pixels from `sklearn.datasets.load_digits`, with enough noise added
    to make many of them hard to read alone. No image occurs in both the training and the test words; within either,
    images are used repeatedly, with other noise.

    Parameters
    ----------
    n_train, n_test : int, default=200
        Numbers of words. The test words do not depend on `n_train`.
    random_state : int or Generator, default=0
        Seed of the words, their images and the noise.

    Returns
    -------
    Dataset
        X: lists of (T_i, 64) arrays of pixels in [0, 1]; y: lists of (T_i,) arrays of digits.

    Examples
    --------
    >>> from maxmargin.datasets import digit_words
    >>> words = digit_words(n_train=20, n_test=10)
    >>> words
    Dataset(20 training, 10 test examples)
    >>> words.X_train[0].shape, words.y_train[0]
    ((7, 64), array([6, 7, 0, 1, 7, 0, 3]))
    """
    for name, n in (("n_train", n_train), ("n_test", n_test)):
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"{name} must be a positive integer, not {n!r}.")
    from sklearn.datasets import load_digits  # slow to import

    images, digits = load_digits(return_X_y=True)
    of_split, of_train, of_test = np.random.default_rng(random_state).spawn(3)
    shuffled = of_split.permutation(len(digits))
    half = len(shuffled) // 2
    return Dataset(
        *_words(n_train, images[shuffled[:half]] / 16, digits[shuffled[:half]], of_train),
        *_words(n_test, images[shuffled[half:]] / 16, digits[shuffled[half:]], of_test),
    )


def _words(
    n: int, images: np.ndarray, digits: np.ndarray, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    images_of = [images[digits == digit] for digit in range(10)]
    X, y = [], []
    for _ in range(n):
        length = rng.integers(SHORTEST, LONGEST, endpoint=True)
        steps = rng.choice(STEPS, size=length - 1, p=STEP_CHANCES)
        word = np.cumsum([rng.integers(10), *steps]) % 10
        clean = np.stack([rng.choice(images_of[digit]) for digit in word])
        X.append(np.clip(clean + NOISE * rng.standard_normal(clean.shape), 0, 1))
        y.append(word)
    return X, y
