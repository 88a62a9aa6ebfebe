"""Examples that take their time, on workers and here."""

import time

import numpy as np

from maxmargin.solvers.parted.portions import Portion
from tests.toy import Candidates

N_PORTIONS, N_EACH = 4, 5


class Slow(Candidates):
    """Candidates whose oracles take a while."""

    def __init__(self, phi, costs, seconds):
        super().__init__(phi, costs)
        self.seconds = seconds

    def identity(self):
        """What checkpoints tell it by."""
        return self.phi, self.costs

    def max_oracle(self, i, theta, y, work):
        time.sleep(self.seconds)
        return super().max_oracle(i, theta, y, work)

    def exp_oracle(self, i, theta, mu, work):
        time.sleep(self.seconds)
        return super().exp_oracle(i, theta, mu, work)


def make_portion(k, seconds):
    """The portion k, whoever makes it."""
    rng = np.random.default_rng(k)
    phi = [rng.normal(size=(3, 4)) for _ in range(N_EACH)]
    costs = [np.array([0.0, 1.0, 2.0])] * N_EACH
    return Portion(Slow(phi, costs, seconds), rng.uniform(0.5, 2, N_EACH))
