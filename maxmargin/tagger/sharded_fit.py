"""Taggers of shards: one portion of the sentences is in memory at a time, but the tags of all of them."""

from __future__ import annotations

import sys
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from maxmargin.data.sharding import Shard, Shards
from maxmargin.tagger.preferences import weigh_mistakes
from maxmargin.text.token_features.transformers import fit_transform
from maxmargin.text.token_features.windows import WindowFeatures

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger


def prepare_shards(tagger: Tagger, shards: Shards) -> tuple[Tagger, Shards]:
    """An unfitted tagger with everything chosen, and shards of features and of the tags that its model is to learn."""
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
    if not isinstance(features, WindowFeatures):
        raise ValueError("features must be WindowFeatures with shards: others may learn from all sentences.")
    weigh_mistakes(chosen.model, chosen.prefer, learned)
    tags_of = [learned[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
    return chosen, shards.map(partial(describe, features), tags_of)


def describe(features: WindowFeatures, shard: Shard, tags: list[list[str]]) -> Shard:
    """The features of a shard of sentences, and the tags that a model is to learn of them."""
    return Shard(fit_transform(features, shard.X, tags), tags)
