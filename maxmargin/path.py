"""The regularization path of an estimator or a problem: all strengths of the regularization in one run."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.checks import check_positive
from maxmargin.estimator import unfitted
from maxmargin.estimators.base import as_seed
from maxmargin.losses import NAMED
from maxmargin.problem import n_examples
from maxmargin.runtime.passes import bind
from maxmargin.solvers import BCFW, Solver, find_solver
from maxmargin.solvers.interrupt import Interruptible
from maxmargin.solvers.path import Breakpoint, GridFollower, PathFollower
from maxmargin.trace import Certified, Status, Trace

METHODS = ("approximate", "heuristic", "grid")


class Path:
    """Solutions for every lambda = 1/(n C) from `lambdas[0]` (in fact from infinity) down to `lambdas[-1]`.

    Attributes
    ----------
    lambdas, Cs : (K,) the breakpoints; the weights of breakpoint k hold from lambdas[k] down to lambdas[k + 1]
    primal, dual, gap : (K,) the certificate of each breakpoint
    passes, oracle_calls : (K,) passes over the examples and calls of the oracle at each breakpoint
    scores : (K,) scores on the held-out data, if given
    is_complete : whether the last weights are good for every smaller lambda, too
    status : OPTIMAL if every breakpoint reached its accuracy, else why not; ESTIMATED for heuristic paths
    """

    def __init__(self, n: int, eps: float, is_grid: bool, model: Any) -> None:
        self.eps = eps
        self.is_complete = False
        self.interrupted = False
        self.scores: Any = []
        self._n = n
        self._is_grid = is_grid
        self._model = model
        self._rows: list[Any] = []
        self._points: list[Breakpoint] = []

    def _append(self, point: Breakpoint) -> None:
        is_mostly_zero = np.count_nonzero(point.w) < 0.4 * point.w.size
        self._rows.append(sp.csr_array(point.w[np.newaxis]) if is_mostly_zero else point.w)
        self._points.append(point._replace(w=np.empty(0), v=np.empty(0), point=None))  # type: ignore[arg-type]

    def _column(self, name: str) -> np.ndarray:
        return np.array([getattr(point, name) for point in self._points])

    lambdas = property(lambda self: self._column("regularization"))
    Cs = property(lambda self: 1.0 / (self._n * self.lambdas))
    primal = property(lambda self: self._column("primal"))
    dual = property(lambda self: self._column("dual"))
    gap = property(lambda self: np.maximum(self.primal - self.dual, 0.0))
    passes = property(lambda self: self._column("passes"))
    oracle_calls = property(lambda self: self._column("oracle_calls"))
    seconds = property(lambda self: self._column("seconds"))

    @property
    def status(self) -> Status:
        """Why the path ended."""
        if self.interrupted:
            return Status.INTERRUPTED
        return next((p.status for p in self._points if p.status is not Status.OPTIMAL), Status.OPTIMAL)

    def __len__(self) -> int:
        return len(self._points)

    def weights(self, k: int) -> np.ndarray:
        """The weights of breakpoint k."""
        row = self._rows[k]
        return row.toarray()[0] if sp.issparse(row) else row

    def w_at(self, regularization: float) -> np.ndarray:
        """The weights for any lambda on the path.

        Parameters
        ----------
        regularization : lambda = 1/(n C)
        """
        lambdas = self.lambdas
        if not regularization > 0:
            raise ValueError(f"regularization must be positive, not {regularization}.")
        if regularization > lambdas[0] and not self._is_grid:
            return self.weights(0) * self.weights(0).dtype.type(lambdas[0] / regularization)
        if regularization < lambdas[-1] and not self.is_complete:
            raise ValueError(f"The path ends at lambda = {lambdas[-1]:.3g}, above {regularization:.3g}.")
        return self.weights(self._index(regularization))

    def model_at(self, regularization: float) -> Any:
        """The estimator with the weights for lambda, ready to predict.

        Its trace has one row, the certificate of the breakpoint whose weights they are.
        """
        if self._model is None:
            raise TypeError("This path was computed for a problem: it has weights, but no estimator.")
        model = copy(self._model)
        model.C = 1.0 / (self._n * regularization)
        model._become(model._encoder, self.w_at(regularization))
        point = self._points[self._index(regularization)]
        model.trace_, model.status_ = Trace(), point.status
        model.trace_.append(
            passes=point.passes,
            oracle_calls=point.oracle_calls,
            seconds=point.seconds,
            primal=point.primal,
            dual=point.dual,
        )
        model.n_iter_, model.certificate_ = int(np.ceil(point.passes)), Certified(point.primal, point.dual)
        return model

    def _index(self, regularization: float) -> int:
        """The breakpoint whose weights hold at a lambda."""
        return max(int(np.searchsorted(-self.lambdas, -regularization, side="right")) - 1, 0)

    @property
    def best_lambda(self) -> float:
        """The lambda of the highest held-out score; the largest of several."""
        if not len(self.scores):
            raise AttributeError("The path has no scores: pass X_dev and y_dev.")
        return float(self.lambdas[int(np.argmax(self.scores))])

    @property
    def best_C(self) -> float:
        """1/(n lambda) of the highest held-out score."""
        return 1.0 / (self._n * self.best_lambda)

    @staticmethod
    def header() -> str:
        """The column titles of the table."""
        return f"{'breakpoint':>10}  {'lambda':>10}  {'C':>10}  {'primal':>12}  {'gap':>9}  {'passes':>7}  {'score':>7}"

    def line(self, k: int = -1) -> str:
        """Row k of the table."""
        score = f"{self.scores[k]:7.4f}" if len(self.scores) else f"{'':7}"
        number = k % len(self)
        return (
            f"{number:10d}  {self.lambdas[k]:10.3e}  {self.Cs[k]:10.3e}  {self.primal[k]:12.6f}  {self.gap[k]:9.1e}  "
            f"{self.passes[k]:7.3g}  {score}"
        )

    def __str__(self) -> str:
        return "\n".join([self.header(), *(self.line(k) for k in range(len(self)))])

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Plot the bounds of the objective and, if there are any, the scores against C.

        Returns
        -------
        The axes.
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError('Path.plot() needs matplotlib: pip install "maxmargin[plot]".') from error
            ax = plt.subplots(figsize=(6, 4), layout="constrained")[1]
        ax.step(self.Cs, self.primal, where="post", color="C0", label="objective")
        ax.fill_between(self.Cs, self.dual, self.primal, step="post", color="C0", alpha=0.3, label="gap")
        ax.set_xscale("log")
        ax.set_xlabel("C")
        ax.set_ylabel("objective")
        lines = ax.get_lines()
        if len(self.scores):
            right = ax.twinx()
            right.step(self.Cs, self.scores, where="post", color="C1", label="held-out score")
            right.axvline(self.best_C, color="C1", linestyle=":")
            right.set_ylabel("held-out score")
            lines = [*lines, right.get_lines()[0]]
        ax.legend(lines, [line.get_label() for line in lines], loc="center left")
        return ax


def regularization_path(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    method: str = "approximate",
    eps: float = 0.1,
    kappa: float | None = None,
    lambda_min: float = 1e-5,
    lambdas: Any = None,
    solver: Any = None,
    sample_weight: Any = None,
    lower: Any = None,
    upper: Any = None,
    X_dev: Any = None,
    y_dev: Any = None,
    max_passes: float = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    callback: Callable[[Path], bool | None] | None = None,
    **data: Any,
) -> Path:
    """Train for every strength of the regularization.

    Parameters
    ----------
    model : an estimator, whose C, solver and tolerance are ignored, or a problem
    X, y : the training data of an estimator
    method : "approximate": for every lambda, weights whose objective is within eps of the optimum, proven.
        "heuristic": the same by the last known block gaps, with fewer calls of the oracle and without proof.
        "grid": the values of `lambdas` only, each to within kappa * eps, each from the one before. CRFs, and other
        models of smooth losses, have a grid only, solved by their own solver to their own tol.
    eps : accuracy of the path, in units of the objective
    kappa : accuracy of breakpoints, as a share of eps: closer to 1 makes more of them, each cheaper; by default 0.9,
        for the heuristic path 0.8
    lambda_min : where to end
    lambdas : the values for the grid, by default 2^15 down to 2^-15
    solver : a solver that keeps its dual point; by default BCFW with pairwise steps, gap sampling and a cache
    sample_weight : (n,) weights of the examples
    lower, upper : bounds of the weights of a problem, each 0 or infinite unless for a grid; an estimator has its own
    X_dev, y_dev : held-out data: an estimator is scored on it at each breakpoint
    max_passes : passes over the examples at one breakpoint
    time_limit : seconds for the whole path
    n_jobs, random_state : see `Solver.solve`; by default those of the estimator
    verbose : print each breakpoint
    callback : called with the `Path` after each breakpoint; it ends if that returns True
    **data : further arguments of the estimator's `fit`, such as lengths

    Ctrl-C ends the path and returns what there is.

    Returns
    -------
    Path

    References
    ----------
    Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (2016), Minding the gaps for block Frank-Wolfe optimization of
    structured SVMs, section 4 and appendix K.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import ChainSVM, regularization_path
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(4, 3)) for _ in range(20)]
    >>> y = [np.argmax(x, axis=1) for x in X]
    >>> path = regularization_path(ChainSVM(), X, y, eps=0.5, X_dev=X, y_dev=y, random_state=0)
    >>> bool((path.gap <= 0.5).all()), path.is_complete
    (True, True)
    >>> bool(path.model_at(path.best_lambda).score(X, y) == path.scores.max())
    True
    """
    if isinstance(model, type):
        raise TypeError(f"model must be an estimator or a problem, not a class: {model.__name__}().")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    kappa = {"heuristic": 0.8}.get(method, 0.9) if kappa is None else kappa
    check_positive("eps", eps)
    check_positive("lambda_min", lambda_min)
    check_positive("kappa", kappa)
    if kappa >= 1:
        raise ValueError(f"kappa must be less than 1, not {kappa}.")
    if (X_dev is None) != (y_dev is None):
        raise ValueError("X_dev and y_dev must be given together.")

    problem, held_out, loss = model, None, NAMED["hinge"]
    estimator: Any = None
    if hasattr(model, "_encode"):
        estimator = unfitted(model)
        loss = estimator._find_loss()
        if loss.name != "hinge" and method != "grid":
            kind = type(model).__name__
            raise ValueError(f"A path needs a model of the hinge loss, which {kind} is not, or method='grid'.")
        if lower is not None or upper is not None:
            raise ValueError("lower and upper are for problems: an estimator has bounds of its own.")
        task = estimator._encode(X, y, **data)
        lower, upper = task.lower, task.upper
        estimator._encoder, problem = task.encoder, task.problem
        held_out = estimator._held_out(task.encoder, X_dev, y_dev, {})
        sample_weight = estimator._sample_weight(sample_weight, problem, y)
        n_jobs = estimator.n_jobs if n_jobs is None else n_jobs
        random_state = as_seed(estimator.random_state) if random_state is None else random_state
    elif X_dev is not None:
        raise ValueError("X_dev and y_dev need an estimator, not a problem.")
    problem = bind(problem)
    shared = (problem, sample_weight, lower, upper)
    follower: GridFollower | PathFollower
    if loss.name == "hinge":
        chosen = _path_solver(solver, method)
        follower = PathFollower(*shared, chosen, eps, kappa, max_passes, time_limit, n_jobs, random_state)
    else:
        chosen = find_solver(estimator.solver if solver is None else solver, loss)
        options = {"tol": estimator.tol, "max_passes": max_passes, **estimator._solver_options()}
        follower = GridFollower(*shared, chosen, loss, options, time_limit, n_jobs, random_state)
    is_grid = method == "grid"
    path = Path(n_examples(problem), eps, is_grid, estimator)
    if isinstance(follower, PathFollower) and not is_grid:
        points = follower.follow(lambda_min)
    else:
        points = follower.follow_grid(_check_grid(lambdas))
    if verbose:
        print(path.header(), flush=True)
    with Interruptible(path):
        for point in points:
            if estimator is not None:
                point = point._replace(w=task.order.back(point.w))
            path._append(point)
            if held_out is not None:
                path.scores.append(held_out.score(point.w))
            if verbose:
                print(path.line(), flush=True)
            if callback is not None and callback(path):
                path.interrupted = True
            if path.interrupted or point.status is Status.TIMEOUT:
                break
    path.is_complete = bool(not is_grid and point.decay <= eps - (point.primal - point.dual))
    path.scores = np.array(path.scores)
    return path


def _path_solver(solver: Any, method: str) -> Solver:
    exact = method != "heuristic"
    if solver is None:
        return BCFW(steps="pairwise", sampling="gap", cache=50, exact_gaps=exact)
    solver = find_solver(solver, NAMED["hinge"])
    if not solver.keeps_dual:
        raise ValueError(f"A path needs a solver that keeps a dual point, such as BCFW, not {solver!r}.")
    if not exact and getattr(solver, "exact_gaps", True):
        raise ValueError(f"A heuristic path needs BCFW(..., exact_gaps=False), not {solver!r}.")
    return solver


def _check_grid(lambdas: Any) -> np.ndarray:
    grid = 2.0 ** np.arange(15, -16, -1) if lambdas is None else np.sort(np.asarray(lambdas, np.float64))[::-1]
    if grid.ndim != 1 or not len(grid) or not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError("lambdas must be a list of positive numbers.")
    return grid
