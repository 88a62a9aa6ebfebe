"""Data beyond memory: a tagger of many copies of CoNLL-2000, each with words of its own, trained from shards.

Peak memory of the training, beyond the imports of the process, is compared with that of one shard alone in memory,
plus the weights; CPU seconds per token with those of one copy in memory. python-crfsuite's memory stands beside it.

The weights are one vector in float64: the words of all copies have weights, those of one shard alone have fewer.
`LBFGS`, the default on shards, keeps two vectors of each of its last steps besides, for which the bar allows nothing:
the table has their size.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, forget_peak, in_fresh_process, parse_arguments, peak_megabytes, print_table, report

CHANGED = 10  # one of so many words of a copy, by its letters, is a word of that copy alone
PASSES = 20  # of our trainings, so that only the price of a pass differs
PASSES_OF_PEER = 3  # its memory is that of its data
MOST_MEMORY, MOST_TIME = 1.5, 1.2


def copies(n_copies: int, size: int | None) -> Iterator[tuple[Any, Any]]:
    """The sentences of CoNLL-2000, or the first of them, again and again with other words."""
    from maxmargin.datasets import load_conll2000

    data = load_conll2000()
    X, y = data.X_train[:size], data.y_train[:size]
    for k in range(n_copies):
        yield [[(changed(word, k), tag) for word, tag, *_ in sentence] for sentence in X], y


def changed(word: str, k: int) -> str:
    """A word as copy k has it."""
    return f"{word}{k}" if k and sum(map(ord, word)) % CHANGED == k % CHANGED else word


def write_shards(folder: str, n_copies: int, size: int | None) -> dict[str, Any]:
    """Write a shard for each copy."""
    from maxmargin import Shards

    Shards.write(copies(n_copies, size), folder)
    return {}


def train(folder: str, n_shards: int | None, in_memory: bool) -> dict[str, Any]:
    """Megabytes and CPU seconds of a training on some of the shards, or on lists of their sentences."""
    from maxmargin import ChainCRF, Shards, Tagger
    from maxmargin.estimators.foundation.convergence import without_warning
    from maxmargin.solvers.batch.lbfgs import NUMBERS_KEPT

    shards = Shards(folder)[:n_shards]
    n_tokens = sum(len(sentence) for shard in shards for sentence in shard.X)
    model = ChainCRF(only_observed=True, C=3.0, tol=1e-9, solver="lbfgs")  # the default on shards

    def fit(passes: int, shards: Shards) -> Tagger:
        tagger = Tagger(model=model.set_params(max_passes=passes))
        if not in_memory:
            return tagger.fit(shards)
        X, y = ([example for part in parts for example in part] for parts in zip(*shards, strict=True))
        return tagger.fit(X, y)

    with without_warning():
        fit(7, Shards.cut(*(part[:100] for part in shards[0]), n_shards=2))  # so that loops are compiled
        before, began = forget_peak(), time.process_time()
        tagger = fit(PASSES, shards)
    seconds, n_weights = time.process_time() - began, int(tagger.model_._w.size)
    return {
        "trained on": f"{len(shards)} {'in memory' if in_memory else 'from shards'}",
        "tokens": n_tokens,
        "weights": n_weights,
        "MB of past steps": 8e-6 * n_weights * min(PASSES, max(10, NUMBERS_KEPT // (2 * n_weights))),
        "MB": peak_megabytes() - before,
        "CPU s": seconds,
        "us per token and pass": 1e6 * seconds / n_tokens / tagger.trace_.last("passes"),
    }


def train_peer(folder: str, n_shards: int) -> dict[str, Any]:
    """Megabytes of python-crfsuite on the same sentences, with the same features."""
    import pycrfsuite  # type: ignore[import-untyped]

    from maxmargin import Shards
    from maxmargin.text import WindowFeatures

    before, began, n_tokens = forget_peak(), time.process_time(), 0
    trainer = pycrfsuite.Trainer(verbose=False)
    for shard in Shards(folder)[:n_shards]:
        for rows, tags in zip(WindowFeatures().transform(shard.X), shard.y, strict=True):
            trainer.append(rows, tags)
            n_tokens += len(tags)
    trainer.set_params({"c1": 0.0, "c2": 1 / 6, "max_iterations": PASSES_OF_PEER})
    trainer.train(str(Path(folder) / "peer.model"))
    return {
        "trained on": f"{n_shards} by python-crfsuite",
        "tokens": n_tokens,
        "weights": 0,
        "MB of past steps": None,
        "MB": peak_megabytes() - before,
        "CPU s": time.process_time() - began,
        "us per token and pass": None,  # of few passes, most of it is reading
    }


def compare_counts() -> list[dict[str, Any]]:
    """Fits on Taskar's words in 1, 3 and 10 shards: whether certificates agree with that of one fit, and weights do."""
    from benchmarks.common import load_ocr
    from maxmargin import ChainCRF, ChainSVM, Shards

    X, y, _, _ = load_ocr("small")
    rows = []
    for model in (ChainSVM(C=0.1, random_state=0), ChainCRF(random_state=0)):
        whole = type(model)(**model.get_params()).fit(X, y)
        for n_shards in (1, 3, 10):
            found = model.fit(Shards.cut(X, y, n_shards=n_shards)).certificate_
            agrees = found.dual <= whole.certificate_.primal and whole.certificate_.dual <= found.primal
            rows.append(
                {
                    "model": type(model).__name__,
                    "shards": n_shards,
                    "primal": found.primal,
                    "dual": found.dual,
                    "agrees": bool(agrees),
                    "equal": bool((model._w == whole._w).all()),
                }
            )
    return rows


def run(rounds: int, json: Path | None) -> None:
    """Ten copies, whatever the rounds: memory is the same in all of them; of one round, a trial of little data."""
    compare(*((2, 100) if rounds == 1 else (10, None)), json)


def compare(n_copies: int, size: int | None, json: Path | None) -> None:
    """Measure, and report."""
    with tempfile.TemporaryDirectory() as parent:
        folder = str(Path(parent) / "shards")
        in_fresh_process(write_shards, folder, n_copies, size)
        rows = [
            in_fresh_process(train, folder, 1, True),
            in_fresh_process(train, folder, None, False),
            in_fresh_process(train_peer, folder, n_copies),
        ]
    equal = in_fresh_process(compare_counts)
    print_table("Taskar's words in shards", equal[0], (row.values() for row in equal))
    print_table(f"{n_copies} copies, {PASSES} passes", rows[0], (row.values() for row in rows))
    one, sharded = rows[:2]
    most = MOST_MEMORY * one["MB"] + 8e-6 * sharded["weights"]
    pace = sharded["us per token and pass"] / one["us per token and pass"]
    bars = [
        Bar(f"memory: under {most:.0f} MB", f"{sharded['MB']:.0f}", sharded["MB"] < most),
        Bar("any number of shards: certificates that agree", "", all(row["agrees"] for row in equal)),
        Bar("one shard: the same weights, bit for bit", "", all(row["equal"] for row in equal if row["shards"] == 1)),
        Bar(f"time per token and pass: under {MOST_TIME} of one copy in memory", f"{pace:.2f}", pace < MOST_TIME),
    ]
    report({"copies": rows, "counts": equal}, bars, json)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--copies", {"type": int, "default": 10}),
        ("--size", {"type": int, "default": None, "help": "sentences of a copy; all by default"}),
    )
    compare(arguments.copies, arguments.size, arguments.json)


if __name__ == "__main__":
    main()
