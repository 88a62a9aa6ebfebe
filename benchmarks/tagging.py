"""From tagged sentences to a tagger: `WindowFeatures` and `ChainCRF`, with their defaults, beside python-crfsuite.

python-crfsuite has its usual features, those of CRFsuite's tutorial for chunks and of sklearn-crfsuite's for entities,
as strings, and c2 = 1 or c1 = c2 = 0.1, those of the tutorials. Times are CPU seconds of one thread, each in a process
of its own, features included: of training, and of tagging the test sentences.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.chunking import TEMPLATES
from benchmarks.common import Bar, forget_peak, in_fresh_process, parse_arguments, peak_megabytes, print_table, report
from benchmarks.names import near

PENALTIES = {"conll": {"c1": 0.0, "c2": 1.0}, "wnut": {"c1": 0.1, "c2": 0.1}}


def load(name: str) -> Any:
    from maxmargin.datasets import load_conll2000, load_wnut17

    return load_conll2000() if name == "conll" else load_wnut17()


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


def fit_crfsuite(name: str) -> dict[str, Any]:
    import pycrfsuite  # type: ignore[import-untyped]

    data, items = load(name), chunk_items if name == "conll" else entity_items
    before = forget_peak()
    began = time.process_time()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(PENALTIES[name])
    for x, y in zip(data.X_train, data.y_train, strict=True):
        trainer.append(items(x), y)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        trained, peak = time.process_time(), peak_megabytes()
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [tagger.tag(items(x)) for x in data.X_test]
    return figures(data, predicted, began, trained, peak - before)


def fit_maxmargin(name: str) -> dict[str, Any]:
    from maxmargin import ChainCRF
    from maxmargin.text import WindowFeatures

    data, windows = load(name), WindowFeatures()
    few = windows.transform(data.X_train[:20])
    ChainCRF(only_observed=True, max_passes=3).fit(few, data.y_train[:20]).predict(few)  # compiles
    before = forget_peak()
    began = time.process_time()
    model = ChainCRF(only_observed=True).fit(windows.transform(data.X_train), data.y_train)
    trained, peak = time.process_time(), peak_megabytes()
    predicted = model.predict(windows.transform(data.X_test))
    return figures(data, predicted, began, trained, peak - before)


def figures(data: Any, predicted: Any, began: float, trained: float, megabytes: float) -> dict[str, Any]:
    from maxmargin.metrics import entity_f1

    tagged = time.process_time()
    f1 = entity_f1(data.y_test, predicted)
    return {"training": trained - began, "tagging": tagged - trained, "f1": f1, "megabytes": megabytes}


def main() -> None:
    options = parse_arguments(__doc__, ("--datasets", {"nargs": "+", "choices": PENALTIES, "default": [*PENALTIES]}))
    found, bars = {}, []
    for name in options.datasets:
        peer, ours = in_fresh_process(fit_crfsuite, name), in_fresh_process(fit_maxmargin, name)
        found[name] = {"python-crfsuite": peer, "WindowFeatures, ChainCRF": ours}
        rows = [
            [title, run["training"], run["tagging"], f"{100 * run['f1']:.2f}", f"{run['megabytes']:.0f}"]
            for title, run in found[name].items()
        ]
        print_table(name, ["", "training s", "tagging s", "F1", "MB"], rows)
        least = max(peer["f1"], 0.938 if name == "conll" else 0)
        bars.append(Bar(f"{name}: F1 at least {100 * least:.2f}", f"{100 * ours['f1']:.2f}", ours["f1"] >= least))
        share = ours["training"] / peer["training"]
        bars.append(Bar(f"{name}: at most half of the CPU time of training", f"{share:.0%}", share <= 0.5))
        share = ours["tagging"] / peer["tagging"]
        bars.append(Bar(f"{name}: tagging as fast", f"{share:.0%}", share <= 1))
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
