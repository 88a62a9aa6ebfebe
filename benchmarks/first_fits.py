"""A program that `benchmarks.startup` runs in a new process of each revision: the CPU time of first fits.

It prints, as JSON, the seconds of each fit in turn. It uses public names only, which all revisions have.

Usage: python first_fits.py {structures,crf,tagger,large,again,predict}
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PREDICTING_FIRST, PREDICTING = "maxmargin predict, nothing on disk", "maxmargin predict, loops on disk"
PREDICTING_MEMORY = "MB of it"
LARGE_TAGGER = "Tagger of CoNLL-2000, over a warm fit"
SHORT: dict[str, Any] = {"tol": 0.01, "max_passes": 30, "random_state": 0}


def words() -> tuple[list, list]:
    from maxmargin.datasets import digit_words

    data = digit_words(n_train=100, n_test=1)
    return data.X_train, data.y_train


def classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    return np.eye(3)[y] + rng.normal(size=(60, 3)), y


def trees() -> tuple[list, list]:
    from maxmargin import Tree

    rng = np.random.default_rng(0)
    y = [rng.integers(3, size=6) for _ in range(20)]
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]
    return [Tree(np.eye(3)[labels] + rng.normal(size=(6, 3)), edges=edges) for labels in y], y


def pairs() -> tuple[list, list]:
    rng = np.random.default_rng(0)
    y = [rng.permutation(5) for _ in range(20)]
    return [np.eye(5)[match][:, :, None] + rng.normal(size=(5, 5, 2)) for match in y], y


def graphs() -> tuple[list, list]:
    rng = np.random.default_rng(0)
    edges = [(p, p + 1) for p in range(7)]
    y = [np.repeat(rng.permutation(2), 4) for _ in range(20)]
    return [(labels[:, None] + rng.normal(size=(8, 2)), edges) for labels in y], y


def timed(fit: Callable[[], Any]) -> float:
    began = cpu_seconds()
    fit()
    return cpu_seconds() - began


def cpu_seconds() -> float:
    """User and system time of this process, its threads, and the processes that it has started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def of_structures() -> dict[str, float]:
    """A first fit, then another solver, then other structures."""
    from maxmargin import ChainSVM, GraphCutSVM, MatchingSVM, MulticlassSVM, TreeSVM

    fits: dict[str, tuple[Any, Callable[[], tuple[Any, Any]]]] = {
        "ChainSVM": (ChainSVM(**SHORT), words),
        'then ChainSVM(solver="sgd")': (ChainSVM(solver="sgd", **SHORT), words),
        "then MulticlassSVM": (MulticlassSVM(**SHORT), classes),
        "then TreeSVM": (TreeSVM(**SHORT), trees),
        "then MatchingSVM": (MatchingSVM(**SHORT), pairs),
        "then GraphCutSVM": (GraphCutSVM(**SHORT), graphs),
    }
    return {name: first_fit(model, *data()) for name, (model, data) in fits.items()}


def first_fit(model: Any, X: Any, y: Any) -> float:
    return timed(lambda: model.fit(X, y))


def of_crf() -> dict[str, float]:
    from maxmargin import ChainCRF

    X, y = words()
    return {"ChainCRF": timed(lambda: ChainCRF(tol=0.01, max_passes=30).fit(X, y))}


def of_tagger() -> dict[str, float]:
    from maxmargin import Tagger

    sentence, tags = ["Ann", "Lee", "met", "Bo", "."], ["B-PER", "I-PER", "O", "B-PER", "O"]
    return {"Tagger": timed(lambda: Tagger().fit(50 * [sentence], 50 * [tags]))}


def of_large_tagger() -> dict[str, float]:
    """A tagger of all sentences of CoNLL-2000: what a first fit takes longer than the next."""
    from maxmargin import ChainCRF, Tagger
    from maxmargin.datasets import load_conll2000

    data = load_conll2000()
    model = ChainCRF(only_observed=True, C=3.0, random_state=0)  # the default, in as many passes each time
    first, warm = (timed(lambda: Tagger(model=model).fit(data.X_train, data.y_train)) for _ in range(2))
    return {LARGE_TAGGER: first - warm}


def again() -> dict[str, float]:
    """The first fit of a process that finds its loops on disk, and the fastest of three more."""
    from maxmargin import ChainSVM

    X, y = words()
    first, *warm = (timed(lambda: ChainSVM(**SHORT).fit(X, y)) for _ in range(4))
    return {"first": first, "warm": min(warm)}


def predict() -> dict[str, float]:
    """`maxmargin predict` on one sentence, with nothing on disk and then with what it left: whole processes."""
    sentence = "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n. . O\n\n"
    Path("train.txt").write_text(50 * sentence)
    Path("one.txt").write_text(sentence)
    with tempfile.TemporaryDirectory() as cache:
        run("train", "train.txt", "--model", "a.model", cache=cache)
    with tempfile.TemporaryDirectory() as cache:
        first, then = (timed(lambda: run("predict", "a.model", "one.txt", cache=cache)) for _ in range(2))
        memory = float(run("predict", "a.model", "one.txt", cache=cache).stderr.split()[-1])
    return {PREDICTING_FIRST: first, PREDICTING: then, PREDICTING_MEMORY: memory}


def run(*arguments: str, cache: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the library in a new process, which says last what memory it has had, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    tell = f"print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / {unit}, file=sys.stderr)"
    program = f"import atexit, resource, sys; atexit.register(lambda: {tell}); from maxmargin.cli import app; app()"
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "MAXMARGIN_CACHE_DIR": cache}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True)


PROGRAMS = {
    "structures": of_structures,
    "crf": of_crf,
    "tagger": of_tagger,
    "large": of_large_tagger,
    "again": again,
    "predict": predict,
}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]]()))
