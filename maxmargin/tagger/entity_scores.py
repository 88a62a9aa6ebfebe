"""What the models of a tagger say of tags and of entities, be they chains or models of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from maxmargin import inference
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.syntax.segment_models import SegmentCRF, SegmentSVM
from maxmargin.text.entity_chances import Chances, ScoredEntity, continuations
from maxmargin.text.inner_tags import DEPENDS, find_meetings, merge_columns, outer_classes
from maxmargin.text.schemes import OUTSIDE, SPELLINGS, Entity, check_spans, find_entities

TaggingModel: TypeAlias = ChainCRF | ChainSVM | SegmentCRF | SegmentSVM
SEGMENT_TAGS = "IOB2"  # the scheme that models of segments have inside


def has_segments(model: object) -> bool:
    """Whether a model is one of segments."""
    return isinstance(model, SegmentCRF | SegmentSVM)


def check_options(options: Mapping[str, object]) -> None:
    """Raise if a fit is given features beside the sentences, which predictions would not have."""
    for name in options:
        if name.startswith(("segment_features", "edge_features")):
            raise TypeError(
                f"{name} must be left out: a tagger makes features of words itself, by what it has as features."
            )


def choose_inside(model: object, inside: str | None, prefer: str | None, *, have_entities: bool) -> str | None:
    """The scheme that a model has inside, as users say it; models of segments have one of their own."""
    if not has_segments(model):
        return inside
    if not have_entities or inside is not None or prefer is not None:
        name = type(model).__name__
        raise ValueError(f"model={name}() needs tags that spell entities, and inside and prefer to be None.")
    return SEGMENT_TAGS


def find_tags(model: TaggingModel, scheme: str | None, inside: str | None) -> np.ndarray:
    """The tags of a scheme that a model predicts, sorted, with another scheme inside, if there is one."""
    classes = model.classes_.tolist()
    if has_segments(model):
        ways = [SPELLINGS[scheme or ""](n, *beside) for n in (1, 2, 3) for beside in ((False, False), (True, True))]
        types = [label for label in classes if label != OUTSIDE]
        tags = {f"{prefix}-{type_}".rstrip("-") for way in ways for prefix in way for type_ in types}
        return np.array(sorted({OUTSIDE, *tags}))
    return model.classes_ if inside is None else outer_classes(classes, scheme or "")


def tag_probabilities(
    model: TaggingModel, rows: Any, allowed: Mapping[str, Any], scheme: str | None, inside: str | None
) -> list[np.ndarray]:
    """The probabilities of tags of each sentence: tables (T, L) with the tags of `find_tags` as columns."""
    classes = model.classes_.tolist()
    if isinstance(model, SegmentCRF | SegmentSVM):
        tables = model.predict_marginals(rows, **allowed)
        if inside is not None:
            raise ValueError(f"Models of segments have probabilities of tags of {SEGMENT_TAGS} alone: train with it.")
        index = {label: k for k, label in enumerate(classes)}
        parts = [tag.partition("-") for tag in find_tags(model, scheme, None).tolist()]
        role = np.array([int(prefix == "I") for prefix, _, _ in parts])
        label = np.array([index[OUTSIDE if prefix == OUTSIDE else type_] for prefix, _, type_ in parts])
        return [table[:, role, label] for table in tables]
    if inside is None:
        return model.predict_marginals(rows, **allowed)
    if scheme not in DEPENDS:
        return [merge_columns(table, classes, scheme or "") for table in model.predict_marginals(rows, **allowed)]
    problem = model._problem(rows, **allowed)
    pairs = find_meetings(classes) @ [len(classes), 1]
    found = zip(
        model._predict_marginals(problem), inference.transitions(problem, model._w, pairs, model.n_jobs), strict=True
    )
    return [merge_columns(table, classes, scheme, meetings) for table, meetings in found]


def score_entities(
    model: TaggingModel, rows: object, allowed: Mapping[str, object], entities: Sequence[Sequence[Entity]] | None = None
) -> tuple[list[int], list[list[ScoredEntity]]]:
    """The lengths of sentences, and the probabilities of entities: of the best ones, unless others are given."""
    if isinstance(model, SegmentCRF | SegmentSVM):
        tags = [best.tolist() for best in model.predict(rows, **allowed)]
    else:
        problem = model._problem(rows, **allowed)
        tags = [best.tolist() for best in model._predict(problem)]
    lengths = [*map(len, tags)]
    if entities is None:
        entities = find_entities(tags)
    elif len(entities) != len(lengths):
        raise ValueError(f"entities must hold {len(lengths)} lists, one per sentence, but holds {len(entities)}.")
    found = [check_spans(row, n, i) for i, (row, n) in enumerate(zip(entities, lengths, strict=True))]
    if isinstance(model, SegmentCRF | SegmentSVM):
        shares = [row.tolist() for row in model.segment_probabilities(rows, found, **allowed)]
    else:
        names = tuple(model.classes_.tolist())
        pairs = continuations(names) @ [len(names), 1]
        tables = model._predict_marginals(problem), inference.transitions(problem, model._w, pairs, model.n_jobs)
        shares = [Chances(names, *table).of(row) for *table, row in zip(*tables, found, strict=True)]
    return lengths, [
        [ScoredEntity(*entity, share) for entity, share in zip(*row, strict=True)]
        for row in zip(found, shares, strict=True)
    ]
