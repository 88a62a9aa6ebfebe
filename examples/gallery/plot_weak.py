"""
Half of the labels are missing
==============================

``None`` in the place of a label says that nobody knows it. Words that are labelled in part are worth nearly as much
as whole ones.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import ChainCRF
from maxmargin.datasets import digit_words

words = digit_words(n_train=150)
rng = np.random.default_rng(0)


def hide(y, share):
    """Labels with a share of them unknown."""
    return [[None if rng.random() < share else label for label in word] for word in y]


def fit_score(X, y):
    """Digits right on test words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ChainCRF(C=0.1, random_state=0).fit(X, y).score(words.X_test, words.y_test)


shares = (0.0, 0.25, 0.5, 0.75, 0.9)
used, dropped = [], []
for share in shares:
    y = hide(words.y_train, share)
    whole = [i for i, word in enumerate(y) if None not in word]
    used.append(fit_score(words.X_train, y))
    dropped.append(fit_score([words.X_train[i] for i in whole], [y[i] for i in whole]) if len(whole) > 3 else np.nan)

# %%

figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
axes.plot(shares, used, marker="o", label="all words, as they are")
axes.plot(shares, dropped, marker="s", label="words that are labelled in full")
axes.set(xlabel="share of labels that are unknown", ylabel="digits right on test words")
axes.legend()
plt.show()
