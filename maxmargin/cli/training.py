"""`maxmargin train` and `maxmargin path`: from a file of tagged sentences to a tagger in a file."""

from __future__ import annotations

from errno import EISDIR
from pathlib import Path
from typing import Any, NamedTuple

import typer

from maxmargin.checks import counted
from maxmargin.cli.common import STDIN, Shield, keep_apart, located, print_json, read, say, told
from maxmargin.cli.options import split_columns
from maxmargin.cli.progress import Progress, summary
from maxmargin.cli.tags import settle_scheme
from maxmargin.estimators.chain_models import ChainSVM
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.persist import check_writable
from maxmargin.tagger import Tagger, default_model
from maxmargin.text import Document, Layout, WindowFeatures, find_format
from maxmargin.trace import Status, Trace


class Choices(NamedTuple):
    """What the commands that train let users choose."""

    train: Path
    dev: Path | None
    model: Path | None
    format: str | None
    columns: str | None
    tags: str | None
    separator: str | None
    comments: str | None
    encoding: str
    type: str
    scheme: str
    min_count: int
    window: int
    affixes: int
    gazetteers: list[str]
    jobs: int
    seed: int
    quiet: bool
    json: bool

    def target(self, *others: Path | None) -> Path:
        """Where to write the model; raises an error if that cannot be done, or is one of these or of what is read."""
        if self.model is None and self.train == STDIN:
            raise typer.BadParameter("standard input has no name to call the model by: say where to write it, --model.")
        if self.train.is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder, not a file", str(self.train))
        target = Path(self.train.name).with_suffix(".model") if self.model is None else self.model
        keep_apart(check_writable(target), "model", [self.train, self.dev, *map(Path, self.lists.values()), *others])
        return target

    @property
    def lists(self) -> dict[str, str]:
        """The files of lists of names, by title."""
        return {title: path for title, _, path in (text.partition("=") for text in self.gazetteers)}

    def tagger(self, **options: Any) -> Tagger:
        """A tagger that is not trained yet, whose model has these options, too."""
        gazetteers = {title: _names(path) for title, path in self.lists.items()}
        features = WindowFeatures(window=self.window, affixes=self.affixes, gazetteers=gazetteers or None)
        options |= {"min_count": self.min_count, "n_jobs": self.jobs, "random_state": self.seed}
        model = default_model() if self.type == "crf" else ChainSVM(only_observed=True)
        scheme = None if self.scheme == "none" else self.scheme
        return Tagger(features=features, model=model.set_params(**options), scheme=scheme)

    def documents(self) -> tuple[Document, Document | None]:
        """The sentences to train on, and those held out."""
        layout = Layout(
            self.format or find_format(self.train),
            split_columns(self.columns),
            split_columns(self.tags),
            separator=self.separator,
            comments=self.comments,
            encoding=self.encoding,
        )
        train = read(self.train, layout)
        if not self.quiet:
            say(f"{train.name}: {describe(train)}")
        if self.dev is None:
            return train, None
        dev = read(self.dev, train.layout, format=self.format)
        if not self.quiet:
            say(f"{dev.name}: {describe(dev)}")
        return train, dev


def _names(path: str) -> list[str]:
    from maxmargin.text.sentence_files.line_files import Lines

    return [line.strip() for _, line in Lines(Path(path), "utf-8") if line and not line.isspace()]


def describe(document: Document) -> str:
    """How much there is in a document."""
    y = document.y or []
    n_tags = len({tag for tags in y for tag in tags})
    n_tokens = sum(map(len, document.X))
    return ", ".join([counted(len(document.X), "sentence"), counted(n_tokens, "token"), counted(n_tags, "tag")])


def run_train(choices: Choices, checkpoint: Path | None, **options: Any) -> None:
    """Train a tagger on a file and write it to another."""
    target = choices.target(checkpoint)
    tagger = choices.tagger(**options)
    train, dev = settle_scheme(tagger, *choices.documents(), is_quiet=choices.quiet)
    score = "F1" if tagger.scheme is not None else "accuracy"
    held_out = {} if dev is None else {"X_dev": dev.X, "y_dev": dev.y}
    with Shield() as shield:

        def watch(trace: Trace) -> None:
            shield.is_up = True
            progress(trace)

        with Progress(score, is_quiet=choices.quiet) as progress, located(train if dev is None else dev):
            with without_warning():  # `summary` says it
                tagger.fit(train.X, train.y, callback=watch, checkpoint=checkpoint, **held_out)
            progress.say(summary(tagger.model_))
        if not choices.quiet:
            tell_of_lists(tagger)
        tagger.save(target)
        best = max(tagger.trace_.dev_score.tolist()) if dev is not None else None
        if not choices.quiet:
            held = "" if best is None else f", held-out {score} {100 * best:.2f}"
            say(f"The tagger is in {told(target)}{held}.")
        if choices.json:
            print_json({**figures(tagger, target), "sentences": len(train.X), "held_out": best})
        shield.end(is_interrupted=tagger.status_ is Status.INTERRUPTED)


def tell_of_lists(tagger: Tagger) -> None:
    """Say which lists were made of the training data."""
    for title in tagger.features_.cross_fit_:
        say(
            f"The list {title!r} is made of the entities to train on: each tenth knows those that the others have, too."
        )


def figures(tagger: Tagger, target: Path) -> dict[str, Any]:
    """What there is to know of a trained tagger."""
    model = tagger.model_
    return {
        "model": str(target),
        "status": tagger.status_.name,
        "C": model.C,
        "objective": tagger.certificate_.primal,
        "relative_gap": tagger.certificate_.relative_gap,
        "passes": tagger.trace_.last("passes"),
        "seconds": tagger.trace_.last("seconds"),
        "scheme": tagger.scheme_,
        "tags": tagger.classes_.tolist(),
        "features": int(model.n_features_in_),
    }
