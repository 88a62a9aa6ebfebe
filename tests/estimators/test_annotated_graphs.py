"""Models of graphs trained on full maps, tags, boxes and seeds, mixed within a training set and within an image."""

import numpy as np
import pytest

from maxmargin import Boxes, Graph, GraphCRF, GraphCutSVM, GraphSVM, Seeds, Tags
from maxmargin.problem import augment, part_sizes
from maxmargin.trace import Status
from maxmargin.vision import grid_edges

HEIGHT, WIDTH = 4, 5
EDGES = grid_edges(HEIGHT, WIDTH)


def make_images(n, n_labels, seed=0):
    """Grids of pixels with a rectangle of a label on a ground of another, whose features are noisy."""
    rng = np.random.default_rng(seed)
    X, y, boxes = [], [], []
    for _ in range(n):
        ground, thing = (0, 1) if n_labels == 2 else rng.permutation(n_labels)[:2]
        (top, bottom), (left, right) = (np.sort(rng.permutation(size + 1)[:2]) for size in (HEIGHT, WIDTH))
        labels = np.full((HEIGHT, WIDTH), ground)
        labels[top:bottom, left:right] = thing
        rows = np.eye(n_labels)[labels.ravel()] + 0.4 * rng.normal(size=(HEIGHT * WIDTH, n_labels))
        cells = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)[top:bottom, left:right]
        X.append((rows, EDGES))
        y.append(labels.ravel())
        boxes.append(Boxes(int(thing), [*cells, *cells.T]))
    return X, y, boxes


def annotate(y, boxes, kind, n_full=3):
    """Full labels of the first images, and annotations of the others."""
    weak = {
        "tags": lambda i: Tags(np.unique(y[i]).tolist()),
        "boxes": lambda i: boxes[i],
        "seeds": lambda i: Seeds([0, 7, 19], y[i][[0, 7, 19]]),
        "all": lambda i: (Tags(np.unique(y[i]).tolist()), boxes[i], Seeds([3], y[i][[3]])),
    }
    kinds = [kind] if kind != "mixed" else [*weak]
    return [labels if i < n_full else weak[kinds[i % len(kinds)]](i) for i, labels in enumerate(y)]


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("kind", ["tags", "boxes", "seeds", "all", "mixed"])
def test_cuts_learn_from_annotations(kind):
    X, y, boxes = make_images(10, 2)
    X_test, y_test, _ = make_images(10, 2, seed=1)
    model = GraphCutSVM(C=0.1, tol=0.05, random_state=0).fit(X, annotate(y, boxes, kind))
    assert model.status_ is Status.STATIONARY
    assert model.score(X_test, y_test) > 0.85
    assert (np.diff(model.trace_.primal) <= 1e-6 * model.trace_.primal[0]).all()


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.filterwarnings("ignore:Not solved")
@pytest.mark.parametrize("kind", ["tags", "mixed"])
def test_graphs_learn_from_annotations(kind):
    X, y, boxes = make_images(8, 3)
    X_test, y_test, _ = make_images(8, 3, seed=1)
    model = GraphSVM(C=0.1, interaction="potts", max_passes=10, random_state=0).fit(X, annotate(y, boxes, kind))
    assert model.score(X_test, y_test) > 0.8
    assert (np.diff(model.trace_.primal) <= 1e-6 * model.trace_.primal[0]).all()


def test_labels_may_be_known_by_annotations_alone():
    """The label 2 is in no full map."""
    X, y, _ = make_images(8, 3)
    is_full = [2 not in labels for labels in y]
    known = [labels if full else Tags(np.unique(labels)) for labels, full in zip(y, is_full, strict=True)]
    assert any(is_full)
    learned = GraphSVM()._learn(X, known)
    assert learned.encoder.classes.tolist() == [0, 1, 2]
    assert learned.weak.is_weak.tolist() == [not full for full in is_full]


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize(
    "known",
    [[{"a", "b"}, "a", "a", "a"], Boxes("b", [[1], [2]]), Tags({"a", "b"}), (Tags(["a", "b"]), Seeds([0], "a"))],
)
@pytest.mark.parametrize("types", [None, ["x", "y", "x", "x"]])
def test_labels_that_only_sets_of_all_name_are_kept(known, types):
    """Types of nodes have the labels that annotations name, though no node is known to have them."""
    x = Graph(np.eye(4), [(0, 1), (1, 2)], None, types)
    X, y = [x, x], [["a"] * 4, known]
    learned = GraphSVM()._learn(X, y)
    assert learned.encoder.state[0].tolist() == [0, 1]
    groups = getattr(learned.problem, "groups", None)
    if groups is not None:
        assert (groups.state == 1).any()
        assert (groups.state >= 0).all()
    assert "b" in GraphCRF(C=0.1).fit(X, y).classes_


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.filterwarnings("ignore:Not solved")
@pytest.mark.parametrize("make", [GraphSVM, GraphCutSVM])
@pytest.mark.parametrize("known", [Tags([0, 1]), Boxes(1, [[0, 1], [0]])])
def test_soft_labels_beside_annotations(make, known):
    """All groups are covered in mean parts: soft labels of another image change nothing about them."""
    X = [(np.eye(2), [(0, 1)])] * 3
    learned = make()._learn(X, [known, [{0: 0.7, 1: 0.3}, 0], [0, 1]])
    sizes = part_sizes(learned.problem)
    assert np.array_equal(np.diff(learned.weak.target.starts), sizes)
    n_groups = np.diff(learned.problem.groups.starts)
    assert (learned.weak.target.values[sizes[0] - n_groups[0] : sizes[0]] == 0).all()
    assert learned.weak.target.values[sizes[0]] == np.float32(0.7)
    assert make(max_passes=3, random_state=0).fit(X, [known, [{0: 0.7, 1: 0.3}, 0], [0, 1]]).predict(X)


def test_annotations_in_an_object_array():
    X, y, _ = make_images(3, 2)
    known = np.empty(3, object)
    known[:] = [y[0], Tags([0, 1]), y[2]]
    assert GraphSVM()._learn(X, known).weak.is_weak.tolist() == [False, True, False]


@pytest.mark.parametrize("make", [GraphSVM, GraphCutSVM])
def test_classes_that_no_node_is_known_to_have_are_not_balanced(make):
    X = [(np.eye(2), [(0, 1)])] * 2
    with pytest.raises(ValueError, match=r'class_weight="balanced" .*, but no node is known to have 1\.'):
        make(class_weight="balanced").fit(X, [[0, 0], Tags([0, 1])])
    weights = {"node_weight": [[1, 0], [1, 1]]}
    with pytest.raises(ValueError, match=r"node_weight is zero for all nodes of the class 1\."):
        make(class_weight="balanced").fit(X, [[0, 1], Tags([0, 1])], **weights)


def test_sums_take_what_is_known_of_nodes():
    """Tags, boxes and seeds are sets of labels to a CRF: that each tag and line occurs is left out."""
    X, y, boxes = make_images(6, 2)
    learned = GraphCRF()._learn(X, annotate(y, boxes, "boxes"))
    assert not hasattr(learned.problem, "groups")
    assert hasattr(GraphSVM()._learn(X, annotate(y, boxes, "boxes")).problem, "groups")


def test_seeds_at_all_nodes_are_a_full_map():
    X, y, _ = make_images(5, 2)
    seeds = [Seeds(np.arange(len(labels)), labels) for labels in y]
    full, weak = (GraphCutSVM(class_weight={1: 2.0})._learn(X, known) for known in (y, [y[0], *seeds[1:]]))
    for i in range(5):
        costs = [np.zeros(part_sizes(learned.problem)[i]) for learned in (full, weak)]
        for learned, cost in zip((full, weak), costs, strict=True):
            augment(learned.problem, i, cost)
        assert np.array_equal(*costs)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Tags([]), r"The tags of y\[1\] must be at least one label"),
        (Seeds([20], [1]), r"The seeds of y\[1\] must be nodes, from 0 to 19, but 20 is none"),
        (Boxes(1, [[25]]), r"The lines of the boxes of y\[1\] must be nodes, from 0 to 19, but 25 is none"),
        (Tags(["cow"]), r"y\[1\] holds labels of another type"),
        (Tags([0, 7]), r"y must hold labels of two classes, but has 3"),
        ((Tags([0]), Seeds([2], [1])), r"y\[1\] leaves no label for node 2"),
    ],
)
def test_bad_annotations_are_refused(known, message):
    X, y, _ = make_images(3, 2)
    with pytest.raises((TypeError, ValueError), match=message):
        GraphCutSVM().fit(X, [y[0], known, y[2]])


def agrees(labels, known):
    """Whether labels of nodes agree with an annotation, or with all of several, by their definitions."""
    if isinstance(known, tuple):
        return all(agrees(labels, part) for part in known)
    if isinstance(known, Tags):
        return {*labels.tolist()} == {*known.labels}
    if isinstance(known, Seeds):
        return np.array_equal(labels[known.nodes], known.labels)
    outside = np.setdiff1d(np.arange(len(labels)), np.concatenate([[], *known.lines]))
    return all((labels[line] == known.label).any() for line in known.lines) and known.label not in labels[outside]


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.filterwarnings("ignore:Not solved")
@pytest.mark.parametrize(("make", "n_labels"), [(GraphCutSVM, 2), (GraphSVM, 3), (GraphCRF, 3)])
def test_predictions_agree_with_annotations(make, n_labels):
    X, y, boxes = make_images(9, n_labels)
    model = make(C=0.01, max_passes=2, random_state=0).fit(X, y)
    known = [None, y[1], *annotate(y, boxes, "mixed", n_full=0)[2:]]
    found = model.predict_certified(X, allowed=known)
    free = model.predict(X)
    assert np.array_equal(found[0].output, free[0])
    assert np.array_equal(found[1].output, y[1])
    assert not all(agrees(labels, what) for labels, what in zip(free[2:], known[2:], strict=True))
    for prediction, labels, what in zip(found, model.predict(X, allowed=known), known, strict=True):
        assert what is None or isinstance(what, np.ndarray) or agrees(labels, what)
        assert np.array_equal(prediction.output, labels)
        assert prediction.score <= prediction.bound + 1e-9


@pytest.mark.usefixtures("interpreted_loops")
def test_what_predictions_cannot_agree_with():
    X, y, _ = make_images(3, 2)
    model = GraphCutSVM(random_state=0, max_passes=1).fit(X, y)
    for allowed, message in (
        ([Tags([7])] * 3, r"allowed\[0\] names 7, which is not one of the labels that were seen in fit"),
        ([Tags([0])] * 2, "X has 3 examples, but allowed has 2"),
        ([None, (Tags([0]), Seeds([2], [1])), None], r"allowed\[1\] leaves no label for node 2"),
        (
            [None, None, (Tags([0, 1]), Seeds(np.arange(20), 0))],
            r"allowed\[2\] has the tag 1, but leaves no node",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X, allowed=allowed)
    with pytest.raises(TypeError, match="decision_function takes what is known of single nodes, and no tags or boxes"):
        model.decision_function(X, allowed=[Tags([0, 1])] * 3)
    assert model.decision_function(X, allowed=[Seeds([0], [1])] * 3)[0][0, 0] == -np.inf
