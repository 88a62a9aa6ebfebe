"""What helps a linear tagger, and how much: features, schemes, stages and learned word classes, on test sentences.

Each source is added to the defaults alone; recipes are the same for all sets. Scores are the F1 of entities, or the
share of right tags, in percent, with the half width of the 95 % interval of 500 bootstrap samples of the sentences.
Word classes are learned from the words of all sentences of a set, own names are the entities to train on: no other
text is read.
"""

from __future__ import annotations

import time
from operator import eq
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report
from benchmarks.tagger_defaults import load

SOURCES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "affixes of 5": {"affixes": 5},
    "affixes of neighbours": {"near_affixes": 3},
    "characters": {"char_ngrams": 4},
    "spelling elsewhere": {"elsewhere": True},
    "IOBES inside": {"inside": "IOBES"},
    "word classes": {"n_classes": 256},
    "own names": {"own_names": True},
    "two stages": {"two_stages": True},
    "SVM": {"svm": True},
    "SVM, words": {"svm": True, "affixes": 5, "char_ngrams": 4, "elsewhere": True},
    "words": {"affixes": 5, "char_ngrams": 4, "elsewhere": True},
    "words, narrow": {"affixes": 5, "char_ngrams": 4, "elsewhere": True, "window": 1, "word_ngrams": 1},
    "words and classes": {"affixes": 5, "char_ngrams": 4, "elsewhere": True, "n_classes": 256},
    "words, names, classes": {
        "affixes": 5,
        "char_ngrams": 4,
        "elsewhere": True,
        "n_classes": 256,
        "own_names": True,
    },
    "all": {"affixes": 5, "elsewhere": True, "inside": "IOBES", "n_classes": 256, "two_stages": True},
}
SETS = ("dutch", "wnut17", "conll2000", "lines")
BARS = {  # of the best recipe of those named
    "dutch": [(77.0, ("defaults", "words")), (79.0, ("word classes", "words and classes", "all"))],
    "wnut17": [(17.0, ("words", "words, names, classes", "SVM", "SVM, words"))],
    "conll2000": [(94.2, ("IOBES inside", "words and classes", "all"))],
}
GAIN = 0.4  # of tags of LinES
SAMPLES = 500
OF_TAGGERS = ("inside", "two_stages")


def lists_of(X: list, y: list) -> dict[str, list[str]]:
    """Lists of the entities of sentences, one per type."""
    from maxmargin.text import find_entities

    lists: dict[str, list[str]] = {}
    for tokens, entities in zip(X, find_entities(y), strict=True):
        words = [token if isinstance(token, str) else token[0] for token in tokens]
        for start, end, title in entities:
            lists.setdefault(title, []).append(" ".join(words[start:end]))
    return lists


def measure(name: str, source: str) -> dict[str, float]:
    """The score of a tagger with one of the sources, on test sentences, its interval, and the time of training."""
    from maxmargin import ChainSVM, Tagger
    from maxmargin.tagger.word_tagger import default_model
    from maxmargin.text import WindowFeatures, learn_classes

    train, dev, test = load(name)
    text = [[token if isinstance(token, str) else token[0] for token in x] for X, _ in (train, dev, test) for x in X]
    if name == "conll2000":  # which has no held-out sentences
        train = [*train[0], *dev[0]], [*train[1], *dev[1]]
    options = dict(SOURCES[source])
    began = time.process_time()
    if "n_classes" in options:
        options["classes"] = {"class": learn_classes(text, n_classes=options.pop("n_classes"))}
    if options.pop("own_names", False):
        options["gazetteers"] = lists_of(*train)
    stages = {key: options.pop(key) for key in OF_TAGGERS if key in options}
    model = (ChainSVM(only_observed=True) if options.pop("svm", False) else default_model()).set_params(random_state=0)
    tagger = Tagger(features=WindowFeatures(**options), model=model, **stages).fit(*train)
    seconds, found, y = time.process_time() - began, tagger.predict(test[0]), test[1]
    counts = count_right(y, found, are_entities=tagger.scheme_ is not None)
    times = np.random.default_rng(0).multinomial(len(y), np.full(len(y), 1 / len(y)), size=SAMPLES)
    low, high = np.quantile(share(times @ counts), [0.025, 0.975])
    return {"score": float(share(counts.sum(axis=0))), "half": float(high - low) / 2, "seconds": seconds}


def count_right(y: list, found: list, *, are_entities: bool) -> np.ndarray:
    """For each sentence the numbers of right entities, or tags, of true ones and of those that were found."""
    if not are_entities:
        return np.array([[sum(map(eq, a, b)), len(a), len(b)] for a, b in zip(y, found, strict=True)])
    from maxmargin.text import find_entities

    pairs = zip(find_entities(y), find_entities(found), strict=True)
    return np.array([[len({*a} & {*b}), len(a), len(b)] for a, b in pairs])


def share(counts: np.ndarray) -> np.ndarray:
    """F1 in percent: which of tags is the share of right ones, as there are as many true ones as others."""
    return 200 * counts[..., 0] / (counts[..., 1] + counts[..., 2])


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--sets", {"nargs": "+", "default": SETS, "choices": SETS}),
        ("--sources", {"nargs": "+", "default": [*SOURCES], "choices": [*SOURCES]}),
    )
    figures: dict[str, dict[str, Any]] = {}
    for name in options.sets:
        figures[name] = {}
        for source in options.sources:
            if name != "lines" or not {"inside", "own_names"} & SOURCES[source].keys():  # tags of no entities
                found = figures[name][source] = in_fresh_process(measure, name, source)
                print(
                    f"{name}, {source}: {found['score']:.2f} +- {found['half']:.2f}, {found['seconds']:.1f} s",
                    flush=True,
                )
    rows = [
        [
            source,
            *(f"{f[source]['score']:.2f} ± {f[source]['half']:.2f}" if source in f else "" for f in figures.values()),
        ]
        for source in options.sources
    ]
    print_table("scores on test sentences", ["source", *figures], rows)
    times = [[s, *(f"{f[s]['seconds']:.1f}" if s in f else "" for f in figures.values())] for s in options.sources]
    print_table("CPU s of training, learning of classes included", ["source", *figures], times)
    report(figures, find_bars(figures), options.json)


def find_bars(figures: dict[str, dict[str, Any]]) -> list[Bar]:
    """What scores are to reach, where they were measured."""
    bars = []
    for name, found in figures.items():
        for least, sources in BARS.get(name, []):
            scores = {source: found[source]["score"] for source in sources if source in found}
            if scores:
                best = max(scores, key=scores.__getitem__)
                claim = f"{name}: at least {least:g} by {' or '.join(scores)}"
                bars.append(Bar(claim, f"{scores[best]:.2f} by {best}", scores[best] >= least))
        if name == "lines" and "defaults" in found and len(found) > 1:
            best = max(found, key=lambda source: found[source]["score"])
            gain = found[best]["score"] - found["defaults"]["score"]
            bars.append(Bar(f"lines: {GAIN} above the defaults", f"{gain:+.2f} by {best}", gain >= GAIN))
    return bars


if __name__ == "__main__":
    main()
