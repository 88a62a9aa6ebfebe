"""The estimator of sklearn-crfsuite, trained by the solvers of this library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import numpy as np

from maxmargin.checks import check_choice, check_cost, check_count, check_positive
from maxmargin.crfsuite.algorithms import FrequentCRF, FrequentSVM, TrainingLog, flattens, select_edges
from maxmargin.crfsuite.learned_weights import Label, LearnedWeights
from maxmargin.crfsuite.metrics import flat_accuracy_score
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.persist import Location, check_writable, load, register, save
from maxmargin.sklearn_contract import Estimator
from maxmargin.solvers.batch.lbfgs import LBFGS
from maxmargin.solvers.block_coordinate.bcfw import BCFW
from maxmargin.solvers.stochastic.perceptron import Perceptron
from maxmargin.wording import quote

Item = Mapping[str, Any] | Sequence[str]  # the features of a position
Items = Iterable[Sequence[Item]]
Labels = Sequence[Sequence[Label]]
Value = TypeVar("Value")

ITERATIONS = {"l2sgd": 1000, "ap": 100, "pa": 100}  # the defaults there; L-BFGS has no limit
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


@dataclass(eq=False, repr=False)
class CRF(LearnedWeights, Estimator):
    """A drop-in for ``sklearn_crfsuite.CRF``: its arguments, methods and attributes.

    The same features, ``c1`` and ``c2`` give the same objective, c1 ||w||_1 + c2 ||w||^2 - sum_i log p(y_i), and so the
    same model. `model_` is the model behind it, a `ChainCRF` or `ChainSVM`, with the certificate of the fit.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa"}, default="lbfgs"
        L-BFGS, or OWL-QN if ``c1`` is not 0; stochastic gradients; the averaged perceptron. "pa" trains the model that
        passive-aggressive steps approach, a structural SVM with C = ``c``, by block-coordinate Frank-Wolfe. "arow" is
        refused, as it has no counterpart: use "ap", or "lbfgs".
    min_freq : float, default=0
        Leave out pairs of an attribute and a label, and of two labels, that occur less often.
    all_possible_states, all_possible_transitions : bool, default=False
        Have weights for pairs of an attribute and a label, and of two labels, that do not occur, too.
    c1, c2 : float, default=0 and 1
        Coefficients of the L1 and L2 norms; "l2sgd" takes ``c2`` only, "ap" and "pa" neither.
    max_iterations : int
        Passes over the data; by default 1,000 for "l2sgd", 100 for "ap" and "pa", no limit for "lbfgs".
    num_memories : int
        Steps that L-BFGS remembers; by default as many as `LBFGS` does, for fewer passes.
    epsilon : float, default=1e-5
        The relative duality gap at which to stop (there: a bound of the gradient).
    period, delta : int and float, default=10 and 1e-5
        "lbfgs" stops, too, when the loss has fallen by at most a share ``delta`` in ``period`` certificates.
    c : float, default=1
        The C of "pa".
    pa_type, error_sensitive : default=1 and True
        Other values are refused: use a large ``c`` in place of ``pa_type=0``.
    averaging : bool, default=True
        Whether "pa" returns the average of its iterates.
    linesearch, max_linesearch, calibration_eta, calibration_rate, calibration_samples, calibration_candidates,
    calibration_max_trials, variance, gamma
        Without effect: steps are found otherwise, which changes the way to the optimum, not the optimum.
    verbose : bool, default=False
        Print the trace.
    model_filename : str
        A file to which `fit` writes the model and from which, before any fit, it is read: one of this library, not of
        CRFsuite.
    keep_tempfiles, trainer_cls
        The former is without effect, as there are none; the latter is refused.
    order : {1, 2}, default=1
        Not there: that of `ChainCRF`.

    Examples
    --------
    >>> from maxmargin.crfsuite import CRF
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> crf = CRF(c1=0.1, c2=0.1, all_possible_transitions=True).fit(X, [["DET", "NOUN"], ["NOUN", "VERB"]])
    >>> crf.predict_single([{"word": "the"}, {"word": "cat"}])
    ['DET', 'NOUN']
    >>> sorted(crf.state_features_)
    [('word:bark', 'VERB'), ('word:dog', 'NOUN'), ('word:dogs', 'NOUN'), ('word:the', 'DET')]
    """

    algorithm: Any = None
    min_freq: Any = None
    all_possible_states: Any = None
    all_possible_transitions: Any = None
    c1: Any = None
    c2: Any = None
    max_iterations: Any = None
    num_memories: Any = None
    epsilon: Any = None
    period: Any = None
    delta: Any = None
    linesearch: Any = None
    max_linesearch: Any = None
    calibration_eta: Any = None
    calibration_rate: Any = None
    calibration_samples: Any = None
    calibration_candidates: Any = None
    calibration_max_trials: Any = None
    pa_type: Any = None
    c: Any = None
    error_sensitive: Any = None
    averaging: Any = None
    variance: Any = None
    gamma: Any = None
    verbose: Any = False
    model_filename: Any = None
    keep_tempfiles: Any = False
    trainer_cls: Any = None
    order: Any = None

    # --- training -------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Items,
        y: Labels,
        X_dev: Items | None = None,
        y_dev: Labels | None = None,
        *,
        edge_features: Items | None = None,
        edge_features_dev: Items | None = None,
    ) -> Self:
        """Train on sequences.

        Parameters
        ----------
        X : list of lists of feature dictionaries, or of lists of strings
        y : list of lists of labels
        X_dev, y_dev
            Held-out sequences: the share of labels that are right is in the last entry of `training_log_`.
        edge_features, edge_features_dev
            Not there: of each sequence, the features of its transitions, as those of positions, one fewer than these;
            they have weights for two labels each, as the B templates of CRF++ and Wapiti. Predictions then need them.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        model = self._new_model()
        if self.model_filename is not None:
            check_writable(self.model_filename)  # or an error, before training
        for name, value in (("X", X), ("y", y)):
            if not isinstance(value, Iterable):
                raise TypeError(f"{name} must be a list of sequences, not {quote(value)}.")
        X, y = [*X], [*y]
        kept = [*range(len(X))]
        if len(X) == len(y):
            kept = [i for i in kept if len(X[i]) or len(y[i])]  # as CRFsuite takes empty ones
            y = [y[i] for i in kept]
        data = select_edges(edge_features, len(X), kept)
        X = [X[i] for i in kept]
        stops = flattens(_or(self.period, 10), _or(self.delta, 1e-5)) if self._algorithm == "lbfgs" else None
        with without_warning():  # CRFsuite gives none
            model.fit(X, y, callback=stops, **data)
        trace, n = model.trace_, len(X)
        rows = zip((n * trace.primal).tolist(), trace.seconds.tolist(), strict=True)
        log = TrainingLog(
            [{"num": k, "loss": loss, "time": seconds} for k, (loss, seconds) in enumerate(rows, start=1)]
        )
        seen = dict.fromkeys(label for labels in y for label in labels)
        self.model_, self.training_log_, self._labels = model, log, [*seen]
        if self.model_filename is not None:
            self.save(self.model_filename)
        if X_dev is not None and y_dev is not None:
            log.last_iteration["item_accuracy_float"] = self.score(X_dev, y_dev, edge_features=edge_features_dev)
        return self

    @property
    def _algorithm(self) -> str:
        return _or(self.algorithm, "lbfgs")

    def _new_model(self) -> ChainCRF | ChainSVM:
        """The model with these arguments, which are checked."""
        algorithm, c1, c2 = self._algorithm, _or(self.c1, 0.0), _or(self.c2, 1.0)
        self._check(algorithm)
        min_freq = _or(self.min_freq, 0)
        options: dict[str, Any] = {
            "fit_intercept": False,
            "only_observed": _choose_observed(
                # a pair that does not occur is less frequent than any positive `min_freq`
                not self.all_possible_states or min_freq > 0,
                not self.all_possible_transitions or min_freq > 0,
            ),
            "least_observed": float(min_freq),
            "order": _or(self.order, 1),
            "tol": _or(self.epsilon, 1e-5),
            "max_passes": _or(self.max_iterations, ITERATIONS.get(algorithm, 1e6)),
            "random_state": 0,
            "verbose": int(bool(self.verbose)),
        }
        if algorithm == "ap":
            return FrequentSVM(solver=Perceptron(), **options)
        if algorithm == "pa":
            averaging = bool(_or(self.averaging, True))
            return FrequentSVM(C=_or(self.c, 1.0), solver=BCFW(averaging=averaging), **options)
        solver = "sgd" if algorithm == "l2sgd" else LBFGS(memory=self.num_memories)
        strength = c1 + 2 * c2
        C, l1_ratio = (1 / strength, c1 / strength) if strength else (np.inf, 0.0)
        return FrequentCRF(C=C, l1_ratio=l1_ratio, solver=solver, **options)

    def _check(self, algorithm: str) -> None:
        if algorithm == "arow":
            raise ValueError(
                "algorithm='arow' has no counterpart here: use 'ap', which learns as fast, or 'lbfgs', which is mostly "
                "better."
            )
        check_choice("algorithm", algorithm, ("lbfgs", "l2sgd", "ap", "pa"))
        for name in ("c1", "c2", "min_freq"):
            check_cost(name, _or(getattr(self, name), 0))
        for name in ("epsilon", "delta", "c"):
            check_positive(name, _or(getattr(self, name), 1))
        for name in ("max_iterations", "num_memories", "period", "max_linesearch"):
            check_count(name, _or(getattr(self, name), 1))
        check_choice("linesearch", self.linesearch, (None, *LINE_SEARCHES))
        if self.c1 and algorithm != "lbfgs":
            raise ValueError(f"c1 needs algorithm='lbfgs', not {algorithm!r}.")
        if algorithm == "pa" and _or(self.pa_type, 1) != 1:
            instead = "use 1 in place of 2, and 1 with a large c in place of 0, which knows no limit of steps"
            raise ValueError(f"pa_type must be 1, not {quote(self.pa_type)}: {instead}.")
        if algorithm == "pa" and not _or(self.error_sensitive, True):
            raise ValueError("error_sensitive must be True: leave it out, as margins grow with the number of errors.")
        if self.trainer_cls is not None:
            raise ValueError("trainer_cls must be None: there is no pycrfsuite.Trainer.")

    # --- predictions ----------------------------------------------------------------------------------------------

    def _fitted(self) -> ChainCRF | ChainSVM:
        if not hasattr(self, "model_") and self.model_filename is not None:
            saved = load(self.model_filename)
            if not isinstance(saved, CRF) or not hasattr(saved, "model_"):
                raise ValueError(f"{self.model_filename!r} holds no fitted CRF.")
            self._take_over(**saved._pack()["fitted"])
        if not hasattr(self, "model_"):
            raise AttributeError("This CRF is not fitted yet: call fit first.")
        return self.model_

    def save(self, path: Location) -> None:
        """Write the CRF to a file, from which `maxmargin.load` makes it again."""
        save(self, path)

    def _take_over(self, model: Any, log: Any, classes: Any) -> Self:
        """Become a CRF that was fitted."""
        if not (isinstance(model, FrequentCRF | FrequentSVM) and sorted(classes) == model.classes_.tolist()):
            raise ValueError("what was learned is no model of these labels")
        self.model_, self.training_log_, self._labels = model, TrainingLog([dict(entry) for entry in log]), [*classes]
        return self

    def _pack(self) -> dict[str, Any]:
        """What is saved: constructor arguments and, of a fitted CRF, what it has learned."""
        fitted = None
        if hasattr(self, "model_"):
            fitted = {"model": self.model_, "log": self.training_log_.iterations, "classes": self.classes_}
        return {**self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def _unpack(cls, fitted: Any, **arguments: object) -> CRF:
        """The CRF of what was saved."""
        return cls(**arguments) if fitted is None else cls(**arguments)._take_over(**fitted)

    def _of_each(self, X: Items, edge_features: Items | None, predict: Callable[..., Sequence[list]]) -> np.ndarray:
        """What a model predicts for each sequence; an empty list for those that are empty."""
        X = [*X]
        full = [i for i, x in enumerate(X) if len(x)]
        data = select_edges(edge_features, len(X), full)
        found = np.empty(len(X), object)
        found[:] = [[] for _ in X]
        for i, value in zip(full, predict([X[i] for i in full], **data) if full else [], strict=True):
            found[i] = value
        return found

    def predict(self, X: Items, *, edge_features: Items | None = None) -> np.ndarray:
        """The labels of sequences: an array of lists."""
        model = self._fitted()
        return self._of_each(X, edge_features, lambda *full, **data: [y.tolist() for y in model.predict(*full, **data)])

    def predict_single(self, xseq: Sequence[Item], *, edge_features: Sequence[Item] | None = None) -> list[Label]:
        """The labels of one sequence."""
        return self.predict([xseq], edge_features=None if edge_features is None else [edge_features])[0]

    def predict_marginals(self, X: Items, *, edge_features: Items | None = None) -> np.ndarray:
        """The probabilities of labels: an array of lists with a dictionary for each position."""
        model = self._fitted()
        order = [model.classes_.tolist().index(label) for label in self.classes_]

        def name_columns(*full: object, **data: Any) -> list[list[dict[Label, float]]]:
            tables = [table[:, order].tolist() for table in model.predict_marginals(*full, **data)]
            return [[dict(zip(self.classes_, row, strict=True)) for row in table] for table in tables]

        return self._of_each(X, edge_features, name_columns)

    def predict_marginals_single(
        self, xseq: Sequence[Item], *, edge_features: Sequence[Item] | None = None
    ) -> list[dict[Label, float]]:
        """The probabilities of the labels of one sequence."""
        return self.predict_marginals([xseq], edge_features=None if edge_features is None else [edge_features])[0]

    def score(self, X: Items, y: Labels, *, edge_features: Items | None = None) -> float:
        """The share of labels that are right."""
        return flat_accuracy_score(y, self.predict(X, edge_features=edge_features))

    # --- what was learned -----------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Label]:
        """The labels, in the order in which they occur."""
        self._fitted()
        return self._labels

    @property
    def size_(self) -> int:
        """The bytes of the file that `save` writes."""
        self._fitted()
        with TemporaryDirectory() as folder:
            path = Path(folder, "crf.model")
            self.save(path)
            return path.stat().st_size


register(CRF, get=CRF._pack, make=CRF._unpack, name="crfsuite.CRF")


def _choose_observed(states: bool, transitions: bool) -> bool | str:
    """The pairs that have a weight only if they occur, as `only_observed` of models."""
    return states if states == transitions else "features" if states else "transitions"


def _or(value: Value | None, default: Value) -> Value:
    return default if value is None else value
