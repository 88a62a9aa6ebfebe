import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.encode.chain import append_biases, observed_pairs
from maxmargin.encode.rows import Rows
from maxmargin.problem import IMPOSSIBLE, new_weights, part_sizes, scores
from maxmargin.solvers import BCFW
from maxmargin.testing import check_structure
from tests import naive
from tests.toy import chain_encoder

LENGTHS, N_LABELS = [1, 3, 4, 2], 3


def make_problems(seed=0, dtype="float64", binary=False):
    """The same chains with all weights and with those of observed pairs, and the mask of these among all."""
    rng = np.random.default_rng(seed)
    n_tokens, offsets = sum(LENGTHS), np.concatenate([[0], np.cumsum(LENGTHS)])
    kept = rng.random((n_tokens, 5)) < 0.4
    rows = Rows(sp.csr_array(kept * (1.0 if binary else rng.normal(size=kept.shape))), offsets)
    labels = rng.integers(0, N_LABELS, n_tokens).astype(np.int32)
    penalty = np.zeros((N_LABELS, N_LABELS), dtype)
    unused = next((a, b) for a in range(3) for b in range(3) if (a, b) not in successions(labels))
    penalty[unused] = IMPOSSIBLE
    parts = append_biases(rows), labels, 1 - np.eye(N_LABELS), np.ones(n_tokens)
    pairs = observed_pairs(*parts[:2], N_LABELS)
    full, observed = (chain_encoder(penalty, chosen).assemble(*parts, with_grams=True) for chosen in (None, pairs))
    mask = np.zeros((8 + N_LABELS, N_LABELS), bool)
    dense = np.hstack([rows.matrix.toarray(), np.ones((n_tokens, 1)), np.zeros((n_tokens, 2))])
    dense[offsets[:-1], 6] = dense[offsets[1:] - 1, 7] = 1
    for t, label in enumerate(labels):
        mask[np.flatnonzero(dense[t]), label] = True
    for a, b in successions(labels):
        mask[8 + a, b] = True
    return full, observed, mask.ravel(), dense


def successions(labels):
    ends = np.cumsum(LENGTHS)
    return {(labels[t - 1], labels[t]) for t in range(1, len(labels)) if t not in ends}


@pytest.mark.parametrize("binary", [False, True])
def test_oracles_equal_enumeration(binary):
    _, problem, mask, _ = make_problems(binary=binary)
    assert new_weights(problem).size == mask.sum() < mask.size
    allowed = problem.penalty == 0
    check_structure(problem, lambda i: naive.labellings(LENGTHS[i], N_LABELS, allowed), k=5)


def test_potentials_are_those_of_all_weights_with_zeros():
    full, observed, mask, _ = make_problems()
    w = np.random.default_rng(1).normal(size=mask.sum())
    expanded = np.zeros(mask.size)
    expanded[mask] = w
    for i, size in enumerate(part_sizes(full)):
        here, there = np.zeros(size), np.zeros(size)
        scores(observed, w, i, here)
        scores(full, expanded, i, there)
        assert np.allclose(here, there)


def test_solvers_reach_the_optimum_of_the_observed_weights():
    _, problem, mask, dense = make_problems()
    ends = np.cumsum(LENGTHS)[:-1]
    blocks = naive.table(np.split(dense, ends), np.split(problem.labels, ends), N_LABELS, problem.penalty == 0)
    _, optimum = naive.solve([(psi[:, mask], costs) for psi, costs in blocks], C=1.0)
    result = BCFW(steps="pairwise").solve(problem, tol=1e-8, random_state=0)
    assert np.isclose(result.trace.primal[-1], optimum, rtol=1e-7)
