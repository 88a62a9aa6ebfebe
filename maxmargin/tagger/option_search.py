"""Which options of a tagger are good, by held-out sentences, and what each of them is worth.

Each change of the options is tried alone. Those that help are then made one after the other, the best first, and stay
if they help beside the others, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxmargin.checks import check_choice, check_positive
from maxmargin.estimators.chain_models import ChainCRF, ChainSVM
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.sklearn_contract import unfitted
from maxmargin.tagger.entity_scores import MARK_ENDS, has_segments
from maxmargin.tagger.word_tagger import Tagger, default_model
from maxmargin.text.corpus import Corpus, choose
from maxmargin.text.document_tags import folds_of
from maxmargin.text.schemes import LabelSequences
from maxmargin.text.token_features.windows import Sentences, WindowFeatures
from maxmargin.trace import Status

S = TypeVar("S")
T = TypeVar("T")

EFFORTS = {"quick": 600.0, "thorough": 7_200.0}  # seconds that a search takes at most
LEAST_GAIN = 0.001  # of the score: what helps less is left out
ROUGH = 0.01  # the tol of trials: scores hardly change below
LEAST_TIME = 1e-3  # seconds of a fit
STEP = 3.0  # between values of C
OUTSIDE_SOURCES = ("classes", "vectors", "gazetteers", "patterns")


class Trial(NamedTuple):
    """A change of options, and what came of it."""

    title: str
    options: dict[str, Any]  # as `Tagger.set_params` takes them
    gain: float  # of the score, made alone
    seconds: float  # of the training
    gain_beside: float | None = None  # that beside the changes that were made before
    is_kept: bool = False


@dataclass
class OptionSearch:
    """What a search of options has found.

    Attributes
    ----------
    tagger : Tagger
        With the options that are best, not fitted.
    options : dict
        What was changed, as `Tagger.set_params` takes it.
    trials : list of Trial
        The changes that were tried, those that were kept first.
    first_score, score : float
        That of the options that were given, and of those that are best.
    is_whole : bool
        Whether all changes were tried within the time.
    """

    tagger: Tagger
    first_score: float = 0.0
    score: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    is_whole: bool = True

    def as_dict(self) -> dict[str, object]:
        """Scores and trials in lists and dictionaries, without the values of options."""
        trials = [
            {name: value for name, value in trial._asdict().items() if name != "options"} for trial in self.trials
        ]
        return {"first_score": self.first_score, "score": self.score, "is_whole": self.is_whole, "trials": trials}

    def __str__(self) -> str:
        """A table of what each change is worth, in points."""
        rows = [("", "alone", "beside others", "kept", "seconds")]
        for trial in self.trials:
            beside = "" if trial.gain_beside is None else f"{100 * trial.gain_beside:+.2f}"
            kept = "yes" if trial.is_kept else "no"
            rows.append((trial.title, f"{100 * trial.gain:+.2f}", beside, kept, f"{trial.seconds:.1f}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                text.rjust(n) if k else text.ljust(n) for k, (text, n) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        scores = f"Held-out score {100 * self.first_score:.2f} as given, {100 * self.score:.2f} with what is kept."
        return "\n".join([*lines, scores])


def search_options(
    tagger: Tagger,
    X: Sentences,
    y: LabelSequences,
    X_dev: Sentences | None = None,
    y_dev: LabelSequences | None = None,
    *,
    effort: str = "quick",
    time_limit: float | None = None,
    callback: Callable[[str, float], object] | None = None,
) -> OptionSearch:
    """Find options of a tagger by held-out sentences: features, rare ones, the scheme inside, the model and its C.

    What the tagger knows from outside, such as word classes, is tried without, to tell what it is worth.

    Parameters
    ----------
    tagger
        With the options to begin with.
    X, y
        As in `Tagger.fit`.
    X_dev, y_dev
        Held-out sentences like X and y; by default a fifth of the documents is held out, in a thorough search each
        fifth in turn.
    effort : {"quick", "thorough"}
        How many changes to try: about ten fits, or forty.
    time_limit
        Seconds after which no further change is tried, and the fit of one ends, which then does not count; by default
        600, and 7,200 in a thorough search.
    callback
        Called with the title and the score of each trial; the search ends if that returns True.

    Returns
    -------
    OptionSearch
        Its `tagger` has the options that are best, and is to be fitted; printed, it is a table of what each is worth.

    Examples
    --------
    >>> from maxmargin import Tagger, search_options
    >>> X = [["Ann", "lives", "in", "Rome"], ["Bob", "ran"], ["Rome", "fell"], ["Ann", "ran"], ["Bob", "saw", "Rome"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"], ["B-LOC", "O"], ["B-PER", "O"], ["B-PER", "O", "B-LOC"]]
    >>> search = search_options(Tagger(), X, y, X, y)
    >>> search.score >= search.first_score
    True
    >>> tagger = search.tagger.fit(X, y)
    """
    check_choice("effort", effort, EFFORTS)
    if time_limit is not None:
        check_positive("time_limit", time_limit)
    X, y = X if isinstance(X, Sequence) else [*X], [*y]
    if (X_dev is None) != (y_dev is None):
        raise ValueError("X_dev and y_dev must be given together, or neither.")
    chosen, _ = tagger.prepare(y)  # which checks both
    model = default_model() if tagger.model is None else tagger.model
    begin = unfitted(tagger).set_params(features=chosen.features, model=unfitted(model))
    if not has_segments(model):
        begin.inside = chosen.inside
    held_out = (
        [*_halves(X, y)][: 1 if effort == "quick" else None]
        if X_dev is None or y_dev is None
        else [(X, y, X_dev if isinstance(X_dev, Sequence) else [*X_dev], [*y_dev])]
    )
    search = OptionSearch(begin)
    clock = _Clock(search, held_out, EFFORTS[effort] if time_limit is None else time_limit, callback)
    found = clock.score("as given", {})
    if found is None:
        return search
    search.first_score = search.score = found[0]
    for title, options in _changes(begin, X, chosen.scheme, effort):
        found = clock.score(title, options)
        if found is None:
            break
        search.trials.append(Trial(title, options, found[0] - search.first_score, found[1]))
    search.trials.sort(key=lambda trial: -trial.gain)
    _combine(search, clock)
    search.tagger = begin_with(begin, search.options)
    search.trials.sort(key=lambda trial: not trial.is_kept)
    return search


def begin_with(tagger: Tagger, options: dict[str, object]) -> Tagger:
    """A tagger of its own with these options, too."""
    return unfitted(tagger).set_params(**{name: unfitted(value) for name, value in options.items()})


def _combine(search: OptionSearch, clock: _Clock) -> None:
    """Make the changes that help, one after the other, as long as they do."""
    for k, trial in enumerate(search.trials):
        if trial.gain < LEAST_GAIN:
            return
        if "model" in trial.options and any(name.startswith("model__") for name in search.options):
            continue  # those are of the other model
        options = {**trial.options, **search.options, **trial.options}  # a model before what is changed of it
        title = " and ".join([*(other.title for other in search.trials if other.is_kept), trial.title])
        found = clock.score(title, options) if search.options else (search.first_score + trial.gain, trial.seconds)
        if found is None:
            return
        gain = found[0] - search.score
        is_kept = gain >= LEAST_GAIN
        search.trials[k] = trial._replace(gain_beside=gain, is_kept=is_kept)
        if is_kept:
            search.score, search.options = found[0], options


class _Clock:
    """Scores options, as long as there is time."""

    def __init__(
        self,
        search: OptionSearch,
        held_out: Sequence[tuple[Any, Any, Any, Any]],
        seconds: float,
        callback: Callable[[str, float], object] | None,
    ) -> None:
        self.search, self.held_out, self.callback = search, held_out, callback
        self.end, self.is_over = time.monotonic() + seconds, False

    def score(self, title: str, options: dict[str, Any]) -> tuple[float, float] | None:
        """The mean score of the options on held-out sentences, and the seconds of a training; None, if time is up."""
        began, scores = time.monotonic(), list[float]()
        if self.is_over or began >= self.end:
            self.search.is_whole = False
            return None
        for X, y, X_dev, y_dev in self.held_out:
            tagger = begin_with(self.search.tagger, options)
            left, own = max(self.end - time.monotonic(), LEAST_TIME), tagger.model.time_limit
            limit = left if own is None else min(left, own)
            tagger.set_params(model__tol=max(ROUGH, tagger.model.tol), model__time_limit=limit)
            with without_warning():
                tagger.fit(X, y)
            if tagger.status_ is Status.TIMEOUT and limit == left:  # what it would be worth, nobody knows
                self.is_over, self.search.is_whole = True, False
                if options:
                    return None
            scores.append(tagger.score(X_dev, y_dev))
            self.is_over |= tagger.status_ is Status.INTERRUPTED
        score = float(np.mean(scores))
        self.is_over |= bool(self.callback is not None and self.callback(title, score))
        return score, (time.monotonic() - began) / len(scores)


def _halves(X: Sequence[S], y: Sequence[T]) -> Iterator[tuple[list[S], list[T], list[S], list[T]]]:
    """Sentences to train on and those held out, with their tags: each fifth of the documents in turn."""
    for kept, held in folds_of(X):
        yield choose(X, kept), [y[i] for i in kept], choose(X, held), [y[i] for i in held]


def _changes(
    tagger: Tagger, X: Sequence[object], scheme: str | None, effort: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The changes to try, with their titles; what the tagger has already is left out."""
    features, model = tagger.features, tagger.model
    if isinstance(features, WindowFeatures):
        for name in OUTSIDE_SOURCES:
            if getattr(features, name):
                yield f"without {name}", {f"features__{name}": None}
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("affixes of up to 5", {"affixes": 5}),
            ("sequences of 4 characters", {"char_ngrams": 4}),
        ]
        if isinstance(X, Corpus):
            wanted.append(("spelling elsewhere", {"elsewhere": True}))
        if effort == "thorough":
            wanted += [
                ("affixes of up to 3", {"affixes": 3}),
                ("affixes of neighbours", {"near_affixes": 3}),
                ("window of 1", {"window": 1}),
                ("window of 3", {"window": 3}),
                ("single words", {"word_ngrams": 1}),
                ("sequences of 3 words", {"word_ngrams": 3}),
            ]
        for title, options in wanted:
            if any(getattr(features, name) != value for name, value in options.items()):
                yield title, {f"features__{name}": value for name, value in options.items()}
    if scheme is not None and scheme not in MARK_ENDS and not has_segments(model):
        yield ("IOBES inside", {"inside": "IOBES"}) if tagger.inside is None else (f"{scheme} inside", {"inside": None})
    if model.n_hashed is None:
        yield f"min_count {model.min_count + 1}", {"model__min_count": model.min_count + 1}
    for C in (model.C * STEP, model.C / STEP):
        yield f"C {C:.3g}", {"model__C": C}
    if effort == "thorough":
        yield f"C {model.C * STEP**2:.3g}", {"model__C": model.C * STEP**2}
        if scheme is not None and isinstance(X, Corpus) and not tagger.two_stages:
            yield "two stages", {"two_stages": True}
        other = ChainSVM(only_observed=True) if isinstance(model, ChainCRF) else default_model()
        shared = {name: getattr(model, name) for name in ("min_count", "n_jobs", "random_state", "n_hashed")}
        yield "SVM" if isinstance(model, ChainCRF) else "CRF", {"model": other.set_params(**shared)}
