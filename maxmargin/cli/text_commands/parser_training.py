"""`maxmargin train --parse`: from files of CoNLL-U to a parser in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.pipeline import make_pipeline

from maxmargin.cli.common import Shield, print_json, tell_command, tell_size
from maxmargin.cli.options import Choices, split_columns
from maxmargin.cli.progress import Progress, summary
from maxmargin.cli.text_commands.tree_files import check_format, read_trees, score_trees
from maxmargin.cli.training import figures_of_fit, find_target
from maxmargin.encode.sentences.head_trees import ROOT, find_crossing
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.estimators.syntax.dependency_models import DependencyCRF, DependencySVM
from maxmargin.persist import save
from maxmargin.text import ArcFeatures, Sentence
from maxmargin.trace import Status, Trace
from maxmargin.wording import count_of

# Options of `Choices` that are none of parsers.
TAGGING = ["tags", "separator", "comments", "unknown", "tokenizer", "order", "scheme", "inside", "unlabelled"]
TAGGING += ["template", "two_stages", "entity_share", "prefer"]


def run_train_parser(
    choices: Choices, checkpoint: Path | None, others: dict[str, object], *, crossing: bool, **options: object
) -> None:
    """Train a parser on files and write it to another; `others` are options of `train` that parsers do not have."""
    check_format(choices.format)
    wrong = [*choices.changed(TAGGING), *(flag for flag, value in others.items() if value is not None)]
    if wrong:
        raise typer.BadParameter(f"--parse trains a parser, not a tagger: leave out --{wrong[0]}.")
    if choices.type == "segments":
        raise typer.BadParameter("--parse trains a parser, which has no segments: --type is crf or svm.")
    target = find_target(choices, checkpoint)
    columns = split_columns(choices.columns)
    features = ArcFeatures() if columns is None else ArcFeatures(columns=tuple(map(str, columns)))
    train = read_trees(choices.file, choices.encoding)
    dev = [] if choices.dev is None else read_trees([choices.dev], choices.encoding)
    arcs = [sentence.arcs for sentence in train]
    choices.say(describe(train, crossing=crossing))
    model = (DependencyCRF if choices.type == "crf" else DependencySVM)(
        projective=not crossing,
        lift=not crossing,
        single_root=all(sum(head == ROOT for head, _ in tree) == 1 for tree in arcs),
        min_count=choices.min_count,
        n_hashed=choices.hashed,
        n_jobs=choices.jobs,
        random_state=choices.seed,
    ).set_params(**options)
    held_out: dict[str, Any] = {}
    if dev:
        held_out = {"X_dev": features.transform(dev), "y_dev": [sentence.arcs for sentence in dev]}
    with Shield() as shield:

        def watch(trace: Trace) -> None:
            shield.is_up = True
            progress(trace)

        with Progress("LAS with punctuation", is_quiet=choices.quiet) as progress:
            with without_warning():  # `summary` says it
                model.fit(features.transform(train), arcs, callback=watch, checkpoint=checkpoint, **held_out)
            progress.say(summary(model))
        model.command_ = tell_command()
        parser = make_pipeline(features, model)
        save(parser, target)
        scores = score_trees(dev, parser.predict(dev)) if dev else None
        held = "" if scores is None else f", held-out {scores}"
        choices.say(f"The parser is in {tell_size(target)}{held}.")
        if choices.json:
            found = {**figures_of_fit(model, target), "labels": model.classes_.tolist()}
            print_json({**found, "sentences": len(train), "held_out": scores and scores._asdict()})
        shield.end(is_interrupted=model.status_ is Status.INTERRUPTED)


def describe(sentences: list[Sentence], *, crossing: bool) -> str:
    """How much there is in sentences, and what becomes of arcs that cross."""
    trees = [sentence.arcs for sentence in sentences]
    n_crossing = sum(bool(find_crossing(np.array([head for head, _ in tree]))) for tree in trees)
    labels = {label for tree in trees for _, label in tree}
    counts = [count_of(len(trees), "sentence"), count_of(sum(map(len, trees)), "word"), count_of(len(labels), "label")]
    lifted = "words there are attached further up; --crossing learns such trees"
    return ", ".join(counts) + (
        f"; in {count_of(n_crossing, 'sentence')} arcs cross: {lifted}" if n_crossing and not crossing else ""
    )
