import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import SegmentCRF
from maxmargin.arrays.blocks import starts_of
from maxmargin.encode.inputs.rows import Rows, row_features
from maxmargin.features import ConstantFeatures
from maxmargin.problem import IMPOSSIBLE, add_output, exp_oracle, part_sizes, workspace
from maxmargin.runtime import interpreted
from maxmargin.structures.segments.expected_segments import best_expected_segments
from maxmargin.structures.segments.segment_parts import list_segments
from maxmargin.structures.segments.segment_problem import SegmentProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.supervision.label_supervision import supervise
from maxmargin.testing import check_structure
from tests import naive
from tests.toy import random_rows, random_transitions


def make_problem(
    rng, lengths, limits, *, allowed=None, has_last=True, n_listed=2, storage="dense", dtype="float64", integer=False
):
    """Random sequences with a few listed segments; `integer` data gives many ties."""
    limits, n = np.array(limits), len(lengths)
    is_forbidden = np.zeros((len(limits), len(limits)), bool) if allowed is None else ~allowed
    rows = Rows(random_rows(rng, sum(lengths), storage, integer), starts_of(lengths))
    n_columns = (2 + has_last) * len(limits)
    spans = [[(s, e) for e in range(1, t + 1) for s in range(e)] for t in lengths]
    chosen = [[some[k] for k in rng.permutation(len(some))[:n_listed]] for some in spans]
    flat = np.array([span for some in chosen for span in some]).reshape(-1, 2)
    listed, _ = list_segments(starts_of([*map(len, chosen)]), *flat.T)
    more = Rows(random_rows(rng, len(flat), storage, integer), listed.starts)
    truth = np.concatenate([rng.choice([*naive.segmentations(t, limits, allowed)]) for t in lengths])
    costs = np.zeros((2 * len(limits), n_columns))
    costs[:, : 2 * len(limits)] = 1 - np.eye(2 * len(limits))
    return SegmentProblem(
        features=row_features(rows, dtype, with_grams=True),
        segment_features=row_features(more, dtype, with_grams=True) if n_listed else ConstantFeatures(),
        starts=rows.starts,
        listed=listed,
        supervision=supervise(truth, costs, rng.random(sum(lengths)), dtype),
        excluded=nothing_excluded(n),
        penalty=np.where(is_forbidden, IMPOSSIBLE, 0).astype(dtype),
        limits=limits.astype(np.int64),
        n_features=3,
        n_segment_features=3 if n_listed else 0,
        n_columns=n_columns,
    )


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_oracles_equal_enumeration(dtype):
    lengths, limits, allowed = [1, 2, 4], [3, 1], np.array([[True, True], [True, False]])
    problem = make_problem(np.random.default_rng(0), lengths, limits, allowed=allowed, storage="binary", dtype=dtype)
    check_structure(problem, lambda i: naive.segmentations(lengths[i], limits, allowed), k=6)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    limits=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    density=st.sampled_from([0.3, 1.0]),
    has_last=st.booleans(),
    n_listed=st.sampled_from([0, 1, 3]),
    integer=st.booleans(),
    k=st.integers(1, 30),
)
def test_random_sequences(seed, limits, density, has_last, n_listed, integer, k):
    """Ties, single rows, limits of one and beyond the length, listed segments or none, more asked than there are.

    All transitions are allowed, or only some.
    """
    lengths, rng = [1, 3], np.random.default_rng(seed)
    allowed = random_transitions(rng, len(limits), density)
    problem = make_problem(rng, lengths, limits, allowed=allowed, has_last=has_last, n_listed=n_listed, integer=integer)
    with interpreted():
        check_structure(problem, lambda i: naive.segmentations(lengths[i], limits, allowed), random_state=seed, k=k)


@pytest.mark.parametrize("allowed", [None, np.array([[False, True], [True, True]])])
@pytest.mark.parametrize("scale", [1.0, 300.0, 1e5])
def test_sums_of_far_potentials(scale, allowed):
    """Sums are safe whatever their logarithms are: beside each other, or far apart."""
    rng, length = np.random.default_rng(0), 5
    problem = make_problem(rng, [length], [4, 2], n_listed=3, allowed=allowed)
    outputs = np.array([*naive.segmentations(length, [4, 2], allowed)], np.int32)
    parts = np.array([segmentation_parts(problem, y) for y in outputs])
    for _ in range(5):
        theta = scale * rng.normal(size=parts.shape[1])
        theta[-4:] += problem.penalty.ravel()
        scores = parts @ theta
        shares = np.exp(scores - scores.max())
        means = np.zeros(len(theta))
        with interpreted():
            log_z = exp_oracle(problem, 0, theta, means, workspace(problem, 1))
        np.testing.assert_allclose(log_z, scores.max() + np.log(shares.sum()), rtol=1e-9)
        np.testing.assert_allclose(means, shares @ parts / shares.sum(), atol=1e-6)


def segmentation_parts(problem, y):
    parts = np.zeros(part_sizes(problem)[0])
    with interpreted():
        add_output(problem, 0, y, 1.0, parts)
    return parts


@pytest.mark.long
def test_long_sequences_take_little_memory():
    """Tables grow with the number of rows, not with that of rows and lengths: 100,000 rows, segments of up to 200."""
    rng, length = np.random.default_rng(0), 100_000
    X, y = [rng.normal(size=(length, 2))], [[(t, t + 200, "ab"[t // 200 % 2]) for t in range(0, length, 200)]]
    X[0][:, 0] += [1.0 if t // 200 % 2 else -1.0 for t in range(length)]
    model = SegmentCRF(C=0.01, max_passes=2, tol=0.5).fit(X, y)
    n_tables = sum(table.size for table in flatten_tables(workspace(model._encoder.problem(X), 1)))
    assert n_tables < 40 * length * 2
    probabilities = model.predict_marginals(X)[0]
    np.testing.assert_allclose(probabilities.sum(axis=(1, 2)), 1.0, atol=1e-6)


def flatten_tables(tables):
    return [tables] if isinstance(tables, np.ndarray) else [part for table in tables for part in flatten_tables(table)]


@pytest.mark.parametrize("seed", range(8))
def test_segmentations_with_the_most_right_rows_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    longest = rng.integers(1, 4, size=3)
    allowed = rng.random((3, 3)) < 0.8
    marginals = rng.integers(0, 4, size=(4, 2, 3)) / 4  # some of 0, some alike
    marginals[:, 0, 0], allowed[0, 0] = 0.25, True

    def labels_follow(states):
        labels = states[states < 3]
        return allowed[labels[:-1], labels[1:]].all()

    gains = {
        tuple(states): marginals.reshape(4, 6)[np.arange(4), states]
        for states in naive.segmentations(4, longest)
        if labels_follow(states)
    }
    possible = {states: gain.sum() for states, gain in gains.items() if gain.all()}
    found = best_expected_segments(marginals, longest, allowed)
    assert possible[tuple(found)] == max(possible.values())
    assert best_expected_segments(marginals[:0], longest, allowed).shape == (0,)
