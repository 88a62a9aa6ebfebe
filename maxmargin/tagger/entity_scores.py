"""What the models of a tagger say of tags and of entities, be they chains or models of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from maxmargin import inference
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.syntax.segment_models import SegmentCRF, SegmentSVM
from maxmargin.text.entity_chances import Chances, ScoredEntity, continuations
from maxmargin.text.inner_tags import DEPENDS, find_meetings, merge_columns, outer_classes
from maxmargin.text.mending import Mended
from maxmargin.text.partial_tags import have_partial
from maxmargin.text.schemes import OUTSIDE, SPELLINGS, Entity, check_spans, count_entities, find_entities, scheme_named

TaggingModel: TypeAlias = ChainCRF | ChainSVM | SegmentCRF | SegmentSVM
SEGMENT_TAGS = "IOB2"  # the scheme that models of segments have inside
MARK_ENDS = ("IOBES", "BILOU")
ENOUGH_ENTITIES = 3_000  # to learn the ends of, as twice as many tags: fewer are found worse
OF_TAGS = ("cost", "class_weight", "allowed_transitions", "label_share")


def has_segments(model: object) -> TypeGuard[SegmentCRF | SegmentSVM]:
    """Whether a model is one of segments."""
    return isinstance(model, SegmentCRF | SegmentSVM)


def check_options(options: Mapping[str, object]) -> None:
    """Raise if a fit is given features beside the sentences, which predictions would not have."""
    for name in options:
        if name.startswith(("segment_features", "edge_features")):
            raise TypeError(
                f"{name} must be left out: a tagger makes features of words itself, by what it has as features."
            )


def choose_inside(
    model: TaggingModel, inside: str | None, prefer: str | None, mended: Mended | None, *, is_free: bool
) -> str | None:
    """The scheme that a model has inside, if it is not that of the tags, by what users say; those of segments have one.

    Where nobody asks for any, models that are free to have other tags have one that marks the ends of entities, if
    these are many.
    """
    named = None if inside in (None, "auto") else scheme_named(inside, "inside")
    if named not in (None, *MARK_ENDS):
        raise ValueError(f"inside must be auto, IOBES, BILOU or None, not {inside!r}.")
    if has_segments(model):
        if mended is None or named is not None or prefer is not None:
            name = type(model).__name__
            raise ValueError(f"model={name}() needs tags that spell entities, and no other inside, and no prefer.")
        named = SEGMENT_TAGS
    if mended is None or mended.scheme == named:
        return None
    if named is not None or inside is None or not is_free or names_tags(model):
        return named
    is_known = mended.scheme not in MARK_ENDS and not have_partial(mended.y)
    return "IOBES" if is_known and count_entities(mended.y) >= ENOUGH_ENTITIES else None


def names_tags(model: TaggingModel) -> bool:
    """Whether arguments of a model speak of tags, which then must be those that it learns."""
    given = [getattr(model, name, None) for name in OF_TAGS]
    return any(not (value is None or isinstance(value, str)) for value in given) or bool(model.constraints)


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
    if has_segments(model):
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
    if has_segments(model):
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
    if has_segments(model):
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
