"""Labels that are known in part: unknown ones, only some of the entities, tags that are incomplete and wrong.

Curves over the share of labels that are known, beside dropping the incomplete examples and beside filling in: O, or no
label. Entities of which 1,000 are known, and tags by a knowledge base or made wrong, are those of files; the share of
tokens in entities, which a tagger is told there, is that of the held-out file. Labels of rows are there by half of
those that they have. Images with masks, tags, boxes or seeds are those of `weak_images`.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, Bar, in_fresh_process, parse_arguments, print_table, report, save_with_legend
from benchmarks.weak_images import run_horses, run_photographs

SHARES = (0.25, 0.5, 0.75)
DRAWS = 3  # of the labels that are known, unless told otherwise
QUICK = 0.15  # of the sentences, or words, with --quick
FOLDS = 5  # of which each is looked at by a model of the others
DOUBT = 0.1  # a tag that these find less likely is not believed
TOL = 0.02  # of taggers that are told a share, whose objectives are small: F1 has settled by then


def drop(values: Any, share: float, seed: int) -> list[list[Any]]:
    """Labels with None in place of all but a share."""
    rng = np.random.default_rng(seed)
    return [[label if rng.random() < share else None for label in labels] for labels in values]


def complete(X: list, y: list[list[Any]]) -> tuple[list, list]:
    """The examples whose labels are all known."""
    kept = [i for i, labels in enumerate(y) if None not in labels]
    return [X[i] for i in kept], [y[i] for i in kept]


def fill(y: list[list[Any]], label: Any = "O") -> list[list[Any]]:
    """Labels with one of them in place of None."""
    return [[label if known is None else known for known in labels] for labels in y]


def measure_letters(size: str, model: str, share: float, seed: int, quick: bool) -> dict[str, float]:
    """Test errors on handwritten letters, by what is done where letters are unknown, in percent."""
    import maxmargin
    from benchmarks.common import load_ocr

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = load_ocr(size)
    n = int(QUICK * len(X)) if quick else len(X)
    X, y = X[:n], [[*labels] for labels in y[:n]]

    def error(X: list, y: list) -> float:
        if not X:
            return float("nan")
        fitted = getattr(maxmargin, model)(random_state=0).fit(X, y)
        return 100 * (1 - fitted.score(X_test, y_test))

    known = drop(y, share, seed)
    ways = {"partial": (X, known), "dropped": complete(X, known)}
    return {way: error(*data) for way, data in (ways if share < 1 else {"full": (X, y)}).items()}


def measure_chunks(share: float, seed: int, quick: bool) -> dict[str, float]:
    """Chunk F1, in percent, by what is done where tags are unknown."""
    from maxmargin import Tagger
    from maxmargin.datasets import load_conll2000

    warnings.simplefilter("ignore")
    data = load_conll2000()
    n = int(QUICK * len(data.X_train)) if quick else len(data.X_train)
    X, y = data.X_train[:n], data.y_train[:n]

    def f1(X: list, y: list) -> float:
        return 100 * Tagger().fit(X, y).score(data.X_test, data.y_test) if X else float("nan")

    known = drop(y, share, seed)
    ways = {"partial": (X, known), "dropped": complete(X, known), "as O": (X, fill(known))}
    return {way: f1(*data) for way, data in (ways if share < 1 else {"full": (X, y)}).items()}


def read(folder: str, name: str, quick: bool = False) -> tuple[list, list]:
    """Sentences and tags of a file, None where they are UNK; a part of them if that is asked for."""
    from maxmargin.datasets.data_files import find_file
    from maxmargin.text import read_columns

    X, y = read_columns(find_file(f"{folder}/{name}.txt", None), unknown="UNK")
    n = int(QUICK * len(X)) if quick else len(X)
    return X[:n], y[:n]


def entity_share(y: list[list[Any]]) -> float:
    """The share of tokens in entities."""
    return float(np.mean([tag != "O" for tags in y for tag in tags]))


def measure_positives(way: str, quick: bool) -> float:
    """F1 on Dutch entities, in percent, where 1,000 are known and nothing else."""
    from maxmargin import Tagger

    warnings.simplefilter("ignore")
    X, y = read("conll2002_dutch", "train" if way == "full" else "train_p1000", quick)
    share = entity_share(read("conll2002_dutch", "dev")[1])
    tagger = Tagger().set_params(model__tol=TOL, entity_share=share) if way == "expected share" else Tagger()
    return 100 * tagger.fit(X, fill(y) if way == "as O" else y).score(*read("conll2002_dutch", "test"))


def doubt(X: list, y: list[list[str]]) -> list[list[Any]]:
    """The tags of entities that taggers of other sentences find likely enough; all others are unknown."""
    from maxmargin import Tagger
    from maxmargin.text import mend_tags

    tags = mend_tags(y).y
    fold = np.random.default_rng(0).integers(FOLDS, size=len(X))
    believed: list[list[Any]] = [[]] * len(X)
    for k in range(FOLDS):
        others, own = np.flatnonzero(fold != k).tolist(), np.flatnonzero(fold == k).tolist()
        tagger = Tagger().fit([X[i] for i in others], [tags[i] for i in others])
        column = {tag: j for j, tag in enumerate(tagger.classes_.tolist())}
        for i, table in zip(own, tagger.predict_marginals([X[i] for i in own]), strict=True):
            likely = [tag in column and row[column[tag]] >= DOUBT for tag, row in zip(tags[i], table, strict=True)]
            believed[i] = [
                tag if tag != "O" and is_likely else None for tag, is_likely in zip(tags[i], likely, strict=True)
            ]
    return believed


def measure_noisy(folder: str, name: str, way: str, quick: bool) -> float:
    """F1 on entities, in percent, by what is made of tags that are incomplete and partly wrong."""
    from maxmargin import Tagger
    from maxmargin.text import mend_tags

    warnings.simplefilter("ignore")
    X, y = read(folder, name, quick)
    share = entity_share(read(folder, "dev")[1])
    if way == "as they are":
        tagger = Tagger().fit(X, y)
    else:
        positives = [[None if tag == "O" else tag for tag in tags] for tags in mend_tags(y).y]
        tagger = Tagger(entity_share=share).set_params(model__tol=TOL)
        tagger.fit(X, positives if way == "O unknown" else doubt(X, y))
    return 100 * tagger.score(*read(folder, "test"))


def measure_label_sets(name: str, seed: int) -> dict[str, float]:
    """Micro F1 on test rows, in percent, where half of the labels of training rows were left out."""
    from sklearn.metrics import f1_score
    from sklearn.model_selection import KFold

    from benchmarks.multilabel import load
    from maxmargin import MultiLabelCRF

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = load(name)
    rng = np.random.default_rng(seed)
    given = np.where(rng.random(y.shape) < 0.5, 0, y)

    def f1(labels: np.ndarray) -> float:
        return 100 * f1_score(y_test, MultiLabelCRF().fit(X, labels).predict(X_test), average="micro")

    chance = np.zeros(y.shape)  # of each label, by models of other rows
    for others, own in KFold(FOLDS, shuffle=True, random_state=0).split(X):
        model = MultiLabelCRF().fit(X[others], given[others])
        chance[own] = model.predict_marginals(X[own])
    is_doubtful = (given == 0) & (chance >= np.sort(chance[given == 0])[-int(2 * given.sum())])
    unknown = np.where(is_doubtful, np.nan, given)
    return {"full": f1(y), "as they are": f1(given), "likely ones unknown": f1(unknown)}


def mean(values: list[float]) -> float:
    """Of the seeds for which there is a figure."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def curve(measure: Callable[..., dict[str, float]], ways: tuple[str, ...], options: Namespace) -> dict[str, Any]:
    """The figures of each way by the share of labels that are known, averaged over seeds."""
    full = in_fresh_process(measure, 1.0, 0, options.quick)["full"]
    rows = {}
    for share in options.shares:
        runs = [in_fresh_process(measure, share, seed, options.quick) for seed in range(options.seeds or DRAWS)]
        rows[str(share)] = {way: mean([run[way] for run in runs]) for way in ways}
    return {"full": full, "shares": rows}


def print_curve(title: str, found: dict[str, Any], ways: tuple[str, ...]) -> None:
    """A row for each share of labels that are known."""
    rows = [[share, *(f"{row[way]:.2f}" for way in ways)] for share, row in found["shares"].items()]
    print_table(title, ["known", *ways], [*rows, ["all", f"{found['full']:.2f}", *[None] * (len(ways) - 1)]])


def run_letters(options: Namespace) -> tuple[Any, list[Bar]]:
    """Handwritten letters."""
    ways, figures, bars = ("partial", "dropped"), {}, list[Bar]()
    for size, model in product(("large", "small"), ("ChainCRF", "ChainSVM")):
        name = f"letters, {size}, {model}"
        found = figures[name] = curve(partial(measure_letters, size, model), ways, options)
        print_curve(f"{name}: test error in percent, by the share of letters that are known", found, ways)
        more = found["shares"].get("0.5", {}).get("partial", np.nan) - found["full"]
        bars.append(Bar(f"{name}: with half unknown at most 1.5 points more errors", f"{more:.2f}", more <= 1.5))
    return figures, bars


def run_chunks(options: Namespace) -> tuple[Any, list[Bar]]:
    """Chunks of CoNLL-2000."""
    ways = ("partial", "dropped", "as O")
    found = curve(measure_chunks, ways, options)
    print_curve("Chunks: F1 in percent, by the share of tags that are known", found, ways)
    less = found["full"] - found["shares"].get("0.5", {}).get("partial", np.nan)
    return found, [Bar("chunks: with half unknown at most 1.5 points of F1 less", f"{less:.2f}", less <= 1.5)]


def run_positives(options: Namespace) -> tuple[Any, list[Bar]]:
    """Dutch entities, of which 1,000 are known."""
    ways = ("expected share", "as O", "full")
    found = {way: in_fresh_process(measure_positives, way, options.quick) for way in ways}
    print_table("Dutch, 1,000 entities known: F1 in percent", ["", "F1"], found.items())
    gain, half = found["expected share"] - found["as O"], found["expected share"] / found["full"]
    return found, [
        Bar("1,000 entities known: at least 15 points of F1 above the unknown as O", f"{gain:.2f}", gain >= 15),
        Bar("1,000 entities known: at least half of the F1 of full labels", f"{half:.2f}", half >= 0.5),
    ]


def run_noisy(options: Namespace) -> tuple[Any, list[Bar]]:
    """Entities that are incomplete and partly wrong."""
    figures, bars, ways = {}, [], ("as they are", "O unknown", "doubted, O unknown")
    for folder, name in (("conll2002_dutch", "train_r50_p90"), ("wikigold_distant", "train")):
        found = {way: in_fresh_process(measure_noisy, folder, name, way, options.quick) for way in ways}
        figures[f"{folder}/{name}"] = found
        gain = found[ways[2]] - found[ways[0]]
        bars.append(Bar(f"{folder}/{name}: at least 3 points of F1 above tags as they are", f"{gain:.2f}", gain >= 3))
    rows = [[name, *(f"{found[way]:.2f}" for way in ways)] for name, found in figures.items()]
    print_table("Incomplete and noisy entities: F1 in percent", ["", *ways], rows)
    return figures, bars


def run_label_sets(options: Namespace) -> tuple[Any, list[Bar]]:
    """Rows of which half of the labels were left out."""
    figures, ways, bars = {}, ("full", "as they are", "likely ones unknown"), []
    for name in ("scene", "emotions"):
        runs = [in_fresh_process(measure_label_sets, name, seed) for seed in range(options.seeds or DRAWS)]
        found = figures[name] = {way: mean([run[way] for run in runs]) for way in ways}
        gain = found[ways[2]] - found[ways[1]]
        bars.append(Bar(f"{name}: better than with what was left out as absent", f"{gain:+.2f}", gain > 0))
    rows = [[name, *(f"{found[way]:.2f}" for way in ways)] for name, found in figures.items()]
    print_table("Half of the labels of rows left out: micro F1 in percent", ["", *ways], rows)
    return figures, bars


def draw(figures: dict[str, Any], path: Path) -> None:
    """Draw the curves over the share of labels that are known, a panel for each set of data."""
    from matplotlib.figure import Figure

    curves = {**figures.get("letters", {})} | ({"chunks": figures["chunks"]} if "chunks" in figures else {})
    if not curves:
        return
    figure = Figure(figsize=(3.5 * len(curves), 3.2), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (name, found) in zip(panels, curves.items(), strict=True):
        shares = [100 * float(share) for share in found["shares"]]
        for way in next(iter(found["shares"].values()), {}):
            values = [row[way] for row in found["shares"].values()]
            panel.plot([*shares, 100], [*values, found["full"]], marker="o", label=way)
        panel.set(title=name, xlabel="labels known (%)", ylabel="F1 (%)" if name == "chunks" else "errors (%)")
    save_with_legend(figure, panels[-1], path)


PARTS = {
    "letters": run_letters,
    "chunks": run_chunks,
    "positives": run_positives,
    "noisy": run_noisy,
    "label-sets": run_label_sets,
    "horses": lambda options: run_horses(options.seeds, options.quick),
    "photographs": lambda options: run_photographs(options.seeds, options.quick),
}


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--part", {"nargs": "+", "choices": [*PARTS], "default": [*PARTS]}),
        ("--seeds", {"type": int, "help": f"how often labels are left out at random; {DRAWS}, horses 5, by default"}),
        (
            "--shares",
            {"nargs": "+", "type": float, "default": SHARES, "help": "of labels that are known; 0.5 has a bar"},
        ),
        PNG,
        ("--quick", {"action": "store_true", "help": "a part of the data: to see that it runs, not for figures"}),
    )
    figures, bars = {}, list[Bar]()
    for part in options.part:
        figures[part], found = PARTS[part](options)
        bars += found
    if options.png is not None:
        draw(figures, options.png)
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
