"""The options of the commands, each written once; those of features are the parameters of their transformer."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from maxmargin.cli.common import say
from maxmargin.cli.text_commands.format_options import FILES, FORMATS, Format, Tokenizer, check_encoding
from maxmargin.cli.text_commands.model_options import Crossing as Crossing
from maxmargin.cli.text_commands.model_options import Inside, LearnedOfWords, ModelType, Preference
from maxmargin.cli.text_commands.model_options import Parse as Parse
from maxmargin.cli.text_commands.model_options import Tune as Tune
from maxmargin.cli.text_commands.outside_files import READERS
from maxmargin.text.resources.installed_names import PREFIX as INSTALLED
from maxmargin.text.token_features.window_options import WindowOptions

FEATURES = "Features"  # a part of what --help prints
LISTED = "TITLE=FILE"


def split_columns(text: str | None) -> list[int | str] | None:
    """Columns between commas: numbers, or names."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise typer.BadParameter(f"{text!r} must be columns with commas in between, such as 0,1 or form,xpos.")
    return [int(part) if part.lstrip("-").isdecimal() else part for part in parts]


def check_columns(text: str | None) -> str | None:
    """Check that a text is one of columns."""
    split_columns(text)
    return text


def read_separator(text: str | None) -> str | None:
    """A separator, in which a backslash and a t are a tab, as few shells let users type one."""
    return text and text.replace("\\t", "\t")


def check_titles(what: str, example: str, *, or_lists: bool = False) -> Callable[[list[str] | None], list[str]]:
    """Check that texts are titles and what they stand for, or folders and packages of lists, if said so."""

    def check(texts: list[str] | None) -> list[str]:
        for text in texts or []:
            title, _, value = text.partition("=")
            if not (title and value) and not (or_lists and (Path(text).is_dir() or text.startswith(INSTALLED))):
                others = f", or a folder of files, or {INSTALLED}en" if or_lists else ""
                raise typer.BadParameter(f"{text!r} must be a name and {what}, such as {example}{others}.")
        return texts or []

    return check


def read_lengths(value: str | tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers between commas, or those that are the default."""
    parts = value.split(",") if isinstance(value, str) else map(str, value)
    parts = [part.strip() for part in parts]
    if not all(part.isdecimal() for part in parts) and value:
        raise typer.BadParameter(f"{value!r} must be whole numbers with commas in between, such as 4,6,10.")
    return tuple(int(part) for part in parts if part)


def read_length(value: str | float) -> float | None:
    """A length, or none."""
    if value == "none":
        return None
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} must be a number, or none.") from None


def check_plot(path: Path | None) -> Path | None:
    """Find out before training what would prevent writing the plot."""
    if path is None:
        return None
    if path.suffix.lower() != ".png":
        raise typer.BadParameter(f"{str(path)!r} must end in .png.")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise typer.BadParameter(f"the folder {str(path.parent)!r} does not exist or cannot be written to.")
    if find_spec("matplotlib") is None:
        raise typer.BadParameter('plots need matplotlib: pip install "maxmargin[plot]".')
    return path


def of_files(*names: str, **more: Any) -> Any:
    """An option of files."""
    return typer.Option(*names, rich_help_panel=FILES, **more)


def inputs(kind: str, **more: Any) -> Any:
    """An argument of several files."""
    what = f"Files of {kind}, which may be compressed, or folders of them; - is standard input."
    return typer.Argument(help=what, allow_dash=True, **more)


Inputs = Annotated[list[Path] | None, inputs("sentences", metavar="[FILE...]", show_default="-")]
Model = Annotated[
    Path,
    typer.Argument(
        help="File that `maxmargin train` or `path` has written.", exists=True, dir_okay=False, metavar="MODEL"
    ),
]
FORMAT = {"help": f"Format of the files: {FORMATS}.", "metavar": "FORMAT"}
FileFormat = Annotated[Format | None, of_files("--format", "-f", show_default="by the end of the name", **FORMAT)]
SameFormat = Annotated[Format | None, of_files("--format", "-f", show_default="that of the training file", **FORMAT)]
SameEncoding = Annotated[
    str | None,
    of_files(
        "--encoding",
        help="Encoding of the file.",
        callback=check_encoding,
        show_default="that of the file it was trained on",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write.", show_default="standard output", metavar="FILE")
]
Shards = Annotated[
    Path | None,
    of_files(help="New folder to keep sentences in, or one that has them, for data beyond memory.", metavar="FOLDER"),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="PNG file to draw to.", callback=check_plot, metavar="FILE", dir_okay=False, writable=True),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.", show_default="all cores")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of SVMs.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the commands that train let users choose."""

    file: Annotated[list[Path], inputs("tagged sentences", metavar="FILE...")]
    dev: Annotated[
        Path | None,
        typer.Option(help="Held-out file, scored while training: the best weights are kept.", metavar="FILE"),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            "--output",
            "-o",
            help="Where to write the model.",
            show_default="FILE with .model",
            metavar="MODEL",
        ),
    ] = None
    format: FileFormat = None
    columns: Annotated[
        str | None,
        of_files(
            callback=check_columns,
            help="Columns of tokens, from 0, or names in CoNLL-U.",
            show_default="all but the tags",
        ),
    ] = None
    tags: Annotated[
        str | None,
        of_files(callback=check_columns, help="Column or field of tags.", show_default="last column, upos, or tags"),
    ] = None
    separator: Annotated[
        str | None,
        of_files(callback=read_separator, help="What separates columns; \\t is a tab.", show_default="spaces and tabs"),
    ] = None
    comments: Annotated[
        str | None, of_files(help="What lines of comments begin with, in column files.", show_default="there are none")
    ] = None
    encoding: Annotated[str, of_files(help="Encoding of the files.", callback=check_encoding)] = "utf-8"
    unknown: Annotated[
        str | None,
        of_files(help="Tag that stands where the tag is not known, such as UNK.", show_default="there is none"),
    ] = None
    tokenizer: Tokenizer = None
    type: Annotated[ModelType, typer.Option(help="Conditional random field, structural SVM, or one of segments.")] = (
        ModelType.crf
    )
    order: Annotated[
        int, typer.Option(help="How many tags before it a tag depends on; 2 takes longer.", min=1, max=2)
    ] = 1
    scheme: Annotated[
        str, typer.Option(help="Scheme to convert tags to, such as bilou; auto finds theirs, none has no rules.")
    ] = "auto"
    inside: Annotated[
        Inside,
        typer.Option(
            help="Scheme inside the model, whose tags stay in theirs: none is theirs, auto iobes where there are "
            "thousands of entities."
        ),
    ] = Inside.auto
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=FEATURES,
            help="Text to learn classes of words from: a sentence per line, blanks between words.",
            exists=True,
            dir_okay=False,
            metavar="FILE",
        ),
    ] = None
    learn: Annotated[
        LearnedOfWords, typer.Option(rich_help_panel=FEATURES, help="What to learn of the words of --unlabelled.")
    ] = LearnedOfWords.classes
    template: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=FEATURES, help="A template of CRF++ or Wapiti.", exists=True, dir_okay=False, metavar="FILE"
        ),
    ] = None
    two_stages: Annotated[
        bool,
        typer.Option("--two-stages", help="Tell a second tagger how a first one tags the same word in its document."),
    ] = False
    entity_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Expected share of tokens in entities, where few of them are known.", show_default="none"
        ),
    ] = None
    prefer: Annotated[
        Preference | None,
        typer.Option(help="Find more entities, or fewer that are none: by costs of mistakes.", show_default="neither"),
    ] = None
    min_count: Annotated[
        int, typer.Option(rich_help_panel=FEATURES, min=1, help="Leave out, or hash, features that occur less often.")
    ] = 1
    hashed: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=FEATURES,
            min=1,
            help="Hash features onto so many; with --min-count, rare ones alone.",
            show_default="all have names",
        ),
    ] = None
    jobs: Jobs = -1
    seed: Seed = 0
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False
    json: Json = False
    features: dict[str, Any]  # parameters of the features, options of their own
    lists: list[Path]  # the files of lists that these name

    def changed(self, names: Iterable[str], *, of_features: bool = True) -> list[str]:
        """Which of these options, and of those of features, if asked for, are not as they are by default."""
        given = {f.name: (getattr(self, f.name), f.default) for f in fields(Choices) if f.name in names}
        if of_features:
            given |= {f.name: (self.features[f.name], f.default) for f in fields(WindowOptions)}
        return [name.replace("_", "-") for name, (value, default) in given.items() if value not in (None, default)]

    def say(self, message: str) -> None:
        """A message, unless it was asked for quiet."""
        if not self.quiet:
            say(message)


# How parameters that are no numbers are given: the type of their option, and what else there is to say of it.
FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lists": (
        list[str] | None,
        {"callback": check_titles("a file", "city=cities.txt", or_lists=True), "metavar": LISTED},
    ),
    "classes": (list[str] | None, {"callback": check_titles("a file", "brown=paths.txt"), "metavar": LISTED}),
    "patterns": (
        list[str] | None,
        {"callback": check_titles("a regular expression", "year=[12][0-9]{3}"), "metavar": "TITLE=REGEX"},
    ),
    "lengths": (Any, {"parser": read_lengths, "metavar": "N,N,...", "show_default": "4,6,10"}),
    "length": (Any, {"parser": read_length, "metavar": "LENGTH"}),
    "vectors": (Path | None, {"exists": True, "dir_okay": False, "metavar": "FILE"}),
}


def feature_options(transformer: type[WindowOptions]) -> list[inspect.Parameter]:
    """The parameters of a transformer as options, with the same defaults; what comes from outside is in files."""
    found, types = [], get_type_hints(transformer)
    for argument in fields(transformer):
        said, type_ = argument.metadata, types[argument.name]
        option = {"rich_help_panel": FEATURES, "help": said.get("help", said["doc"]), "min": said.get("least")}
        if "form" in said:
            type_, more = FORMS[said["form"]]
            option |= more
        names = [said["flag"]] if "flag" in said else []
        found.append(_option(argument.name, Annotated[type_, typer.Option(*names, **option)], argument.default))
    return found


def read_resources(
    given: dict[str, Any], transformer: type[WindowOptions], encoding: str
) -> tuple[dict[str, Any], list[Path]]:
    """What was given for parameters, with what is in files in the place of these, and the files."""
    read, paths = dict(given), list[Path]()
    for argument in fields(transformer):
        form, value = argument.metadata.get("form"), given[argument.name]
        if form in READERS and value:
            texts = [value] if isinstance(value, Path) else value
            paths += [Path(text.partition("=")[2] or text) for text in map(str, texts) if form != "patterns"]
            read[argument.name] = READERS[form](value, encoding)
        elif isinstance(value, list):
            read[argument.name] = None
    return read, paths


def with_choices(command: Callable[..., None], transformer: type[WindowOptions] = WindowOptions) -> Callable[..., None]:
    """A command whose first argument, `Choices`, is made of options; its own stand before those of how to run it."""
    types, features = get_type_hints(Choices, include_extras=True), feature_options(transformer)
    shared = [
        _option(argument.name, types[argument.name], argument.default)
        for argument in fields(Choices)
        if get_origin(types[argument.name]) is Annotated
    ]
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in [*inspect.signature(command, eval_str=True).parameters.values()][1:]]
    how = [option.name for option in shared].index("jobs")
    options = [*shared[:how], *features, *own, *shared[how:]]

    @wraps(command)
    def call(**given: Any) -> None:
        held = {option.name: given.pop(option.name) for option in shared}
        outside = {option.name: given.pop(option.name) for option in features}
        chosen, lists = read_resources(outside, transformer, held["encoding"])
        command(Choices(**held, features=chosen, lists=lists), **given)

    call.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    call.__annotations__ = {option.name: option.annotation for option in options}
    return call


def _option(name: str, type_: object, default: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type_)
