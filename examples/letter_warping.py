"""Which columns of ink belong together: the same word by two hands, one warped onto the other.

Run ``python examples/letter_warping.py`` with MAXMARGIN_DATA set to a folder that contains ``ocr_letters``; with
``--plot path.png``, which needs matplotlib, it draws the links of one pair of words.

A word is a sequence of columns of 16 pixels, without those that have no ink, so that letters are of different widths.
Nobody knows which columns belong together, but we know the letter of each: that is what `AlignmentCRF` learns from, by
flags of the links between columns of the same letter. The report is the share of links that are between such columns,
on held-out words, beside dynamic time warping with the squared distance of two columns.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import pairwise

import numpy as np

from maxmargin import AlignmentCRF
from maxmargin.datasets import load_ocr

HEIGHT, WIDTH = 16, 8
CONTEXT = 2  # columns on either side whose pixels are features of a column


def read_columns(letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of each column with ink, (T, F), and which letter of the word it belongs to."""
    ink = letters.reshape(-1, HEIGHT, WIDTH).transpose(0, 2, 1).reshape(-1, HEIGHT).astype(float)
    smooth = np.apply_along_axis(np.convolve, 1, ink, [0.25, 0.5, 0.25], mode="same")
    has_ink = ink.any(axis=1)
    padded = np.pad(smooth[has_ink], ((CONTEXT, CONTEXT), (0, 0)))
    n = has_ink.sum()
    rows = np.hstack([padded[k : k + n] for k in range(2 * CONTEXT + 1)])
    return rows, np.repeat(np.arange(len(letters)), WIDTH)[has_ink]


def read_pairs(X: list, y: list, n_pairs: int) -> tuple[list, list]:
    """Pairs of hands that wrote the same word, and flags of columns of the same letter."""
    hands = defaultdict(list)
    for letters, word in zip(X, y, strict=True):
        hands[tuple(word)].append(read_columns(letters))
    pairs = [pair for words in hands.values() for pair in pairwise(words)]
    chosen = np.random.default_rng(0).choice(len(pairs), n_pairs, replace=False)
    return (
        [(pairs[k][0][0], pairs[k][1][0]) for k in chosen],
        [np.equal.outer(pairs[k][0][1], pairs[k][1][1]) for k in chosen],
    )


def warp(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The links of dynamic time warping with squared distances."""
    distance = np.square(left[:, np.newaxis] - right).sum(axis=2)
    table = np.full((len(left) + 1, len(right) + 1), np.inf)
    table[0, 0] = 0
    for i, j in np.ndindex(distance.shape):
        table[i + 1, j + 1] = distance[i, j] + min(table[i, j], table[i, j + 1], table[i + 1, j])
    links, at = [], (len(left), len(right))
    while at != (0, 0):
        i, j = at
        links.append((i - 1, j - 1))
        at = min([(i - 1, j - 1), (i - 1, j), (i, j - 1)], key=lambda cell: table[cell])
    return np.array(links[::-1])


def share_right(links: list[np.ndarray], same: list[np.ndarray]) -> float:
    """The share of links between columns of the same letter."""
    return float(np.concatenate([flags[tuple(found.T)] for found, flags in zip(links, same, strict=True)]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=60, help="pairs of words to train on")
    parser.add_argument("--test", type=int, default=200, help="pairs of words to test on")
    parser.add_argument("--plot", help="where to draw the links of one pair")
    arguments = parser.parse_args()
    data = load_ocr()
    X, same = read_pairs(data.X_train, data.y_train, arguments.train)
    X_test, same_test = read_pairs(data.X_test, data.y_test, arguments.test)
    print(f"{len(X)} pairs of words to train on, {len(X_test)} to test on, {X[0][0].shape[1]} features of a column")
    model = AlignmentCRF(warp=True, C=1.0).fit(X, same)
    learned, plain = model.predict(X_test), [warp(*pair) for pair in X_test]
    print(f"dynamic time warping: {share_right(plain, same_test):.1%} of links are within a letter")
    print(f"AlignmentCRF:         {share_right(learned, same_test):.1%} ({model.status_})")
    if arguments.plot:
        draw(arguments.plot, model.predict_marginals(X_test[:1])[0], same_test[0], plain[0], learned[0])


def draw(path: str, shares: np.ndarray, same: np.ndarray, plain: np.ndarray, learned: np.ndarray) -> None:
    """The probabilities of links, letters as boxes, and both alignments."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 6))
    axes.imshow(shares.T, cmap="Greys", origin="lower", vmin=0, vmax=1)
    axes.contour(same.T, levels=[0.5], colors="tab:green", linewidths=0.8)
    axes.plot(*plain.T, "--", color="tab:orange", label="dynamic time warping")
    axes.plot(*learned.T, color="tab:blue", label="AlignmentCRF")
    axes.set(xlabel="columns of one hand", ylabel="columns of the other", title="Probabilities of links; letters")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
