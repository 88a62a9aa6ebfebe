"""What a tagger makes of sentences: its tags beside the true ones, how sure it is of them, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin.drawings.weight_drawings import LONGEST_NAME
from maxmargin.inspection import Explanation
from maxmargin.inspection.chain_weights import is_chain
from maxmargin.report.entity_errors import RIGHT, Judged, judge_entities
from maxmargin.text.document_tags import word_of
from maxmargin.text.entity_chances import ScoredEntity
from maxmargin.text.inner_tags import stands_alone
from maxmargin.text.mending import mend_tags, spells_entities
from maxmargin.text.schemes import find_entities
from maxmargin.text.tag_conversion import convert_tags
from maxmargin.text.token_features.tokens import Token
from maxmargin.text.token_features.windows import Sentences
from maxmargin.trace import Trace
from maxmargin.wording import count_of

MOST_WORST, MOST_OF_KINDS, MOST_SHOWN = 150, 100, 300  # sentences: the worst, those of rare errors, and all
ENOUGH = 5  # sentences of a kind of error
MOST_EXPLAINED, MOST_STEPS = 15_000, 4e9  # words, wrong ones and those of the worst sentences first; their transitions
N_READINGS, N_TAGS, N_REASONS = 3, 4, 8  # that are shown of a sentence, of a word, and of an explanation
LONGEST = 400  # characters of a word, and tokens of a sentence, that are shown


class ReportedTagger(Protocol):
    """What a report asks a tagger for."""

    scheme_: str | None
    inside_: str | None
    model_: Any
    trace_: Trace

    @property
    def asks_documents(self) -> bool: ...
    @property
    def classes_(self) -> np.ndarray: ...
    def predict(self, X: Sentences) -> list[list[Any]]: ...
    def predict_marginals(self, X: Sentences) -> list[np.ndarray]: ...
    def predict_topk(self, X: Sentences, k: int) -> list[tuple[list[list[Any]], np.ndarray]]: ...
    def predict_entities(self, X: Sentences) -> Sequence[Sequence[ScoredEntity]]: ...
    def explain_words(self, X: Sentences, words: Iterable[tuple[int, int, object]]) -> list[Explanation]: ...


class Tagged(NamedTuple):
    """Sentences with true and predicted tags, and the probabilities of all tags of each word."""

    X: Sequence[Any]
    y: Sequence[Sequence[Any]]
    predicted: Sequence[Sequence[Any]]
    marginals: Sequence[np.ndarray]
    classes: list[Any]
    judged: list[list[Judged]]  # none where tags spell no entities

    @property
    def losses(self) -> np.ndarray:
        """(n,) minus the logarithm of the probabilities of true tags, added up: how surprised the tagger is by each."""
        index = {tag: k for k, tag in enumerate(self.classes)}
        found = []
        for tags, table in zip(self.y, self.marginals, strict=True):
            p = np.array([table[t, index[tag]] if tag in index else 0.0 for t, tag in enumerate(tags)])
            found.append(float(-np.log(np.maximum(p, 1e-12)).sum()))
        return np.array(found)


def tag_sentences(tagger: ReportedTagger, X: Sequence[Iterable[Token]], y: Sequence[Sequence[object]]) -> Tagged:
    """What a tagger makes of sentences whose tags are known, of any scheme."""
    predicted, classes = tagger.predict(X), tagger.classes_.tolist()
    judged: list[list[Judged]] = [[] for _ in X]
    if tagger.scheme_ is not None:
        y = mend_tags(y, tagger.scheme_).y
        pairs = zip(find_entities(y), find_entities(predicted), strict=True)
        judged = [[*judge_entities(*pair)] for pair in pairs]
    return Tagged(X, y, predicted, tagger.predict_marginals(X), classes, judged)


def predict_alike(title: str, other: ReportedTagger, tagger: ReportedTagger, tagged: Tagged) -> list[list[Any]]:
    """The tags of another tagger, in the scheme of the first one; raises where only one of them finds entities."""
    predicted = other.predict(tagged.X)
    if tagger.scheme_ is None:
        if other.scheme_ is not None and not spells_entities(tagged.y):
            raise ValueError(f"others[{title!r}] must not find entities, as the tags of y spell none.")
        return predicted
    try:
        return convert_tags(predicted, tagger.scheme_)
    except ValueError as error:
        raise ValueError(f"others[{title!r}] must find entities, but its tags spell none.") from error


def choose_sentences(tagged: Tagged, kinds: Iterable[Collection[int]] = ()) -> list[int]:
    """The sentences to show, the most surprising first: the worst, a few of each kind of error, a sample of others.

    Of each kind there are the numbers of sentences that have it.
    """
    order = np.argsort(-tagged.losses, kind="stable").tolist()
    place = {i: k for k, i in enumerate(order)}
    shown = {*order[:MOST_WORST]}
    wanted = [sorted(kind, key=place.__getitem__)[:ENOUGH] for kind in kinds]
    rare = dict.fromkeys(row[k] for k in range(ENOUGH) for row in wanted if k < len(row) and row[k] not in shown)
    shown |= {*[*rare][:MOST_OF_KINDS]}
    others, n_left = [i for i in order if i not in shown], MOST_SHOWN - len(shown)
    shown |= {*others[:: -(-len(others) // n_left) or 1]}
    return sorted(shown, key=place.__getitem__)


def kinds_of_errors(judged: Sequence[Sequence[Judged]]) -> dict[tuple[str, str], set[int]]:
    """The sentences that have each error, by error and type."""
    found = defaultdict[tuple[str, str], set[int]](set)
    for i, sentence in enumerate(judged):
        for one in sentence:
            for kind in one.types if one.error != RIGHT else ():
                found[one.error, kind].add(i)
    return found


def describe_sentences(
    tagger: ReportedTagger, tagged: Tagged, shown: Sequence[int], others: Sequence[Sequence[Sequence[object]]] = ()
) -> dict[str, Any]:
    """What the page shows of sentences: lists and dicts, short names, as there are many of them.

    Each has its number, words, true and predicted tags with the probability of the latter, errors by type, the best
    readings, the likeliest tags of each word, and why words have their tags; then the tags of other taggers. Beside
    them are the names of features and, if there are words without, what is said of why they have their tags.
    """
    losses = tagged.losses
    if tagger.asks_documents:
        readings = tagger.predict_topk(tagged.X, N_READINGS)
        readings = [readings[i] for i in shown]
    else:
        readings = tagger.predict_topk([tagged.X[i] for i in shown], N_READINGS)
    index = {tag: k for k, tag in enumerate(tagged.classes)}
    explained: dict[int, dict[int, list[Any]]] = {i: {} for i in shown}
    names: dict[str, int] = {}
    unexplained = "Why a word has its tag is told of models of chains, and this one is of segments."
    if can_explain(tagger):
        tags = {i: best[0] for i, (best, _) in zip(shown, readings, strict=True)}
        places, is_all = choose_words(tagged, shown)
        words = [(i, t, find_rival(tagger, tagged.y[i][t], tags[i][t], index)) for i, t in places]
        for (i, t, _), explanation in zip(words, tagger.explain_words(tagged.X, words), strict=True):
            explained[i][t] = reasons(explanation, names)
        unexplained = (
            "" if is_all else f"Why is told of {count_of(len(words), 'word')}, the wrong ones first, not of this one."
        )
    found = []
    for i, (best, scores) in zip(shown, readings, strict=True):
        y, predicted, table = tagged.y[i], tagged.predicted[i], tagged.marginals[i]
        words_of_sentence = [word_of(token) for token in tagged.X[i]]
        likely = np.argsort(-table, axis=1, kind="stable")[:LONGEST, :N_TAGS]
        found.append(
            {
                "i": i,
                "loss": round(float(losses[i]), 3),
                "w": [word[:LONGEST] for word in words_of_sentence[:LONGEST]],
                "cut": len(words_of_sentence) > LONGEST or any(len(word) > LONGEST for word in words_of_sentence),
                "y": [str(tag) for tag in y[:LONGEST]],
                "z": [str(tag) for tag in predicted[:LONGEST]],
                "p": [round(float(table[t, index[tag]]), 3) for t, tag in enumerate(predicted[:LONGEST])],
                "q": [[[int(k), round(float(table[t, k]), 3)] for k in row] for t, row in enumerate(likely)],
                "e": [[one.error, sorted(one.types)] for one in tagged.judged[i] if one.error != RIGHT],
                "k": [[*map(str, tags[:LONGEST])] for tags in best],
                "s": [round(float(score - scores[0]), 3) for score in scores],
                "why": explained[i],
                "o": [[str(tag) for tag in other[i][:LONGEST]] for other in others],
            }
        )
    return {"sentences": found, "names": [*names], "unexplained": unexplained}


def choose_words(tagged: Tagged, shown: Sequence[int]) -> tuple[list[tuple[int, int]], bool]:
    """The words whose tags are explained, by sentence and position, wrong ones first, and whether these are all."""
    words = [(i, t) for i in shown for t in range(min(len(tagged.y[i]), LONGEST))]
    words.sort(key=lambda word: tagged.y[word[0]][word[1]] == tagged.predicted[word[0]][word[1]])
    steps = len(tagged.classes) ** 2 * len(words) / max(len(shown), 1)  # of a word
    most = int(min(MOST_EXPLAINED, MOST_STEPS / max(steps, 1.0)))
    return words[:most], len(words) <= most


def find_rival(tagger: ReportedTagger, true: object, predicted: object, known: Container[object]) -> object:
    """What the tag of a word is compared with: the true one, where that is another one that the model has."""
    is_known = tagger.inside_ is None or stands_alone(tagger.scheme_, tagger.inside_)
    return true if is_known and true in known and true != predicted else None


def can_explain(tagger: ReportedTagger) -> bool:
    """Whether it can be told why words have their tags: those of chains."""
    return is_chain(tagger.model_)


def reasons(explanation: Explanation, names: dict[str, int]) -> list[object]:
    """What a page tells of why a word has its tag, whose names get numbers.

    The tag, the rival, the margin, how many contributions are small, and their sum; the number of the name of each
    large one, and its value.
    """
    first, rest = explanation.contributions[:N_REASONS], explanation.contributions[N_REASONS:]
    large = [(names.setdefault(one.of[:LONGEST_NAME], len(names)), round(float(one.value), 4)) for one in first]
    return [
        str(explanation.label),
        None if explanation.rival is None else str(explanation.rival),
        round(float(explanation.margin), 4) if np.isfinite(explanation.margin) else None,
        len(rest),
        round(float(sum(one.value for one in rest)), 4),
        *(number for pair in large for number in pair),
    ]
