"""Training on the workers of a Dask cluster: they read the examples, learn to encode them, and keep them.

The unit is the portion, not the worker. Each is read by a task; another one learns what encoders must know, which is
joined two by two, in the order of the portions, to what the one of all examples must know; with that, the problems of
portions are put together, and stay where they are. All of it can be computed again where workers are lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_sample_weight
from maxmargin.data.sharding import Shards, check_chunk
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.fitting import Task, as_list
from maxmargin.estimators.foundation.portioned import check_portionable, prepare_portion
from maxmargin.features.layout import WeightLayout, layout_of
from maxmargin.problem import part_sizes
from maxmargin.solvers.parted.portions import Portion, in_tuples, own
from maxmargin.text.sentence_files.documents import read_document
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
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    former: Encoder | None,
    data: Mapping[str, Any],
) -> Task:
    """As `prepare`, of examples that are read, and stay, on the workers of a cluster."""
    tasks = Tasks(check_client(client))
    model._check_parameters()
    check_portionable(model, data, "client")
    if "former" not in model._encoder_type.argument_names():
        raise ValueError(f"client must be None: a {type(model).__name__} needs all examples in one place.")
    sources = submit_sources(tasks, X, y)
    bare = type(model)(**model.get_params(deep=False))
    found = [tasks.submit(learn_alone, bare, source, k) for k, source in enumerate(sources)]
    sizes = np.array(tasks.results([tasks.submit(nth, future, 1) for future in found]))
    before = [] if former is None else [tasks.submit(hold, former)]
    union = join_in_order(tasks, before + [tasks.submit(nth, future, 0) for future in found])
    weights: Sequence[Any] = [None] * len(sizes)
    if sample_weight is not None:
        weights = np.split(as_sample_weight(sample_weight, int(sizes.sum())), np.cumsum(sizes)[:-1])
    made = [
        tasks.submit(make_portion, bare, source, k, union, weight)
        for k, (source, weight) in enumerate(zip(sources, weights, strict=True))
    ]
    portions, encoders = ([tasks.submit(nth, future, i) for future in made] for i in (0, 1))
    differ = tasks.results([tasks.submit(differs, encoders[0], encoder) for encoder in encoders])
    if any(differ):
        raise ValueError(f"Portion {differ.index(True)} of the data differs in kind from portion 0.")
    encoder, like = tasks.results([encoders[0], tasks.submit(problem_of, portions[0])])
    like = in_tuples(own, like)
    layout = WeightLayout(layout_of(like).n_weights)
    lower, upper = encoder.limits(model._named_bounds(encoder), layout.n_weights)
    return Task(encoder, DaskPortions(tasks, portions, sizes, like), layout, lower, upper, None, ())


def check_client(client: object) -> Client:
    """The client of a cluster whose workers have this version of the library; raises where that is not so."""
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, not {quote(client)}.")
    if client.status != "running":
        raise ValueError(f"client must be connected to a scheduler, but it is {client.status}.")

    def find_version() -> str | None:  # sent by value, as workers may lack the library
        try:
            from maxmargin.version import __version__ as version
        except ImportError:
            return None
        return version

    versions = client.run(find_version)
    if not versions:
        raise ValueError("client must be that of a cluster with workers, but it has none.")
    for address, version in versions.items():
        if version != __version__:
            has = "no maxmargin" if version is None else f"maxmargin {version}"
            raise ValueError(f"The worker {address} has {has}, but needs maxmargin {__version__}, as this process has.")
    return client


def submit_sources(tasks: Tasks, X: Any, y: Any) -> list[Future]:
    """Tasks that read portions of the data, pairs of X and y, each."""
    if isinstance(X, Shards):
        if X.folder is not None:
            return [tasks.submit(nth, X, k) for k in range(len(X))]
        return [tasks.submit(hold, tuple(X[k])) for k in range(len(X))]
    bags = hasattr(X, "to_delayed") and hasattr(X, "npartitions")
    if bags:
        X, y = X.to_delayed(), None if y is None else y.to_delayed()
    X = as_list(X)
    remote = (Delayed, Future)
    if isinstance(X, Sequence) and X and all(isinstance(part, remote) for part in X):
        ys = [None] * len(X) if y is None else y
        if len(ys) != len(X):
            raise ValueError(f"X has {len(X)} portions, but y {len(ys)}.")
        parts = [tasks.client.compute(part) if isinstance(part, Delayed) else part for part in X]
        ys = [tasks.client.compute(part) if isinstance(part, Delayed) else part for part in ys]
        return [tasks.submit(pair_up, *pair, bags) for pair in zip(parts, ys, strict=True)]
    if isinstance(X, str | PathLike) or (
        isinstance(X, Sequence) and X and all(isinstance(x, PathLike | str) for x in X)
    ):
        paths = [X] if isinstance(X, str | PathLike) else X
        return [tasks.submit(read_file, str(path)) for path in paths]
    X, y = check_chunk((X, as_list(y)), 0)
    if y is None:
        raise TypeError("y must hold the true outputs of X, but it is None.")
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    ends = np.linspace(0, n, min(n, PORTIONS) + 1).astype(int).tolist()
    return [tasks.submit(hold, (X[lo:hi], y[lo:hi])) for lo, hi in pairwise(ends)]


def join_in_order(tasks: Tasks, encoders: list[Future]) -> Future:
    """What all know, joined two by two."""
    while len(encoders) > 1:
        pairs = zip(encoders[::2], encoders[1::2], strict=False)
        encoders = [tasks.submit(join, a, b) for a, b in pairs] + encoders[len(encoders) // 2 * 2 :]
    return encoders[0]


# --- on workers -------------------------------------------------------------------------------------------------------


def pair_up(X: Any, y: Any, is_bag: bool) -> tuple[object, object]:
    """X and y of a portion, of one object that has both or of two; partitions of bags hold pairs of single ones."""
    if y is not None:
        return ([*X], [*y]) if is_bag else (X, y)
    if is_bag:
        X = [*zip(*X, strict=True)] or [(), ()]
        return tuple(map(list, X))  # type: ignore[return-value]
    return X


def read_file(path: str) -> tuple[object, object]:
    """X and y of a file of tagged sentences."""
    document = read_document(path)
    return document.X, document.y


def learn_alone(model: StructuredModel, source: object, k: int) -> tuple[Encoder, int]:
    """What the encoder of a portion knows, and how many examples there are."""
    task = prepare_portion(model, source, k)
    return task.encoder, len(part_sizes(task.problem))


def make_portion(
    model: StructuredModel, source: object, k: int, union: Encoder, sample_weight: np.ndarray | None
) -> tuple[Portion, Encoder]:
    """A portion, and its encoder, which knows what the union knows."""
    task = prepare_portion(model, source, k, sample_weight, union)
    if task.weak is not None:
        raise ValueError(f"Portion {k} of the data has outputs that are known in part, which need all in one place.")
    return Portion(task.problem, task.sample_weight), task.encoder


def join(a: Encoder, b: Encoder) -> Encoder:
    """What either knows."""
    return a.joined(b)


def differs(a: Encoder, b: Encoder) -> bool:
    """Whether weights mean something else to one encoder than to another."""
    return bool(a != b)


def problem_of(portion: Portion) -> Any:
    """The examples of a portion."""
    return portion.problem
