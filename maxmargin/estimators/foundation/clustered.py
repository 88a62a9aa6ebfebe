"""Training on the workers of a Dask cluster: they read the examples, learn to encode them, and keep them.

The unit is the portion, not the worker. Each is read by a task; another one learns what encoders must know, which is
joined two by two, in the order of the portions, to what the one of all examples must know; with that, the problems of
portions are put together, and stay where they are. All of it can be computed again where workers are lost.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_sample_weight
from maxmargin.data.sharding import Shards, check_portion
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.fitting import Task, as_list
from maxmargin.estimators.foundation.portioned import check_portionable, count_portion, needs_tally, prepare_portion
from maxmargin.features.layout import WeightLayout, layout_of, without_unmet
from maxmargin.problem import part_sizes
from maxmargin.solvers.parted.portions import Portion, T, in_tuples, own
from maxmargin.supervision.tallies import Tally
from maxmargin.text.corpus import Corpus, document_sizes
from maxmargin.text.sentence_files.documents import read_document
from maxmargin.text.sentence_files.file_layout import Layout
from maxmargin.version import __version__
from maxmargin.wording import quote

try:
    from dask.delayed import Delayed
    from distributed import Client, Future
except ImportError:
    raise ImportError('client needs Dask: pip install "maxmargin[dask]".') from None

from maxmargin.execution.dask_tasks import Tasks, hold
from maxmargin.solvers.parted.dask_portions import DaskPortions, nth

if TYPE_CHECKING:
    from maxmargin.estimators.foundation.structured_model import StructuredModel

PORTIONS = 16  # of lists that are here: a number that does not depend on the workers, as results must not


def prepare_on(
    client: object,
    model: StructuredModel,
    X: object,
    y: object,
    sample_weight: ArrayLike | None,
    former: Encoder | None,
    data: Mapping[str, object],
) -> Task:
    """As `prepare`, of examples that are read, and stay, on the workers of a cluster."""
    tasks = Tasks(check_client(client))
    model._check_parameters()
    check_portionable(data, "client")
    sources = submit_sources(tasks, X, y)
    bare = type(model)(**model.get_params(deep=False))
    tally = count_in_order(tasks, bare, sources) if needs_tally(model) else tasks.submit(hold, Tally().finished())
    found = [tasks.submit(learn_alone, bare, source, k, tally) for k, source in enumerate(sources)]
    sizes = np.array(tasks.results([tasks.submit(nth, future, 1) for future in found]))
    alone = [tasks.submit(nth, future, 0) for future in found]
    before = [] if former is None else [tasks.submit(hold, former)]
    if "former" in model._encoder_type.argument_names():
        union = join_in_order(tasks, before + alone, join)
    else:
        union = (before + alone)[0]
        check_alike(tasks, union, alone, f", or a {type(model).__name__} needs all examples in one place.")
    weights: Sequence[Any] = [None] * len(sizes)
    if sample_weight is not None:
        weights = np.split(as_sample_weight(sample_weight, int(sizes.sum())), np.cumsum(sizes)[:-1])
    calls = (
        (bare, source, k, union, weight, tally) for k, (source, weight) in enumerate(zip(sources, weights, strict=True))
    )
    made = tasks.submit_evenly(make_portion, calls)
    portions, encoders = ([tasks.submit(nth, future, i) for future in made] for i in (0, 1))
    check_alike(tasks, encoders[0], encoders, ".")
    encoder, like = tasks.results([encoders[0], tasks.submit(operator.attrgetter("problem"), portions[0])])
    like = in_tuples(own, like)
    layout = WeightLayout(layout_of(like).n_weights)
    lower, upper = encoder.limits(model._named_bounds(encoder), layout.n_weights)
    return Task(encoder, DaskPortions(tasks, portions, sizes, like), layout, lower, upper, None, ())


def check_alike(tasks: Tasks, first: Future, encoders: list[Future], end: str) -> None:
    """Raise, with this end of the sentence, where weights mean something else to another encoder than the first."""
    differ = tasks.results([tasks.submit(operator.ne, first, encoder) for encoder in encoders])
    if any(differ):
        raise ValueError(f"Portion {differ.index(True)} of the data differs in kind from portion 0{end}")


def check_client(client: object) -> Client:
    """The client of a cluster whose workers have this version of the library; raises where that is not so."""
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, not {quote(client)}.")
    if client.status != "running":
        raise ValueError(f"client must be connected to a scheduler, but it is {client.status}.")
    if client.asynchronous:
        raise ValueError("client must not be asynchronous: a fit waits for what it asks for.")

    def find_version() -> str | None:  # sent by value, as workers may lack the library
        try:
            from maxmargin.version import __version__ as version
        except ImportError:
            return None
        return version

    versions = client.run(find_version, on_error="return")
    if not versions:
        raise ValueError("client must be that of a cluster with workers, but it has none.")
    for address, version in versions.items():
        if isinstance(version, OSError):  # a worker that has just died
            continue
        if isinstance(version, Exception):
            raise version
        if version != __version__:
            has = "no maxmargin" if version is None else f"maxmargin {version}"
            raise ValueError(f"The worker {address} has {has}, but needs maxmargin {__version__}, as this process has.")
    return client


def submit_sources(
    tasks: Tasks, X: Any, y: Any, read_path: Callable[[str, int], tuple[object, object]] | None = None
) -> list[Future]:
    """Tasks that read portions of the data, pairs of X and y, each; of paths by a function, which is `read_file`."""
    if isinstance(X, Shards):
        if X.folder is not None:
            return [tasks.submit(operator.call, reader) for reader in X.readers]
        return [tasks.submit(hold, tuple(X[k])) for k in range(len(X))]
    remote = (Delayed, Future)
    X, y = ([value] if isinstance(value, remote) else value for value in (X, y))
    bags = hasattr(X, "to_delayed")
    if bags:
        from dask.bag import Bag  # which takes a while

        if not (isinstance(X, Bag) and (y is None or isinstance(y, Bag))):
            raise TypeError(f"Of Dask's collections, X and y may be bags or lists of delayed objects, not {quote(X)}.")
        X, y = X.to_delayed(), None if y is None else y.to_delayed()
    X = as_list(X)
    if isinstance(X, Sequence) and any(isinstance(part, remote) for part in X):
        ys = [None] * len(X) if y is None else y
        if not all(isinstance(part, remote) for part in X):
            raise TypeError("X must hold delayed objects or futures alone, or none of them.")
        if len(ys) != len(X):
            raise ValueError(f"X has {len(X)} portions, but y {len(ys)}.")
        parts = [tasks.client.compute(part) if isinstance(part, Delayed) else part for part in X]
        ys = [tasks.client.compute(part) if isinstance(part, Delayed) else part for part in ys]
        return [tasks.submit(pair_up, *pair, bags) for pair in zip(parts, ys, strict=True)]
    if isinstance(X, str | PathLike) or (
        isinstance(X, Sequence) and X and all(isinstance(x, PathLike | str) for x in X)
    ):
        paths = [str(path) for path in ([X] if isinstance(X, str | PathLike) else X)]
        sums = tasks.results([tasks.submit(checksum_of, path) for path in paths])
        return [
            tasks.submit(read_path or read_file, path, checksum) for path, checksum in zip(paths, sums, strict=True)
        ]
    X, y = check_portion((X, as_list(y)), "The data set")
    if y is None:
        raise TypeError("y must hold the true outputs of X, but it is None.")
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    ends = np.linspace(0, n, min(n, PORTIONS) + 1).astype(int)
    if isinstance(X, Corpus):
        starts = np.append(0, np.cumsum(document_sizes(X)))
        ends = np.unique(starts[np.searchsorted(starts, ends)])  # documents stay whole
    return [tasks.submit(hold, (X[lo:hi], y[lo:hi])) for lo, hi in pairwise(ends.tolist())]


def join_in_order(tasks: Tasks, known: list[Future], join_two: Callable[[T, T], T]) -> Future:
    """What all know, joined two by two."""
    while len(known) > 1:
        pairs = zip(known[::2], known[1::2], strict=False)
        known = [tasks.submit(join_two, a, b) for a, b in pairs] + known[len(known) // 2 * 2 :]
    return known[0]


def count_in_order(tasks: Tasks, model: StructuredModel, sources: list[Future]) -> Future:
    """How often names and labels occur in all portions."""
    counted = [tasks.submit(count_portion, model, source, k) for k, source in enumerate(sources)]
    return tasks.submit(Tally.finished, join_in_order(tasks, counted, add_up))


# --- on workers -------------------------------------------------------------------------------------------------------


def pair_up(X: Any, y: Any, is_bag: bool) -> tuple[object, object]:
    """X and y of a portion, of one object that has both or of two; partitions of bags hold pairs of single ones."""
    if y is not None:
        return ([*X], [*y]) if is_bag else (X, y)
    if is_bag:
        X = [*zip(*X, strict=True)] or [(), ()]
        return tuple(map(list, X))  # type: ignore[return-value]
    return X


def checksum_of(path: str) -> int:
    """What tells a file from what it was."""
    return zlib.crc32(Path(path).read_bytes())


def read_file(path: str, checksum: int) -> tuple[object, object]:
    """The columns of tokens, as names of features, and their tags."""
    X, y = read_sentences(path, checksum)
    return [[(token,) if isinstance(token, str) else token for token in sentence] for sentence in X], y


def read_sentences(path: str, checksum: int, layout: Layout | None = None) -> tuple[Any, Any]:
    """The sentences of a file, and their tags; files are read again where workers are lost."""
    if checksum_of(path) != checksum:
        raise ValueError(f"{path!r} has changed since the fit began.")
    document = read_document(path, layout)
    return document.X, document.y


def learn_alone(model: StructuredModel, source: object, k: int, tally: Tally) -> tuple[Encoder, int]:
    """What the encoder of a portion knows, and how many examples there are."""
    task = prepare_portion(model, source, k, tally=tally)
    return task.encoder, len(part_sizes(task.problem))


def make_portion(
    model: StructuredModel,
    source: object,
    k: int,
    union: Encoder,
    sample_weight: np.ndarray | None,
    tally: Tally,
) -> tuple[Portion, Encoder]:
    """A portion, and its encoder, which knows what the union knows."""
    task = prepare_portion(model, source, k, sample_weight, union, tally=tally)
    if task.weak is not None:
        raise ValueError(f"Portion {k} of the data has outputs that are known in part, which need all in one place.")
    return Portion(without_unmet(task.problem), task.sample_weight), task.encoder


def add_up(a: Tally, b: Tally) -> Tally:
    """What either has counted."""
    return Tally().add(a).add(b)


def join(a: Encoder, b: Encoder) -> Encoder:
    """What either knows."""
    return a.joined(b)
