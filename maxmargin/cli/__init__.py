"""The command `maxmargin`: training, tagging, evaluating and inspecting taggers, and a demo."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.cli import options
from maxmargin.cli.common import STDIN, CommandGroup, reports_errors
from maxmargin.cli.options import Choices, with_choices
from maxmargin.cli.text_commands.commands import add_commands
from maxmargin.cli.text_commands.format_options import MinCount, PredictedFormat, TextEncoding, Texts, VectorLength
from maxmargin.cli.text_commands.model_options import ClustersBy
from maxmargin.version import __version__

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, pretty_exceptions_show_locals=False, rich_markup_mode="markdown"
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"maxmargin {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Taggers of words, trained with a certificate: how far the training is from the best weights, at most.

    maxmargin train train.txt writes one to train.model, of a file with a word and its tag in each line, and a blank
    line after each sentence; maxmargin predict train.model new.txt tags others. Each command tells more: --help.
    """


def check_numbers(text: str | None) -> str | None:
    """Check that a text is one of positive numbers between commas."""
    if text is None:
        return None
    try:
        is_good = all(0 < float(number) < math.inf for number in text.split(","))
    except ValueError:
        is_good = False
    if not is_good:
        raise typer.BadParameter(f"{text!r} must be positive numbers with commas in between, such as 0.1,1,10.")
    return text


@app.command()
@reports_errors
@with_choices
def train(
    choices: Choices,
    C: Annotated[
        float | None,
        typer.Option("--C", "-C", help="Inverse strength of the regularization.", show_default="3, SVM: 0.1"),
    ] = None,
    tol: Annotated[float | None, typer.Option(help="Relative gap to stop at.", show_default="0.001, SVM: 0.02")] = None,
    max_passes: Annotated[
        float | None, typer.Option(help="Passes over the sentences after which to stop.", show_default="1000")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds after which to stop; with --tune, those of the search, and then of the fit.",
            show_default="none",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=1, help="Scores without a better one after which to stop.", show_default="10, SVM: 5"),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Leave out entities that are improbable, so that so many of those held out are right.",
            show_default="none",
        ),
    ] = None,
    former: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Model to go on from: its features, and what the file says nothing of, stay.",
            exists=True,
            dir_okay=False,
            metavar="MODEL",
        ),
    ] = None,
    tune: options.Tune = None,
    shards: options.Shards = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File to keep the state of the training in: after a kill, the same command goes on.", metavar="FILE"
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Train on the Dask cluster of this scheduler.", metavar="ADDRESS")
    ] = None,
    local: Annotated[
        int | None, typer.Option(min=1, help="Train in so many processes of this machine, by Dask.", metavar="N")
    ] = None,
    parse: options.Parse = False,
    crossing: options.Crossing = False,
) -> None:
    """Train a tagger on a file of tagged sentences and write it to another: entities, chunks, parts of speech.

    Files have a token per line, columns such as word, part of speech and tag, and blank lines between sentences; or are
    CoNLL-U, or JSON lines with "tokens" and "tags". Ctrl-C ends the training with the best model so far. With --parse,
    CoNLL-U has trees of dependencies, and the model is a parser.
    """
    given = {"C": C, "tol": tol, "max_passes": max_passes, "time_limit": time_limit, "patience": patience}
    given = {name: value for name, value in given.items() if value is not None}
    if crossing and not parse:
        raise typer.BadParameter("--crossing says what trees of parsers are like: it needs --parse.")
    if parse:
        from maxmargin.cli.text_commands.parser_training import run_train_parser

        others = {"precision": precision, "from": former, "tune": tune, "shards": shards, "scheduler": scheduler}
        run_train_parser(choices, checkpoint, {**others, "local": local}, crossing=crossing, **given)
        return
    from maxmargin.cli.training import run_train

    run_train(choices, checkpoint, precision, former, shards, scheduler, local, tune, **given)


@app.command()
@reports_errors
@with_choices
def path(
    choices: Choices,
    C: Annotated[
        str | None,
        typer.Option(
            "--C",
            "-C",
            help="Values of C to try.",
            callback=check_numbers,
            show_default="0.03,0.1,0.3 and so on until scores fall",
        ),
    ] = None,
    plot: options.Plot = None,
) -> None:
    """Find the C that is best on held-out sentences, draw the curve, and write the tagger of that C.

    Without --dev, one sentence of five is held out, and the tagger is trained on all of them in the end.
    """
    from maxmargin.cli.tuning import run_path

    run_path(choices, None if C is None else [float(number) for number in C.split(",")], plot)


@app.command()
@reports_errors
def predict(
    model: options.Model,
    file: options.Inputs = None,
    output: options.Output = None,
    format: PredictedFormat = None,
    encoding: options.SameEncoding = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", "-p", help="Write those of the tags, too.")] = False,
    jobs: options.Jobs = -1,
) -> None:
    """Tag the sentences of a file: its lines with one more column, or field; CoNLL-U with the tags in their column.

    A parser writes CoNLL-U with its trees.

    Sentences are tagged as they come: tail -f FILE | maxmargin predict MODEL. Columns of tags may be there or not.
    Two formats are only written: html, a page to look at, and jsonl, a line of JSON for each sentence, with its tags,
    its entities, and how probable they are.
    """
    from maxmargin.cli.predicting import run_predict

    run_predict(model, file or [STDIN], output, format, encoding, probabilities, jobs)


@app.command()
@reports_errors
def evaluate(
    model: options.Model,
    file: options.Inputs = None,
    format: options.SameFormat = None,
    encoding: options.SameEncoding = None,
    confusion: Annotated[bool, typer.Option("--confusion", help="Show which tags are taken for which.")] = False,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Show how far probabilities are from how often tags are right.")
    ] = False,
    matches: Annotated[
        bool,
        typer.Option("--matches", help="Count entities that are right in part, too: strict, exact, partial, type."),
    ] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Show where 95 % of scores are, where sentences are drawn at random.")
    ] = False,
    precision: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Find the threshold of probabilities that gives entities this precision."),
    ] = None,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Score a tagger on a file of tagged sentences: entities as conlleval counts them, tags and sentences.

    Or a parser: UAS and LAS, punctuation left out.

    maxmargin evaluate MODEL OTHER FILE compares two taggers: scores with intervals, and how likely a difference like
    theirs is by chance.
    """
    from maxmargin.cli.tagging import run_evaluate

    asked = {"confusion": confusion, "calibration": calibration, "matches": matches, "intervals": intervals}
    shown = {name for name, is_asked in asked.items() if is_asked}
    run_evaluate(model, file or [STDIN], format, encoding, shown, precision=precision, jobs=jobs, as_json=json)


@app.command()
@reports_errors
def inspect(
    model: options.Model,
    file: Annotated[
        Path | None,
        typer.Argument(help="File of sentences, one of which is explained; - is standard input.", allow_dash=True),
    ] = None,
    sentence: Annotated[
        int | None, typer.Option("--sentence", "-s", min=1, help="Which sentence of the file.", show_default="1")
    ] = None,
    word: Annotated[int | None, typer.Option("--word", "-w", min=1, help="Which word of it; all by default.")] = None,
    rival: Annotated[str | None, typer.Option(help="The tag to compare with.", show_default="the runner-up")] = None,
    tag: Annotated[str | None, typer.Option(help="Show the features of this tag only.")] = None,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="How many features to show.")] = 10,
    format: options.SameFormat = None,
    encoding: options.SameEncoding = None,
    json: options.Json = False,
) -> None:
    """Show what a tagger has learned: strongest features of each tag, and transitions; or why words got their tags."""
    from maxmargin.cli.inspecting import run_inspect

    run_inspect(
        model, file, format, encoding, sentence=sentence, word=word, rival=rival, tag=tag, top=top, as_json=json
    )


@app.command()
@reports_errors
def clusters(
    file: Texts,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the classes.", metavar="FILE")],
    classes: Annotated[int, typer.Option(min=2, help="Number of classes.")] = 256,
    min_count: MinCount = 2,
    max_passes: Annotated[int, typer.Option(min=1, help="How often words may move at most.")] = 20,
    by: Annotated[ClustersBy, typer.Option(help="The exchange algorithm, or k-means of vectors of words.")] = (
        ClustersBy.exchange
    ),
    size: VectorLength = 50,
    encoding: TextEncoding = "utf-8",
) -> None:
    """Learn classes of words from text that nobody has tagged, for `maxmargin train --classes`.

    Words that have like neighbours are in one class; a class is a path of 0 and 1 in a tree, as Brown's are.
    """
    from maxmargin.cli.text_commands.clustering import run_clusters

    run_clusters(file, output, by, classes, min_count, max_passes, size, encoding)


@app.command()
@reports_errors
def vectors(
    file: Texts,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the vectors.", metavar="FILE")],
    size: VectorLength = 50,
    min_count: MinCount = 2,
    encoding: TextEncoding = "utf-8",
) -> None:
    """Learn vectors of words from text that nobody has tagged, for `maxmargin train --vectors`.

    Words that have like neighbours have like vectors.
    """
    from maxmargin.cli.text_commands.clustering import run_vectors

    run_vectors(file, output, size, min_count, encoding)


@app.command("compile")
@reports_errors
def compile_ahead(
    models: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Models to compile for, with commas in between: chains, crf, tagger, segments, parsers, multiclass, "
            "trees, matchings, graphs.",
            metavar="NAMES",
            show_default="all",
        ),
    ] = None,
) -> None:
    """Compile what models need before anyone waits for it, as in the image of a container.

    What is compiled is kept on disk for this machine: MAXMARGIN_CACHE_DIR says where. The rest, such as that of other
    options, is compiled when it is first needed.
    """
    from maxmargin.cli.compiling_ahead import run_compile

    run_compile(models)


@app.command()
@reports_errors
def demo(
    words: Annotated[int, typer.Option(min=20, help="Number of words to train on.")] = 200,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the words and of the training.")] = 0,
    plot: options.Plot = None,
) -> None:
    """Learn to read words of handwritten digits, and compare with a linear SVM that reads digit by digit."""
    from maxmargin.cli.digits_demo import run_demo

    run_demo(words, seed, plot)


add_commands(app)
