"""`maxmargin train` and `maxmargin path`: from a file of tagged sentences to a tagger in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from maxmargin.cli import common
from maxmargin.cli.common import STDIN, Shield, read
from maxmargin.cli.options import Choices, split_columns
from maxmargin.cli.progress import Progress, summary
from maxmargin.cli.tags import settle_scheme
from maxmargin.cli.text_commands.clustering import check_learned, learn_from_text
from maxmargin.data.sharding import Shards
from maxmargin.estimators.chain_models import ChainSVM
from maxmargin.estimators.foundation.convergence import without_warning
from maxmargin.estimators.syntax.dependency_models import DependencyModel
from maxmargin.estimators.syntax.segment_models import SegmentCRF
from maxmargin.execution.threads import count_threads
from maxmargin.persist import check_writable
from maxmargin.runtime.cache import COMPILING, before_compiling
from maxmargin.tagger.entity_scores import TaggingModel
from maxmargin.tagger.option_search import OptionSearch, search_options
from maxmargin.tagger.word_tagger import Tagger, default_model
from maxmargin.text import (
    Document,
    FeatureSources,
    Layout,
    OutsideFeatures,
    SegmentFeatures,
    TemplateFeatures,
    WindowFeatures,
    find_format,
    read_template,
)
from maxmargin.text.partial_tags import is_partial, tags_in
from maxmargin.trace import Status, Trace
from maxmargin.wording import count_of

if TYPE_CHECKING:
    from distributed import Client

KEPT = {
    "type",
    "scheme",
    "inside",
    "unlabelled",
    "learn",
    "two_stages",
    "entity_share",
    "prefer",
    "min_count",
    "hashed",
    "order",
}  # of a former model
OF_WORDS = {"affixes", "cased-affixes", "shapes", "word-ngrams", "tag-ngrams", "tag-words"}  # which templates say
OF_CHAINS = {"order", "inside", "template", "entity_share", "prefer"}  # which models of segments do not have


def find_target(choices: Choices, *others: Path | None) -> Path:
    """Where to write the model; raises an error if that cannot be done, or is one of these or of what is read."""
    first = choices.file[0]
    if choices.model is None and first == STDIN:
        raise typer.BadParameter("standard input has no name to call the model by: say where to write it, --model.")
    target = Path(f"{common.name_of(first)}.model") if choices.model is None else choices.model
    read = [*common.find_files(choices.file), choices.dev, choices.unlabelled, *choices.lists, *others]
    common.keep_apart(check_writable(target), "model", read)
    return target


def tell_threads(choices: Choices) -> None:
    """Say on how many threads a model is trained."""
    choices.say(f"Training on {count_of(count_threads(choices.jobs), 'thread')} (--jobs).")


def make_tagger(choices: Choices, **options: Any) -> Tagger:
    """A tagger that is not trained yet, whose model has these options, too."""
    options |= {"min_count": choices.min_count, "n_hashed": choices.hashed}
    options |= {"n_jobs": choices.jobs, "random_state": choices.seed}
    if choices.type == "segments":
        check_segment_choices(choices)
    else:
        options["order"] = choices.order
    tell_threads(choices)
    scheme = None if choices.scheme == "none" else choices.scheme
    return Tagger(
        features=find_features(choices),
        model=make_model(choices.type).set_params(**options),
        scheme=scheme,
        inside=None if choices.inside == "none" else choices.inside,
        two_stages=choices.two_stages,
        entity_share=choices.entity_share,
        prefer=choices.prefer,
    )


def make_model(name: str) -> TaggingModel:
    """The model of a tagger, by its type."""
    match name:
        case "segments":
            return SegmentCRF(only_observed=True, C=3.0)
        case "svm":
            return ChainSVM(only_observed=True)
        case _:
            return default_model()


def check_segment_choices(choices: Choices) -> None:
    """Raise if there are options that models of segments do not have."""
    changed = choices.changed(OF_CHAINS, of_features=False)
    if changed:
        raise typer.BadParameter(f"--type segments has none of the options of chains: leave out --{changed[0]}.")


def find_features(choices: Choices) -> WindowFeatures | TemplateFeatures | FeatureSources:
    """The features of words, and of segments for models that have some; or a template, with what is outside."""
    check_learned(choices)
    if choices.template is None:
        return (SegmentFeatures if choices.type == "segments" else WindowFeatures)(**choices.features)
    of_words = [option for option in choices.changed([]) if option in OF_WORDS]
    if of_words:
        raise typer.BadParameter(f"--template says what words have: leave out --{of_words[-1]}.")
    template = read_template(choices.template, encoding=choices.encoding)
    if not choices.changed(["unlabelled"]):
        return template
    return FeatureSources(sources=[template, OutsideFeatures(**choices.features)])


def choose_layout(choices: Choices) -> Layout:
    """Where files have their sentences."""
    return Layout(
        choices.format or find_format(common.find_files(choices.file)[0]),
        split_columns(choices.columns),
        split_columns(choices.tags),
        separator=choices.separator,
        comments=choices.comments,
        encoding=choices.encoding,
        unknown=choices.unknown,
        tokenizer=choices.tokenizer,
    )


def read_shards(choices: Choices, folder: Path, tagger: Tagger) -> tuple[Shards, Document | None]:
    """The sentences to train on, from a folder of shards, which is filled if it is not there, and those held out."""
    if choices.unlabelled is not None:
        raise typer.BadParameter(
            "--unlabelled needs all sentences in memory: take `maxmargin clusters`, and --classes."
        )
    if folder.exists() and any(folder.iterdir()):
        shards = Shards(folder)
    else:
        shards = Shards.from_files(common.find_files(choices.file), choose_layout(choices), folder=folder)
    choices.say(f"{folder}: {count_of(shards.n_examples, 'sentence')} in {count_of(len(shards), 'shard')}")
    tagger.set_params(layout=shards.layout)
    return shards, None if choices.dev is None else read(choices.dev, shards.layout, format=choices.format)


def read_documents(choices: Choices) -> tuple[Document, Document | None]:
    """The sentences to train on, and those held out."""
    train = common.read_files(choices.file, choose_layout(choices))
    dev = None if choices.dev is None else read(choices.dev, train.layout, format=choices.format)
    for document in (train, *([] if dev is None else [dev])):
        choices.say(f"{document.name}: {describe(document)}")
    return train, dev


def describe(document: Document) -> str:
    """How much there is in a document."""
    y = document.y or []
    n_tokens, n_partial = sum(map(len, document.X)), sum(is_partial(tag) for tags in y for tag in tags)
    counts = [count_of(len(document.X), "sentence"), count_of(n_tokens, "token"), count_of(len(tags_in(y)), "tag")]
    return ", ".join(counts) + (f"; of {count_of(n_partial, 'token')} the tag is not known" if n_partial else "")


def take_up(former: Path, choices: Choices, **options: object) -> Tagger:
    """A trained tagger to go on from, whose model has these options from now on."""
    changed = choices.changed(KEPT)
    if changed:
        raise typer.BadParameter(f"--from keeps type, scheme and features of {former}: leave out --{changed[0]}.")
    tagger = common.load_tagger(former)
    tell_threads(choices)
    tagger.model_.set_params(n_jobs=choices.jobs, random_state=choices.seed, **options)
    return tagger.set_params(scheme=tagger.scheme_)


@contextmanager
def find_cluster(scheduler: str | None, local: int | None) -> Iterator[Client | None]:
    """A client of the cluster to train on; None if there is to be none."""
    if scheduler is None and local is None:
        yield None
        return
    if scheduler is not None and local is not None:
        raise typer.BadParameter("--scheduler and --local are two clusters: name one of them.")
    try:
        from maxmargin.execution.dask_tasks import connect
    except ImportError:
        raise typer.BadParameter('--scheduler and --local need Dask: pip install "maxmargin[dask]".') from None
    with connect(scheduler, local) as client:
        yield client


def run_train(
    choices: Choices,
    checkpoint: Path | None,
    precision: float | None,
    former: Path | None,
    folder: Path | None,
    scheduler: str | None,
    local: int | None,
    tune: str | None,
    **options: object,
) -> None:
    """Train a tagger on a file, from the start or from a former one, here or on a cluster; write it to another."""
    if tune is not None and choices.type == "segments":
        raise typer.BadParameter("--tune chooses among models of chains: leave out --type segments.")
    if tune is not None and former is not None:
        raise typer.BadParameter("--from keeps the options of the former model: leave out --tune.")
    target = find_target(choices, checkpoint)
    seconds: Any = options.get("time_limit")
    tagger = make_tagger(choices, **options) if former is None else take_up(former, choices, **options)
    X: Any
    y: Any
    if folder is not None:
        if tune is not None:
            raise typer.BadParameter("--tune trains on all sentences in memory: leave out --shards.")
        X, dev = read_shards(choices, folder, tagger)
        y, named, n_sentences = None, dev, X.n_examples
    else:
        train, dev = settle_scheme(tagger, *read_documents(choices), say=choices.say)
        learn_from_text(choices, tagger, train)
        X, y, named, n_sentences = train.X, train.y or [], train if dev is None else dev, len(train.X)
    if precision is not None and (dev is None or tagger.scheme is None):
        raise typer.BadParameter("--precision needs --dev, held-out sentences, and tags that spell entities.")
    score = "F1" if tagger.scheme is not None else "accuracy"
    held_out = {} if dev is None else {"X_dev": dev.X, "y_dev": dev.y}
    search = None
    if tune is not None:
        with common.locate_errors(train if dev is None else dev):
            search = tune_options(choices, tagger, train, held_out, effort=tune, time_limit=seconds)
        tagger = search.tagger
    with find_cluster(scheduler, local) as client, Shield() as shield:

        def watch(trace: Trace) -> None:
            shield.is_up = True
            progress(trace)

        with (
            Progress(score, is_quiet=choices.quiet) as progress,
            nullcontext() if named is None else common.locate_errors(named),
        ):
            with without_warning():  # `summary` says it
                fit = tagger.fit if former is None else tagger.partial_fit
                fit(X, y, callback=watch, checkpoint=checkpoint, client=client, **held_out)
            progress.say(summary(tagger.model_))
        if former is None:
            tell_of_lists(tagger, choices.say)
        if precision is not None and dev is not None:
            set_threshold(tagger, dev, precision, choices.say)
        tagger.model_.command_ = common.tell_command()
        tagger.save(target)
        best = max(tagger.trace_.dev_score.tolist()) if dev is not None else None
        held = "" if best is None else f", held-out {score} {100 * best:.2f}"
        choices.say(f"The tagger is in {common.tell_size(target)}{held}.")
        if choices.json:
            found = {} if search is None else {"search": search.as_dict()}
            common.print_json({**figures(tagger, target), "sentences": n_sentences, "held_out": best, **found})
        shield.end(is_interrupted=tagger.status_ is Status.INTERRUPTED)


def set_threshold(tagger: Tagger, dev: Document, precision: float, say: Callable[[str], None]) -> None:
    """Give a tagger the threshold by which its entities have a precision on held-out sentences, if there is one."""
    try:
        tagger.set_params(threshold=tagger.find_threshold(dev.X, dev.y or [], precision=precision))
    except ValueError as error:
        say(f"Warning: {error} All entities are kept.")
    else:
        say(f"Entities of a probability below {tagger.threshold:.4f} are left out.")


def tune_options(
    choices: Choices, tagger: Tagger, train: Document, held_out: dict[str, Any], **limits: Any
) -> OptionSearch:
    """Find options that are good on held-out sentences, and say what each of them is worth."""

    def tell(title: str, score: float) -> None:
        choices.say(f"Held-out score {100 * score:.2f}: {title}")

    with before_compiling(partial(choices.say, COMPILING)):
        search = search_options(tagger, train.X, train.y or [], **held_out, callback=tell, **limits)
    choices.say(str(search))
    return search


def tell_of_lists(tagger: Tagger, say: Callable[[str], None]) -> None:
    """Say which lists were made of the training data."""
    for title in getattr(tagger.features_, "cross_fit_", []):
        say(
            f"The list {title!r} is made of the entities to train on: each tenth knows those that the others have, too."
        )


def figures(tagger: Tagger, target: Path) -> dict[str, object]:
    """What there is to know of a trained tagger."""
    found = figures_of_fit(tagger.model_, target)
    return {**found, "scheme": tagger.scheme_, "tags": tagger.classes_.tolist()}


def figures_of_fit(model: TaggingModel | DependencyModel, target: Path) -> dict[str, object]:
    """What there is to know of a fit, and of the file that the model is in."""
    return {
        "model": str(target),
        "status": model.status_.name,
        "C": model.C,
        "objective": model.certificate_.primal,
        "relative_gap": model.certificate_.relative_gap,
        "passes": model.trace_.last("passes"),
        "seconds": model.trace_.last("seconds"),
        "features": int(model.n_features_in_),
    }
