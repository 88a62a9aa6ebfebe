"""The page of a tagger of CoNLL-2000: its size, and CPU time beyond that of predictions; several rounds.

``python -m benchmarks.report`` trains the tagger with its defaults on ``--sentences N``, all by default, and makes the
page of its test sentences. Predictions are those that the page needs: tags, probabilities, best readings, entities.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.common import Bar, parse_arguments, report

MOST_MEGABYTES, MOST_SECONDS = 5.0, 10.0  # the bars


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--sentences", {"type": int, "help": "to train on; all by default"}),
        ("--rounds", {"type": int, "default": 3}),
    )
    from maxmargin import Tagger
    from maxmargin.datasets import load_conll2000

    data = load_conll2000()
    n, X, y = options.sentences, data.X_test, data.y_test
    tagger = Tagger().fit(data.X_train[:n], data.y_train[:n])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "fit.html"
        tagger.report(page, X, y)  # which compiles
        for _ in range(options.rounds):
            begin = time.process_time()
            tagger.predict(X)
            tagger.predict_marginals(X)
            tagger.predict_topk(X, 3)
            tagger.predict_entities(X)
            middle = time.process_time()
            tagger.report(page, X, y)
            predictions, whole = middle - begin, time.process_time() - middle
            size, beyond = page.stat().st_size / 1e6, whole - predictions
            print(f"{size:.2f} MB; {whole:.1f} CPU s, of which predictions {predictions:.1f}, the rest {beyond:.1f}")
    bars = [
        Bar(f"at most {MOST_MEGABYTES:g} MB", f"{size:.2f}", size <= MOST_MEGABYTES),
        Bar(f"at most {MOST_SECONDS:g} CPU s", f"{beyond:.1f}", beyond <= MOST_SECONDS),
    ]
    report({"MB": size, "seconds": beyond}, bars, options.json)


if __name__ == "__main__":
    main()
