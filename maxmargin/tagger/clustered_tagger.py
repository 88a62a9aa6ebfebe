"""Taggers on a Dask cluster: workers have the sentences, and make their features; the tags of all of them are here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from maxmargin.data.sharding import check_portion
from maxmargin.estimators.foundation.clustered import check_client, read_sentences, submit_sources
from maxmargin.execution.dask_tasks import Tasks, hold
from maxmargin.solvers.parted.dask_portions import nth
from maxmargin.tagger.training_data import (
    cut,
    describe,
    prepare_portions,
    read_held_out,
    sentences_of,
    share_strings,
    tags_of,
)
from maxmargin.text.token_features.transformers import warn_of_lists

if TYPE_CHECKING:
    from distributed import Future

    from maxmargin.tagger.word_tagger import Tagger

Fitted = TypeVar("Fitted", bound="Tagger")


def fit_on_workers(tagger: Fitted, X: Any, y: Any, X_dev: Any, y_dev: Any, **options: Any) -> Fitted:
    """Train a tagger, as its `fit`, on sentences that workers read, or are sent."""
    tasks = Tasks(check_client(options["client"]))
    sources = submit_sources(tasks, X, y, partial(read_sentences, layout=tagger.layout))
    known = tasks.results([tasks.submit(tags_in, source, k) for k, source in enumerate(sources)])
    sizes = [*map(len, known)]
    every = [share_strings(tags) for part in known for tags in part]
    chosen, tags, titles = prepare_portions(tagger, every, read_in_turn(tasks, sources), "client")
    held_out = read_held_out(chosen, chosen.features, X_dev, y_dev)
    warn_of_lists(chosen.features, read_in_turn(tasks, sources), tags, sentences_of(X_dev), tags_of(held_out))
    features, own_titles = (
        tasks.submit(hold, chosen.features),
        [None] * len(sizes) if titles is None else cut(titles, sizes),
    )
    own = zip(sources, cut(tags, sizes), own_titles, strict=True)
    described = [tasks.submit(describe, features, *portion) for portion in own]
    chosen.model.fit(described, None, **held_out, **options)
    return tagger.complete(chosen.features, chosen.model, chosen.scheme, chosen.inside)


def read_in_turn(tasks: Tasks, sources: list[Future]) -> Iterator[Any]:
    """The sentences of all portions, of which one is here at a time."""
    for source in sources:
        yield from tasks.results([tasks.submit(nth, source, 0)])[0]


def tags_in(source: object, k: int) -> Any:
    """The tags of a portion, on a worker."""
    _, y = check_portion(source, f"Portion {k} of the data")
    if y is None:
        raise TypeError(f"Portion {k} of the data has no tags.")
    return y
