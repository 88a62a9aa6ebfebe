"""Going on with later sentences: `partial_fit` on parts of CoNLL-2000 in turn, beside one fit to all of them."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, parse_arguments, print_table, report
from maxmargin import Tagger
from maxmargin.datasets import load_conll2000

MOST = 0.5  # points of F1 below one fit


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--parts", {"type": int, "default": 5}),
        ("--sentences", {"type": int, "help": "train on the first so many"}),
        ("--orders", {"type": int, "default": 2, "help": "of the sentences: that of the file, then random ones"}),
    )
    compare(arguments.parts, arguments.sentences, arguments.orders, arguments.json)


def run(rounds: int, json: Path | None) -> None:
    """Fifths of all sentences, in two orders, whatever the rounds: nothing is timed."""
    compare(5, None, 2, json)


def compare(n_parts: int, n_sentences: int | None, n_orders: int, json: Path | None) -> None:
    """Measure, and report."""
    data = load_conll2000()
    found, bars = [], []
    for order in range(n_orders):
        pairs = [*zip(data.X_train, data.y_train, strict=True)][:n_sentences]
        if order:
            random.Random(order).shuffle(pairs)
        rows = go_on(*map(list, zip(*pairs, strict=True)), data, n_parts)
        print_table(f"Chunks of CoNLL-2000, order {order}", ("", "sentences", "new tags", "CPU seconds", "F1"), rows)
        below = rows[0][-1] - rows[-1][-1]
        bars.append(Bar(f"order {order}: at most {MOST} points below one fit", f"{below:.2f}", below <= MOST))
        n_new = sum(row[2] for row in rows[2:])
        bars.append(Bar(f"order {order}: later parts have tags of their own", str(n_new), n_new > 0))
        found += rows
    report(found, bars, json)


def go_on(X: list, y: list, data: Any, n_parts: int) -> list[tuple[Any, ...]]:
    """A row of one fit, and of each part in turn: sentences, new tags, CPU seconds, F1 on the test sentences."""
    began = time.process_time()
    whole = Tagger().fit(X, y)
    rows = [("all at once", len(X), None, time.process_time() - began, 100 * whole.score(data.X_test, data.y_test))]
    tagger, at, known = Tagger(), 0, set()
    for k in range(n_parts):
        stop = len(X) * (k + 1) // n_parts
        began = time.process_time()
        tagger.partial_fit(X[at:stop], y[at:stop])
        seconds, tags = time.process_time() - began, {*tagger.classes_.tolist()}
        score = 100 * tagger.score(data.X_test, data.y_test)
        rows.append((f"part {k + 1}", stop - at, len(tags - known), seconds, score))
        at, known = stop, tags
    return rows


if __name__ == "__main__":
    main()
