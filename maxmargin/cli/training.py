"""`maxmargin train` and `maxmargin path`: from a file of tagged sentences to a tagger in a file."""

from __future__ import annotations

from errno import EISDIR
from pathlib import Path
from typing import Any, NamedTuple

import typer

from maxmargin.checks import counted
from maxmargin.cli.common import INTERRUPTED, STDIN, located, print_json, read, say, told
from maxmargin.cli.options import split_columns
from maxmargin.cli.progress import Progress, summary
from maxmargin.cli.tags import settle_scheme
from maxmargin.estimators.chain import ChainCRF, ChainSVM
from maxmargin.persist import writable
from maxmargin.tagger import Tagger
from maxmargin.text import Document, Layout, WindowFeatures, find_format
from maxmargin.trace import Status


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

    @property
    def target(self) -> Path:
        """Where to write the model; raises an error if that cannot be done."""
        if self.model is None and self.train == STDIN:
            raise typer.BadParameter("standard input has no name to call the model by: say where to write it, --model.")
        if self.train.is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder, not a file", str(self.train))
        target = Path(self.train.name).with_suffix(".model") if self.model is None else self.model
        found = writable(target)
        for source in (self.train, self.dev):
            if source is not None and source.exists() and found.exists() and source.samefile(found):
                raise ValueError(f"The model would take the place of {source}: give it another name, --model.")
        return target

    def tagger(self, **options: Any) -> Tagger:
        """A tagger that is not trained yet, whose model has these options, too."""
        gazetteers = {title: _names(path) for title, _, path in (text.partition("=") for text in self.gazetteers)}
        features = WindowFeatures(window=self.window, affixes=self.affixes, gazetteers=gazetteers or None)
        options |= {"min_count": self.min_count, "n_jobs": self.jobs, "random_state": self.seed}
        kind = ChainCRF if self.type == "crf" else ChainSVM
        scheme = None if self.scheme == "none" else self.scheme
        return Tagger(features=features, model=kind(only_observed=True, **options), scheme=scheme)

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
    from maxmargin.text.files import Lines

    return [line.strip() for _, line in Lines(Path(path), "utf-8") if line and not line.isspace()]


def describe(document: Document) -> str:
    """How much there is in a document."""
    y = document.y or []
    n_tags = len({tag for tags in y for tag in tags})
    n_tokens = sum(map(len, document.X))
    return ", ".join([counted(len(document.X), "sentence"), counted(n_tokens, "token"), counted(n_tags, "tag")])


def run_train(choices: Choices, checkpoint: Path | None, **options: Any) -> None:
    """Train a tagger on a file and write it to another."""
    target = choices.target
    tagger = choices.tagger(**options)
    train, dev = settle_scheme(tagger, *choices.documents(), is_quiet=choices.quiet)
    score = "F1" if tagger.scheme is not None else "accuracy"
    held_out = {} if dev is None else {"X_dev": dev.X, "y_dev": dev.y}
    with Progress(score, is_quiet=choices.quiet) as progress, located(train if dev is None else dev):
        tagger.fit(train.X, train.y, callback=progress, checkpoint=checkpoint, **held_out)
        model = tagger.model_
        progress.say(summary(model))
    tagger.save(target)
    best = max(model.trace_.dev_score.tolist()) if dev is not None else None
    if not choices.quiet:
        held = "" if best is None else f", held-out {score} {100 * best:.2f}"
        say(f"The tagger is in {told(target)}{held}.")
    if choices.json:
        print_json({**figures(tagger, target), "sentences": len(train.X), "held_out": best})
    if tagger.status_ is Status.INTERRUPTED:
        say("Interrupted: this is the best model so far.")
        raise typer.Exit(INTERRUPTED)


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
