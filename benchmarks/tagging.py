"""From a raw file to a tagger: `maxmargin train` and `predict`, with their defaults, beside python-crfsuite.

python-crfsuite has its usual features, those of CRFsuite's tutorial for chunks and of sklearn-crfsuite's for entities,
as strings, and c2 = 1 or c1 = c2 = 0.1, those of the tutorials; its script reads the same files. Times are CPU seconds
of processes of one thread, and of those that they start, if any: of training from the start of the process to its end,
with imports, reading, features and saving; of tagging from a file to another, once the model is loaded; of tagging
sentences one by one, as a service does, from words to tags. Loops are compiled before. Memory is what a process that
trains takes at its peak beyond its imports.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.chunking import TEMPLATES
from benchmarks.common import (
    Bar,
    cpu_seconds,
    forget_peak,
    in_fresh_process,
    parse_arguments,
    peak_megabytes,
    print_table,
    report,
)
from benchmarks.names import near

ALONE = 300  # sentences that are tagged one by one
PENALTIES = {"conll": {"c1": 0.0, "c2": 1.0}, "wnut": {"c1": 0.1, "c2": 0.1}}
TAGGING = {"conll": 0.36, "wnut": 0.65}  # shares of the CPU time of tagging
FILES = {
    "conll": ("conll2000/train.txt", "conll2000/test.txt"),
    "wnut": ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
}


def files(name: str) -> list[str]:
    """The files to train and to test on."""
    return [str(Path(os.environ["MAXMARGIN_DATA"]) / file) for file in FILES[name]]


def chunk_items(sentence: list) -> list[list[str]]:
    """The features of CRFsuite's tutorial."""
    items = []
    for t in range(len(sentence)):
        present = [(c, at) for c, at in TEMPLATES if t + at[0] >= 0 and t + at[-1] < len(sentence)]
        item = [f"{c}{at}={'|'.join(sentence[t + shift][c] for shift in at)}" for c, at in present]
        items.append(item + ["first"] * (t == 0) + ["last"] * (t == len(sentence) - 1))
    return items


def entity_items(sentence: list) -> list[dict[str, Any]]:
    """The features of sklearn-crfsuite's tutorial, without parts of speech, which there are none of."""
    items = []
    for t, word in enumerate(sentence):
        item = {"bias": 1.0, "suffix3": word[-3:], "suffix2": word[-2:], "digit": word.isdigit(), **near(word, "")}
        for side, there in (("-1", t - 1), ("+1", t + 1)):
            beside = near(sentence[there], "") if 0 <= there < len(sentence) else {"none": True}
            item |= {f"{side}:{name}": value for name, value in beside.items()}
        items.append(item)
    return items


ITEMS: dict[str, Any] = {"conll": chunk_items, "wnut": entity_items}


def train_crfsuite(name: str, model: str) -> dict[str, Any]:
    import pycrfsuite  # type: ignore[import-untyped]

    from maxmargin.text import read_columns

    before = forget_peak()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(PENALTIES[name])
    for x, y in zip(*read_columns(files(name)[0]), strict=True):
        trainer.append(ITEMS[name](x), y)
    trainer.train(model)
    return {"training": cpu_seconds(), "megabytes": peak_megabytes() - before}


def tag_crfsuite(name: str, model: str, output: str) -> dict[str, Any]:
    import pycrfsuite  # type: ignore[import-untyped]

    from maxmargin.text import read_columns, write_columns

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    began = cpu_seconds()
    X, y = read_columns(files(name)[1])
    write_columns(output, X, y, [tagger.tag(ITEMS[name](x)) for x in X])
    seconds = cpu_seconds() - began
    return {"tagging": seconds, "f1": f1_of(output), "alone": one_by_one(lambda x: tagger.tag(ITEMS[name](x)), X)}


def train_command(source: str, model: str) -> dict[str, Any]:
    import maxmargin.cli.training  # noqa: F401  (what the command imports)
    from maxmargin.cli import app

    before = forget_peak()
    app(["train", source, "--model", model, "--quiet", "--jobs", "1"], standalone_mode=False)
    return {"training": cpu_seconds(), "megabytes": peak_megabytes() - before}


def tag_command(name: str, model: str, output: str) -> dict[str, Any]:
    import maxmargin
    from maxmargin.text import read_document
    from maxmargin.text.sentence_files.line_files import write_lines

    tagger = maxmargin.load(model)
    tagger.model_.set_params(n_jobs=1)
    tagger.predict([["a"] if name == "wnut" else [("a", "b")]])  # loads the loops
    began = cpu_seconds()
    document = read_document(files(name)[1], tagger.layout)
    write_lines(output, document.tagged(tagger.predict(document.X)))
    seconds = cpu_seconds() - began
    return {"tagging": seconds, "f1": f1_of(output), "alone": one_by_one(lambda x: tagger.predict([x]), document.X)}


def one_by_one(tag: Callable[[Any], Any], X: list) -> float:
    """Milliseconds of CPU time of a sentence that is tagged alone: the best of some rounds."""
    rounds = []
    for _ in range(5):
        began = cpu_seconds()
        for x in X[:ALONE]:
            tag(x)
        rounds.append(1000 * (cpu_seconds() - began) / len(X[:ALONE]))
    return min(rounds)


def f1_of(output: str) -> float:
    """The F1 of a file whose last two columns are true and predicted tags."""
    from maxmargin.metrics import entity_f1
    from maxmargin.text import read_columns

    return entity_f1(*(read_columns(output, x=0, y=k)[1] for k in (-2, -1)))


def compare(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """The figures of both, each in processes of its own."""
    theirs, ours, few = (str(folder / file) for file in ("theirs", "ours.model", "few.txt"))
    Path(few).write_text("\n".join(Path(files(name)[0]).read_text().split("\n")[:500]))
    in_fresh_process(train_command, few, ours)  # compiles
    in_fresh_process(tag_command, name, ours, str(folder / "output"))
    return {
        "python-crfsuite": in_fresh_process(train_crfsuite, name, theirs)
        | in_fresh_process(tag_crfsuite, name, theirs, str(folder / "output")),
        "maxmargin train": in_fresh_process(train_command, files(name)[0], ours)
        | in_fresh_process(tag_command, name, ours, str(folder / "output")),
    }


def main() -> None:
    options = parse_arguments(__doc__, ("--datasets", {"nargs": "+", "choices": PENALTIES, "default": [*PENALTIES]}))
    found, bars = {}, []
    for name in options.datasets:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = compare(name, Path(folder))
        peer, ours = found[name].values()
        rows = [
            [
                title,
                *(run[key] for key in ("training", "tagging", "alone")),
                f"{100 * run['f1']:.2f}",
                f"{run['megabytes']:.0f}",
            ]
            for title, run in found[name].items()
        ]
        print_table(name, ["", "training s", "tagging s", "a sentence ms", "F1", "MB"], rows)
        least = max(peer["f1"], 0.938 if name == "conll" else 0)
        bars.append(Bar(f"{name}: F1 at least {100 * least:.2f}", f"{100 * ours['f1']:.2f}", ours["f1"] >= least))
        share = ours["training"] / peer["training"]
        bars.append(Bar(f"{name}: at most half of the CPU time of training", f"{share:.0%}", share <= 0.5))
        share = ours["tagging"] / peer["tagging"]
        most = TAGGING[name]
        bars.append(Bar(f"{name}: tagging in at most {most:.0%} of its CPU time", f"{share:.0%}", share <= most))
        share = ours["alone"] / peer["alone"]
        bars.append(Bar(f"{name}: one by one at most two and a half times its time", f"{share:.0%}", share <= 2.5))
        bars.append(
            Bar(
                f"{name}: no more memory",
                f"{ours['megabytes']:.0f} MB, {peer['megabytes']:.0f} MB",
                ours["megabytes"] <= peer["megabytes"],
            )
        )
    report(found, bars, options.json)


if __name__ == "__main__":
    main()
