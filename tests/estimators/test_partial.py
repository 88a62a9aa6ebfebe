"""Outputs of which part is known: sets of candidates, some links, boxes and joints, and what agrees with your own."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.problem import IMPOSSIBLE, all_true_outputs, augment, part_sizes, restrict, score_output, scores
from maxmargin.testing import check_structure, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.toy import Labels, LabelsByArgmax, label_data

pytestmark = pytest.mark.usefixtures("interpreted_loops")

RNG = np.random.default_rng(0)
LISTS = [RNG.normal(size=(4, 2)) for _ in range(10)]
CHOSEN = [int(np.argmax(x @ [1.0, -1.0])) for x in LISTS]
PAIRS = [RNG.normal(size=(2, 3, 2)) for _ in range(6)]


def links_score(x, y, w=(1, -1)):
    return sum(x[v, z] @ w for v, z in enumerate(y) if z >= 0)


MATCHES = [max(naive.matchings(2, 3), key=lambda y, x=x: links_score(x, y)) for x in PAIRS]
IMAGES = [np.pad(np.ones((2, 2), int), [(t, 2 - t), (s, 2 - s)]) for t in range(3) for s in range(3)]
BOXES = [(t, s, t + 2, s + 2) for t in range(3) for s in range(3)]
POSES = [np.array([(x, y), (x + 2, y + 1)]) for x, y in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1)]]
GRIDS = [np.zeros((3, 5, 2)) for _ in POSES]
for grid, pose in zip(GRIDS, POSES, strict=True):
    grid[pose[:, 1], pose[:, 0], [0, 1]] = 1
SOME_BOXES = ["present", "unknown", mm.KnownBox(contains=(2, 3)), mm.KnownBox(inside=(1, 0, 4, 3))]
SOME_LINKS = [None, *([{int(a), -1}, None] for a, _ in MATCHES[3:5]), [None, int(MATCHES[5][1])]]
SOME_JOINTS = [[POSES[2][0], None], POSES[3] * 1.0 + [[np.nan], [0]], None]

SOME_LISTS = [*CHOSEN[:4], *({k, 0, 1} for k in CHOSEN[4:9]), None]

ROWS = np.concatenate([RNG.normal(size=(5, 2)) + shift for shift in ([3, 0], [0, 3], [-3, -3])])
CLASSES = np.repeat(["a", "b", "c"], 5)
SOME_CLASSES = [c if i % 5 < 2 else {c, "a"} if i % 5 < 4 else None for i, c in enumerate(CLASSES.tolist())]

# a model, X, the true outputs, and less than that
CASES = {
    "classes": (mm.MulticlassSVM(C=10.0, random_state=0, dtype="float64"), ROWS, CLASSES, SOME_CLASSES),
    "candidates": (mm.CandidateSVM(C=10.0, random_state=0), LISTS, CHOSEN, SOME_LISTS),
    "CRF": (mm.CandidateCRF(C=10.0), LISTS, CHOSEN, SOME_LISTS),
    "matchings": (mm.MatchingSVM(C=10.0, random_state=0), PAIRS, MATCHES, [*MATCHES[:2], *SOME_LINKS]),
    "boxes": (
        mm.BoxSVM(C=10.0, random_state=0),
        [*IMAGES, np.zeros((3, 3), int)],
        [*BOXES, None],
        [*BOXES[:3], *SOME_BOXES, *BOXES[7:], "absent"],
    ),
    "poses": (mm.DeformableSVM(edges=[(0, 1)], C=10.0, random_state=0), GRIDS, POSES, [*POSES[:2], *SOME_JOINTS]),
}


@pytest.mark.parametrize("name", CASES)
def test_models_learn_from_outputs_known_in_part(name):
    model, X, y, known = CASES[name]
    model.fit(X, known)
    assert model.status_ is Status.STATIONARY
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("name", CASES)
def test_outputs_that_agree_are_left_and_cost_nothing(name):
    model, X, y, known = CASES[name]
    exact, task = model._encode(X, y), model._encode(X, known)
    assert 0 < task.weak.is_weak.sum() < len(X)
    consistent, w = task.weak.consistent, np.zeros(task.layout.n_weights)
    for outputs in (all_true_outputs(exact.problem), all_true_outputs(task.problem)):  # the true ones agree
        for i in range(len(X)):
            row = outputs.values[outputs.starts[i] : outputs.starts[i + 1]]
            cost, potentials = np.zeros((2, part_sizes(consistent)[i]))
            augment(consistent, i, cost)
            scores(consistent, w, i, potentials)
            assert score_output(consistent, i, cost, row) == 0, (i, row)
            assert score_output(consistent, i, potentials, row) > IMPOSSIBLE / 2, (i, row)


@pytest.mark.parametrize("name", ["classes", "candidates", "CRF", "matchings"])
def test_sets_of_one_are_outputs(name):
    model, X, y, _ = CASES[name]
    sets = [[{int(z)} for z in row] for row in y] if name == "matchings" else [{k} for k in y]
    sets[0] = {y[0]: 1.0} if name == "classes" else sets[0]
    plain, other = (clone(model).fit(X, outputs) for outputs in (y, sets))
    assert np.array_equal(plain.coef_, other.coef_)
    assert plain.trace_.primal.tolist() == other.trace_.primal.tolist()


def test_probabilities_of_classes():
    """Rows of probabilities weigh classes in the loss of the documented objective, which stays convex."""
    shares = 0.7 * np.eye(3)[np.repeat(np.arange(3), 5)] + 0.1
    model = mm.MulticlassSVM(C=2.0, fit_intercept=False, dtype="float64", tol=1e-6, random_state=0).fit(ROWS, shares)
    assert model.status_ is Status.OPTIMAL
    scores = ROWS @ model.coef_.T
    losses = (scores + shares @ (1 - np.eye(3))).max(axis=1) - (shares * scores).sum(axis=1)
    value = (model.coef_**2).sum() / (2 * 15 * 2.0) + losses.mean()
    assert np.isclose(value, model.certificate_.primal)
    mixed = [row if i % 2 else {k: float(p) for k, p in enumerate(row)} for i, row in enumerate(shares.tolist())]
    again = clone(model).fit(ROWS, mixed)
    assert np.allclose(again.coef_, model.coef_)
    weighed = clone(model).set_params(class_weight={0: 2.0, 1: 2.0, 2: 2.0}, C=1.0).fit(ROWS, shares)
    assert np.allclose(weighed.coef_, model.coef_, atol=1e-2)
    with pytest.raises(ValueError, match="y must hold one class of each example to compare predictions with"):
        model.score(ROWS, shares)
    assert clone(model).fit(ROWS, CLASSES).predict(ROWS[:3], allowed=[{"b", "c"}, None, "c"])[2] == "c"


def test_predictions_are_the_best_that_are_allowed():
    lists = mm.CandidateCRF().fit(LISTS, CHOSEN)
    allowed = [{1, 3}, None, 2, {0}, *[None] * 6]
    scores = lists.decision_function(LISTS)
    for predicted, some, row in zip(lists.predict(LISTS, allowed=allowed), allowed, scores, strict=True):
        left = range(4) if some is None else some if isinstance(some, set) else {some}
        assert predicted == max(left, key=lambda k, row=row: row[k])
    assert [len(found) for found, _ in lists.predict_topk(LISTS[:4], 4, allowed=allowed[:4])] == [2, 4, 1, 1]
    assert np.isneginf(lists.decision_function(LISTS, allowed=allowed)[0]).tolist() == [True, False, True, False]
    p = lists.predict_marginals(LISTS[:2], allowed=allowed[:2])
    assert p[0][[0, 2]].tolist() == [0, 0]
    assert np.isclose(p[0].sum(), 1)
    whole = lists.predict_marginals(LISTS[:4])
    found = np.exp(lists.log_likelihood(LISTS[:4], allowed[:4]))
    assert np.allclose(found, [whole[0][[1, 3]].sum(), 1, whole[2][2], whole[3][0]])
    certified = lists.predict_certified(LISTS[:1], allowed=[{1, 3}])[0]
    assert certified.is_exact
    assert certified.output in (1, 3)

    links = mm.MatchingSVM().fit(PAIRS, MATCHES)
    known = [[None, {0, 1}], [2, None], None, [-1, -1], [{0}, {0, 2}], [{0, 1, 2}, {0, 1, 2}]]
    predicted = links.predict(PAIRS, allowed=known)
    for x, rules, found in zip(PAIRS, known, predicted, strict=True):
        sets = [{-1, 0, 1, 2} if r is None else r if isinstance(r, set) else {r} for r in rules or [None, None]]
        left = [y for y in naive.matchings(2, 3) if y[0] in sets[0] and y[1] in sets[1]]
        best = max(links_score(x, y, links.coef_) for y in left)
        assert tuple(found) in {tuple(y) for y in left}
        assert np.isclose(links_score(x, found, links.coef_), best, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("classes", [set(), *CLASSES[1:]], r"\[0\] has an empty set of labels at row 0."),
        ("classes", [{"a": 0.5}, *CLASSES[1:]], r"\[0\] has .*, but probabilities are not negative and add up to 1,"),
        ("classes", [{"a"}], "X has 15 examples, but .* has 1."),
        ("candidates", [set(), *CHOSEN[1:]], r"\[0\] is an empty set, which leaves no candidate."),
        ("candidates", [{0, 4}, *CHOSEN[1:]], r"\[0\] is 4, but X\[0\] has only the candidates 0 to 3."),
        ("candidates", CHOSEN[1:], "X has 10 candidate sets, but .* has 9."),
        ("candidates", [{"a"}, *CHOSEN[1:]], r"\[0\] must be the index of a candidate, an integer, not 'a'."),
        ("matchings", [[None, set()], *MATCHES[1:]], r"\[0\] has an empty set at left node 1: -1 is for nodes without"),
        ("matchings", [[None], *MATCHES[1:]], r"\[0\] has 1 entries, but there are 2 left nodes."),
        ("matchings", [[None, {3}], *MATCHES[1:]], r"\[0\] links the right node 3, but there are 3, from 0."),
        ("matchings", [[{1}, {1}], *MATCHES[1:]], r"\[0\] leaves no output of X\[0\]: what it says of its parts"),
        ("boxes", ["somewhere", *BOXES[1:], None], r"\[0\] must be a box, a KnownBox, None, .* not 'somewhere'."),
        (
            "boxes",
            [mm.KnownBox(contains=(4, 0)), *BOXES[1:], None],
            r"contains = .* is not inside X\[0\], which has 4 x 4",
        ),
        ("boxes", [mm.KnownBox(contains=(0, 0, 0, 0)), *BOXES[1:], None], r"contains = \(0, 0, 0, 0\) has no area"),
        ("boxes", [mm.KnownBox((0, 0), (1, 1, 3, 3)), *BOXES[1:], None], r"\[0\] leaves no box: it contains \(0, 0\),"),
        ("poses", [[None, (9, 9)], *POSES[1:]], r"\[0\] has joint 1 at x = 9, y = 9, outside of its grid"),
        ("poses", [[None], *POSES[1:]], r"must be a \(2, 2\) array of numbers, not one of shape \(1, 2\)"),
    ],
)
def test_what_cannot_be(name, known, message):
    model, X, y, _ = CASES[name]
    fitted = clone(model).fit(X, y)
    with pytest.raises((ValueError, TypeError), match=f"allowed.*{message}|{message}"):
        fitted.predict(X, allowed=known)
    if name != "poses" or len(known[0]) > 1:  # the first pose says how many joints there are
        with pytest.raises((ValueError, TypeError), match=message):
            fitted.fit(X, known)


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("classes", [None] * 15, "y must hold at least one label, but nothing of it is known."),
        ("candidates", [None] * 10, "y must say something of at least one candidate set, but all of it is None."),
        ("matchings", [None, [None, None], *[None] * 4], "y must say something of at least one link"),
        ("boxes", ["present"] * 10, "y must say something of at least one box, but nothing of it is known."),
        ("poses", [[(0, 0), None]] * 5, r"y has no image with both joints of the edge \(0, 1\): their way is unknown."),
    ],
)
def test_something_must_be_known(name, known, message):
    model, X, _, _ = CASES[name]
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, known)
    if name == "candidates":
        with pytest.raises(ValueError, match=r"costs\[0\] must be zero for the true candidate 1, not 2."):
            model.fit(X, [{0, 1}, *CHOSEN[1:]], costs=[[0, 2, 1, 1], *(1 - np.eye(4)[CHOSEN[1:]])])


class SomeLabels(Labels):
    """Labels of which some are unknown, None."""

    def cost(self, y_true, y):
        return float(sum(a is not None and a != b for a, b in zip(y_true, y, strict=True)))

    def agrees(self, known, y):
        return self.cost(known, y) == 0


class SomeLabelsByArgmax(LabelsByArgmax):
    """The same, with oracles in place of the list."""

    def cost(self, y_true, y):
        return SomeLabels().cost(y_true, y)

    def complete(self, x, w, known):
        left = [y for y in itertools.product([0, 1], repeat=3) if self.cost(known, y) == 0]
        return left[0] if w is None else max(left, key=lambda y: w @ self.features(x, y))


KNOWN = [(None, 0, 1), (1, None, None), (None, None, None)]


@pytest.mark.parametrize("kind", [SomeLabels, SomeLabelsByArgmax])
def test_structures_of_your_own_say_what_agrees(kind):
    X, y = label_data(24)
    problem = mm.CustomProblem(kind(), X[:3], y[:3])
    if kind is SomeLabels:
        every = [np.array([k]) for k in range(8)]
        restricted = restrict(problem, KNOWN)
        left = [[row for row in every if kind().agrees(KNOWN[i], problem.output(i, row))] for i in range(3)]
        assert [len(some) for some in left] == [2, 4, 8]
        check_structure(restricted, outputs=lambda i: left[i])
    known = [(a, None, c) if i % 3 else y[i] for i, (a, _, c) in enumerate(y)]
    model = mm.StructuredSVM(kind(), C=10.0, random_state=0).fit(X, known)
    assert model.status_ is Status.STATIONARY
    assert model.score(X, y) > -0.5
    for found, what in zip(model.predict(X[:3], allowed=KNOWN), KNOWN, strict=True):
        assert kind().cost(what, found) == 0


def test_structures_that_cannot_say_what_agrees():
    X, y = label_data(6)
    model = mm.StructuredSVM(Labels(), C=1.0, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match=r"Labels needs a method agrees: see maxmargin.CustomProblem."):
        model.predict(X, allowed=y)
    with pytest.raises(ValueError, match=r"y\[0\], \(None, 0, 2\), leaves no output of X\[0\]."):
        mm.StructuredSVM(SomeLabels()).fit(X, [(None, 0, 2), *y[1:]])
    with pytest.raises(ValueError, match="X has 6 examples, but allowed has 1"):
        mm.StructuredSVM(SomeLabels(), random_state=0).fit(X, y).predict(X, allowed=[None])


def test_problems_of_your_own_take_flags_of_parts():
    model = mm.ProblemModel(lambda X, y=None: toy_chains(len(X)), random_state=0).fit(range(4), range(4))
    free, flags = model.predict(range(4)), np.ones((1, 3), bool)
    flags[0, free[0][0]] = False
    other = model.predict(range(4), allowed=[flags.ravel(), None, None, None])
    assert other[0][0] != free[0][0]
    assert all(np.array_equal(a, b) for a, b in zip(other[1:], free[1:], strict=True))
    with pytest.raises(ValueError, match=r"allowed\[1\] must be at most .* flags, True for parts"):
        model.predict(range(4), allowed=[None, [1, 0], None, None])
