"""Going on with later sentences: `partial_fit` on parts of CoNLL-2000 in turn, beside one fit to all of them."""

from __future__ import annotations

import time

from benchmarks.common import Bar, parse_arguments, print_table, report
from maxmargin import Tagger
from maxmargin.datasets import load_conll2000

MOST = 0.5  # points of F1 below one fit


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--parts", {"type": int, "default": 5}),
        ("--sentences", {"type": int, "help": "train on the first so many"}),
    )
    data = load_conll2000()
    X, y = data.X_train[: arguments.sentences], data.y_train[: arguments.sentences]
    began = time.process_time()
    whole = 100 * Tagger().fit(X, y).score(data.X_test, data.y_test)
    rows = [("all at once", len(X), None, time.process_time() - began, whole)]
    tagger, at, known = Tagger(), 0, set()
    for k in range(arguments.parts):
        stop = len(X) * (k + 1) // arguments.parts
        began = time.process_time()
        tagger.partial_fit(X[at:stop], y[at:stop])
        seconds, tags = time.process_time() - began, {*tagger.classes_.tolist()}
        score = 100 * tagger.score(data.X_test, data.y_test)
        rows.append((f"part {k + 1}", stop - at, len(tags - known), seconds, score))
        at, known = stop, tags
    print_table("Chunks of CoNLL-2000", ("", "sentences", "new tags", "CPU seconds", "F1"), rows)
    below = whole - score
    report(rows, [Bar(f"at most {MOST} points below one fit", f"{below:.2f}", below <= MOST)], arguments.json)


if __name__ == "__main__":
    main()
