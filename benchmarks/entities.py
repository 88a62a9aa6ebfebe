"""Chunks and entities as in *A smoother way to train structured prediction models*: features and hashing.

A token has its word, lower case, prefixes, suffixes and shape, those of its neighbours and, where there are any, parts
of speech; all hashed onto 2^16 - 1 columns.
"""

from __future__ import annotations

import re

N_COLUMNS = 2**16 - 1


def load_hashed(name: str) -> tuple[list, list, list, list]:
    """X_train, y_train, X_test, y_test of "conll" or "wnut": a CSR matrix and a list of tags per sentence."""
    from sklearn.feature_extraction import FeatureHasher

    from maxmargin.datasets import load_conll2000, load_wnut17

    data = load_conll2000() if name == "conll" else load_wnut17()
    hasher = FeatureHasher(N_COLUMNS, input_type="string", alternate_sign=False, dtype="float32")

    def encode(sentences: list) -> list:
        return [hasher.transform(features(sentence)) for sentence in sentences]

    return encode(data.X_train), data.y_train, encode(data.X_test), data.y_test


def features(sentence: list) -> list[list[str]]:
    """The features of the tokens, which are words or tuples of a word and a part of speech."""
    tokens = [(token, "") if isinstance(token, str) else token for token in sentence]
    rows = []
    for t, (word, pos) in enumerate(tokens):
        row = ["bias", f"w={word}", f"l={word.lower()}", f"s={shape(word)}", f"p={pos}"]
        row += [f"pre={word[:k]}" for k in (1, 2, 3)] + [f"suf={word[-k:]}" for k in (1, 2, 3)]
        for shift in (-2, -1, 1, 2):
            if 0 <= t + shift < len(tokens):
                near, near_pos = tokens[t + shift]
                row += [f"{shift}w={near.lower()}", f"{shift}s={shape(near)}", f"{shift}p={near_pos}"]
                row.append(f"{shift}pp={pos}|{near_pos}")
            else:
                row.append(f"{shift}none")
        rows.append(row)
    return rows


def shape(word: str) -> str:
    """The word with its letters and digits as classes, repeated ones once: "McCoy-3" is "AaAa-0"."""
    classes = re.sub(r"[A-Z]", "A", re.sub(r"[a-z]", "a", re.sub(r"[0-9]", "0", word)))
    return re.sub(r"(.)\1+", r"\1", classes)
