"""Entities from tags that are incomplete and partly wrong, such as those by a knowledge base.

Tags of a knowledge base miss entities, and so do annotators who have tagged only what they were sure of: an O says
little. Here no O is taken for granted; a tag of an entity is believed where taggers of other sentences find it
possible; and the tagger is told which share of all tokens is part of an entity, here that of the held-out sentences.

Run with the folder of the data in MAXMARGIN_DATA (Wikigold with the tags of BOND, or a folder of your own with column
files train.txt, dev.txt and test.txt):

    python examples/weak_entities.py [FOLDER]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from maxmargin import Tagger
from maxmargin.datasets.data_files import find_file
from maxmargin.text import mend_tags, read_columns

FOLDS = 5
LEAST = 0.1  # the probability of a tag that is believed


def believe(X, y):
    """The tags of entities that taggers of other sentences find possible; None in place of all others."""
    fold = np.random.default_rng(0).integers(FOLDS, size=len(X))
    believed = [None] * len(X)
    for k in range(FOLDS):
        others, own = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        tagger = Tagger().fit([X[i] for i in others], [y[i] for i in others])
        column = {tag: j for j, tag in enumerate(tagger.classes_.tolist())}
        for i, table in zip(own, tagger.predict_marginals([X[i] for i in own]), strict=True):
            chances = [row[column[tag]] if tag in column else 0.0 for tag, row in zip(y[i], table, strict=True)]
            believed[i] = [
                tag if tag != "O" and chance >= LEAST else None for tag, chance in zip(y[i], chances, strict=True)
            ]
    return believed


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else find_file("wikigold_distant/train.txt", None).parent
    (X, y), (_, y_dev), (X_test, y_test) = (read_columns(folder / f"{part}.txt") for part in ("train", "dev", "test"))
    warnings.simplefilter("ignore")  # of tags that break the rules of their scheme
    y = mend_tags(y, "IOB2").y
    plain = Tagger().fit(X, y)
    print(f"tags as they are: F1 {100 * plain.score(X_test, y_test):.1f}")
    share = float(np.mean([tag != "O" for tags in y_dev for tag in tags]))
    tagger = Tagger(entity_share=share).fit(X, believe(X, y))
    print(f"what is believed, and a share of {share:.3f}: F1 {100 * tagger.score(X_test, y_test):.1f}")


if __name__ == "__main__":
    main()
