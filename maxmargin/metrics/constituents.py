"""Quality of constituents, as evalb counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from maxmargin.display.markup import tag
from maxmargin.display.notebook import show_in_notebook
from maxmargin.metrics.entities import EntityScore, tabulate_scores
from maxmargin.metrics.labels import check_lists
from maxmargin.text.sentence_files.brackets import FUNCTION, JOINT, ROOTS, TRACE, LabelledSpan

DELETED = {TRACE, ",", ":", "``", "''", "."}  # tags of words that do not count
SAME = {"PRT": "ADVP"}  # labels that count as another


class BracketReport(NamedTuple):
    """How well constituents were found; printed as evalb does.

    Attributes
    ----------
    overall
        EntityScore of brackets.
    labels
        Dict of EntityScore by label, sorted.
    n_sentences, n_exact, n_uncrossed
        The numbers of sentences, of those whose brackets are all right, and of those where none crosses a true one.
    n_crossing
        The number of predicted brackets that cross a true one.
    """

    overall: EntityScore
    labels: dict[str, EntityScore]
    n_sentences: int
    n_exact: int
    n_uncrossed: int
    n_crossing: int

    def __str__(self) -> str:
        figures = {
            "Bracketing Recall": 100 * self.overall.recall,
            "Bracketing Precision": 100 * self.overall.precision,
            "Bracketing FMeasure": 100 * self.overall.f1,
            "Complete match": 100 * self.n_exact / self.n_sentences,
            "Average crossing": self.n_crossing / self.n_sentences,
            "No crossing": 100 * self.n_uncrossed / self.n_sentences,
        }
        lines = [f"{name:<26}= {figure:6.2f}" for name, figure in figures.items()]
        return "\n".join([f"{'Number of sentence':<26}= {self.n_sentences:6d}", *lines])

    def _repr_html_(self) -> str:
        told = (
            f"{self.n_exact:,} of {self.n_sentences:,} trees are right, {self.n_uncrossed:,} have no bracket that "
            f"crosses a true one; {self.n_crossing:,} brackets do."
        )
        return show_in_notebook(tabulate_scores("label", self.overall, self.labels), tag("p", told))


def bracket_report(
    y_true: object, y_pred: object, tokens: Iterable[Sequence[tuple[str, str]]] | None = None
) -> BracketReport:
    """Compare constituents as evalb does, with the parameters of Collins.

    A bracket is right if a true one has the same words and the same label, each of which is found once. Labels that
    are joined by "::" are brackets of their own. What is around a sentence, TOP or ROOT, does not count, and neither
    does what follows a label, such as -SBJ in NP-SBJ; PRT counts as ADVP. Words that are punctuation or traces are
    taken out, if the tags are given, and brackets around nothing else. Not done: the limit of 40 words that evalb has
    beside its figures for all sentences, the share of right tags, and a loose comparison of quotation marks.

    Parameters
    ----------
    y_true, y_pred
        Lists of trees, lists of triples of start, end and label, as `SpanSVM` has them.
    tokens
        The sentences, lists of pairs of a word and its tag of the Penn Treebank. By default all words count.

    Examples
    --------
    >>> from maxmargin.metrics import bracket_report
    >>> y_true, y_pred = [[(0, 3, "S"), (0, 1, "NP"), (1, 2, "VP")]], [[(0, 2, "S"), (0, 1, "NP")]]
    >>> report = bracket_report(y_true, y_pred, tokens=[[("She", "PRP"), ("sings", "VBZ"), (".", ".")]])
    >>> report.overall.precision, report.overall.recall
    (1.0, 0.6666666666666666)
    """
    true, predicted = check_lists(y_true, y_pred)
    if not true:
        raise ValueError("y_true must hold at least one sentence.")
    sentences = [None] * len(true) if tokens is None else [*tokens]
    if len(sentences) != len(true):
        raise ValueError(f"tokens must be the {len(true)} sentences of y_true, but there are {len(sentences)}.")
    counts = Counter[tuple[str, int]]()
    n_exact = n_uncrossed = n_crossing = 0
    for i, (sentence, *trees) in enumerate(zip(sentences, true, predicted, strict=True)):
        try:
            a, b = (Counter(_brackets(tree, sentence)) for tree in trees)
        except (IndexError, TypeError, ValueError):
            raise ValueError(
                f"y_true[{i}] and y_pred[{i}] must be lists of triples of start, end and label, within their sentence."
            ) from None
        for kind, brackets in enumerate((a, b, a & b)):
            counts.update((label, kind) for _, _, label in brackets.elements())
        crossing = sum(n for bracket, n in b.items() if any(_cross(bracket, other) for other in a))
        n_exact += a == b
        n_uncrossed += crossing == 0
        n_crossing += crossing
    names = sorted({label for label, _ in counts})
    labels = {name: EntityScore(*(counts[name, kind] for kind in range(3))) for name in names}
    overall = EntityScore(*(sum(score[kind] for score in labels.values()) for kind in range(3)))
    return BracketReport(overall, labels, len(true), n_exact, n_uncrossed, n_crossing)


def bracket_f1(y_true: object, y_pred: object, tokens: Iterable[Sequence[tuple[str, str]]] | None = None) -> float:
    """The F1 of labelled brackets; arguments are those of `bracket_report`.

    Parameters
    ----------
    y_true, y_pred, tokens
        As of `bracket_report`.

    Examples
    --------
    >>> from maxmargin.metrics import bracket_f1
    >>> bracket_f1([[(0, 2, "S"), (0, 1, "NP")]], [[(0, 2, "S"), (1, 2, "NP")]])
    0.5
    """
    return bracket_report(y_true, y_pred, tokens).overall.f1


def _brackets(tree: Iterable[LabelledSpan], tokens: Sequence[tuple[str, str]] | None) -> Iterator[LabelledSpan]:
    """The brackets that count, with ends among the words that do."""
    kept = None if tokens is None else [0, *accumulate(tag not in DELETED for _, tag in tokens)]
    for start, end, joined in tree:
        lo, hi = (start, end) if kept is None else (kept[start], kept[end])
        for label in str(joined).split(JOINT):
            label = FUNCTION.sub("", label)
            if lo < hi and label not in ROOTS:
                yield lo, hi, SAME.get(label, label)


def _cross(one: LabelledSpan, other: LabelledSpan) -> bool:
    return one[0] < other[0] < one[1] < other[1] or other[0] < one[0] < other[1] < one[1]
