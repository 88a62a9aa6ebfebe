"""Train the compiled structure of `examples/intervals.py`: find the burst in a noisy signal.

python examples/bursts.py
"""

from __future__ import annotations

import time

import numpy as np
from intervals import make_intervals

from maxmargin import ProblemModel


def signals(n, rng):
    """Signals of 100 to 200 positions in which one stretch is louder; their squares and a constant as features."""
    X, y = [], []
    for _ in range(n):
        length = rng.integers(100, 201)
        start = rng.integers(0, length - 70)
        stop = start + rng.integers(10, 71)
        signal = rng.normal(size=length)
        signal[start:stop] *= 2
        X.append(np.stack([signal**2, np.abs(signal), np.ones(length)], axis=1))
        y.append((start, stop))
    return X, y


def overlap(a, b):
    """Intersection over union."""
    shared = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


def main():
    rng = np.random.default_rng(0)
    X, y = signals(500, rng)
    X_test, y_test = signals(500, rng)
    began = time.perf_counter()
    model = ProblemModel(make_intervals, C=0.01, tol=0.01, random_state=0).fit(X, y)
    print(model.trace_)
    print(f"{model.status_.name} after {time.perf_counter() - began:.1f} s, compilation included")
    print(f"positions misplaced in a test signal: {-model.score(X_test, y_test):.1f}")
    mean = np.mean([overlap(a, b) for a, b in zip(y_test, model.predict(X_test), strict=True)])
    loudest = [int(np.argmax(np.convolve(x[:, 0], np.ones(40), "valid"))) for x in X_test]
    baseline = np.mean([overlap(a, (k, k + 40)) for a, k in zip(y_test, loudest, strict=True)])
    print(f"mean overlap on test signals: {mean:.3f}; the loudest 40 positions: {baseline:.3f}")


if __name__ == "__main__":
    main()
