"""Taggers of shards: one portion of the sentences is in memory at a time, but the tags of all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeVar

from maxmargin.data.sharding import Shard, Shards
from maxmargin.tagger.preferences import weigh_mistakes
from maxmargin.text.partial_tags import outside_where_partial
from maxmargin.text.syntax_features.segment_features import SegmentFeatures
from maxmargin.text.token_features.tokens import Titles
from maxmargin.text.token_features.transformers import warn_of_lists
from maxmargin.text.token_features.windows import WindowFeatures

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger

Fitted = TypeVar("Fitted", bound="Tagger")


def fit_shards(tagger: Fitted, shards: Shards, X_dev: Any, y_dev: Any, **options: Any) -> Fitted:
    """Train a tagger on shards, as its `fit`."""
    chosen, described, tags = prepare_shards(tagger, shards)
    held_out = chosen._read_held_out(chosen.features, X_dev, y_dev, None)
    warn_of_lists(chosen.features, sentences_of(shards), tags, X_dev, held_out["y_dev"])
    chosen.model.fit(described, **held_out, **options)
    return tagger.complete(chosen.features, chosen.model, chosen.scheme, chosen.inside)


def prepare_shards(tagger: Tagger, shards: Shards) -> tuple[Tagger, Shards, list[Any]]:
    """An unfitted tagger with everything chosen, shards of features and of the tags to learn, and all these tags."""
    if tagger.two_stages:
        raise ValueError("two_stages must be False with shards: the first of them tags all sentences.")
    y, sizes = [], []
    for k, shard in enumerate(shards):
        if shard.y is None:
            raise TypeError(f"Shard {k} has no tags.")
        y += [[sys.intern(tag) if type(tag) is str else tag for tag in tags] for tags in shard.y]
        sizes.append(len(shard.y))
    chosen, tags = tagger.prepare(y)
    features, learned = chosen.features, chosen._convert_inside(tags)
    if isinstance(features, SegmentFeatures) or not isinstance(features, WindowFeatures):
        raise ValueError("features must be WindowFeatures with shards: others may learn from all sentences.")
    weigh_mistakes(chosen.model, chosen.prefer, learned)
    titles = features.fit(None).cross_fit(sentences_of(shards), outside_where_partial(learned), len(y))
    bounds = [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
    own_titles = [None if titles is None else titles[bound] for bound in bounds]
    return chosen, shards.map(partial(describe, features), [learned[bound] for bound in bounds], own_titles), learned


def sentences_of(shards: Shards) -> Iterator[Any]:
    """The sentences of all shards, of which one is in memory at a time."""
    return chain.from_iterable(shard.X for shard in shards)


def describe(features: WindowFeatures, shard: Shard, tags: list[list[str]], titles: Sequence[Titles] | None) -> Shard:
    """The features of a shard of sentences, with their titles of names, and the tags that a model is to learn."""
    return Shard(features.transform(shard.X).with_titles(titles), tags)
