"""What past steps say about the curvature of an objective: the limited memory of L-BFGS."""

from __future__ import annotations

import numpy as np

from maxmargin.persist.registry import kept


@kept
class Curvature:
    """The last steps s and changes y of the gradient, and the inverse Hessian that they suggest.

    It is a diagonal, which all steps have shaped, corrected along the last ones. The usual multiple of the identity
    takes a sixth more iterations on text, where some features are far rarer than others.

    Parameters
    ----------
    memory : how many to keep
    n_weights : their size

    References
    ----------
    Gilbert, Lemarechal (1989), Some numerical experiments with variable-storage quasi-Newton algorithms.
    """

    def __init__(self, memory: int, n_weights: int) -> None:
        self.diagonal = np.ones(n_weights)  # of the Hessian
        self.steps = np.zeros((memory, n_weights))
        self.changes = np.zeros((memory, n_weights))
        self.products = np.zeros(memory)  # <s, y>
        self.size = 0  # how many are there
        self.newest = -1

    def forget(self) -> None:
        """Begin again, with the identity."""
        self.size = 0
        self.diagonal[:] = 1

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Take note of a step, unless rounding has eaten its curvature."""
        product = float(np.dot(step, change))
        if _is_clear(product, step, change):
            self.newest = (self.newest + 1) % len(self.products)
            self.steps[self.newest], self.changes[self.newest] = step, change
            self.products[self.newest] = product
            self.size = min(self.size + 1, len(self.products))
            self._shape_diagonal(step, change, product)

    def _shape_diagonal(self, step: np.ndarray, change: np.ndarray, product: float) -> None:
        """Scale the diagonal to the curvature along the step, then take the diagonal of its BFGS update."""
        self.diagonal *= float(np.dot(change, change / self.diagonal)) / product
        pull = self.diagonal * step
        updated = self.diagonal + change**2 / product - pull**2 / float(np.dot(step, pull))
        self.diagonal = np.maximum(updated, 1e-10 * self.diagonal)  # positive but for rounding

    def inverse_times(self, vector: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """The two-loop recursion (Nocedal and Wright, Algorithm 7.4).

        With `among`, the inverse of the block of the Hessian of these weights, as the others stay where they are.
        """
        from scipy.linalg.blas import daxpy  # slow to import

        pairs = self._pairs(among)
        result = vector.copy() if among is None else vector[among]
        shares = []
        for step, change, product in pairs:
            shares.append(np.dot(step, result) / product)
            daxpy(change, result, a=-shares[-1])
        result /= self.diagonal if among is None else self.diagonal[among]
        for (step, change, product), share in zip(reversed(pairs), reversed(shares), strict=True):
            daxpy(step, result, a=share - np.dot(change, result) / product)
        if among is None:
            return result
        whole = np.zeros_like(vector)
        whole[among] = result
        return whole

    def _pairs(self, among: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Steps, changes and their products, the newest first."""
        newest_first = [(self.newest - k) % len(self.products) for k in range(self.size)]
        if among is None:
            return [(self.steps[k], self.changes[k], float(self.products[k])) for k in newest_first]
        within = [(self.steps[k][among], self.changes[k][among]) for k in newest_first]
        products = [float(np.dot(step, change)) for step, change in within]
        pairs = [(*pair, product) for pair, product in zip(within, products, strict=True)]
        return [(step, change, product) for step, change, product in pairs if _is_clear(product, step, change)]


def _is_clear(product: float, step: np.ndarray, change: np.ndarray) -> bool:
    """Whether the curvature along a step is more than rounding."""
    return product > 1e-12 * float(np.dot(step, step)) ** 0.5 * float(np.dot(change, change)) ** 0.5
