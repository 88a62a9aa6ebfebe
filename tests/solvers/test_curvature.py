"""The limited memory of L-BFGS against the matrices it stands for."""

import numpy as np

from maxmargin.solvers.batch.curvature import Curvature


def test_the_last_step_explains_the_last_change():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    curvature = Curvature(4, 8)
    for _ in range(7):
        step = rng.normal(size=8)
        curvature.add(step, root @ root.T @ step)
        assert np.allclose(curvature.inverse_times(root @ root.T @ step), step)
    curvature.add(step, -step)  # no curvature: left alone
    assert np.allclose(curvature.inverse_times(root @ root.T @ step), step)


def test_the_diagonal_is_that_of_the_bfgs_update():
    rng = np.random.default_rng(1)
    curvature = Curvature(4, 6)
    for _ in range(5):
        step = rng.normal(size=6)
        change = step * rng.uniform(1, 100, size=6)
        before = np.diag(curvature.diagonal * (change @ (change / curvature.diagonal)) / (step @ change))
        pull = before @ step
        updated = before + np.outer(change, change) / (step @ change) - np.outer(pull, pull) / (step @ pull)
        curvature.add(step, change)
        assert np.allclose(curvature.diagonal, np.diag(updated))
        assert (curvature.diagonal > 0).all()
    curvature.forget()
    assert np.array_equal(curvature.inverse_times(step), step)
