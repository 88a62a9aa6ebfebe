"""Early stopping: held-out data that judges the weights of every certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.checks import check_count
from maxmargin.features import WeightLayout

WAIT = 0.2  # of the passes made so far, until the next certificate: each pass has one at first, later ever fewer do


class HeldOut:
    """Scores weights on held-out data and keeps the best; a run stops once they have not improved for a while.

    Parameters
    ----------
    score
        How good weights of a model are, the higher the better.
    patience
        The number of certificates without a better score after which to stop. They come after each pass at first, then
        after a fifth of the passes made so far, at most as far apart as without held-out data.
    n_examples
        The number of held-out examples: certificates are at least as far apart as to visit as many.
    data
        The held-out data, by which a checkpoint tells whether it is of the same run.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.solvers import LBFGS
    >>> from maxmargin.solvers.frame.held_out import HeldOut
    >>> from maxmargin.testing import toy_chains
    >>> result = LBFGS().solve(toy_chains(), held_out=HeldOut(lambda w: -np.abs(w).max(), patience=3))
    >>> result.status.name, len(result.trace), bool(result.w.any())
    ('EARLY_STOPPED', 4, False)
    """

    def __init__(
        self, score: Callable[[np.ndarray], float], patience: int = 10, n_examples: int = 0, data: object = None
    ) -> None:
        check_count("patience", patience)
        self.score = score
        self.patience = patience
        self.n_examples = n_examples
        self.data = data
        self.best, self.best_score, self.at = np.zeros(0), -np.inf, -1
        self.n_judged = 0

    def judge(self, w: np.ndarray, layout: WeightLayout) -> float:
        """The score of the weights of the next certificate."""
        score = float(self.score(layout.to_model(w)))
        if score > self.best_score or not self.n_judged:
            self.best, self.best_score, self.at = w.copy(), float(np.fmax(self.best_score, score)), self.n_judged
        self.n_judged += 1
        return score

    def snapshot(self) -> dict[str, object]:
        """What it knows so far."""
        return {name: getattr(self, name) for name in ("best", "best_score", "at", "n_judged")}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        self.best, self.best_score = snapshot["best"], snapshot["best_score"]
        self.at, self.n_judged = snapshot["at"], snapshot["n_judged"]

    def passes_between(self, passes: float, n: int, most: int) -> int:
        """How many passes over n examples to make, after so many, until the next certificate: `most`, or fewer."""
        return max(1, min(int(WAIT * passes), most), self.n_examples // n)

    @property
    def is_exhausted(self) -> bool:
        """Whether patience has run out."""
        return self.n_judged - 1 - self.at >= self.patience

    @property
    def summary(self) -> str:
        """What it has led to."""
        return (
            f"The held-out score was highest at certificate {self.at + 1} of {self.n_judged}, {self.best_score:.6g}: "
            "those weights were kept."
        )
