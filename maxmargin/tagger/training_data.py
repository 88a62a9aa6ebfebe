"""What taggers are trained on, as models take it; of shards, one is in memory at a time, but the tags of all."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING, Any, TypeVar, overload

from maxmargin.data.sharding import Shard, Shards
from maxmargin.tagger.entity_scores import has_segments
from maxmargin.tagger.preferences import weigh_mistakes
from maxmargin.tagger.probable_tagger import add_votes
from maxmargin.text.composition.vote_features import add_vote_features
from maxmargin.text.document_tags import cross_tag, with_votes
from maxmargin.text.mending import mend_in_scheme
from maxmargin.text.partial_tags import check_known, outside_where_partial
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.syntax_features.segment_features import SegmentFeatures
from maxmargin.text.templates.template_features import TemplateFeatures
from maxmargin.text.token_features.tokens import Titles
from maxmargin.text.token_features.transformers import Transformer, warn_of_lists
from maxmargin.text.token_features.windows import Sentences, WindowFeatures

if TYPE_CHECKING:
    from maxmargin.tagger.word_tagger import Tagger

Fitted = TypeVar("Fitted", bound="Tagger")
T = TypeVar("T")


def fit_shards(tagger: Fitted, shards: Shards, X_dev: Any, y_dev: Any, **options: Any) -> Fitted:
    """Train a tagger on shards, as its `fit`."""
    chosen, tags, titles = prepare_portions(tagger, tags_in_shards(shards), sentences_of(shards), "shards")
    tags = pack_tags(tags)
    held_out = read_held_out(chosen, chosen.features, X_dev, y_dev)
    warn_of_lists(chosen.features, sentences_of(shards), tags, sentences_of(X_dev), tags_of(held_out))
    chosen.model.fit(describe_shards(chosen.features, shards, tags, titles), **held_out, **options)
    return tagger.complete(chosen.features, chosen.model, chosen.scheme, chosen.inside)


def stage_sentences(tagger: Tagger, X: Sentences, y: LabelSequences) -> tuple[Tagger | None, Sentences, Transformer]:
    """The first of two stages, or None, and the sentences and features to train the second one on; parts chosen."""
    if not tagger.two_stages:
        return None, X, tagger.features
    X, y = [*X] if not isinstance(X, Sequence) else X, [*y]
    parts = {name: getattr(tagger, name) for name in ("features", "model", "scheme", "prefer")}
    first = type(tagger)(**parts, inside=None if has_segments(tagger.model) else tagger.inside)
    tags = cross_tag(first, X, y)
    return first.fit(X, y), with_votes(X, tags), add_vote_features(tagger.features)


def prepare_portions(
    tagger: Fitted, y: list[Any], sentences: Sentences, where: str
) -> tuple[Fitted, Sequence[Any], Sequence[Titles] | None]:
    """An unfitted tagger with everything chosen, the tags to learn, and titles of names in sentences, if any change.

    The sentences, of which not all need be in memory, are only read where there are lists of names.
    """
    if tagger.two_stages:
        raise ValueError(f"two_stages must be False with {where}: the first of them tags all sentences.")
    chosen, tags = tagger.prepare(y)
    features, learned = chosen.features, chosen._convert_inside(tags)
    if not can_describe_portions(features):
        raise ValueError(
            f"features must be WindowFeatures or TemplateFeatures with {where}: others may learn from all sentences."
        )
    weigh_mistakes(chosen.model, chosen.prefer, learned)
    features.fit(None)
    if isinstance(features, TemplateFeatures):
        return chosen, learned, None
    return chosen, learned, features.cross_fit(sentences, outside_where_partial(learned), len(y))


def can_describe_portions(features: object) -> bool:
    """Whether features of some sentences are those that they have among all, but for the titles of names."""
    return isinstance(features, WindowFeatures | TemplateFeatures) and not isinstance(features, SegmentFeatures)


def is_for_workers(tagger: Tagger) -> bool:
    """Whether workers of a cluster can make the features that a tagger is to have."""
    return not tagger.two_stages and (tagger.features is None or can_describe_portions(tagger.features))


def as_tags(y: LabelSequences | None) -> Any:
    """The tags to train on, which are read more than once."""
    if y is None:
        raise TypeError("y must hold the tags of X, but it is None.")
    return [*y] if isinstance(y, Iterator) else y


def tags_in_shards(shards: Shards, name: str = "Shard") -> list[list[Any]]:
    """The tags of all shards."""
    y: list[list[Any]] = []
    for k, shard in enumerate(shards):
        if shard.y is None:
            raise TypeError(f"{name} {k} has no tags.")
        y += map(share_strings, shard.y)
    return y


class PackedTags(Sequence[list[str]]):
    """The tags of sentences as numbers, which are lists again where one is asked for.

    Lists that stay, made while shards are read, would keep Python from giving back the memory around them.

    Parameters
    ----------
    names
        The tags that occur.
    numbers
        Of the tags of all sentences.
    starts
        Where each sentence starts, and where the last one ends.
    """

    def __init__(self, names: list[str], numbers: array[int], starts: Sequence[int]) -> None:
        self.names, self.numbers, self.starts = names, numbers, starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, i: int) -> list[str]: ...
    @overload
    def __getitem__(self, i: slice) -> PackedTags: ...
    def __getitem__(self, i: int | slice) -> list[str] | PackedTags:
        at = range(len(self))[i]
        if isinstance(at, range):
            return PackedTags(self.names, self.numbers, self.starts[at.start : at.stop + 1])
        return [self.names[k] for k in self.numbers[self.starts[at] : self.starts[at + 1]]]


def pack_tags(y: Sequence[list[Any]]) -> Sequence[list[Any]]:
    """Tags in little memory, if all are known."""
    if {*map(type, chain.from_iterable(y))} != {str}:
        return y
    places = defaultdict[str, int](count().__next__)
    numbers = array("i", map(places.__getitem__, chain.from_iterable(y)))
    return PackedTags([*places], numbers, array("q", accumulate(map(len, y), initial=0)))


def share_strings(tags: Iterable[object]) -> list[Any]:
    """Tags, of which those that are alike are one string in memory."""
    return [sys.intern(tag) if type(tag) is str else tag for tag in tags]


def sentences_of(X: object) -> Any:
    """The sentences of all shards, of which one is in memory at a time; others as they are."""
    return chain.from_iterable(shard.X for shard in X) if isinstance(X, Shards) else X


def describe_shards(
    features: Transformer, shards: Shards, tags: Sequence[object], titles: Sequence[Titles] | None = None
) -> Shards:
    """Shards of the features of sentences, with titles of names, if there are any, and of these tags."""
    own = [None] * len(shards) if titles is None else cut(titles, shards.sizes)
    return shards.map(partial(describe, features), cut(tags, shards.sizes), own)


def describe(features: Any, examples: tuple[Any, Any], tags: Sequence[Any], titles: Sequence[Titles] | None) -> Shard:
    """The features of some of the sentences, with titles of names, if there are any, and their tags to learn."""
    rows = features.transform(examples[0])
    return Shard(rows if titles is None else rows.with_titles(titles), [*tags])


def cut(values: Sequence[T], sizes: Sequence[int]) -> list[Sequence[T]]:
    """Values of all sentences, as those of portions of them."""
    return [values[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def read_held_out(
    tagger: Tagger,
    features: Transformer,
    X: Sentences | Shards | None,
    y: LabelSequences | None,
    first: object = None,
) -> dict[str, Any]:
    """Held-out sentences as models take them, with tags in the scheme of a tagger, whose parts are all chosen."""
    if isinstance(X, Shards) and y is not None:
        raise ValueError("y_dev must be None where X_dev is Shards, which hold it.")
    known: Any = tags_in_shards(X, "In X_dev, shard") if isinstance(X, Shards) else y if y is None else as_tags(y)
    if known is not None:
        check_known(known, "y_dev")
    mended = None if known is None else mend_in_scheme(known, tagger.scheme, "y_dev")
    tags = known if mended is None else tagger._convert_inside(mended.y)
    if isinstance(X, Shards):
        return {"X_dev": describe_shards(features, X.map(partial(add_votes_of_shard, first)), tags), "y_dev": None}
    return {"X_dev": None if X is None else features.transform(add_votes(first, X)), "y_dev": tags}


def add_votes_of_shard(first: object, shard: Shard) -> Shard:
    """As `add_votes`."""
    return Shard(add_votes(first, shard.X), shard.y)


def tags_of(held_out: Mapping[str, object]) -> Any:
    """The tags of held-out sentences, of which models are told."""
    X = held_out["X_dev"]
    return tags_in_shards(X) if isinstance(X, Shards) else held_out["y_dev"]
