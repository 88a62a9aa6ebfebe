"""Your own structure in Python: put the spaces back into text, "thecompanysaid" -> "the company said".

An output is a tuple of words. The three methods of `Segmentation` are all there is to write: features count the known
words and the lengths of the others, costs count wrong boundaries, and argmax is a dynamic program over the positions
where a word may end. The baseline takes the longest known word, from left to right.

Run with the folder of the data in MAXMARGIN_DATA:

    python examples/word_segmentation.py
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter

import numpy as np

from maxmargin import StructuredSVM
from maxmargin.datasets import load_conll2000

LONGEST = 12  # letters of a word


class Segmentation:
    """Texts cut into words: known ones, with a weight each, or others, with a weight per length."""

    def __init__(self, vocabulary):
        self.index = {word: k for k, word in enumerate(vocabulary)}

    def feature_of(self, word):
        return self.index.get(word, len(self.index) + len(word) - 1)

    def features(self, text, words):
        return np.bincount([self.feature_of(word) for word in words], minlength=len(self.index) + LONGEST)

    def cost(self, true, words):
        return len(boundaries(true) ^ boundaries(words))

    def argmax(self, text, w, true=None):
        ends = None if true is None else boundaries(true)

        def gain(start, stop):
            score = w[self.feature_of(text[start:stop])]
            if ends is not None:  # boundaries that are missed inside the word, or wrong at its end
                score += sum(k in ends for k in range(start + 1, stop)) + (stop < len(text) and stop not in ends)
            return score

        best, origin = [0.0], [0]
        for stop in range(1, len(text) + 1):
            starts = range(max(0, stop - LONGEST), stop)
            scores = [best[start] + gain(start, stop) for start in starts]
            k = int(np.argmax(scores))
            best.append(scores[k])
            origin.append(starts[k])
        words, stop = [], len(text)
        while stop > 0:
            words.append(text[origin[stop] : stop])
            stop = origin[stop]
        return tuple(reversed(words))


def boundaries(words):
    """The positions between two words."""
    return set(itertools.accumulate(len(word) for word in words[:-1]))


def longest_first(text, vocabulary):
    """The longest known word, else a letter, from left to right."""
    words = []
    while text:
        length = max((n for n in range(1, LONGEST + 1) if text[:n] in vocabulary), default=1)
        words.append(text[:length])
        text = text[length:]
    return tuple(words)


def f1(true, predicted):
    """Of the boundaries."""
    right = sum(len(boundaries(a) & boundaries(b)) for a, b in zip(true, predicted, strict=True))
    return 2 * right / sum(len(boundaries(y)) for y in (*true, *predicted))


def phrases(sentences, length=6):
    """Texts of some words each, in small letters, and their words."""
    words = [word.lower() for sentence in sentences for word, _ in sentence if word.isalpha() and len(word) <= LONGEST]
    y = [tuple(words[k : k + length]) for k in range(0, len(words) - length, length)]
    return ["".join(phrase) for phrase in y], y


def main():
    data = load_conll2000()
    X, y = phrases(data.X_train)
    counts = Counter(itertools.chain(*y))
    model = Segmentation([word for word, count in counts.most_common(1000)])
    X_train, y_train = X[:400], y[:400]
    X_test, y_test = (part[:300] for part in phrases(data.X_test))
    svm = StructuredSVM(model, C=1.0, tol=0.05, max_passes=15, random_state=0, verbose=1).fit(X_train, y_train)

    print(f"\nF1 of the boundaries in {len(X_test)} test phrases")
    print(f"longest known word {f1(y_test, [longest_first(x, model.index) for x in X_test]):.3f}")
    print(f"StructuredSVM      {f1(y_test, svm.predict(X_test)):.3f}")
    print(f"{X_test[0]} -> {' '.join(svm.predict(X_test[:1])[0])}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Not solved to tol")  # the trace is printed
    main()
