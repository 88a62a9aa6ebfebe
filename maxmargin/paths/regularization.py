"""The regularization path of an estimator or a problem: all strengths of the regularization in one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.checks import check_choice, check_positive
from maxmargin.encode.inputs.base_encoder import Encoder
from maxmargin.estimators.foundation.fitting import as_seed, find_loss, prepare, read_held_out, solver_options
from maxmargin.estimators.foundation.structured_model import StructuredModel
from maxmargin.execution.runner import bind
from maxmargin.losses import NAMED, BaseLoss
from maxmargin.paths.solutions import Path
from maxmargin.problem import n_examples, true_outputs
from maxmargin.runtime.dispatch import supports
from maxmargin.sklearn_contract import unfitted
from maxmargin.solvers import Solver, find_solver
from maxmargin.solvers.automatic.auto import Auto
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.block_coordinate.path_steps import GridFollower, PathFollower
from maxmargin.solvers.frame.held_out import HeldOut
from maxmargin.solvers.frame.interrupt import Interruptible
from maxmargin.trace import Status
from maxmargin.wording import quote

METHODS = ("approximate", "heuristic", "grid")


def regularization_path(
    model: Any,
    X: object = None,
    y: object = None,
    *,
    method: str = "approximate",
    eps: float | None = None,
    tol: float | None = None,
    kappa: float | None = None,
    lambda_min: float = 1e-5,
    lambda_max: float | None = None,
    C_min: float | None = None,
    lambdas: ArrayLike | None = None,
    solver: str | Solver | None = None,
    sample_weight: ArrayLike | None = None,
    lower: object = None,
    upper: object = None,
    X_dev: object = None,
    y_dev: object = None,
    max_passes: float = 1000,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    verbose: int = 0,
    callback: Callable[[Path], bool | None] | None = None,
    **data: object,
) -> Path:
    """Train for every strength of the regularization.

    Parameters
    ----------
    model
        An estimator, whose C and, but for its grid, tol are ignored, as is its solver; or a problem.
    X, y
        The training data of an estimator.
    method
        "approximate": for every lambda, weights whose objective is within eps of the optimum, proven. "heuristic": the
        same by the last known block gaps, with fewer calls of the oracle and without proof. "grid": the values of
        `lambdas` only, each from the one before. CRFs, and other models of smooth losses, have a grid only, solved by
        their own solver.
    eps
        Accuracy of the path, in units of the objective; by default 0.1, for a grid see `tol`.
    tol
        In place of eps, accuracy as a share of the objective, as the `tol` of estimators, which is the default of a
        grid (0.001 for a problem).
    kappa
        Accuracy of breakpoints, as a share of eps or tol: closer to 1 makes more of them, each cheaper; by default 0.9,
        for the heuristic path 0.8; a grid is solved to kappa * eps, or to tol.
    lambda_min
        Where to end.
    lambda_max
        Where to begin, in place of infinity; most breakpoints of a path lie where lambda is large.
    C_min
        The same as a C: the smallest one of interest, 1/(n lambda_max).
    lambdas
        The values for the grid, by default 2^15 down to 2^-15.
    solver
        A solver that keeps its dual point; by default BCFW with pairwise steps, gap sampling and a cache.
    sample_weight : (n,) weights of the examples
    lower, upper
        Bounds of the weights of a problem; an estimator has its own.
    X_dev, y_dev
        Held-out data: an estimator is scored on it at each breakpoint.
    max_passes
        Passes over the examples at one breakpoint.
    time_limit
        Seconds for the whole path.
    n_jobs, random_state
        See `Solver.solve`; by default those of the estimator.
    verbose
        Print each breakpoint.
    callback
        Called with the `Path` after each breakpoint; it ends if that returns True.
    **data
        Further arguments of the estimator's `fit`, such as lengths.

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
    if not isinstance(model, StructuredModel) and not supports(true_outputs, model):
        raise TypeError(f"model must be an estimator or a problem, not {quote(model)}.")
    check_choice("method", method, METHODS)
    accuracy, stretch = Accuracy(eps, tol, kappa), Stretch(lambda_min, lambda_max, C_min, lambdas)
    if (X_dev is None) != (y_dev is None):
        raise ValueError("X_dev and y_dev must be given together.")
    if isinstance(model, StructuredModel):
        if lower is not None or upper is not None:
            raise ValueError("lower and upper are for problems: an estimator has bounds of its own.")
        subject = _subject_of_model(unfitted(model), X, y, sample_weight, method, X_dev, y_dev, data)
        n_jobs = model.n_jobs if n_jobs is None else n_jobs
        random_state = as_seed(model.random_state) if random_state is None else random_state
    elif X_dev is not None:
        raise ValueError("X_dev and y_dev need an estimator, not a problem.")
    else:
        weights = None if sample_weight is None else np.asarray(sample_weight)
        subject = Subject(model, weights, lower, upper)
    problem, loss = bind(subject.problem), subject.loss
    n, is_grid = n_examples(problem), method == "grid"
    largest = stretch.find_largest(n)
    shared = {
        "sample_weight": subject.sample_weight,
        "lower": subject.lower,
        "upper": subject.upper,
        "max_passes": max_passes,
        "time_limit": time_limit,
        "n_jobs": n_jobs,
        "random_state": random_state,
    }
    follower = None
    if loss.name != "hinge":
        chosen = find_solver(model.solver if solver is None else solver, loss)
        options = {"tol": tol or model.tol, **solver_options(model)}
        points = GridFollower(problem, solver=chosen, loss=loss, options=options, **shared).follow_grid(stretch.grid)
    else:
        eps, kappa, tol = accuracy.choose(method, getattr(subject.model, "tol", 1e-3))
        keeps_dual = _path_solver(solver, method)
        follower = PathFollower(problem, solver=keeps_dual, eps=eps, kappa=kappa, tol=tol, **shared)
        points = follower.follow_grid(stretch.grid) if is_grid else follower.follow(lambda_min, largest)
    path = Path(n, is_grid, subject.model, subject.encoder)
    if verbose:
        print(path.header(), flush=True)
    with Interruptible(path):
        for point in points:
            above = None
            if follower is not None and not (is_grid or largest or len(path)):
                above = tuple(map(subject.back, (point.v, *follower.objective.bounds.dense(point.v.size))))
            path.add(point._replace(w=subject.back(point.w)), above)
            if subject.held_out is not None:
                path.scores.append(subject.held_out.score(path.weights(-1)))
            if verbose:
                print(path.line(), flush=True)
            if callback is not None and callback(path):
                path.interrupted = True
            if path.interrupted or point.status is Status.TIMEOUT:
                break
    path.is_complete = bool(follower is not None and not is_grid and follower.is_last(point))
    path.scores = np.array(path.scores)
    return path


class Subject(NamedTuple):
    """What a path is of: a problem, its weights and bounds, and the model, if there is one, that is trained on it."""

    problem: Any
    sample_weight: np.ndarray | None
    lower: Any
    upper: Any
    loss: BaseLoss = NAMED["hinge"]
    back: Callable[[np.ndarray], np.ndarray] = np.asarray  # from weights of solvers to those of the model
    model: StructuredModel | None = None
    encoder: Encoder | None = None
    held_out: HeldOut | None = None


def _subject_of_model(
    model: StructuredModel,
    X: object,
    y: object,
    sample_weight: ArrayLike | None,
    method: str,
    X_dev: object,
    y_dev: object,
    data: dict[str, Any],
) -> Subject:
    loss = find_loss(model)
    if loss.name != "hinge" and method != "grid":
        kind = type(model).__name__
        raise ValueError(f"A path needs a model of the hinge loss, which {kind} is not, or method='grid'.")
    for name in data:
        if name not in model._encoder_type.argument_names():
            raise TypeError(f"regularization_path takes no argument {name!r}, and {type(model).__name__} no such data.")
    task = prepare(model, X, y, sample_weight, **data)
    if task.weak is not None and task.weak.is_weak is not None:
        i = int(np.argmax(task.weak.is_weak))
        raise ValueError(f"A path needs one true output of each example, but of y[{i}] less is known.")
    held_out = read_held_out(model, task.encoder, X_dev, y_dev, {})
    known = task.problem, task.sample_weight, task.lower, task.upper
    return Subject(*known, loss, task.layout.to_model, model, task.encoder, held_out)


class Accuracy:
    """How close to the optima: eps, in units of the objective, or tol, as a share of it; kappa of it at breakpoints."""

    def __init__(self, eps: float | None, tol: float | None, kappa: float | None) -> None:
        _check_positive(eps=eps, tol=tol, kappa=kappa)
        for name, value in (("kappa", kappa), ("tol", tol)):
            if value is not None and value >= 1:
                raise ValueError(f"{name} must be less than 1, not {value}.")
        if eps is not None and tol is not None:
            raise ValueError("eps and tol must not both be given: tol is the accuracy as a share of the objective.")
        self.eps, self.tol, self.kappa = eps, tol, kappa

    def choose(self, method: str, tol: float) -> tuple[float, float, float]:
        """Eps, kappa and tol of a method, with the tol that a grid has by default."""
        if method == "grid" and self.eps is None:
            return 0.0, 1.0, self.tol or tol
        kappa = self.kappa or (0.8 if method == "heuristic" else 0.9)
        return (0.0, kappa, self.tol) if self.tol else (0.1 if self.eps is None else self.eps, kappa, 0.0)


class Stretch:
    """Which values of lambda: from the largest, which may be told as a C, to the smallest; or those of a grid."""

    def __init__(self, smallest: float, largest: float | None, C_min: float | None, lambdas: ArrayLike | None) -> None:
        _check_positive(lambda_min=smallest, lambda_max=largest, C_min=C_min)
        if largest is not None and C_min is not None:
            raise ValueError("lambda_max and C_min must not both be given: lambda_max is 1/(n C_min).")
        self.smallest, self.largest, self.C_min, self.lambdas = smallest, largest, C_min, lambdas

    def find_largest(self, n: int) -> float | None:
        """The value to begin at, of n examples; None for infinity."""
        largest = self.largest if self.C_min is None else 1 / (n * self.C_min)
        if largest is not None and largest < self.smallest:
            raise ValueError(f"lambda_max must be at least lambda_min, {self.smallest:g}, not {largest:g}.")
        return largest

    @property
    def grid(self) -> np.ndarray:
        """The values of a grid, falling."""
        lambdas = 2.0 ** np.arange(15, -16, -1) if self.lambdas is None else self.lambdas
        grid = np.sort(np.asarray(lambdas, np.float64))[::-1]
        if grid.ndim != 1 or not len(grid) or not (np.isfinite(grid).all() and (grid > 0).all()):
            raise ValueError("lambdas must be a list of positive numbers.")
        return grid


def _check_positive(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None:
            check_positive(name, value)


def _path_solver(solver: str | Solver | None, method: str) -> Solver:
    exact = method != "heuristic"
    if solver in (None, "auto", Auto()):
        return BCFW(steps="pairwise", sampling="gap", cache=50, exact_gaps=exact)
    solver = find_solver(solver, NAMED["hinge"])
    if not solver.keeps_dual:
        raise ValueError(f"A path needs a solver that keeps a dual point, such as BCFW, not {solver!r}.")
    if not exact and getattr(solver, "exact_gaps", True):
        raise ValueError(f"A heuristic path needs BCFW(..., exact_gaps=False), not {solver!r}.")
    return solver
