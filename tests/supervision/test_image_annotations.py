"""What tags, boxes and seeds say of images."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.supervision.image_annotations import Boxes, Seeds, Tags, is_annotation, labels_in, read_annotations

CLASSES = np.array(["cow", "grass", "sky"])


def read(known, n_nodes=3):
    return read_annotations(known, CLASSES, np.arange(1.0, n_nodes + 1), "y[4]")


def agrees(known, y, are_tight=True):
    """By definition, of classes named in y, with boxes that are tight or need not be."""
    parts = known if isinstance(known, tuple) else (known,)
    for part in parts:
        if isinstance(part, Tags) and {*y} != {*part.labels}:
            return False
        if isinstance(part, Boxes):
            inside = {int(node) for line in part.lines for node in line}
            if any(label == part.label and node not in inside for node, label in enumerate(y)):
                return False
            if are_tight and not all(any(y[node] == part.label for node in line) for line in part.lines):
                return False
        if isinstance(part, Seeds) and any(y[node] != x for node, x in zip(part.nodes, part.labels, strict=True)):
            return False
    return True


SOME_NODES = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
TAGS = st.builds(Tags, st.lists(st.sampled_from(CLASSES.tolist()), min_size=1, max_size=3))
BOXES = st.builds(Boxes, st.sampled_from(CLASSES.tolist()), st.lists(SOME_NODES, max_size=3))
SEEDS = st.builds(lambda nodes: Seeds(nodes, CLASSES[np.array(nodes) % 3]), SOME_NODES)


@given(st.lists(st.one_of(TAGS, BOXES, SEEDS), min_size=1, max_size=3).map(tuple))
def test_readings_are_those_of_the_definitions(known):
    """Labellings that are allowed and cover all groups are those that agree, but for lines that were dropped."""
    all_outputs = [*itertools.product(range(3), repeat=4)]
    agreeing = {y for y in all_outputs if agrees(known, CLASSES[[*y]].tolist())}
    if not any(agrees(known, CLASSES[[*y]].tolist(), are_tight=False) for y in all_outputs):
        with pytest.raises(ValueError, match="leaves no"):
            read(known, 4)
        return
    reading = read(known, 4)
    consistent = {
        y
        for y in all_outputs
        if reading.allowed[np.arange(4), y].all()
        and all((np.array(y)[group.nodes] == group.states).any() for group in reading.groups)
    }
    assert tuple(reading.completion.tolist()) in consistent
    assert agreeing <= consistent
    if agreeing and not any(isinstance(part, Boxes) for part in known):
        assert agreeing == consistent
    assert all(group.cost >= 0 for group in reading.groups)


def test_costs_are_about_those_of_wrong_nodes():
    tags = read(Tags(["cow", "sky"])).groups
    assert [(group.states, group.cost) for group in tags] == [(0, 3.0), (2, 3.0)]  # all nodes weigh 6
    lines = read(Boxes("sky", [[0], [2], [0, 2]])).groups
    assert [group.cost for group in lines] == [pytest.approx(4 / 10 / 3)] * 3


def test_what_is_an_annotation():
    assert is_annotation(Tags(["cow"]))
    assert is_annotation((Tags(["cow"]), Seeds([0], "cow")))
    assert not is_annotation(("cow", "sky"))
    assert not is_annotation(())
    parts = Tags(["cow", "sky"]), Boxes("grass", []), Seeds([0, 1], "sky")
    assert labels_in(parts, "y[0]") == ["cow", "sky", "grass", "sky"]


@pytest.mark.parametrize("tags", [{"cow", "sky"}, frozenset(["cow", "sky"]), np.array(["sky", "cow"]), ("cow", "sky")])
def test_tags_come_in_any_collection(tags):
    assert {*labels_in(Tags(tags), "y[0]")} == {"cow", "sky"}
    assert [group.states for group in read(Tags(tags)).groups] == [0, 2]


@pytest.mark.parametrize(
    "known", [Tags([["cow"]]), Boxes(["cow"], [[0]]), Seeds([0], {"cow"}), Tags(None), Tags([0.5])]
)
def test_labels_are_integers_or_strings(known):
    with pytest.raises(TypeError, match=r"y\[4\] names .*, but labels are integers or strings\."):
        labels_in(known, "y[4]")


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Tags([]), r"The tags of y\[4\] must be at least one label"),
        (Boxes("cow", [[0, 3]]), r"The lines of the boxes of y\[4\] must be nodes, from 0 to 2, but 3 is none"),
        (Seeds([-1], ["cow"]), r"The seeds of y\[4\] must be nodes, from 0 to 2, but -1 is none"),
        (Seeds([0, 1], ["cow", "sky", "cow"]), r"The seeds of y\[4\] are 2 nodes, but they have 3 labels"),
        ((Tags(["cow"]), Seeds([1], ["sky"])), r"y\[4\] leaves no label for node 1"),
        (Seeds([0, 1, 0], ["cow", "cow", "sky"]), r"y\[4\] leaves no label for node 0"),
        ((Tags(["cow", "sky"]), Seeds([0, 1, 2], "sky")), r"y\[4\] has the tag 'cow', but leaves no node for it"),
    ],
)
def test_what_cannot_be_is_said(known, message):
    with pytest.raises(ValueError, match=message):
        read(known)


def test_nodes_are_integers():
    with pytest.raises(TypeError, match=r"The seeds of y\[4\] must be nodes, in a list of integers"):
        read(Seeds([0.5], ["cow"]))
