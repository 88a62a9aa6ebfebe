"""What the default C of taggers rests on: held-out and test scores of CRFs and SVMs over C, on all text sets.

Chunks (CoNLL-2000), named entities (WNUT-17, CoNLL-2002 in Dutch, Wikigold with distant labels) by the F1 of entities,
parts of speech (LinES in English, LassySmall in Dutch) by the share of right tags; features are the default ones.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import in_fresh_process, parse_arguments, print_table, report

VALUES_OF_C = {"crf": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0), "svm": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)}
HELD_OUT = 5  # one sentence of so many, where there is no file of held-out ones


class Files(NamedTuple):
    """Where a set has its sentences to train on, held-out ones, if any, and test sentences."""

    train: str
    dev: str | None
    test: str


SETS = {
    "conll2000": Files("conll2000/train.txt", None, "conll2000/test.txt"),
    "wnut17": Files("wnut17/wnut17train.conll", "wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated"),
    "dutch": Files("conll2002_dutch/train.txt", "conll2002_dutch/dev.txt", "conll2002_dutch/test.txt"),
    "wikigold": Files("wikigold_distant/train.txt", "wikigold_distant/dev.txt", "wikigold_distant/test.txt"),
    "lines": Files(*(f"ud_english_lines/{part}.conllu" for part in ("train", "dev", "test"))),
    "lassysmall": Files("ud_dutch_lassysmall/dev.conllu", None, "ud_dutch_lassysmall/test.conllu"),
}


def load(name: str) -> list[tuple[list, list]]:
    """Training, held-out and test sentences with their tags."""
    from maxmargin.datasets.data_files import find_file
    from maxmargin.text import Layout, read_document

    def read(file: str) -> tuple[list, list]:
        path = Path(find_file(file, None))
        is_tabbed = path.suffix != ".conllu" and "\t" in path.read_text(encoding="utf-8")[:1000]
        document = read_document(path, Layout(separator="\t") if is_tabbed else None, keeps_lines=False)
        return document.X, document.y or []

    train, dev, test = SETS[name]
    X, y = read(train)
    if dev is not None:
        return [(X, y), read(dev), read(test)]
    held = np.arange(len(X)) % HELD_OUT == HELD_OUT - 1
    halves = [([X[i] for i in np.flatnonzero(which)], [y[i] for i in np.flatnonzero(which)]) for which in (~held, held)]
    return [*halves, read(test)]


def by_C(name: str, kind: str) -> list[dict[str, Any]]:
    """Taggers of every C, each fitted from nothing, as a user's would be."""
    from maxmargin import ChainCRF, ChainSVM, Tagger

    train, dev, test = load(name)
    model = {"crf": ChainCRF, "svm": ChainSVM}[kind]
    fits = []
    for C in VALUES_OF_C[kind]:
        began = time.process_time()
        tagger = Tagger(model=model(only_observed=True, C=C, random_state=0)).fit(*train)
        seconds = time.process_time() - began
        fits.append({"C": C, "dev": tagger.score(*dev), "test": tagger.score(*test), "seconds": seconds})
        print(name, kind, fits[-1], tagger.status_.name, flush=True)
    return fits


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--sets", {"nargs": "+", "default": list(SETS), "choices": list(SETS)}),
        ("--models", {"nargs": "+", "default": ["crf", "svm"], "choices": ["crf", "svm"]}),
    )
    figures: dict[str, Any] = {}
    for kind in arguments.models:
        figures[kind] = {name: in_fresh_process(by_C, name, kind) for name in arguments.sets}
        for part in ("dev", "test"):
            scores = 100 * np.array([[fit[part] for fit in figures[kind][name]] for name in arguments.sets])
            lost = (scores.max(axis=1, keepdims=True) - scores).mean(axis=0)
            print_table(
                f"{kind}: {part} score, and points lost against the best C on average",
                ["C", *arguments.sets, "lost"],
                [[f"{C:g}", *map(float, scores[:, k]), float(lost[k])] for k, C in enumerate(VALUES_OF_C[kind])],
            )
        seconds = np.array([[fit["seconds"] for fit in figures[kind][name]] for name in arguments.sets])
        print_table(
            f"{kind}: CPU s",
            ["C", *arguments.sets],
            [[f"{C:g}", *map(float, seconds[:, k])] for k, C in enumerate(VALUES_OF_C[kind])],
        )
    report(figures, [], arguments.json)


if __name__ == "__main__":
    main()
