"""The trainer of python-crfsuite, by the solvers of this library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from maxmargin.crfsuite.algorithms import TrainingLog
from maxmargin.crfsuite.crf import CRF, ITERATIONS
from maxmargin.pycrfsuite.item_sequence import as_items
from maxmargin.wording import quote

ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
UNLIMITED = 2**31 - 1

# What parameters are called by `CRF`, their types, and what they are, in the order in which CRFsuite has them.
PARAMETERS: dict[str, tuple[str, type, str]] = {
    "feature.minfreq": ("min_freq", float, "The minimum frequency of features."),
    "feature.possible_states": ("all_possible_states", bool, "Have weights for all pairs of attributes and labels."),
    "feature.possible_transitions": ("all_possible_transitions", bool, "Have weights for all pairs of labels."),
    "c1": ("c1", float, "Coefficient for L1 regularization."),
    "c2": ("c2", float, "Coefficient for L2 regularization."),
    "max_iterations": ("max_iterations", int, "The maximum number of passes over the data."),
    "num_memories": ("num_memories", int, "The number of steps that L-BFGS remembers."),
    "epsilon": ("epsilon", float, "The relative duality gap at which to stop."),
    "period": ("period", int, "The number of certificates over which the fall of the loss is looked at."),
    "delta": ("delta", float, "The share of the loss by which it must fall in a period."),
    "linesearch": ("linesearch", str, "Without effect."),
    "max_linesearch": ("max_linesearch", int, "Without effect."),
    "calibration.eta": ("calibration_eta", float, "Without effect."),
    "calibration.rate": ("calibration_rate", float, "Without effect."),
    "calibration.samples": ("calibration_samples", float, "Without effect."),
    "calibration.candidates": ("calibration_candidates", int, "Without effect."),
    "calibration.max_trials": ("calibration_max_trials", int, "Without effect."),
    "type": ("pa_type", int, "The strategy of passive-aggressive steps: 1."),
    "c": ("c", float, "The aggressiveness of passive-aggressive steps."),
    "error_sensitive": ("error_sensitive", bool, "Whether margins grow with the number of errors."),
    "averaging": ("averaging", bool, "Whether weights are averaged."),
}
SHARED = {"feature.minfreq": 0.0, "feature.possible_states": False, "feature.possible_transitions": False}
DEFAULTS: dict[str, dict[str, Any]] = {  # by algorithm
    "lbfgs": {
        **SHARED,
        "c1": 0.0,
        "c2": 1.0,
        "max_iterations": UNLIMITED,
        "num_memories": 6,
        "epsilon": 1e-5,
        "period": 10,
        "delta": 1e-5,
        "linesearch": "MoreThuente",
        "max_linesearch": 20,
    },
    "l2sgd": {
        **SHARED,
        "c2": 1.0,
        "max_iterations": ITERATIONS["l2sgd"],
        "period": 10,
        "delta": 1e-6,
        "calibration.eta": 0.1,
        "calibration.rate": 2.0,
        "calibration.samples": 1000.0,
        "calibration.candidates": 10,
        "calibration.max_trials": 20,
    },
    "ap": {**SHARED, "max_iterations": ITERATIONS["ap"], "epsilon": 0.0},
    "pa": {
        **SHARED,
        "type": 1,
        "c": 1.0,
        "error_sensitive": True,
        "averaging": True,
        "max_iterations": ITERATIONS["pa"],
        "epsilon": 0.0,
    },
}


class Trainer:
    """Trains models of sequences, a drop-in for ``pycrfsuite.Trainer``.

    Files that it writes are of this library: `Tagger` reads them, and those of CRFsuite, but CRFsuite does not.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa"}
        As of `maxmargin.crfsuite.CRF`; "arow" is refused.
    params
        Parameters by name, as in `set_params`.
    verbose
        Whether to call the methods `on_...`, which print the log.

    Attributes
    ----------
    logparser : TrainingLog
        The iterations of the last training, and `last_iteration`.

    Examples
    --------
    >>> from maxmargin.pycrfsuite import Trainer
    >>> trainer = Trainer(params={"c1": 0.1, "c2": 0.01}, verbose=False)
    >>> trainer.append([["walk"], ["shop"]], ["Sunny", "Rainy"])
    >>> trainer.train("weather.crfsuite")
    >>> trainer.logparser.last_iteration["num"] > 0, trainer.get("c1")
    (True, 0.1)
    """

    logparser: TrainingLog | None = None

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, object] | None = None, verbose: bool = True
    ) -> None:
        self.verbose = verbose
        self.clear()
        self.select("lbfgs" if algorithm is None else algorithm)
        if params is not None:
            self.set_params(params)

    # --- data -----------------------------------------------------------------------------------------------------

    def append(self, xseq: Iterable[object], yseq: Sequence[str], group: int = 0) -> None:
        """Add a sequence: its items and its labels, in a group, which `train` may hold out."""
        items, labels = as_items(xseq), [*map(str, yseq)]
        if len(items) != len(labels):
            raise ValueError(f"The numbers of items and labels differ: |x| = {len(items)}, |y| = {len(labels)}")
        self._examples.append((items, labels, int(group)))

    def clear(self) -> None:
        """Remove all sequences."""
        self._examples: list[tuple[list[dict[str, float]], list[str], int]] = []

    # --- parameters -----------------------------------------------------------------------------------------------

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm, with its default parameters."""
        name = ALIASES.get(algorithm, algorithm)
        if name == "arow":
            CRF(algorithm=name)._new_model()  # which says what there is in its place
        if name not in DEFAULTS or type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm, self._given = name, dict[str, Any]()

    def params(self) -> list[str]:
        """The names of the parameters of the algorithm."""
        return [*DEFAULTS[self._algorithm]]

    def set(self, name: str, value: Any) -> None:
        """Set a parameter: a number, a bool or a text of one."""
        self._check(name)
        kind = PARAMETERS[name][1]
        try:
            self._given[name] = bool(int(value)) if kind is bool else kind(value)
        except (TypeError, ValueError):
            raise ValueError(f"The parameter {name} must be a {kind.__name__}, not {quote(value)}.") from None

    def get(self, name: str) -> Any:
        """The value of a parameter."""
        self._check(name)
        return self._given.get(name, DEFAULTS[self._algorithm][name])

    def set_params(self, params: Mapping[str, object]) -> None:
        """Set parameters by name."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """The values of all parameters, by name."""
        return {name: self.get(name) for name in self.params()}

    def help(self, name: str) -> str:
        """What a parameter is."""
        self._check(name)
        return PARAMETERS[name][2]

    def _check(self, name: str) -> None:
        if name not in DEFAULTS[self._algorithm]:
            raise ValueError(f"Parameter not found: {name}")

    # --- training -------------------------------------------------------------------------------------------------

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the sequences that were appended, and write the model to a file, unless its name is empty.

        Those of the group `holdout` are left out, and scored in the end.
        """
        given = {PARAMETERS[name][0]: value for name, value in self._given.items()}
        crf = CRF(algorithm=self._algorithm, model_filename=os.fspath(model) or None, **given)
        kept = [(x, y) for x, y, group in self._examples if group != holdout]
        held_out = [(x, y) for x, y, group in self._examples if group == holdout]
        if not kept:
            raise ValueError("There are no sequences to train on: call append first.")
        self._tell(self.on_start, f"Training by {self._algorithm} on {len(kept)} sequences\n")
        dev: dict[str, Any] = {}
        if held_out:
            dev = {"X_dev": [x for x, _ in held_out], "y_dev": [y for _, y in held_out]}
        crf.fit([x for x, _ in kept], [y for _, y in kept], **dev)
        self._report(crf)

    def _report(self, crf: CRF) -> None:
        self.logparser = crf.training_log_
        self._tell(self.on_featgen_end, f"Number of features: {crf.model_._w.size}\n")
        self._tell(self.on_prepared, "\n")
        for info in self.logparser.iterations:
            lines = [f"***** Iteration #{info['num']} *****", f"Loss: {info['loss']:f}", f"Seconds: {info['time']:f}"]
            if "item_accuracy_float" in info:
                lines.append(f"Item accuracy: {info['item_accuracy_float']:f}")
            if self.verbose:
                self.on_iteration("\n".join([*lines, "", ""]), info)
        self._tell(self.on_optimization_end, f"Stopped: {crf.model_.status_.value}\n")
        self._tell(self.on_end, "\n")

    def _tell(self, method: Callable[..., None], log: str) -> None:
        if self.verbose:
            method(log)

    def message(self, message: str) -> None:
        """Print a line of the log."""
        print(message, end="")

    def on_start(self, log: str) -> None:
        """Called before the training."""
        self.message(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Never called: features are found in a moment."""
        self.message(log)

    def on_featgen_end(self, log: str) -> None:
        """Called with the number of features."""
        self.message(log)

    def on_prepared(self, log: str) -> None:
        """Called before the iterations."""
        self.message(log)

    def on_prepare_error(self, log: str) -> None:
        """Never called: what is wrong is raised."""
        self.message(log)

    def on_iteration(self, log: str, info: dict[str, object]) -> None:
        """Called with the number, loss and time of each iteration, after the training."""
        self.message(log)

    def on_optimization_end(self, log: str) -> None:
        """Called with what ended the training."""
        self.message(log)

    def on_end(self, log: str) -> None:
        """Called after the training."""
        self.message(log)
