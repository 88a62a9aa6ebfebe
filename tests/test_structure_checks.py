"""`check_structure` finds what is wrong with a structure, whichever of its functions it is."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.features.layout import WeightLayout
from maxmargin.problem import IMPOSSIBLE
from maxmargin.testing import check_structure
from tests.toy import Candidates


class Choices(Candidates):
    """One of K candidates with d features each; it has every function that a problem can have, but the top-K oracle."""

    topk_oracle = property()  # which does not know what is excluded

    def __init__(self, dtype="float64", exact=True):
        rng = np.random.default_rng(0)
        self.phi = rng.normal(size=(3, 4, 2)).astype(dtype)
        self.costs = np.tile([0.0, 1.0, 0.5, 2.0], (3, 1)).astype(dtype)
        self.exact = exact
        self.excluded = np.zeros((3, 4), bool)

    def new_weights(self):
        return np.zeros(self.phi.shape[2], self.phi.dtype)

    def workspace(self, n_best):
        return SimpleNamespace(method=0, integrality=1.0)

    def layout(self):
        return WeightLayout(self.phi.shape[2])

    def prepare(self, dtype):
        other = type(self)(dtype, self.exact)
        other.phi, other.costs = self.phi.astype(dtype), self.costs.astype(dtype)
        return other

    def squared_diameters(self):
        return np.array([np.square(phi[:, None] - phi).sum(axis=2).max() for phi in self.phi.astype(float)])

    def scores(self, w, i, theta):
        theta[:] = np.where(self.excluded[i], IMPOSSIBLE, self.phi[i] @ w)

    def mean_oracle(self, i, theta, mu, work):
        self.exp_oracle(i, theta, mu, work)
        return self.exact

    def max_marginals(self, i, theta, out, work):
        out[:] = theta

    def restrict(self, excluded):
        other = copy(self)
        other.excluded = self.excluded | excluded.values.reshape(3, 4)
        return other


class Bounded(Choices):
    """The same, where the best need not be found."""

    def max_oracle(self, i, theta, y, work):
        y[0] = 1
        return theta[1]

    def bound_oracle(self, i, theta, y, work):
        self.max_oracle(i, theta, y, work)
        return theta.max() + 1

    def relax_oracle(self, i, theta, mu, work):
        mu[:] = np.arange(4) == np.argmax(theta)
        return theta.max()

    max_marginals = property()  # which ask for the best


class TwoLabels(Choices):
    """The four candidates are the pairs of two labels in a row; outputs have both."""

    restrict = property()

    def true_outputs(self):
        return [np.zeros(2, np.int32)] * 3

    def add_output(self, i, y, scale, mu):
        mu[2 * y[0] + y[1]] += scale

    def score_output(self, i, theta, y):
        return float(theta[2 * y[0] + y[1]])

    def max_oracle(self, i, theta, y, work):
        y[:] = divmod(int(np.argmax(theta)), 2)
        return float(theta.max())

    def transition_marginals(self, i, theta, pairs, out, work):
        mu = np.zeros_like(theta)
        self.exp_oracle(i, theta, mu, work)
        out[:] = mu[pairs]


class TransitionsOfOthers(TwoLabels):
    def transition_marginals(self, i, theta, pairs, out, work):
        out[:] = 0.25


class SkipsATransition(TwoLabels):
    def transition_marginals(self, i, theta, pairs, out, work):
        super().transition_marginals(i, theta, pairs[:3], out[:3], work)


def choices(i):
    return [np.array([k]) for k in range(4)]


def two_labels(i):
    return [np.array(divmod(k, 2)) for k in range(4)]


@pytest.mark.parametrize("outputs", [None, choices])
@pytest.mark.parametrize("problem", [Choices(), Choices("float32"), Choices(exact=False), Bounded()])
def test_right_structures_pass(problem, outputs):
    check_structure(problem, outputs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_right_transitions_pass(dtype):
    check_structure(TwoLabels(dtype), two_labels)


@pytest.mark.parametrize("kind", [TransitionsOfOthers, SkipsATransition])
def test_broken_transitions_fail(kind):
    with pytest.raises(AssertionError, match="transition_marginals differ from enumeration"):
        check_structure(kind(), two_labels)


class LosesDigits(Choices):
    def spread(self, w, i, delta, scale):
        if w.dtype == np.float32:
            super().spread(w, i, delta, scale)


class MeansOfOthers(Choices):
    def mean_oracle(self, i, theta, mu, work):
        mu[:] = 0.25
        return True


class MeansBeyond(Choices):
    def mean_oracle(self, i, theta, mu, work):
        mu[:] = 2
        return False


class RulesNothingOut(Choices):
    def restrict(self, excluded):
        return self


class ForgetsRules(Choices):
    def restrict(self, excluded):
        other = copy(self)
        other.excluded = excluded.values.reshape(3, 4)
        return other


class RestrictedToOthers(Choices):
    def restrict(self, excluded):
        return Choices()


class RestrictedToLess(Choices):
    def restrict(self, excluded):
        other = super().restrict(excluded)
        other.part_sizes = lambda: np.full(3, 3)
        return other


class AlwaysLeavesSome(Choices):
    def restrict(self, excluded):
        other = super().restrict(excluded)
        other.excluded[:, 0] &= ~other.excluded.all(axis=1)
        return other


class FindsTheImpossible(Choices):
    def max_marginals(self, i, theta, out, work):
        out[:] = np.maximum(theta, -1e9)


class MarginalsTooHigh(Choices):
    def max_marginals(self, i, theta, out, work):
        out[:] = theta.max()


class MarginalsTooLow(Choices):
    def max_marginals(self, i, theta, out, work):
        out[:] = theta - 1


class NoMarginals(Choices):
    def max_marginals(self, i, theta, out, work):
        return


class BoundBelowItsOutput(Bounded):
    def bound_oracle(self, i, theta, y, work):
        return self.max_oracle(i, theta, y, work) - 1


class BoundBelowTheBest(Bounded):
    def bound_oracle(self, i, theta, y, work):
        return self.max_oracle(i, theta, y, work)


class RelaxedTooLow(Bounded):
    def relax_oracle(self, i, theta, mu, work):
        mu[0] = 1
        return theta[0]


class RelaxedBelowItsMeans(Bounded):
    def relax_oracle(self, i, theta, mu, work):
        mu[np.argmax(theta)] = 3
        return theta.max()


class RelaxedBeyond(Bounded):
    def relax_oracle(self, i, theta, mu, work):
        mu[:] = 2
        return 1e3


class RelaxedInSilence(Bounded):
    def workspace(self, n_best):
        return None


class AnotherSize(Choices):
    def layout(self):
        return WeightLayout(5)


class LeavesOutWeights(Choices):
    def layout(self):
        return WeightLayout(2, place=np.array([1]))


class PreparedInTheWrongPrecision(Choices):
    def prepare(self, dtype):
        return self


class PreparedForOthers(Choices):
    def prepare(self, dtype):
        other = super().prepare(dtype)
        other.true_outputs = lambda: [np.ones(1, np.int32)] * 3
        return other


class PreparedWithOtherFeatures(Choices):
    def prepare(self, dtype):
        other = super().prepare(dtype)
        other.phi *= 2
        return other


class BendsMore(Choices):
    def squared_diameters(self):
        return np.zeros(3)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (LosesDigits, "accumulate differs from spread"),
        (MeansOfOthers, "the means of mean_oracle differ from enumeration"),
        (MeansBeyond, "mean_oracle writes mean parts that no mixture of outputs has"),
        (MarginalsTooHigh, "max_marginals of part . differ from enumeration"),
        (MarginalsTooLow, "max_marginals of the best output's parts are not its score"),
        (NoMarginals, "max_marginals writes nothing"),
        (BoundBelowItsOutput, "bound_oracle returns less than the score of its own output"),
        (BoundBelowTheBest, "bound_oracle returns less than the (highest score|score of the output)"),
        (RelaxedTooLow, "relax_oracle returns less than the (highest score|score of the output)"),
        (RelaxedBelowItsMeans, "relax_oracle (returns less than the score of its mean parts|writes mean parts)"),
        (RelaxedBeyond, "relax_oracle writes mean parts that no mixture of outputs has"),
        (RelaxedInSilence, "relax_oracle needs work.method"),
        (AnotherSize, "layout has 5 weights, but new_weights 2"),
        (LeavesOutWeights, "spread changes weights that layout leaves out"),
        (PreparedInTheWrongPrecision, "prepare for float32 has other weights"),
        (PreparedForOthers, "prepare has other true outputs"),
        (PreparedWithOtherFeatures, "prepare has other scores or norms"),
        (BendsMore, "squared_diameters is 0"),
        (RulesNothingOut, "with . outputs left by restrict, example .: .* differs? from enumeration"),
        (ForgetsRules, "with 1 outputs left by restrict, example .: .* differs? from enumeration"),
        (RestrictedToOthers, "restrict must return a problem of the same type"),
        (RestrictedToLess, "restrict changes part_sizes"),
        (AlwaysLeavesSome, r"max_oracle finds \[0\], though restrict leaves no output"),
        (FindsTheImpossible, "max_marginals has part ., which no output has"),
    ],
)
def test_broken_structures_fail(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_structure(kind("float32" if kind is LosesDigits else "float64"), choices)
