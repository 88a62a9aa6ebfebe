"""The regularization path of an estimator or a problem: all strengths of the regularization in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.checks import check_positive
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.estimators.foundation.training import as_seed, prepare, read_held_out
from maxmargin.execution.runner import bind
from maxmargin.losses import NAMED
from maxmargin.paths.solutions import Path
from maxmargin.problem import n_examples
from maxmargin.sklearn_contract import unfitted
from maxmargin.solvers import Solver, find_solver
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.block_coordinate.path_steps import GridFollower, PathFollower
from maxmargin.solvers.frame.interrupt import Interruptible
from maxmargin.trace import Status

METHODS = ("approximate", "heuristic", "grid")


def regularization_path(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    method: str = "approximate",
    eps: float | None = None,
    tol: float | None = None,
    kappa: float | None = None,
    lambda_min: float = 1e-5,
    lambda_max: float | None = None,
    C_min: float | None = None,
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
    model : an estimator, whose C and, but for its grid, tol are ignored, as is its solver; or a problem
    X, y : the training data of an estimator
    method : "approximate": for every lambda, weights whose objective is within eps of the optimum, proven.
        "heuristic": the same by the last known block gaps, with fewer calls of the oracle and without proof.
        "grid": the values of `lambdas` only, each from the one before. CRFs, and other models of smooth losses, have a
        grid only, solved by their own solver.
    eps : accuracy of the path, in units of the objective; by default 0.1, for a grid see `tol`
    tol : in place of eps, accuracy as a share of the objective, as the `tol` of estimators, which is the default of a
        grid (0.001 for a problem)
    kappa : accuracy of breakpoints, as a share of eps or tol: closer to 1 makes more of them, each cheaper; by default
        0.9, for the heuristic path 0.8; a grid is solved to kappa * eps, or to tol
    lambda_min : where to end
    lambda_max : where to begin, in place of infinity; most breakpoints of a path lie where lambda is large
    C_min : the same as a C: the smallest one of interest, 1/(n lambda_max)
    lambdas : the values for the grid, by default 2^15 down to 2^-15
    solver : a solver that keeps its dual point; by default BCFW with pairwise steps, gap sampling and a cache
    sample_weight : (n,) weights of the examples
    lower, upper : bounds of the weights of a problem; an estimator has its own
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
    given = {"eps": eps, "tol": tol, "lambda_min": lambda_min, "lambda_max": lambda_max, "C_min": C_min, "kappa": kappa}
    for name, value in given.items():
        if value is not None:
            check_positive(name, value)
    for name, value in (("kappa", kappa), ("tol", tol)):
        if value is not None and value >= 1:
            raise ValueError(f"{name} must be less than 1, not {value}.")
    if eps is not None and tol is not None:
        raise ValueError("eps and tol must not both be given: tol is the accuracy as a share of the objective.")
    if lambda_max is not None and C_min is not None:
        raise ValueError("lambda_max and C_min must not both be given: lambda_max is 1/(n C_min).")
    if (X_dev is None) != (y_dev is None):
        raise ValueError("X_dev and y_dev must be given together.")

    problem, held_out, loss = model, None, NAMED["hinge"]
    estimator: Any = None
    if isinstance(model, StructuredModel):
        estimator = unfitted(model)
        loss = estimator._trainer.find_loss(estimator)
        if loss.name != "hinge" and method != "grid":
            kind = type(model).__name__
            raise ValueError(f"A path needs a model of the hinge loss, which {kind} is not, or method='grid'.")
        if lower is not None or upper is not None:
            raise ValueError("lower and upper are for problems: an estimator has bounds of its own.")
        task = prepare(estimator, X, y, **data)
        lower, upper = task.lower, task.upper
        estimator._encoder, problem = task.encoder, task.problem
        held_out = read_held_out(estimator, task.encoder, X_dev, y_dev, {})
        sample_weight = estimator._sample_weight(sample_weight, problem, y)
        n_jobs = estimator.n_jobs if n_jobs is None else n_jobs
        random_state = as_seed(estimator.random_state) if random_state is None else random_state
    elif X_dev is not None:
        raise ValueError("X_dev and y_dev need an estimator, not a problem.")
    problem, is_grid = bind(problem), method == "grid"
    lambda_max = 1 / (n_examples(problem) * C_min) if C_min is not None else lambda_max
    if lambda_max is not None and lambda_max < lambda_min:
        raise ValueError(f"lambda_max must be at least lambda_min, {lambda_min:g}, not {lambda_max:g}.")
    shared, run = (problem, sample_weight, lower, upper), (time_limit, n_jobs, random_state)
    if is_grid and eps is None:
        tol, kappa = tol or getattr(estimator, "tol", 1e-3), 1.0
    path = Path(n_examples(problem), is_grid, estimator)
    follower = None
    if loss.name != "hinge":
        chosen = find_solver(estimator.solver if solver is None else solver, loss)
        options = {"tol": tol or estimator.tol, "max_passes": max_passes, **estimator._arguments_to("solver")}
        points = GridFollower(*shared, chosen, loss, options, *run).follow_grid(_check_grid(lambdas))
    else:
        accuracy = (0.0, kappa, tol) if tol else (0.1 if eps is None else eps, kappa, 0.0)
        follower = PathFollower(*shared, _path_solver(solver, method), *accuracy, max_passes, *run)
        points = follower.follow_grid(_check_grid(lambdas)) if is_grid else follower.follow(lambda_min, lambda_max)
    if verbose:
        print(path.header(), flush=True)
    with Interruptible(path):
        for point in points:
            back = task.order.back if estimator is not None else np.asarray
            if follower is not None and not (is_grid or lambda_max or len(path)):
                path._above = tuple(map(back, (point.v, *follower.objective.bounds.dense(point.v.size))))
            path._append(point._replace(w=back(point.w)))
            if held_out is not None:
                path.scores.append(held_out.score(path.weights(-1)))
            if verbose:
                print(path.line(), flush=True)
            if callback is not None and callback(path):
                path.interrupted = True
            if path.interrupted or point.status is Status.TIMEOUT:
                break
    path.is_complete = bool(follower is not None and not is_grid and follower.is_last(point))
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
