import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encode.box_encoder import BoxEncoder
from maxmargin.losses.smoothing import EVERY
from maxmargin.problem import max_marginals, max_oracle, part_sizes, restrict, score_output, topk_oracle, workspace
from maxmargin.solvers import BCFW, LBFGS, FrankWolfe
from maxmargin.structures.boxes.box_problem import BoxLimits, BoxSupervision
from maxmargin.structures.boxes.subwindow import Heap
from maxmargin.testing import Caller, check_solver, check_structure
from tests import naive


def random_box(rng, height, width, smallest=(1, 1)):
    return list(naive.boxes(height, width, smallest))[rng.integers(len(list(naive.boxes(height, width, smallest))))]


def make_problem(rng, shapes, dtype="float64", smallest=(1, 1), integer=False, words=False, none=False):
    """Random images; `integer` features give many ties; with `none`, some have no box."""
    if words:
        X = [rng.integers(-1, 4, shape) for shape in shapes]
    else:
        X = [rng.integers(-1, 2, (*shape, 3)) if integer else rng.normal(size=(*shape, 3)) for shape in shapes]
    golds = [random_box(rng, *shape, smallest) for shape in shapes]
    if none:
        golds[-1] = None
    return BoxEncoder.learn(X, golds, dtype=dtype, fit_intercept=False, min_size=smallest).problem


def all_boxes(problem):
    return lambda i: naive.boxes(*problem.shapes[i], problem.smallest, problem.has_none)


@pytest.mark.parametrize(("dtype", "words", "none"), [("float64", False, False), ("float32", True, True)])
def test_oracles_equal_enumeration(dtype, words, none):
    shapes = [(1, 1), (3, 4), (1, 5), (4, 1)]
    problem = make_problem(np.random.default_rng(0), shapes, dtype, words=words, none=none)
    check_structure(problem, all_boxes(problem), k=5)


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    k=st.integers(1, 200),  # up to more than there are boxes
    integer=st.booleans(),
    tall=st.booleans(),
    none=st.booleans(),
)
def test_random_images(seed, shape, k, integer, tall, none):
    smallest = (min(2, shape[0]), 1) if tall else (1, 1)
    problem = make_problem(np.random.default_rng(seed), [shape] * 2, smallest=smallest, integer=integer, none=none)
    check_structure(problem, all_boxes(problem), random_state=seed, k=k)


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    integer=st.booleans(),
    large=st.booleans(),
    weight=st.sampled_from([0.0, 1.0, 7.0]),
)
def test_max_marginals_equal_enumeration(seed, shape, integer, large, weight):
    smallest = (min(2, shape[0]), min(3, shape[1])) if large else (1, 1)
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, [shape], smallest=smallest)
    cells = rng.integers(-1, 2, shape).astype(float) if integer else rng.normal(size=shape)
    theta, out = np.append(cells.ravel(), weight), np.zeros(cells.size + 1)
    Caller(problem)(max_marginals, 0, theta, out, workspace(problem, 1))
    boxes = list(all_boxes(problem)(0))
    expected, values = np.full(shape, -np.inf), exhaustive(problem, theta, boxes)
    for (top, left, bottom, right), value in zip(boxes, values, strict=True):
        inside = expected[top:bottom, left:right]
        np.maximum(inside, value, out=inside)
    np.testing.assert_allclose(out[:-1].reshape(shape), expected, atol=1e-9)


def search(problem, theta, k, work=None):
    boxes, scores = np.zeros((k, 4), np.int32), np.zeros(k)
    work = workspace(problem, k) if work is None else work
    count = Caller(problem)(topk_oracle, 0, theta, boxes, scores, EVERY, work)
    return boxes[:count], scores[:count]


@pytest.fixture(scope="module")
def large():
    """A grid of 25,200 boxes, and all of them."""
    problem = make_problem(np.random.default_rng(0), [(15, 20)])
    return problem, np.array(list(naive.boxes(15, 20)))


def exhaustive(problem, theta, boxes):
    call = Caller(problem)
    return np.array([call(score_output, 0, theta, y) for y in boxes])


@pytest.mark.long
@pytest.mark.parametrize("weight", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("shift", [-3.0, -0.3, 0.0, 3.0])  # from all negative to all positive
def test_large_grids(large, weight, shift):
    problem, boxes = large
    theta = np.append(np.random.default_rng(1).normal(size=300) + shift, weight)
    expected = np.sort(exhaustive(problem, theta, boxes))[::-1]
    found, scores = search(problem, theta, 50)
    assert np.allclose(scores, expected[:50])
    assert np.allclose(exhaustive(problem, theta, found), scores)
    assert len(np.unique(found, axis=0)) == 50


@pytest.mark.parametrize("capacity", [1, 2, 7, 20])
def test_a_full_heap_costs_time_only(large, capacity):
    problem, _ = large
    theta = np.append(np.random.default_rng(2).normal(size=300), 5.0)
    work = workspace(problem, 9)
    assert capacity < work.heap.bounds.size
    expected = search(problem, theta, 9, work)
    nodes = work.heap.counts[0]
    assert nodes > capacity
    small = Heap(np.zeros(capacity), np.arange(capacity), np.zeros((capacity + 1, 4), np.int64), np.zeros(2, np.int64))
    found = search(problem, theta, 9, work._replace(heap=small))
    assert np.array_equal(found[0], expected[0])
    assert np.allclose(found[1], expected[1])
    assert small.counts[0] < nodes
    assert np.array_equal(np.sort(small.slots), np.arange(capacity))


def test_a_clear_object_takes_few_steps(large):
    problem, boxes = large
    theta = np.append(np.full(300, -1.0), 0.0)
    theta[:-1].reshape(15, 20)[4:9, 3:12] = 1.0
    work = workspace(problem, 1)
    found, scores = search(problem, theta, 1, work)
    assert found.tolist() == [[4, 3, 9, 12]]
    assert scores[0] == 45
    assert work.heap.counts.sum() < len(boxes) / 20


def test_ties_are_broken_alike_every_time():
    problem = make_problem(np.random.default_rng(0), [(6, 7)])
    theta, y, again = np.zeros(part_sizes(problem)[0]), np.zeros(4, np.int32), np.zeros(4, np.int32)
    Caller(problem)(max_oracle, 0, theta, y, workspace(problem, 1))
    max_oracle(problem, 0, theta, again, workspace(problem, 3))
    assert y.tolist() == again.tolist()


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(*shape, 3)) for shape in [(3, 3), (2, 4), (1, 1), (4, 3), (3, 2)]]
    golds = [random_box(rng, *x.shape[:2]) for x in X]
    problem = BoxEncoder.learn(X, golds, dtype="float64", fit_intercept=False, min_size=1).problem
    return problem, naive.solve(naive.box_table(X, golds), C=0.7)[1]


def test_images_without_a_box_are_trained_on():
    rng = np.random.default_rng(4)
    X, golds = [rng.normal(size=(*shape, 3)) for shape in [(2, 3), (3, 2), (2, 2)]], [(0, 1, 2, 2), None, (0, 0, 1, 2)]
    problem = BoxEncoder.learn(X, golds, dtype="float64", fit_intercept=False, min_size=1).problem
    blocks = naive.box_table(X, [(0, 0, 0, 0) if gold is None else gold for gold in golds], has_none=True)
    check_solver(BCFW(steps="pairwise"), problem, naive.solve(blocks, C=0.7)[1], C=0.7, tol=1e-4)


@pytest.mark.parametrize("steps", ["fw", "pairwise", "away"])
def test_solvers_reach_the_optimum(small, steps):
    problem, optimum = small
    check_solver(BCFW(steps=steps, cache=5), problem, optimum, C=0.7, tol=1e-2 if steps == "fw" else 1e-4)


def test_other_solvers(small):
    problem, optimum = small
    trace = FrankWolfe().solve(problem, 0.7, tol=0.02, max_passes=1e4).trace
    assert trace.dual[-1] <= optimum <= trace.primal[-1]
    assert LBFGS().solve(problem, 0.7, tol=1e-3).trace.gap[-1] >= 0


def random_limits(rng, problem):
    """Limits of the sides of boxes that leave the true one; some leave "no box", where there can be none."""
    truth, is_none = problem.supervision.boxes, ~problem.supervision.boxes.any(axis=1)
    others = np.array([random_box(rng, *shape, problem.smallest) for shape in problem.shapes])
    sides = np.stack([np.where(is_none[:, None], others, truth), others], axis=2)
    loose = rng.random(sides.shape[:2]) < 0.3
    whole = np.stack([np.zeros((len(sides), 4), int), np.tile(problem.shapes, 2)], axis=2)
    sides = np.where(loose[:, :, None], whole, np.sort(sides, axis=2))
    return BoxLimits(sides.astype(np.int64), is_none | (problem.has_none & (rng.random(len(sides)) < 0.5)))


def left_by(problem, limits):
    def outputs(i):
        for y in naive.boxes(*problem.shapes[i], problem.smallest, problem.has_none):
            is_within = (limits.sides[i, :, 0] <= y).all() and (y <= limits.sides[i, :, 1]).all()
            if limits.none[i] if not np.any(y) else is_within:
                yield y

    return outputs


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    k=st.integers(1, 30),
    integer=st.booleans(),
    none=st.booleans(),
)
@pytest.mark.usefixtures("interpreted_loops")
def test_boxes_within_limits(seed, shape, k, integer, none):
    """All oracles under limits, and costs of those that do not agree with what is known; ties, and single boxes."""
    rng = np.random.default_rng(seed)
    smallest = (min(2, shape[0]), 1) if seed % 2 else (1, 1)
    problem = make_problem(rng, [shape] * 2, smallest=smallest, integer=integer, none=none)
    limits = random_limits(rng, problem)
    if seed % 3 == 0:  # in two calls
        one, two = limits.sides.copy(), limits.sides.copy()
        one[:, :2] = two[:, 2:] = np.array([0, max(shape)])
        restricted = restrict(restrict(problem, limits._replace(sides=one)), limits._replace(sides=two))
    else:
        restricted = restrict(problem, limits)
    if seed % 5 == 0:  # known in part
        boxes = np.array([next(iter(left_by(problem, limits)(i))) for i in range(2)], np.int32)
        known = BoxSupervision(boxes, np.zeros(2, bool), limits)
        problem, restricted = problem._replace(supervision=known), restricted._replace(supervision=known)
        check_structure(problem, all_boxes(problem), random_state=seed, k=k)
    check_structure(restricted, left_by(problem, limits), random_state=seed, k=k)
