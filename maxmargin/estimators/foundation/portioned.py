"""Training data in portions: what all of them must know is learned first, and with that each becomes a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import as_sample_weight
from maxmargin.data.sharding import Shards, check_portion
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.encode.names.kept_rows import KeptRows, keeping_rows
from maxmargin.estimators.foundation.fitting import Task, prepare
from maxmargin.features.layout import WeightLayout, layout_of, without_unmet
from maxmargin.garbage import give_back
from maxmargin.persist.spilled import SpillFile
from maxmargin.problem import AnyProblem, part_sizes
from maxmargin.solvers.parted.spilled_portions import SpilledPortions
from maxmargin.supervision.tallies import Tally, tallying
from maxmargin.supervision.weak import Weak
from maxmargin.wording import name_type

if TYPE_CHECKING:
    from maxmargin.estimators.foundation.structured_model import StructuredModel


def prepare_shards(
    model: StructuredModel,
    shards: Shards,
    y: object,
    sample_weight: ArrayLike | None,
    former: Encoder | None,
    data: Mapping[str, object],
) -> Task:
    """As `prepare`, of shards: they are read twice, and of their problems only the one in use is in memory."""
    if y is not None:
        raise ValueError("y must be None where X is Shards, which hold it.")
    model._check_parameters()
    if len(shards) == 1:
        return prepare_portion(model, shards[0], 0, sample_weight, former, data)
    check_portionable(data, "shards")
    tally = Tally()
    for k, shard in enumerate(shards if needs_tally(model) else ()):
        tally.add(count_portion(model, shard, k))
    tally.finished()
    union, sizes, can_join = former, [], "former" in model._encoder_type.argument_names()
    file = SpillFile(shards.folder)
    rows = [KeptRows(file) for _ in range(len(shards))]
    for k, shard in enumerate(shards):
        with keeping_rows(rows[k]):
            task = prepare_portion(model, shard, k, None, union, tally=tally)
        if union is not None and not can_join and task.encoder != union:
            what = f"{name_type(model)} needs all examples in one place"
            raise ValueError(f"Shard {k} has other sizes than shard 0, or {what}.")
        union, tally.has_weak = task.encoder, tally.has_weak or task.weak is not None
        sizes.append(len(part_sizes(task.problem)))
        del task, shard  # which the next one need not find in memory
    ends = np.cumsum(sizes)
    weight = None if sample_weight is None else as_sample_weight(sample_weight, int(ends[-1]))
    home, kept, consistent = SpillFile(shards.folder), [], []
    for k, shard in enumerate(shards):
        own = None if weight is None else weight[ends[k] - sizes[k] : ends[k]]
        with keeping_rows(rows[k], again=True):
            task = prepare_portion(model, shard, k, own, union, tally=tally)
        if task.encoder != union or len(part_sizes(task.problem)) != sizes[k]:
            raise ValueError(f"Shard {k} has changed since it was read first, or differs in kind from shard 0.")
        if tally.has_weak:
            consistent.append(home.put((without_unmet(consistent_of(task, k)), task.sample_weight)))
        kept.append(home.put((without_unmet(task.problem), task.sample_weight)))
        del task, shard
    assert union is not None
    del file, rows
    give_back()
    portions = SpilledPortions(kept, sizes)
    layout = WeightLayout(layout_of(portions.like).n_weights)
    lower, upper = union.limits(model._named_bounds(union), layout.n_weights)
    weak = Weak(SpilledPortions(consistent, sizes)) if consistent else None
    return Task(union, portions, layout, lower, upper, None, (), weak)


def consistent_of(task: Task, k: int) -> AnyProblem:
    """The examples of shard k with only those outputs that agree with what is known."""
    weak = task.weak
    if weak is None or weak.consistent is None or weak.target is not None or weak.share is not None:
        raise ValueError(
            f"Shard {k} has outputs that are known softly, or in part, in a way that needs all examples in one place."
        )
    return weak.consistent


def check_portionable(data: Mapping[str, object], where: str) -> None:
    """Raise where something is asked for that only all examples together can tell; `where` is for messages."""
    given = [name for name, value in data.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} must be None with {where}: portions of the data hold X and y alone.")


def needs_tally(model: StructuredModel) -> bool:
    """Whether a model asks how often something occurs in all portions."""
    weight = getattr(model, "class_weight", None)
    asked = weight if isinstance(weight, list | tuple) else [weight]
    return getattr(model, "min_count", 1) > 1 or any(isinstance(entry, str) for entry in asked)


def count_portion(model: StructuredModel, source: object, k: int) -> Tally:
    """How often names and labels occur in a portion."""
    tally = Tally()
    prepare_portion(model, source, k, tally=tally)
    return tally


def prepare_portion(
    model: StructuredModel,
    source: object,
    k: int,
    sample_weight: ArrayLike | None = None,
    union: Encoder | None = None,
    data: Mapping[str, object] | None = None,
    tally: Tally | None = None,
) -> Task:
    """The task of a portion; what is wrong with it is told with its number."""
    try:
        X, y = check_portion(source, "the portion")
        if y is None:
            raise TypeError("there is no y.")
        weight = None if sample_weight is None else np.array(sample_weight)  # that of a worker may be read-only
        with tallying(tally):
            return prepare(model, X, y, weight, union, **(data or {}))
    except (TypeError, ValueError) as error:
        raise type(error)(f"In portion {k} of the data: {error}") from None
