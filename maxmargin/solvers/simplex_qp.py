"""Small quadratic programs on the simplex: maximise gain'alpha - alpha'H alpha/2 over alpha >= 0, sum alpha = 1.

Pairwise coordinate ascent: move weight from the active coordinate of the lowest slope to that of the highest one, by an
exact line search, until no mixture could gain more than a tolerance.
"""

from __future__ import annotations

import numpy as np

from maxmargin.runtime.dispatch import kernel


def maximise_on_simplex(gain: np.ndarray, H: np.ndarray, alpha: np.ndarray, tol: float, max_steps: int) -> float:
    """Improve `alpha`, a point of the simplex; return a bound of how much the maximum exceeds its value."""
    return _ascend(gain - H @ alpha, np.ascontiguousarray(H), alpha, float(tol), max_steps)


@kernel
def _ascend(slope, H, alpha, tol, max_steps):
    gap = 0.0
    for _ in range(max_steps):
        best = np.argmax(slope)
        worst = -1
        mean = 0.0
        for k in range(alpha.size):
            if alpha[k] > 0:
                mean += alpha[k] * slope[k]
                if worst < 0 or slope[k] < slope[worst]:
                    worst = k
        gap = slope[best] - mean
        if gap <= tol:
            break
        curvature = H[best, best] + H[worst, worst] - 2 * H[best, worst]
        step = alpha[worst]
        if curvature > 0:
            step = min(step, (slope[best] - slope[worst]) / curvature)
        alpha[best] += step
        alpha[worst] = 0.0 if step == alpha[worst] else alpha[worst] - step
        for k in range(alpha.size):
            slope[k] -= step * (H[k, best] - H[k, worst])
    return gap
