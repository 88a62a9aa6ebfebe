"""Which words of a sentence and of its translation mean the same: word alignment as a matching.

``python examples/word_alignment.py`` trains `MatchingSVM` on 200 English-French sentence pairs whose words are linked
by hand and aligns the words of the other 247. There is no other text: the statistics of words that go together are
those of all 447 pairs, without their links.

Alignments are compared by their error rate, AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), where A is predicted, S are
the sure and P the possible links. The baselines link words that are each other's best match by Dice's coefficient, or
by both directions of IBM's Model 1, above a threshold that is best on the training pairs. A model that has Dice's
coefficient as its only feature links nothing, until it has such a threshold, too.

The data: MAXMARGIN_DATA must name a folder with ``word_alignment/enfr.src-tgt`` and ``enfr.gold``.

Reference: Taskar, Lacoste-Julien, Klein (2005), A discriminative matching approach to word alignment.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import KFold

from maxmargin import MatchingSVM
from maxmargin.datasets import SentencePair, load_word_alignment

N_TRAIN = 200
GRID = [{"C": C, "missed_cost": cost} for C in (0.1, 0.3, 1.0, 3.0) for cost in (2.0, 3.0, 5.0, 10.0)]
N_COMMON = 40  # words of each language whose pairs have a weight of their own


def dice_tables(pairs: list, key: Callable[[str], str] = str.lower) -> list[np.ndarray]:
    """Dice's coefficients of all pairs of words: twice the sentences with both over the sum of those with either."""
    sides = [([key(word) for word in s], [key(word) for word in t]) for s, t in pairs]
    left = Counter(word for s, _ in sides for word in set(s))
    right = Counter(word for _, t in sides for word in set(t))
    both = Counter((a, b) for s, t in sides for a in set(s) for b in set(t))
    return [np.array([[2 * both[a, b] / (left[a] + right[b]) for b in t] for a in s]) for s, t in sides]


def model_1_tables(pairs: list, n_rounds: int = 8) -> list[np.ndarray]:
    """IBM's Model 1, trained on the sentences: the probability that a target word comes from each source word."""
    sides = [([""] + [a.lower() for a in s], [b.lower() for b in t]) for s, t in pairs]  # "" is nothing
    chance: dict = {}
    for k in range(n_rounds):
        counts: Counter = Counter()
        tables = []
        for s, t in sides:
            table = np.array([[chance.get((a, b), 1e-6) if k else 1.0 for b in t] for a in s])
            table /= table.sum(axis=0)
            tables.append(table[1:])
            for i, a in enumerate(s):
                for j, b in enumerate(t):
                    counts[a, b] += table[i, j]
        totals: Counter = Counter()
        for (a, _), count in counts.items():
            totals[a] += count
        chance = {(a, b): count / (totals[a] + 1) for (a, b), count in counts.items()}
    return tables


def both_directions(pairs: list) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Model 1 of target words given source words and the other way round, (n, m) tables both."""
    return model_1_tables(pairs), [table.T for table in model_1_tables([(t, s) for s, t in pairs])]


@cache
def likeness(a: str, b: str) -> float:
    """How much two words look alike, from 0 to 1."""
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def next_to(table: np.ndarray, by: int) -> np.ndarray:
    """The entries of the words after both (by = 1) or before both (by = -1), zero at the ends."""
    out = np.zeros_like(table)
    if by > 0:
        out[:-1, :-1] = table[1:, 1:]
    else:
        out[1:, 1:] = table[:-1, :-1]
    return out


def featurize(pairs: list[SentencePair]) -> list[tuple]:
    """Sparse features of all pairs of words, as `MatchingSVM` takes them; links are not looked at."""
    texts = [(p.source, p.target) for p in pairs]
    stem_dice = dice_tables(texts, lambda word: word.lower()[:4])
    tables = zip(dice_tables(texts), stem_dice, *both_directions(texts), strict=True)
    counts = [Counter(word.lower() for text in texts for word in text[side]) for side in (0, 1)]
    common = [{word: k for k, (word, _) in enumerate(count.most_common(N_COMMON))} for count in counts]
    X = []
    for (s, t), (dice, stems, forward, backward) in zip(texts, tables, strict=True):
        words = [[word.lower() for word in text] for text in (s, t)]
        together = np.sqrt(forward * backward)
        place = np.abs((np.arange(len(s))[:, None] + 0.5) / len(s) - (np.arange(len(t)) + 0.5) / len(t))
        alike = np.array([[likeness(a, b) for b in words[1]] for a in words[0]])
        same = (alike == 1).astype(float)
        is_word = [np.array([word.isalpha() for word in text], float) for text in words]
        frequency = [np.log([count[word] for word in text]) for count, text in zip(counts, words, strict=True)]
        dense = [
            np.ones_like(dice),
            *(dice, stems, forward, backward, together),
            together - together.max(axis=1, keepdims=True),
            together - together.max(axis=0, keepdims=True),
            *(place, np.sqrt(place), together * place, same * place),
            *(alike, alike**3, same),
            np.outer(1 - is_word[0], 1 - is_word[1]),
            np.abs(is_word[0][:, None] - is_word[1]),
            np.abs(frequency[0][:, None] - frequency[1]),
            frequency[0][:, None] + frequency[1],
            *(next_to(table, by) for table in (together, same) for by in (1, -1)),
        ]
        indices = [np.array([index.get(word, -1) for word in text]) for index, text in zip(common, words, strict=True)]
        are_common = np.outer(indices[0] >= 0, indices[1] >= 0).ravel()
        columns = (indices[0][:, None] * N_COMMON + indices[1]).ravel()[are_common]
        indicators = sp.csr_array(
            (np.full(len(columns), 0.5), (np.flatnonzero(are_common), columns)), (dice.size, N_COMMON**2)
        )
        X.append((sp.hstack([np.dstack(dense).reshape(dice.size, -1), indicators], format="csr"), dice.shape))
    return X


def sure_matching(pair: SentencePair, dice: np.ndarray) -> np.ndarray:
    """As many sure links as form a matching, the more alike ones where there is a choice."""
    worth = np.zeros_like(dice)
    for i, j in pair.sure:
        worth[i, j] = 1 + dice[i, j]
    match = np.full(len(pair.source), -1)
    for i, j in zip(*linear_sum_assignment(worth, maximize=True), strict=True):
        match[i] = j if worth[i, j] else -1
    return match


def error_rate(pairs: list[SentencePair], alignments: list[set]) -> float:
    """The alignment error rate."""
    hits = sum(len(a & p.sure) + len(a & p.possible) for p, a in zip(pairs, alignments, strict=True))
    return 1 - hits / sum(len(a) + len(p.sure) for p, a in zip(pairs, alignments, strict=True))


def mutual_best(table: np.ndarray, threshold: float) -> set:
    """Words that are each other's best match."""
    best = (table == table.max(axis=1, keepdims=True)) & (table == table.max(axis=0, keepdims=True))
    return set(zip(*np.nonzero(best & (table > threshold)), strict=True))


def targets(pairs: list[SentencePair]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The sure links, and how much each link weighs if it is wrong: possible ones that are not sure do no harm."""
    y = [sure_matching(pair, dice) for pair, dice in zip(pairs, dice_tables(texts_of(pairs)), strict=True)]
    harm = [np.ones((len(pair.source), len(pair.target))) for pair in pairs]
    for weight, pair in zip(harm, pairs, strict=True):
        weight[tuple(np.array(sorted(pair.possible)).T)] = 0
    return y, harm


def train(X: list, pairs: list[SentencePair], options: dict[str, float]) -> MatchingSVM:
    y, harm = targets(pairs)
    return MatchingSVM(random_state=0, **options).fit(X, y, link_weight=harm)


def align(model: MatchingSVM, X: list) -> list[set]:
    return [{(i, int(j)) for i, j in enumerate(match) if j >= 0} for match in model.predict(X)]


def choose(X: list, pairs: list[SentencePair]) -> dict[str, float]:
    """The best of GRID by cross-validation: C, and what a missed link costs beside a wrong one."""
    rates = np.zeros(len(GRID))
    for kept, held_out in KFold(4).split(X):
        for k, options in enumerate(GRID):
            model = train([X[i] for i in kept], [pairs[i] for i in kept], options)
            rates[k] += error_rate([pairs[i] for i in held_out], align(model, [X[i] for i in held_out]))
    return GRID[rates.argmin()]


def texts_of(pairs: list[SentencePair]) -> list[tuple]:
    return [(pair.source, pair.target) for pair in pairs]


def main() -> None:
    pairs = load_word_alignment("enfr")
    pairs = [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))]
    known, new = pairs[:N_TRAIN], pairs[N_TRAIN:]
    print(f"{len(known)} training and {len(new)} test pairs\n\nalignment error rate    training    test")

    def show(name: str, alignments: list[set]) -> None:
        rates = error_rate(known, alignments[:N_TRAIN]), error_rate(new, alignments[N_TRAIN:])
        print(f"{name:20} {rates[0]:11.1%} {rates[1]:7.1%}", flush=True)

    together = [np.sqrt(a * b) for a, b in zip(*both_directions(texts_of(pairs)), strict=True)]
    for name, tables in (("Dice", dice_tables(texts_of(pairs))), ("Model 1", together)):
        choices = [[mutual_best(table, threshold) for table in tables] for threshold in np.linspace(0, 0.95, 20)]
        show(name, min(choices, key=lambda alignments: error_rate(known, alignments[:N_TRAIN])))

    weak = [np.dstack([np.ones_like(table), table]) for table in dice_tables(texts_of(pairs))]
    model = train(weak[:N_TRAIN], known, {})
    show("MatchingSVM on Dice", align(model, weak))
    model.choose_threshold(weak[:N_TRAIN], targets(known)[0])
    show("..., threshold", align(model, weak))

    began = time.perf_counter()
    X = featurize(pairs)
    options = choose(X[:N_TRAIN], known)
    model = train(X[:N_TRAIN], known, options)
    show("MatchingSVM", align(model, X))
    print(f"\n{options}, {model.status_.name}; {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
