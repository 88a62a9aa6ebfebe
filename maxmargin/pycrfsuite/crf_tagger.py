"""The tagger of python-crfsuite: labels, probabilities and weights of a model in a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from maxmargin import inference
from maxmargin.crfsuite.crf import CRF
from maxmargin.persist import load
from maxmargin.pycrfsuite.item_sequence import as_items
from maxmargin.pycrfsuite.model_files import is_crfsuite, model_of, parse
from maxmargin.wording import name_type


@dataclass
class ParsedDump:
    """What a model holds: weights by the names of attributes and labels, and their numbers."""

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)


class Tagger:
    """Labels sequences by a model in a file: one of `Trainer`, or one that CRFsuite has written.

    Examples
    --------
    >>> from maxmargin.pycrfsuite import Tagger, Trainer
    >>> trainer = Trainer(verbose=False)
    >>> trainer.append([{"word": "the"}, {"word": "dog"}], ["DET", "NOUN"])
    >>> trainer.train("tagger.crfsuite")
    >>> tagger = Tagger()
    >>> with tagger.open("tagger.crfsuite"):
    ...     tagger.tag([{"word": "the"}, {"word": "cat"}]), tagger.marginal("DET", 0) > 0.5
    (['DET', 'NOUN'], True)
    """

    def __init__(self) -> None:
        self._crf: CRF | None = None
        self._header: dict[str, str] = {}
        self._items: list[dict[str, float]] | None = None
        self._marginals: Any = None  # of the current items

    # --- models ---------------------------------------------------------------------------------------------------

    def open(self, name: str | os.PathLike[str]) -> closing[Tagger]:
        """Open a model file; the result closes it at the end of a with block."""
        content = Path(name).read_bytes()
        return self._open(content, os.fspath(name))

    def open_inmemory(self, value: bytes) -> closing[Tagger]:
        """Open a model that has been read from a file."""
        if not isinstance(value, bytes):
            raise TypeError(f"value must be bytes, not {name_type(value)}.")
        return self._open(value, "the model in memory")

    def _open(self, content: bytes, name: str) -> closing[Tagger]:
        if is_crfsuite(content):
            found = parse(content, name)
            crf, header = model_of(found), found.header
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model")
                path.write_bytes(content)
                try:
                    crf, header = load(path), {"size": str(len(content)), "type": "maxmargin"}
                except ValueError as error:
                    raise ValueError(str(error).replace(str(path), name)) from None
        if not isinstance(crf, CRF) or not hasattr(crf, "model_"):
            raise ValueError(f"{name!r} holds a {type(crf).__name__}, not a model of a Trainer.")
        self._crf, self._header, self._items = crf, header, None
        return closing(self)

    def close(self) -> None:
        """Close the model."""
        self._crf = self._items = None

    @property
    def _model(self) -> CRF:
        if self._crf is None:
            raise ValueError("The tagger is not opened: call open first.")
        return self._crf

    # --- predictions ----------------------------------------------------------------------------------------------

    def labels(self) -> list[str]:
        """The labels of the model, in the order in which they occurred in training."""
        return [*map(str, self._model.classes_)]

    def set(self, xseq: Iterable[object]) -> None:
        """Set the sequence that `tag`, `probability` and `marginal` are of."""
        items = as_items(xseq)
        if items is not self._items:
            self._items, self._marginals = items, None

    def _current(self) -> list[dict[str, float]]:
        if self._items is None:
            raise ValueError("There is no sequence: call set or tag first.")
        return self._items

    def tag(self, xseq: Iterable[object] | None = None) -> list[str]:
        """The labels of a sequence, or of the one that was set before."""
        model = self._model
        if xseq is not None:
            self.set(xseq)
        return [str(label) for label in model.predict_single(self._current())]

    def probability(self, yseq: Sequence[str]) -> float:
        """The probability of labels of the current sequence as a whole."""
        model, items = self._model.model_, self._current()
        if len(yseq) != len(items):
            raise ValueError(f"yseq must have {len(items)} labels, as the sequence has items, not {len(yseq)}.")
        self._check_labels(yseq)
        if not items:
            return 1.0
        problem = model._problem_with_truth([items], [[*yseq]])
        return float(np.exp(inference.log_likelihoods(problem, model._w, model.n_jobs)[0]))

    def marginal(self, y: str, pos: int) -> float:
        """The probability of a label at a position of the current sequence."""
        items = self._current()
        self._check_labels([y])
        if not 0 <= pos < len(items):
            raise ValueError(f"pos must be from 0 to {len(items) - 1}, not {pos!r}.")
        if self._marginals is None:
            self._marginals = self._model.predict_marginals_single(items)
        return self._marginals[pos][y]

    def _check_labels(self, labels: Iterable[str]) -> None:
        known = {*self.labels()}
        for label in labels:
            if label not in known:
                raise ValueError(f"{label!r} is not a label of the model.")

    # --- what was learned -----------------------------------------------------------------------------------------

    def info(self) -> ParsedDump:
        """The weights of the model, by name."""
        crf = self._model
        numbers = {str(name): str(k) for k, name in enumerate(crf.model_.feature_names_in_.tolist())}
        return ParsedDump(
            header={**self._header, "num_labels": str(len(crf.classes_)), "num_attrs": str(len(numbers))},
            labels={str(label): str(k) for k, label in enumerate(crf.classes_)},
            attributes=numbers,
            transitions=_by_name(crf.transition_features_),
            state_features=_by_name(crf.state_features_),
        )

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, or to standard output."""
        found = self.info()
        if filename is None:
            _write_dump(found, sys.stdout)
            return
        with open(filename, "w", encoding="utf-8") as file:
            _write_dump(found, file)


def _by_name(weights: Mapping[tuple[Any, Any], float]) -> dict[tuple[str, str], float]:
    return {(str(source), str(target)): weight for (source, target), weight in weights.items()}


def _write_dump(found: ParsedDump, file: TextIO) -> None:
    """As `crfsuite dump` writes it."""
    parts: dict[str, list[str]] = {
        "FILEHEADER": [f"{name}: {value}" for name, value in found.header.items()],
        "LABELS": [f"{number}: {name}".rjust(5) for name, number in found.labels.items()],
        "ATTRIBUTES": [f"{number}: {name}".rjust(5) for name, number in found.attributes.items()],
        "TRANSITIONS": [f"(1) {a} --> {b}: {w:f}" for (a, b), w in found.transitions.items()],
        "STATE_FEATURES": [f"(0) {a} --> {b}: {w:f}" for (a, b), w in found.state_features.items()],
    }
    for title, lines in parts.items():
        file.write("".join([f"{title} = {{\n", *(f"  {line}\n" for line in lines), "}\n\n"]))
