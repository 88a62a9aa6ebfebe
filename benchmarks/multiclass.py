"""`MulticlassSVM` beside liblinear's Crammer-Singer solver: the same objective, CPU time to the same accuracy.

Dense pixels of digits, sparse features of the words of CoNLL-2000 whose parts of speech are to be told, and made
documents as bags of words, of 20 topics that differ in how often they use some of the words. liblinear
runs with its default tolerance; its objective is computed from its weights. Ours, with `solver="auto"` and with the
pairwise steps of other structures, stops at a certified relative gap of 0.001, and its accuracy on test data stands
beside. Times are those of `fit`, with all conversions of the data; loops are compiled or loaded before.
"""

from __future__ import annotations

import time
import warnings
import zlib
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

N_DIGITS, N_WORDS, N_HASHED = 1200, 4000, 50_000
N_DOCUMENTS, N_TOPICS, VOCABULARY, LENGTH = 4000, 20, 30_000, 120  # of documents that are made
OWN_WORDS, EMPHASIS = 0.02, 4.0  # share of words that a topic uses more often than others do, and how much more
TOL = 1e-3


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """X and y to train on, and to test on."""
    import numpy as np
    import scipy.sparse as sp

    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        X, y, n = digits.data / 16, digits.target, N_DIGITS
        return X[:n], y[:n], X[n:], y[n:]
    if name == "topics":
        X, y = make_documents(2 * N_DOCUMENTS)
        return X[:N_DOCUMENTS], y[:N_DOCUMENTS], X[N_DOCUMENTS:], y[N_DOCUMENTS:]
    from maxmargin.datasets import load_conll2000

    columns, tags = [], []
    for sentence in load_conll2000().X_train:
        words = ["", *(word for word, _ in sentence), ""]
        for t, (word, tag) in enumerate(sentence):
            names = (word, f"<{words[t]}", f">{words[t + 2]}", f"-{word[-3:]}", f"-{word[-2:]}", f"{word[0].isupper()}")
            columns.append([zlib.crc32(name.encode()) % N_HASHED for name in names])
            tags.append(tag)
        if len(tags) >= 2 * N_WORDS:
            break
    places = np.repeat(np.arange(len(tags)), len(columns[0])), np.concatenate(columns)
    X, y = sp.csr_matrix((np.ones(len(places[0])), places), (len(tags), N_HASHED)), np.array(tags)
    return X[:N_WORDS], y[:N_WORDS], X[N_WORDS:], y[N_WORDS:]


def make_documents(n: int) -> tuple[Any, Any]:
    """Bags of words of Zipf's law, as tf-idf rows of norm 1, and their topics."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    rng = np.random.default_rng(0)
    usual = 1 / np.arange(10.0, VOCABULARY + 10)
    own = rng.random((N_TOPICS, VOCABULARY)) < OWN_WORDS
    shares = usual * np.where(own, EMPHASIS, 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    y = rng.integers(N_TOPICS, size=n)
    lengths = 1 + rng.poisson(LENGTH, size=n)
    documents = np.repeat(np.arange(n), lengths)
    words = np.empty_like(documents)
    for topic in range(N_TOPICS):
        has_topic = y[documents] == topic
        words[has_topic] = rng.choice(VOCABULARY, size=has_topic.sum(), p=shares[topic])
    counts = sp.csr_matrix((np.ones(len(words)), (documents, words)), (n, VOCABULARY))  # which adds up
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


def measure(name: str, C: float, repeats: int) -> list[dict[str, Any]]:
    """CPU seconds, objectives and test accuracies of the contenders, the best times of some runs that take turns."""
    import numpy as np
    from sklearn.svm import LinearSVC

    from maxmargin import BCFW, MulticlassSVM

    X, y, X_test, y_test = load(name)
    settings = {"C": C, "random_state": 0}
    models = {
        "liblinear": LinearSVC(multi_class="crammer_singer", **settings),
        "auto": MulticlassSVM(tol=TOL, **settings),
        "pairwise": MulticlassSVM(tol=TOL, solver=BCFW(steps="pairwise", sampling="gap"), **settings),
    }
    times: dict[str, list[float]] = {model: [] for model in models}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of arguments to come
        for round_ in range(repeats + 1):
            for contender, model in models.items():
                began = time.process_time()
                model.fit(X, y)
                times[contender] += [time.process_time() - began] if round_ else []
    rows = []
    for contender, model in models.items():
        if contender == "liblinear":
            scores, at = X @ model.coef_.T + model.intercept_, (np.arange(len(y)), np.searchsorted(model.classes_, y))
            margins = scores + 1
            margins[at] -= 1
            weights = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
            objective = (weights / (2 * C) + np.sum(margins.max(axis=1) - scores[at])) / len(y)
        else:
            objective = model.certificate_.primal
        rows.append(
            {
                "data": f"{name}, C = {C:g}",
                "contender": contender,
                "CPU s": min(times[contender]),
                "objective": float(objective),
                "accuracy": float(model.score(X_test, y_test)),
                "times liblinear": min(times[contender]) / min(times["liblinear"]),
            }
        )
    return rows


def main() -> None:
    arguments = parse_arguments(__doc__, ("--repeats", {"type": int, "default": 3}))
    tasks = [(name, C) for name in ("digits", "text", "topics") for C in (0.1, 1.0)]
    rows = [row for task in tasks for row in in_fresh_process(measure, *task, arguments.repeats)]
    print_table("Classes", rows[0], (row.values() for row in rows))
    bars = [
        Bar(
            f"{row['data']}: no more CPU time than liblinear",
            f"{row['times liblinear']:.2f}",
            row["times liblinear"] <= 1,
        )
        for row in rows
        if row["contender"] == "auto"
    ]
    report(rows, bars, arguments.json)


if __name__ == "__main__":
    main()
