"""`maxmargin compile`: loops on disk before anyone waits for them, as in the image of a container.

What a model needs is what its fit and its predictions run, so that each is fitted, to a few small examples: as to so
few, and as to many (`as_on_much_data`), on one thread and on two.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from maxmargin import (
    ChainCRF,
    ChainSVM,
    DependencyCRF,
    GraphCutSVM,
    MatchingSVM,
    MulticlassSVM,
    SegmentCRF,
    Tagger,
    Tree,
    TreeSVM,
)
from maxmargin.checks import check_choice
from maxmargin.cli.common import show
from maxmargin.runtime import cache_folder
from maxmargin.runtime.cache import compiled_anew, finished
from maxmargin.runtime.modes import as_on_much_data
from maxmargin.runtime.shipped import packing
from maxmargin.tagger.word_tagger import default_model
from maxmargin.text import ArcFeatures
from maxmargin.wording import count_of

N_EXAMPLES, N_LABELS = 20, 3
TO_THE_END: dict[str, Any] = {"C": 10.0, "tol": 1e-7}  # at which what begins on much data hands over

Examples = tuple[Any, Any]  # X and y


def draw_labels(size: int) -> list[np.ndarray]:
    """The labels of examples of some size."""
    rng = np.random.default_rng(0)
    return [rng.permutation(np.arange(size) % N_LABELS) for _ in range(N_EXAMPLES)]


def describe(labels: np.ndarray) -> np.ndarray:
    """A row of numbers for each label, which tells it."""
    return np.where(np.eye(N_LABELS)[labels], 1.5, 0.5)


def make_sequences() -> Iterator[Examples]:
    """Sequences of dense rows, of sparse ones, and of sparse ones that are all ones."""
    from scipy.sparse import csr_array

    y = draw_labels(6)
    rows = [describe(labels) for labels in y]
    yield rows, y
    yield [csr_array(x) for x in rows], y
    yield [csr_array(x > 1, dtype=float) for x in rows], y


def make_sentences() -> Iterator[Examples]:
    """Sentences with entities, and with parts of speech."""
    sentence = ["Ann", "Lee", "met", "Bo", "."]
    yield N_EXAMPLES * [sentence], N_EXAMPLES * [["B-PER", "I-PER", "O", "B-PER", "O"]]
    yield N_EXAMPLES * [sentence], N_EXAMPLES * [["NOUN", "NOUN", "VERB", "NOUN", "PUNCT"]]


def make_segments() -> Iterator[Examples]:
    """Those sequences, whose segments are of one row each."""
    for rows, y in make_sequences():
        yield rows, [[(t, t + 1, label) for t, label in enumerate(labels.tolist())] for labels in y]


def make_parses() -> Iterator[Examples]:
    """Sentences with features of arcs by name, and their trees."""
    sentence, tree = [("She", "PRON"), ("sings", "VERB"), (".", "PUNCT")], [(2, "nsubj"), (0, "root"), (2, "punct")]
    yield ArcFeatures().transform(N_EXAMPLES * [sentence]), N_EXAMPLES * [tree]


def make_classes() -> Iterator[Examples]:
    """Rows of classes."""
    y = np.concatenate(draw_labels(N_LABELS))
    yield describe(y), y


def make_trees() -> Iterator[Examples]:
    """Trees of six nodes."""
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]
    y = draw_labels(6)
    yield [Tree(describe(labels), edges=edges) for labels in y], y


def make_matchings() -> Iterator[Examples]:
    """Three items on each side."""
    y = draw_labels(N_LABELS)
    yield [describe(partners)[:, :, None] for partners in y], y


def make_graphs() -> Iterator[Examples]:
    """Paths of six nodes with labels 0 and 1."""
    edges = [(node, node + 1) for node in range(5)]
    y = [labels % 2 for labels in draw_labels(6)]
    yield [(labels[:, None] + 0.5, edges) for labels in y], y


class Ahead(NamedTuple):
    """A model to be compiled: its class, what it is fitted to, and what it predicts then."""

    model: type[Any]
    make_examples: Callable[[], Iterator[Examples]]
    predictions: tuple[str, ...] = ("predict",)


MODELS = {
    "chains": Ahead(ChainSVM, make_sequences, ("predict", "predict_topk")),
    "crf": Ahead(ChainCRF, make_sequences, ("predict", "predict_topk", "predict_marginals", "log_likelihood")),
    "tagger": Ahead(Tagger, make_sentences, ("predict", "predict_topk", "predict_marginals", "predict_entities")),
    "segments": Ahead(SegmentCRF, make_segments),
    "parsers": Ahead(DependencyCRF, make_parses),
    "multiclass": Ahead(MulticlassSVM, make_classes),
    "trees": Ahead(TreeSVM, make_trees),
    "matchings": Ahead(MatchingSVM, make_matchings),
    "graphs": Ahead(GraphCutSVM, make_graphs),
}


def run_compile(named: str | None) -> None:
    """Compile what models need, those with names between commas or all; tell how long it took, and where it is."""
    names = [*MODELS] if named is None else [name.strip() for name in named.split(",")]
    for name in names:
        check_choice("--for", name, MODELS)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()  # raises now where nothing could be kept
    for name in names:
        before, began = (finished.total(), compiled_anew.total()), perf_counter()
        fit_model(MODELS[name])
        seconds = perf_counter() - began
        n_finished, n_anew = finished.total() - before[0], compiled_anew.total() - before[1]
        done = f"{count_of(n_finished + n_anew, 'function')} in {seconds:.1f} s, {n_anew} of them from their sources"
        done = done if n_finished + n_anew else "all was there"
        show(f"{name} ({MODELS[name].model.__name__}): {done}")
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    show(f"{folder} has {count_of(len(sizes), 'file')}, {sum(sizes) / 1e6:.1f} MB.")


def pack(folder: Path, names: Iterable[str]) -> None:
    """Compile what models need, for a wheel to bring in a folder, into a cache that goes away."""
    with tempfile.TemporaryDirectory() as cache, packing(folder):
        os.environ["MAXMARGIN_CACHE_DIR"] = cache
        for name in names:
            fit_model(MODELS[name])


def fit_model(ahead: Ahead) -> None:
    """Fit a model to its examples, on all roads, and predict."""
    for X, y in ahead.make_examples():
        fit_and_predict(ahead, X, y)
        with as_on_much_data():
            for n_jobs in (1, 2):
                fit_and_predict(ahead, X, y, n_jobs=n_jobs, **TO_THE_END)


def fit_and_predict(ahead: Ahead, X: Any, y: Any, **options: Any) -> None:
    """Fit a model with some options, those of the model in it if it is a tagger."""
    is_tagger = ahead.model is Tagger
    model = Tagger(model=default_model().set_params(**options)) if is_tagger else ahead.model(**options)
    model.fit(X, y)
    more = {"predict_topk": (2,), "log_likelihood": (y,)}
    for prediction in ahead.predictions:
        if prediction != "predict_entities" or model.scheme_ is not None:
            getattr(model, prediction)(X, *more.get(prediction, ()))
