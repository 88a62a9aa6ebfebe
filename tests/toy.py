"""Problems to test with: plain Python classes, random chains, and the variants of BCFW that are tried on them."""

import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from maxmargin.encode.chain_encoder import ChainEncoder, append_biases
from maxmargin.encode.inputs.rows import Rows
from maxmargin.problem import IMPOSSIBLE
from maxmargin.solvers import BCFW, FrankWolfe
from maxmargin.supervision.label_supervision import supervise
from tests import naive

METHODS = [
    BCFW(steps=steps, sampling=sampling, cache=cache)
    for steps in ("fw", "pairwise", "away", "best")
    for sampling in ("uniform", "permutation", "gap")
    for cache in (0, 3)
]
# One dtype of each storage: structures and storages are compiled together, but know nothing of each other.
STORAGES = [("dense", "float32"), ("sparse", "float64"), ("binary", "float32")]

CHAIN_SIZES = {  # of random chains whose labellings can be listed
    "seed": st.integers(0, 10**6),
    "lengths": st.lists(st.integers(1, 4), min_size=1, max_size=3),
    "n_labels": st.integers(1, 4),
    "k": st.integers(1, 40),
    "integer": st.booleans(),
}


def random_transitions(rng, n_labels, density):
    allowed = rng.random((n_labels, n_labels)) < density
    allowed[0, 0] = True  # a labelling of any length
    return allowed


class Candidates:
    """Example i has candidates k with feature vectors phi[i][k] and costs[i][k]; candidate 0 is true.

    The parts of an output are the indicators of the candidates.
    """

    def __init__(self, phi, costs, dtype=float):
        self.phi = [np.asarray(p, dtype) for p in phi]
        self.costs = [np.asarray(c, dtype) for c in costs]

    def true_outputs(self):
        return [np.zeros(1, np.int32)] * len(self.phi)

    def new_weights(self):
        return np.zeros(self.phi[0].shape[1], self.phi[0].dtype)

    def part_sizes(self):
        return np.array([len(p) for p in self.phi])

    def workspace(self, n_best):
        return None

    def scores(self, w, i, theta):
        theta[:] = self.phi[i] @ w

    def spread(self, w, i, delta, scale):
        w += scale * (delta @ self.phi[i])

    def squared_norm(self, i, delta, work):
        return float(np.sum((delta @ self.phi[i]) ** 2))

    def augment(self, i, theta):
        theta += self.costs[i]

    def add_output(self, i, y, scale, mu):
        mu[y[0]] += scale

    def score_output(self, i, theta, y):
        return float(theta[y[0]])

    def max_oracle(self, i, theta, y, work):
        y[0] = np.argmax(theta)
        return float(theta[y[0]])

    def topk_oracle(self, i, theta, outputs, values, level, work):
        best = np.argsort(-theta, kind="stable")[: len(outputs)]
        outputs[: len(best), 0] = best
        values[: len(best)] = theta[best]
        return len(best)

    def exp_oracle(self, i, theta, mu, work):
        top = theta.max()
        mu[:] = np.exp(theta - top)
        total = mu.sum()
        mu /= total
        return float(top + np.log(total))

    def blocks(self):
        """All outputs for the reference solver, in float64: psi(y) and costs."""
        return [(p[0].astype(float) - p, c.astype(float)) for p, c in zip(self.phi, self.costs, strict=True)]


def random_candidates(n, n_candidates, random_state):
    """Candidates with random features and costs."""
    rng = np.random.default_rng(random_state)
    phi = [rng.normal(size=(n_candidates, 4)) for _ in range(n)]
    return Candidates(phi, [np.r_[0.0, rng.uniform(0.5, 1.5, n_candidates - 1)] for _ in range(n)])


def hard_and_easy(n, n_candidates):
    """*Gaps*, Appendix C: one hard example, whose every candidate has a direction of its own, and n - 1 easy ones."""
    K = n_candidates
    hard = np.vstack([np.zeros(K + 1), -np.eye(K, K + 1) / np.sqrt(2)])
    easy = np.vstack([np.zeros(K + 1), np.tile(-np.eye(K + 1)[K], (K, 1))])
    costs = np.concatenate([[0.0], np.ones(K)])
    return Candidates([hard] + [easy] * (n - 1), [costs] * n)


class NoOracle:
    """A problem without any oracle."""


def tolerance(method):
    """Plain Frank-Wolfe steps converge slowly."""
    return 1e-2 if isinstance(method, FrankWolfe) or getattr(method, "steps", "") == "fw" else 1e-4


def random_rows(rng, n_rows, storage="dense", integer=False):
    """Rows of three features; `integer` data gives many ties."""
    matrix = rng.integers(-1, 2, (n_rows, 3)).astype(float) if integer else rng.normal(size=(n_rows, 3))
    if storage == "sparse":
        return sp.csr_array(matrix * (rng.random((n_rows, 3)) < 0.5))
    if storage == "binary":
        return sp.csr_array((rng.random((n_rows, 3)) < 0.5).astype(float))
    return matrix


def random_chains(
    rng, lengths, n_labels, storage="dense", dtype="float64", allowed=None, with_bias=False, integer=False
):
    """A problem of random chains; `integer` data gives many ties."""
    n_tokens = sum(lengths)
    matrix = random_rows(rng, n_tokens, storage, integer)
    rows = Rows(matrix, np.concatenate([[0], np.cumsum(lengths)]))
    penalty = np.zeros((n_labels, n_labels), dtype)
    if allowed is not None:
        penalty[~allowed] = IMPOSSIBLE
    labels = np.concatenate([next(iter(naive.labellings(length, n_labels, allowed))) for length in lengths])
    if allowed is None:
        labels = rng.integers(0, n_labels, n_tokens)
    costs, scales = rng.integers(0, 3, (n_labels, n_labels)).astype(float), rng.random(n_tokens)
    np.fill_diagonal(costs, 0)
    rows = append_biases(rows) if with_bias else rows
    return chain_encoder(penalty).assemble(rows, supervise(labels, costs, scales, dtype), with_grams=True)


def chain_encoder(penalty):
    """An encoder of chains of three features, whose labels are numbers."""
    storage = {"dtype": penalty.dtype, "stores_sparse": False}
    penalties = {"penalty": penalty, "end_penalty": np.zeros_like(penalty[:2], shape=(2, len(penalty)))}
    return ChainEncoder(n_features_in=3, classes=np.arange(len(penalty)), **penalties, **storage)


class Labels:
    """Multi-label: any subset of three labels; features of each label, and of pairs that occur together."""

    def features(self, x, y):
        pairs = [y[a] * y[b] for a, b in itertools.combinations(range(3), 2)]
        return np.concatenate([np.outer(y, x).ravel(), pairs])

    def cost(self, y_true, y):
        return float(np.sum(np.not_equal(y_true, y)))

    def outputs(self, x):
        return itertools.product([0, 1], repeat=3)


class LabelsByArgmax:
    """The same, with an oracle in place of the list; outputs are arrays."""

    def features(self, x, y):
        return Labels().features(x, y)

    def cost(self, y_true, y):
        return Labels().cost(y_true, y)

    def argmax(self, x, w, y_true=None):
        return self.k_best(x, w, 1, y_true)[0]

    def k_best(self, x, w, k, y_true=None):
        def value(y):
            return w @ self.features(x, y) + (0 if y_true is None else self.cost(y_true, y))

        return sorted(map(np.array, Labels().outputs(x)), key=value, reverse=True)[:k]


class LabelsWithoutCosts(LabelsByArgmax):
    """The same with a mistake: its oracle forgets the costs."""

    def argmax(self, x, w, y_true=None):
        return super().argmax(x, w)


def label_data(n=6):
    """Examples for `Labels`: a label for the sign of each coordinate, and one for that of their sum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, [(int(x[0] > 0), int(x[1] > 0), int(x.sum() > 0)) for x in X]
