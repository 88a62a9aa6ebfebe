"""Dependency parsing of Universal Dependencies, with gold tags: English LinES and Dutch LassySmall.

Parsers train on arc features by name (words, tags, direction and distance, what lies between), projective and not.
Scores leave out punctuation. Dutch has no training part here: parsers train on the development part. There are scores
of all sentences and of those where arcs cross, of the best trees without crossing arcs by the same weights, and of the
trees with the most heads that are right, as expected by a CRF.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

TREEBANKS = {"ud_english_lines": "train", "ud_dutch_lassysmall": "dev"}  # and the part to train on
PASSES = {"DependencySVM": 10, "DependencyCRF": 60}
LEAST_UAS = 0.82  # of English
MOST_SECONDS = 120.0  # of training, features included


def load_treebank(name: str, part: str) -> tuple[list, list]:
    """Sentences of words with parts of speech, and their trees."""
    from maxmargin.text import read_conllu

    sentences = read_conllu(Path(os.environ["MAXMARGIN_DATA"]) / name / f"{part}.conllu")
    X = [[*zip(sentence.column("form"), sentence.column("upos"), strict=True)] for sentence in sentences]
    return X, [sentence.arcs for sentence in sentences]


def train_parser(model: str, treebank: str, projective: bool, labelled: bool, passes: int) -> dict[str, Any]:
    """Train and score one parser; CPU times include features and, the first time, compilation."""
    import numpy as np

    import maxmargin
    from maxmargin.encode.sentences.head_trees import find_crossing
    from maxmargin.metrics import las, uas
    from maxmargin.text import ArcFeatures

    X, y = load_treebank(treebank, TREEBANKS[treebank])
    X_test, y_test = load_treebank(treebank, "test")
    if not labelled:
        y = [[head for head, _ in tree] for tree in y]
    features = ArcFeatures()
    parser = getattr(maxmargin, model)(projective=projective, lift=projective, max_passes=passes, random_state=0)
    began = time.process_time()
    parser.fit(features.transform(X), y)
    trained = time.process_time()
    arcs = features.transform(X_test)
    found = parser.predict(arcs)
    parsed = time.process_time()
    expected = parser.predict_posterior(arcs) if model == "DependencyCRF" else None
    parser._encoder = replace(parser._encoder, is_projective=True)
    uncrossed = found if projective else parser.predict(arcs)
    crossing = [i for i, tree in enumerate(y_test) if find_crossing(np.array([head for head, _ in tree]))]
    true, predicted, words = ([rows[i] for i in crossing] for rows in (y_test, found, X_test))
    return {
        "treebank": treebank,
        "model": f"{model}, {'projective' if projective else 'all trees'}",
        "UAS": uas(y_test, found, words=X_test),
        "where arcs cross": uas(true, predicted, words=words),
        "without crossing": uas(y_test, uncrossed, words=X_test),
        "expected heads": expected and uas(y_test, expected, words=X_test),
        "LAS": las(y_test, found, words=X_test) if labelled else None,
        "training, s": trained - began,
        "parsing, s": parsed - trained,
        "gap": parser.certificate_.relative_gap,
        "features": parser.n_features_in_,
    }


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--passes", {"type": int, "help": "over the training sentences: by default 10 of the SVM, 60 of the CRF"}),
        ("--models", {"nargs": "+", "default": ["DependencySVM", "DependencyCRF"]}),
        ("--treebanks", {"nargs": "+", "default": [*TREEBANKS], "choices": [*TREEBANKS]}),
        ("--labelled", {"action": "store_true", "help": "train labels of arcs, too"}),
    )
    figures, bars = [], []
    for treebank in arguments.treebanks:
        for model in arguments.models:
            passes = arguments.passes or PASSES[model]
            both = [
                in_fresh_process(train_parser, model, treebank, projective, arguments.labelled, passes)
                for projective in (True, False)
            ]
            figures += both
            if treebank == "ud_english_lines":
                best = max(both, key=lambda figure: figure["UAS"])
                claim = f"{model}: UAS of at least {LEAST_UAS:.0%} after at most {MOST_SECONDS:.0f} CPU s"
                holds = best["UAS"] >= LEAST_UAS and best["training, s"] <= MOST_SECONDS
                bars.append(Bar(claim, f"{best['UAS']:.2%} after {best['training, s']:.1f} s", holds))
            else:
                one, other = (figure["UAS"] for figure in both)
                claim = f"{model}: where arcs cross, all trees are at least as good as projective ones"
                bars.append(Bar(claim, f"{other:.2%} and {one:.2%}", other >= one))
    print_table("Dependency parsing", figures[0], (figure.values() for figure in figures))
    report(figures, bars, arguments.json)


if __name__ == "__main__":
    main()
