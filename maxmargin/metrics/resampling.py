"""How sure scores are: bootstrap intervals, and whether two taggers differ, by drawing sentences again and again."""

from __future__ import annotations

from operator import eq
from typing import NamedTuple

import numpy as np

from maxmargin.checks import check_count
from maxmargin.display.markup import table, tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.metrics.labels import check_pairs
from maxmargin.text.schemes import find_entities

LEVEL = 0.95  # of intervals
CHUNK = 1 << 22  # numbers drawn at a time
N_DRAWS = 1000


class Interval(NamedTuple):
    """A score, and where 95 % of the scores of as many sentences, drawn from these, are."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.2f} ({100 * self.low:.2f} to {100 * self.high:.2f})"


class Comparison(NamedTuple):
    """Two taggers on the same sentences.

    Attributes
    ----------
    first, second
        The `Interval` of the score of each.
    difference
        That of the second less the first, on the same draws of sentences.
    p_value
        How often a difference at least as large is seen where the tags of sentences are swapped at random.
    """

    first: Interval
    second: Interval
    difference: Interval
    p_value: float

    def tell(self, first: str = "first", second: str = "second", outputs: str = "tags") -> str:
        """A table and a sentence, with these names of the two, and of what they find."""
        rows = [(first, self.first), (second, self.second), ("difference", self.difference)]
        width = max(len(name) for name, _ in rows)
        told = "\n".join(f"  {name:{width}}  {interval}" for name, interval in rows)
        chance = f"{self.p_value:.2%} of cases where the {outputs} of sentences are swapped at random"
        return f"{told}\n  A difference as large is seen in {chance}."

    def __str__(self) -> str:
        return self.tell()

    def _repr_html_(self) -> str:
        rows = [("first", self.first), ("second", self.second), ("difference", self.difference)]
        told = tag("p", f"A difference as large is seen by chance with p = {self.p_value:.4f}.")
        return show_in_notebook(table(("", "score in percent, and where 95 % of draws are"), rows), told)


def bootstrap(
    y_true: object, y_pred: object, *, entities: bool = True, n_draws: int = N_DRAWS, random_state: int = 0
) -> Interval:
    """A score with its bootstrap interval: sentences are drawn, as many as there are, each time.

    Parameters
    ----------
    y_true, y_pred
        Lists of sequences of tags.
    entities
        Whether it is the F1 of entities; else the share of tags that are right.
    n_draws
        How often sentences are drawn.
    random_state
        Seed of the draws.

    Examples
    --------
    >>> from maxmargin.metrics import bootstrap
    >>> true = [["B-PER", "O"], ["O", "B-LOC"]] * 20
    >>> predicted = [["B-PER", "O"], ["O", "O"]] + true[2:]
    >>> interval = bootstrap(true, predicted)
    >>> round(interval.value, 4), interval.low < interval.value < interval.high
    (0.9873, True)
    """
    return _resample(_counts(y_true, y_pred, entities), n_draws, random_state)


def compare_taggings(
    y_true: object,
    y_first: object,
    y_second: object,
    *,
    entities: bool = True,
    n_draws: int = N_DRAWS,
    random_state: int = 0,
) -> Comparison:
    """Whether one of two taggers is better: a paired bootstrap, and a test by approximate randomization (Noreen 1989).

    Parameters
    ----------
    y_true, y_first, y_second
        Lists of sequences of tags: true ones, and those of two taggers.
    entities, n_draws, random_state
        As in `bootstrap`.

    Examples
    --------
    >>> from maxmargin.metrics import compare_taggings
    >>> true = [["B-PER", "O"], ["O", "B-LOC"]] * 20
    >>> found = compare_taggings(true, [["B-PER", "O"], ["O", "O"]] * 20, true)
    >>> found.p_value < 0.01, found.difference.low > 0
    (True, True)
    """
    first, second = (_counts(y_true, y, entities) for y in (y_first, y_second))
    return _compare(first, second, n_draws, random_state)


def bootstrap_means(sums: np.ndarray, weights: np.ndarray, *, n_draws: int = N_DRAWS) -> Interval:
    """A weighted mean with its bootstrap interval, from the weighted sums of examples and their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.metrics.resampling import bootstrap_means
    >>> interval = bootstrap_means(np.array([3.0, 0.0, 2.0]), np.array([3.0, 1.0, 2.0]))
    >>> round(interval.value, 4), interval.high
    (0.8333, 1.0)
    """
    return _resample(_as_counts(sums, weights), n_draws, 0)


def compare_means(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> Comparison:
    """Whether one of two models is better, by the weighted sums of their merits for each example: `compare_taggings`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.metrics.resampling import compare_means
    >>> found = compare_means(np.zeros(30), np.ones(30), np.ones(30))
    >>> found.difference.value, found.p_value < 0.01
    (1.0, True)
    """
    return _compare(_as_counts(first, weights), _as_counts(second, weights), N_DRAWS, 0)


def _resample(counts: np.ndarray, n_draws: int, random_state: int) -> Interval:
    """The score of counts with its interval."""
    return _interval(_score(counts.sum(axis=0)), _score(_draws(counts, n_draws, random_state)))


def _as_counts(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums as counts whose score is their mean."""
    scale = weights.mean() or 1.0
    return np.stack([weights, weights, sums], axis=1) / scale


def _compare(first: np.ndarray, second: np.ndarray, n_draws: int, random_state: int) -> Comparison:
    """Two models by the counts of each."""
    both = np.concatenate([first, second], axis=1)
    drawn = _draws(both, n_draws, random_state)
    total = both.sum(axis=0)
    scores, seen = [_score(total[k : k + 3]) for k in (0, 3)], [_score(drawn[:, k : k + 3]) for k in (0, 3)]
    difference = scores[1] - scores[0]
    shift = both[:, 3:] - both[:, :3]  # what a swap of a sentence moves from one to the other
    rng = np.random.default_rng(random_state)
    swapped = np.concatenate([rng.random((n, len(shift))) < 0.5 for n in _parts(n_draws, len(shift))]) @ shift
    random = _score(total[3:] - swapped) - _score(total[:3] + swapped)
    n_larger = int((np.abs(random) >= abs(difference) - 1e-12).sum())
    ours, theirs = (_interval(value, row) for value, row in zip(scores, seen, strict=True))
    return Comparison(ours, theirs, _interval(difference, seen[1] - seen[0]), (n_larger + 1) / (n_draws + 1))


def _counts(y_true: object, y_pred: object, entities: bool) -> np.ndarray:
    """(n, 3) true, predicted and right entities of each sentence, or tags, of which all are predicted."""
    true, predicted = check_pairs(y_true, y_pred)
    if entities:
        true, predicted = ([{*row} for row in find_entities(y)] for y in (true, predicted))
        rows = [(len(a), len(b), len(a & b)) for a, b in zip(true, predicted, strict=True)]
    else:
        right = (sum(map(eq, a, b)) for a, b in zip(true, predicted, strict=True))
        rows = [(len(a), len(a), n) for a, n in zip(true, right, strict=True)]
    return np.array(rows, np.float64)


def _score(counts: np.ndarray) -> np.ndarray:
    """F1, which of tags is the share of right ones."""
    return 2 * counts[..., 2] / np.maximum(counts[..., 0] + counts[..., 1], 1)


def _parts(n_draws: int, n: int) -> list[int]:
    """Numbers of draws that are made at once."""
    most = max(CHUNK // n, 1)
    return [min(most, n_draws - k) for k in range(0, n_draws, most)]


def _draws(counts: np.ndarray, n_draws: int, random_state: int) -> np.ndarray:
    """Sums of counts over as many sentences as there are, drawn with replacement, (n_draws, columns)."""
    check_count("n_draws", n_draws)
    rng, n = np.random.default_rng(random_state), len(counts)
    return np.concatenate([rng.multinomial(n, np.full(n, 1 / n), size=k) @ counts for k in _parts(n_draws, n)])


def _interval(value: float | np.ndarray, seen: np.ndarray) -> Interval:
    low, high = np.quantile(seen, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(low), float(high))
