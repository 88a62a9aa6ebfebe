"""What helps a linear tagger, and how much: features, schemes, stages and word classes, on test sentences.

Each source is added to the defaults alone; recipes, which were chosen on held-out sentences, follow. Beside them are
the defaults of an earlier version, and python-crfsuite with the features and penalties of its tutorials. Scores are the
F1 of entities, or the share of right tags, in percent, with the half width of the 95 % interval of 500 bootstrap
samples of the sentences. Own classes and vectors of words are learned from the words of all sentences of a set, own
names are the entities to train on. Installed classes and cases are those of spacy-lookups-data, installed names those
of mimesis (pip install "maxmargin[classes,names]"): no other text is read.
"""

from __future__ import annotations

import tempfile
import time
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report
from benchmarks.tagger_defaults import load
from benchmarks.tagging import PENALTIES, chunk_items, entity_items

PEER, BEFORE, OURS = "python-crfsuite", "earlier defaults", "defaults"
SOURCES: dict[str, dict[str, Any]] = {
    PEER: {},
    BEFORE: {"affixes": 3, "cased_affixes": True, "tag_words": False, "C": 1.0, "inside": None},
    OURS: {},
    "C = 10": {"C": 10.0},
    "affixes of up to 3": {"affixes": 3},
    "affixes as words are spelled": {"cased_affixes": True},
    "without words with tags": {"tag_words": False},
    "affixes of neighbours": {"near_affixes": 3},
    "characters": {"char_ngrams": 4},
    "spelling elsewhere": {"elsewhere": True},
    "IOBES inside": {"inside": "IOBES"},
    "no other scheme inside": {"inside": None},
    "own classes": {"n_classes": 256},
    "own vectors": {"vector_size": 50},
    "own names": {"own_names": True},
    "installed classes": {"installed": ["classes"]},
    "installed cases": {"installed": ["cases"]},
    "installed names": {"installed": ["names"]},
    "two stages": {"two_stages": True},
    "SVM": {"svm": True},
    "IOBES, SVM": {"inside": "IOBES", "svm": True},
    "IOBES, own classes": {"inside": "IOBES", "n_classes": 256},
    "IOBES, installed classes": {"inside": "IOBES", "installed": ["classes"]},
    "IOBES, spelling, own classes": {"inside": "IOBES", "elsewhere": True, "n_classes": 256},
    "the same in two stages": {"inside": "IOBES", "elsewhere": True, "n_classes": 256, "two_stages": True},
    "own classes and vectors": {"n_classes": 256, "vector_size": 50},
    "characters, own classes": {"char_ngrams": 4, "n_classes": 256},
    "installed classes and names": {"installed": ["classes", "names"]},
    "all that is installed": {"installed": ["classes", "cases", "names"]},
    "the same, recall preferred": {"installed": ["classes", "cases", "names"], "prefer": "recall"},
}
INSTALLED = {  # in English
    "classes": ("classes", lambda text: {"brown": text.read_classes("spacy:en")}),
    "cases": ("classes", lambda text: {"case": text.read_classes("spacy-case:en")}),
    "names": ("gazetteers", lambda text: text.read_gazetteers("mimesis:all")),
}
SETS = ("dutch", "wnut17", "conll2000", "lines")
ENGLISH = ("wnut17", "conll2000", "lines")
BARS = {  # of the defaults, and of recipes
    "dutch": [(77.0, OURS), (79.0, "IOBES, spelling, own classes")],
    "wnut17": [(17.0, "characters, own classes"), (24.0, "all that is installed")],
    "conll2000": [(94.2, OURS), (94.2, "IOBES, installed classes")],
}
GAIN = 0.4  # of tags of LinES
SLOWER = 3.0  # times that of the earlier defaults
SAMPLES = 500
OF_TAGGERS = ("inside", "two_stages", "prefer")


def train_peer(name: str, train: tuple[list, list], X: list) -> tuple[float, list]:
    """CPU seconds of python-crfsuite's training, and its tags of other sentences."""
    import pycrfsuite  # type: ignore[import-untyped]

    items, penalties = (chunk_items, PENALTIES["conll"]) if name == "conll2000" else (entity_items, PENALTIES["wnut"])
    began = time.process_time()
    trainer, tagger = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False), pycrfsuite.Tagger()
    trainer.set_params(penalties)
    for x, y in zip(*train, strict=True):
        trainer.append(items(x), y)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))
        seconds = time.process_time() - began
        tagger.open(str(Path(folder) / "model"))
        return seconds, [tagger.tag(items(x)) for x in X]


def lists_of(X: list, y: list) -> dict[str, list[str]]:
    """Lists of the entities of sentences, one per type."""
    from maxmargin.text import find_entities

    lists: dict[str, list[str]] = {}
    for tokens, entities in zip(X, find_entities(y), strict=True):
        words = [token if isinstance(token, str) else token[0] for token in tokens]
        for start, end, title in entities:
            lists.setdefault(title, []).append(" ".join(words[start:end]))
    return lists


def train_ours(options: dict[str, Any], words: list, train: tuple[list, list], X: list) -> tuple[float, list]:
    """CPU seconds of our training with these options, and the tags of other sentences."""
    from maxmargin import ChainSVM, Tagger, text
    from maxmargin.tagger.word_tagger import default_model

    options = dict(options)
    began = time.process_time()
    if "n_classes" in options:
        options["classes"] = {"class": text.learn_classes(words, n_classes=options.pop("n_classes"))}
    if "vector_size" in options:
        options["vectors"] = text.learn_vectors(words, size=options.pop("vector_size"))
    for name in options.pop("installed", []):
        option, read = INSTALLED[name]
        options[option] = {**options.get(option, {}), **read(text)}
    if options.pop("own_names", False):
        options["gazetteers"] = lists_of(*train)
    stages = {key: options.pop(key) for key in OF_TAGGERS if key in options}
    model = (ChainSVM(only_observed=True) if options.pop("svm", False) else default_model()).set_params(random_state=0)
    if "C" in options:
        model.set_params(C=options.pop("C"))
    tagger = Tagger(features=text.WindowFeatures(**options), model=model, **stages).fit(*train)
    return time.process_time() - began, tagger.predict(X)


def measure(name: str, source: str) -> dict[str, float]:
    """The score of a tagger with one of the sources, on test sentences, its interval, and the time of training."""
    train, dev, (X, y) = load(name)
    text = [
        [token if isinstance(token, str) else token[0] for token in x] for part in (train, dev, (X, y)) for x in part[0]
    ]
    if name == "conll2000":  # which has no held-out sentences
        train = [*train[0], *dev[0]], [*train[1], *dev[1]]
    seconds, found = train_peer(name, train, X) if source == PEER else train_ours(SOURCES[source], text, train, X)
    counts = count_right(y, found, are_entities=name != "lines")
    times = np.random.default_rng(0).multinomial(len(y), np.full(len(y), 1 / len(y)), size=SAMPLES)
    low, high = np.quantile(share(times @ counts), [0.025, 0.975])
    return {"score": float(share(counts.sum(axis=0))), "half": float(high - low) / 2, "seconds": seconds}


def suits(name: str, options: dict[str, Any]) -> bool:
    """Whether options can be used on a set: tags that spell no entities have no schemes, not all are English."""
    has_entities = any(options.get(key) for key in ("inside", "own_names", "two_stages"))
    return not (name == "lines" and has_entities) and ("installed" not in options or name in ENGLISH)


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
        in_fresh_process(measure, name, OURS)  # to compile
        for source in options.sources:
            if suits(name, SOURCES[source]):
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
    """What scores are to reach, and how fast, where they were measured."""
    bars = []
    for name, found in figures.items():
        for least, source in BARS.get(name, []):
            if source in found:
                score = found[source]["score"]
                bars.append(Bar(f"{name}, {source}: at least {least:g}", f"{score:.2f}", score >= least))
        if BEFORE not in found or OURS not in found:
            continue
        if name == "lines":
            gain = found[OURS]["score"] - found[BEFORE]["score"]
            bars.append(Bar(f"lines: {GAIN} above the earlier defaults", f"{gain:+.2f}", gain >= GAIN))
        for source in dict.fromkeys([OURS, *(source for _, source in BARS.get(name, []))]):
            if source in found:
                ratio = found[source]["seconds"] / found[BEFORE]["seconds"]
                claim = f"{name}, {source}: at most {SLOWER:g} times the time of the earlier defaults"
                bars.append(Bar(claim, f"{ratio:.2f}", ratio <= SLOWER))
    return bars


if __name__ == "__main__":
    main()
