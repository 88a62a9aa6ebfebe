"""The objective of outputs that are known in part, and in all have an expected number of labels of some kind.

Where only entities are known, a model that finds entities everywhere agrees with all that is known. What is missing is
how many there are in all. With distributions q_i over the outputs that are consistent with what is known, and c_i(y)
the number of labels of the kind, less that of the true output (Ganchev, Graca, Gillenwater, Taskar 2010),

    F(w) = (lambda/2) ||w||^2 + min_q (1/n) sum_i weight_i KL(q_i || p_i(w)), (1/n) sum_i weight_i E_q c_i = expected,

whose best q_i are those of the consistent outputs *tilted* by one number b for all examples: exp(score + b c_i). As

    KL(q_i || p_i(w)) = h_i(w) - <theta_i, m_i> - entropy_i(m_i)

at their mean parts m_i, this is a `LatentObjective` whose completions are those m_i, with the same majorants.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from maxmargin.arrays.blocks import Blocks
from maxmargin.problem import AnyProblem
from maxmargin.solvers.objective.active_sets import ActiveSets
from maxmargin.solvers.objective.latent_objective import Completion, LatentObjective
from maxmargin.solvers.objective.objective_options import ObjectiveOptions
from maxmargin.supervision.weak import Weak

PRECISION = 1e-6  # of the expected number, per label that may be of the kind or not
FIRST_STEP, LARGEST_STEP, GROWTH = 0.1, 2.0, 1.5  # of the tilt, and by what the largest step grows
MOST_PASSES = 50  # to find it


class TiltedObjective(LatentObjective):
    """An objective of outputs that are known in part, with an expected number of labels of a kind.

    Parameters
    ----------
    weak
        What is known; `weak.share` is not None.
    problem, **options
        As of `Objective`.
    """

    can_prepare = False  # what is tilted are the arrays of one problem

    def __init__(self, weak: Weak, problem: AnyProblem, C: float, **options: Unpack[ObjectiveOptions]) -> None:
        super().__init__(weak, problem, C, **options)
        if self.loss.entropy_level != 1.0:
            raise ValueError(f"An expected share of labels needs the log loss, not the {self.loss.name} loss.")
        self.consistent = self.consistent.with_loss(self.consistent.loss.with_margin(True))
        assert weak.share is not None
        self.share = weak.share
        self.share.check_weights(self.weight)
        self.set_tilt(0.0)
        self.means = self.true_means()
        self.expected = float(self.weight @ self.share.expected) / self.n
        self.precision = PRECISION * max(np.count_nonzero(self.share.direction.any(axis=1)) / self.n, 1.0)

    def complete(
        self, w: np.ndarray, outputs: Blocks | None = None, sets: ActiveSets | None = None, with_gradient: bool = True
    ) -> Completion:
        """The completion at w: mean parts of the tilted outputs that have the expected number of labels."""
        count = self._find_tilt(w)
        found = super().complete(w, outputs, sets, with_gradient)
        # The objective is stationary in the tilt with the expected number, so that errors of the tilt hardly count in
        # it; but its majorant, that of the number found, is above or below it by so much where they should touch.
        error = abs(self.tilt * (count - self.expected))
        return found._replace(
            loss=found.loss - self.tilt * self.expected,
            entropy=found.entropy - self.tilt * count + error if with_gradient else found.entropy,
            rounding=found.rounding + error,
        )

    def _find_tilt(self, w: np.ndarray) -> float:
        """Tilt the consistent outputs until they have the expected number of labels, by secants; return that number.

        The number grows with the tilt; the tilt of the last weights is the first to be tried.
        """
        low, high, largest, eps = -np.inf, np.inf, LARGEST_STEP, float(np.finfo(self.share.costs.dtype).eps)
        last = None
        for _ in range(MOST_PASSES):
            count = self._count(w)
            short = self.expected - count
            low, high = (self.tilt, high) if short > 0 else (low, self.tilt)
            fall = np.inf if last is None else last[1] - short
            slope = (self.tilt - last[0]) / fall if last is not None and fall else np.inf
            step = FIRST_STEP if last is None or slope <= 0 else min(slope * abs(short), largest)
            if not abs(short) > self.precision or min(high - low, step) <= eps * max(abs(self.tilt), 1.0):
                return count
            last, largest = (self.tilt, short), GROWTH * largest
            tilt = self.tilt + float(np.copysign(step, short))
            self.set_tilt(tilt if low < tilt < high else (low + high) / 2)
        raise ValueError(f"{self.share.name} cannot be met: no consistent outputs have it.")

    def _count(self, w: np.ndarray) -> float:
        """The mean number of labels of the kind in the tilted outputs, less that of the true ones."""
        consistent = self._on_its_clock()
        consistent.evaluate(w, means=self.means, with_gradient=False)
        return self.share.number(self.means, self.weight)

    def set_tilt(self, tilt: float) -> None:
        """Tilt the consistent outputs."""
        self.tilt = float(self.share.costs.dtype.type(tilt))
        np.multiply(self.share.direction, self.tilt, out=self.share.costs, casting="same_kind")
