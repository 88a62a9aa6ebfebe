"""What parsers of `maxmargin train --parse` make of files of CoNLL-U: trees of dependencies, and how good they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from maxmargin.cli.common import BATCH, STDIN, find_files, is_parser, writing
from maxmargin.cli.tagging import Scores, is_model
from maxmargin.encode.sentences.head_trees import check_heads
from maxmargin.metrics import bootstrap, compare_taggings, las, uas
from maxmargin.metrics.attachment import is_punctuation
from maxmargin.persist import load
from maxmargin.text.sentence_files.conllu import Sentence, lines_of, parse_conllu
from maxmargin.text.sentence_files.line_files import Lines
from maxmargin.wording import count_of

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Tree = list[tuple[int, str]]


class Attachment(NamedTuple):
    """The attachment scores of trees, and of how many words they are: those that are no punctuation."""

    uas: float
    las: float
    words: int

    def __str__(self) -> str:
        return f"UAS {self.uas:.2%}, LAS {self.las:.2%} of {count_of(self.words, 'word')}, punctuation left out"


def check_format(format: str | None) -> None:
    """Raise unless the format of files is that of trees."""
    if format not in (None, "conllu"):
        raise ValueError(f"Parsers read and write CoNLL-U, not the format {format!r}: leave out --format.")


def stream_sentences(path: Path, encoding: str | None) -> Iterator[list[Sentence]]:
    """The sentences of a file, or of standard input, part by part, as they come."""
    waiting: list[Sentence] = []
    for found in parse_conllu(_lines(path, encoding)):
        if found is not None:
            waiting.append(found[0])
        if waiting and (found is None or len(waiting) == BATCH):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def read_trees(given: list[Path], encoding: str | None) -> list[Sentence]:
    """The sentences of files, each of which is checked to have a tree, of one root or several."""
    sentences = []
    for path in find_files(given):
        lines = _lines(path, encoding)
        for found in parse_conllu(lines):
            if found is not None:
                sentence, numbers = found
                for word, number in zip(sentence.words, numbers, strict=True):
                    if not word.head.isdecimal():
                        lines.fail(number, f"the head of {word.form!r} is {word.head!r}, not a number")
                heads = [head for head, _ in sentence.arcs]
                check_heads(heads, len(heads), f"{lines.name}, line {numbers[0]}: the sentence", single_root=False)
                sentences.append(sentence)
    return sentences


def _lines(path: Path, encoding: str | None) -> Lines:
    source, name = (sys.stdin.buffer, "standard input") if path == STDIN else (path, None)
    return Lines(source, encoding or "utf-8", name)


def run_parse(
    parser: Pipeline, sources: list[Path], output: Path | None, format: str | None, encoding: str | None, jobs: int
) -> None:
    """Write the sentences of files with the trees that a parser gives them, as they come."""
    check_format(format)
    parser[-1].set_params(n_jobs=jobs)
    with writing(output) as write:
        for path in sources:
            for sentences in stream_sentences(path, encoding):
                trees = zip(sentences, parser.predict(sentences), strict=True)
                for i, (sentence, tree) in enumerate(trees):
                    write(lines_of(sentence.with_arcs(tree), i))


def run_evaluate_parser(
    parser: Pipeline,
    model: Path,
    given: list[Path],
    format: str | None,
    encoding: str | None,
    *,
    jobs: int,
    intervals: bool,
    as_json: bool,
) -> None:
    """Compare the trees that a parser gives the sentences of files with those in them, punctuation left out."""
    check_format(format)
    others = [path for path in given[:1] if is_model(path)]
    sentences = read_trees(given[len(others) :] or [STDIN], encoding)
    true = [sentence.arcs for sentence in sentences]
    parser[-1].set_params(n_jobs=jobs)
    predicted = parser.predict(sentences)
    attachment = score_trees(sentences, predicted)
    scores = Scores(attachment._asdict(), [str(attachment)])
    counted = count_arcs(sentences, true), count_arcs(sentences, predicted)
    if intervals and not others:
        scores.add_interval("LAS", bootstrap(*counted, entities=False))
    if others:
        second = load(others[0])
        if not is_parser(second):
            raise ValueError(f"{str(others[0])!r} holds no parser, so that it cannot be compared with one.")
        second[-1].set_params(n_jobs=jobs)
        comparison = compare_taggings(*counted, count_arcs(sentences, second.predict(sentences)), entities=False)
        scores.add_comparison(comparison, model, others[0], "LAS", "trees")
    scores.tell(as_json=as_json)


def score_trees(sentences: Sequence[Sentence], predicted: list[Tree]) -> Attachment:
    """The attachment scores of trees."""
    true = [sentence.arcs for sentence in sentences]
    words = [sentence.column("form") for sentence in sentences]
    n_words = sum(map(len, count_arcs(sentences, true)))
    return Attachment(uas(true, predicted, words=words), las(true, predicted, words=words), n_words)


def count_arcs(sentences: Sequence[Sentence], trees: list[Tree]) -> list[Tree]:
    """The arcs of words that are no punctuation."""
    return [
        [arc for form, arc in zip(sentence.column("form"), tree, strict=True) if not is_punctuation(form)]
        for sentence, tree in zip(sentences, trees, strict=True)
    ]
