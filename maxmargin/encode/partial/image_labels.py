"""Labels of the nodes of images, of which some are annotated by tags, boxes or seeds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays.blocks import Blocks, starts_of
from maxmargin.encode.inputs.base_encoder import LabellingEncoder
from maxmargin.encode.inputs.example_checks import check_truths
from maxmargin.encode.partial.annotations import Annotations, find_weak, learn_annotations
from maxmargin.losses import BaseLoss
from maxmargin.problem import AnyProblem, all_true_outputs, restrict
from maxmargin.structures.derived.annotated import cover_all, cover_groups
from maxmargin.supervision.image_annotations import Group, Reading, is_annotation, labels_in, read_annotations
from maxmargin.supervision.weak import Learned


class ImageLabels(NamedTuple):
    """What is known of the labels of all nodes, and what annotations of images say besides."""

    known: Annotations
    readings: dict[int, Reading]  # of the annotated examples
    starts: np.ndarray

    def is_certain(self) -> np.ndarray:
        """(N,) flags of nodes of the examples that are not annotated."""
        return np.repeat(~np.isin(np.arange(len(self.starts) - 1), [*self.readings]), np.diff(self.starts))

    def counts(self, weight: np.ndarray, *, needs_all: bool) -> np.ndarray:
        """(L,) weights of nodes, by label, of examples that are not annotated; raises where one of all is needed."""
        certain = self.is_certain().astype(float)
        found = self.known.counts(weight * certain)
        if needs_all and not found.all():
            k = int(np.argmin(found))
            label = self.known.classes[k].item()
            if self.known.counts(certain)[k]:
                raise ValueError(f"node_weight is zero for all nodes of the class {label!r}.")
            weighs = 'class_weight="balanced" weighs labels by how often they occur'
            raise ValueError(f"{weighs}, but no node is known to have {label!r}.")
        return found

    def groups(self, missed: np.ndarray, state: np.ndarray) -> list[list[Group]]:
        """Nodes of each example some of which must have a label, given the cost of missing each label, (L,).

        Labels become states, by a table (N, L).
        """
        found: list[list[Group]] = [[] for _ in self.starts[1:]]
        for i, reading in self.readings.items():
            of_nodes = state[self.starts[i] : self.starts[i + 1]]
            found[i] = [
                group._replace(states=of_nodes[group.nodes, group.states], cost=group.cost * missed[group.states])
                for group in reading.groups
            ]
        return found


def learn_image_labels(
    y: object, lengths: np.ndarray, weights: Blocks, former: LabellingEncoder | None = None
) -> ImageLabels:
    """Read what is known of the nodes of training graphs, whose numbers and weights are given."""
    starts, classes = weights.starts, None if former is None else former.classes
    listed = y if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object) else []
    annotated = {i: known for i, known in enumerate(listed) if is_annotation(known)}
    if not annotated:
        return ImageLabels(learn_annotations(y, lengths, starts, "graph", former=classes), {}, starts)
    others = [None if i in annotated else known for i, known in enumerate(listed)]
    also = {i: labels_in(known, f"y[{i}]") for i, known in annotated.items()}
    known = learn_annotations(others, lengths, starts, "graph", also=also, former=classes)
    assert known.allowed is not None
    readings = {}
    for i, parts in annotated.items():
        of_graph = slice(starts[i], starts[i + 1])
        readings[i] = read_annotations(parts, known.classes, weights.values[of_graph], f"y[{i}]")
        known.allowed[of_graph], known.labels[of_graph] = readings[i].allowed, readings[i].completion
    return ImageLabels(known, readings, starts)


def learn_covered(
    encoder: LabellingEncoder,
    problem: AnyProblem,
    known: Annotations,
    ends: np.ndarray,
    groups: list[list[Group]],
    loss: BaseLoss | None,
) -> Learned:
    """What training graphs, whose edges have these ends, teach; groups matter to losses attained at one output."""
    found = Learned(encoder, problem, find_weak(encoder, problem, known, ends))
    if found.weak is None or found.weak.consistent is None or not any(groups):
        return found
    if loss is not None and loss.oracle != "max":
        return found
    problem, consistent = cover_groups(problem, found.weak.consistent, groups)
    target = None if found.weak.target is None else _with_groups(found.weak.target, groups)
    return found._replace(problem=problem, weak=found.weak._replace(consistent=consistent, target=target))


def agree_with_images(
    encoder: LabellingEncoder, problem: AnyProblem, known: Any, name: str, state: np.ndarray
) -> AnyProblem:
    """The problem with only those outputs that agree with what is known of nodes, and with annotations of images.

    Labels become states, by a table (N, L) that is -1 where a node cannot have one; `name` is for messages.
    """
    annotated = {i: what for i, what in enumerate(known) if is_annotation(what)} if hasattr(known, "__len__") else {}
    if not annotated:
        return restrict(problem, encoder.exclusions(problem, known, name))
    starts, classes = all_true_outputs(problem).starts, encoder.classes
    known = check_truths(known, len(starts) - 1, "what is known of each graph", "example", name)
    of_nodes, completion, groups = [*known], np.zeros(starts[-1], np.int32), [list[Group]() for _ in known]
    for i, what in annotated.items():
        for label in labels_in(what, f"{name}[{i}]"):
            if label not in classes.tolist():
                raise ValueError(f"{name}[{i}] names {label!r}, which is not one of the labels that were seen in fit.")
        of_graph = slice(starts[i], starts[i + 1])
        states = state[of_graph]
        reading = read_annotations(what, classes, np.ones(len(states)), f"{name}[{i}]", states >= 0)
        of_nodes[i] = [{*classes[row].tolist()} for row in reading.allowed]
        completion[of_graph] = states[np.arange(len(states)), reading.completion]
        groups[i] = [group._replace(states=states[group.nodes, group.states]) for group in reading.groups]
    left = restrict(problem, encoder.exclusions(problem, of_nodes, name))
    return cover_all(left, groups, Blocks(completion, starts)) if any(groups) else left


def _with_groups(means: Blocks, groups: list[list[Group]]) -> Blocks:
    """Mean parts with those of groups, all of which are covered."""
    counts = [len(some) for some in groups]
    return Blocks(np.insert(means.values, np.repeat(means.starts[1:], counts), 0), means.starts + starts_of(counts))
