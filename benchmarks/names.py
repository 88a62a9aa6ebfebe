"""Reading features by name: `ChainCRF` beside the ``append`` of python-crfsuite, on the tokens of CoNLL-2000.

Both read dictionaries and lists of strings of the same features, made one sentence at a time, in a process of their
own; the time to make them is taken off both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Bar, forget_peak, in_fresh_process, parse_arguments, peak_megabytes, print_table, report

KINDS = ("dictionaries", "strings")


def sentences(kind: str) -> Iterator[list[Any]]:
    """The features of sklearn-crfsuite's tutorial, about 20 for each token."""
    from maxmargin.datasets import load_conll2000

    for sentence in load_conll2000().X_train:
        items = []
        for t, (word, pos) in enumerate(sentence):
            item = {
                "bias": 1.0,
                "suffix3": word[-3:],
                "suffix2": word[-2:],
                "digits": word.isdigit(),
                **near(word, pos),
            }
            for side, there in (("-1", t - 1), ("+1", t + 1)):
                if 0 <= there < len(sentence):
                    item |= {f"{side}:{name}": value for name, value in near(*sentence[there]).items()}
                else:
                    item[f"{side}:none"] = True
            items.append(item)
        yield items if kind == "dictionaries" else [[f"{name}={value}" for name, value in x.items()] for x in items]


def near(word: str, pos: str) -> dict[str, Any]:
    return {"lower": word.lower(), "upper": word.isupper(), "title": word.istitle(), "pos": pos, "pos2": pos[:2]}


def measure(reader: str, kind: str) -> dict[str, float]:
    """CPU seconds to read all sentences, and megabytes held then and at the peak, beyond those of before."""
    import pycrfsuite  # type: ignore[import-untyped]

    from maxmargin.encode.names.vocabulary import learn_names

    began = time.process_time()
    tokens = sum(len(items) for items in sentences(kind))
    making = time.process_time() - began
    before = forget_peak()
    began = time.process_time()
    if reader == "python-crfsuite":
        trainer = pycrfsuite.Trainer(verbose=False)
        for items in sentences(kind):
            trainer.append(items, ["O"] * len(items))
    else:
        _held = learn_names(sentences(kind), min_count=1, n_hashed=None)
    seconds = time.process_time() - began - making
    peak = peak_megabytes() - before
    return {"tokens": tokens, "seconds": seconds, "peak": peak}


def main() -> None:
    options = parse_arguments(__doc__)
    figures, bars = {}, []
    for kind in KINDS:
        peer, ours = (in_fresh_process(measure, reader, kind) for reader in ("python-crfsuite", "maxmargin"))
        figures[kind] = {"python-crfsuite": peer, "maxmargin": ours}
        rows = [[name, run["seconds"], run["peak"]] for name, run in figures[kind].items()]
        print_table(f"{kind}, {peer['tokens']} tokens", ["", "CPU s", "peak MB"], rows)
        share = ours["seconds"] / peer["seconds"]
        bars.append(Bar(f"{kind}: read in less CPU time", f"{share:.0%}", share < 1))
        share = ours["peak"] / peer["peak"]
        bars.append(Bar(f"{kind}: in at most twice the memory", f"{share:.2f}", share <= 2))
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
