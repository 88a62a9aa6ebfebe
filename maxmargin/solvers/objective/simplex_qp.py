"""Small quadratic programs on the simplex: maximise gain'alpha - alpha'H alpha/2 over alpha >= 0, sum alpha = 1.

Pairwise coordinate ascent: move weight to the coordinate of the highest slope from the one where an exact line search
gains the most, until no mixture could gain more than a tolerance.
"""

from __future__ import annotations

import numpy as np

from maxmargin.runtime.dispatch import loop


def maximise_on_simplex(gain: np.ndarray, H: np.ndarray, alpha: np.ndarray, tol: float, max_steps: int) -> float:
    """Improve `alpha`, a point of the simplex; return a bound of how much the maximum exceeds its value."""
    return _ascend(gain - H @ alpha, np.ascontiguousarray(H), alpha, float(tol), max_steps)


@loop
def _ascend(slope, H, alpha, tol, max_steps):
    gap = 0.0
    for _ in range(max_steps):
        best = 0
        for k in range(1, slope.size):
            if slope[k] > slope[best]:
                best = k
        worst = -1
        mean = 0.0
        step = 0.0
        most = 0.0
        for k in range(alpha.size):
            if alpha[k] > 0:
                mean += alpha[k] * slope[k]
                rise = slope[best] - slope[k]
                curvature = H[best, best] + H[k, k] - 2 * H[best, k]
                length = min(alpha[k], rise / curvature) if curvature > 0 else alpha[k]
                gained = length * (rise - length * curvature / 2)
                if gained > most:
                    worst, step, most = k, length, gained
        gap = slope[best] - mean
        if gap <= tol or worst < 0:
            break
        alpha[best] += step
        alpha[worst] = 0.0 if step == alpha[worst] else alpha[worst] - step
        for k in range(alpha.size):
            slope[k] -= step * (H[k, best] - H[k, worst])
    return gap
