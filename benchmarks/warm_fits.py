"""A program that `benchmarks.warm_speed` runs in processes of two revisions in turn: the CPU time of warm work.

It fits on a few examples, so that all loops are there, then does the work and prints, as JSON, its CPU seconds, the
passes and the objective. It uses public names only, which all revisions have.

Usage: python warm_fits.py WORKLOAD
"""

from __future__ import annotations

import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Work = tuple[Any, Any, Any]  # a model, X and y


def as_auto() -> Any:
    """What the solver "auto" chooses where the oracle is cheap; earlier revisions chose by the clock."""
    from maxmargin import BCFW

    return BCFW(steps="pairwise", sampling="gap")


def without_constant(model: Any, **arguments: Any) -> Any:
    """A model without the features of biases, whatever their argument is called in a revision."""
    known = inspect.signature(model).parameters
    name = "fit_intercept" if "fit_intercept" in known else "fit_bias"
    return model(**{name: False}, **arguments)


def ocr(size: str) -> Work:
    from maxmargin import ChainSVM
    from maxmargin.datasets import load_ocr

    words = load_ocr(train_on_fold_zero=size == "small")
    model = without_constant(ChainSVM, C=0.1, cost="hamming", solver=as_auto(), tol=0.003, random_state=0)
    return model, words.X_train, words.y_train


def crf_ocr() -> Work:
    from maxmargin import ChainCRF
    from maxmargin.datasets import load_ocr

    words = load_ocr(train_on_fold_zero=False)
    return without_constant(ChainCRF, C=0.5, tol=3e-4), words.X_train, words.y_train


def crf_conll() -> Work:
    from maxmargin import ChainCRF

    sys.path.append(str(Path(__file__).parent))
    from chunking import load_chunking  # type: ignore[import-not-found]

    X, y, _, _ = load_chunking()
    return without_constant(ChainCRF, C=0.5, only_observed=True, tol=1e-9, max_passes=20), X, y


def matching() -> Work:
    from maxmargin import MatchingSVM

    rng = np.random.default_rng(0)
    y = [rng.permutation(50) for _ in range(200)]
    X = [np.eye(50)[match][:, :, None] + rng.normal(scale=0.7, size=(50, 50, 4)) for match in y]
    return MatchingSVM(solver=as_auto(), tol=1e-9, max_passes=100, random_state=0), X, y


def digits() -> Work:
    from sklearn.datasets import load_digits

    from maxmargin import MulticlassSVM

    X, y = load_digits(return_X_y=True)
    return MulticlassSVM(C=1.0, solver=as_auto(), tol=1e-3, random_state=0), X / 16, y


WORKLOADS: dict[str, Callable[[], Work]] = {
    "digits": digits,
    "matching": matching,
    "ocr-small": lambda: ocr("small"),
    "ocr-large": lambda: ocr("large"),
    "crf-ocr": crf_ocr,
    "crf-conll": crf_conll,
}


def main(name: str) -> None:
    model, X, y = WORKLOADS[name]()
    model.fit(X[:50], y[:50])
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    passes, primal = float(model.trace_.passes[-1]), float(model.trace_.primal[-1])
    print(json.dumps({"seconds": seconds, "passes": passes, "primal": primal}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of fits that are cut short
    main(sys.argv[1])
