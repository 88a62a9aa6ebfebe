"""What the commands share: messages, exit codes, files and taggers."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from enum import Enum
from functools import wraps
from glob import glob
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn, Self, TypeVar

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from maxmargin.tagger.light_tagger import LightTagger
    from maxmargin.tagger.word_tagger import Tagger
    from maxmargin.text import Document, Layout

STDIN = Path("-")
COMMANDS = (
    *("train", "path", "predict", "tag", "evaluate", "inspect", "report"),
    *("check", "suggest", "convert", "clusters", "vectors", "compile", "demo"),
)
BAD_INPUT, INTERRUPTED = 1, 130  # exit codes; that of wrong usage is 2
BATCH = 2_000  # sentences tagged at a time: the features of more need not be in memory

Command = TypeVar("Command", bound=Callable[..., Any])
Sentence = TypeVar("Sentence")
Found = TypeVar("Found")


# What terminals act on, all but tabs and line ends, and what cannot be printed: halves of surrogate pairs.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str) -> str:
    """A text with escapes in place of what a terminal would take for a command."""
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def say(message: str) -> None:
    """A message for people, not for pipes; if they have gone away, the work goes on."""
    with suppress(BrokenPipeError):
        print(plain(message), file=sys.stderr, flush=True)


def show(text: object) -> None:
    """A result for people, on standard output."""
    print(plain(str(text)))


class Shield:
    """Once it is up, Ctrl-C is remembered, and no longer ends the command: there is a model to be written."""

    def __init__(self) -> None:
        self.is_up = self.was_pressed = False

    def __enter__(self) -> Self:
        self.previous: Any = signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, *_: object) -> None:
        if not self.is_up:
            raise KeyboardInterrupt
        self.was_pressed = True

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.previous)

    def end(self, *, is_interrupted: bool) -> None:
        """End the command, now that the model is written, if Ctrl-C was pressed while it was trained, or since."""
        if is_interrupted:
            say("Interrupted: this is the best model so far.")
        if is_interrupted or self.was_pressed:
            self.previous = signal.SIG_IGN  # what is pressed once more, or still, shall not change the exit code
            raise typer.Exit(INTERRUPTED)


def fail(message: str) -> NoReturn:
    """End with a message about the input."""
    say(f"Error: {message}")
    raise typer.Exit(BAD_INPUT)


def reports_errors(command: Command) -> Command:
    """A command whose bad input is told in one sentence, and that ends in good order when it is interrupted."""

    @wraps(command)
    def call(**options: Any) -> None:
        options = {name: value.value if isinstance(value, Enum) else value for name, value in options.items()}
        try:
            with warnings_as_messages(is_quiet=options.get("quiet", False)):
                command(**options)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has enough of it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}." if error.filename is not None else str(error))
        except (ValueError, LookupError) as error:
            fail(" ".join(str(error).split()))
        except KeyboardInterrupt:
            say("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None

    return call  # type: ignore[return-value]


@contextmanager
def warnings_as_messages(*, is_quiet: bool) -> Iterator[None]:
    """Warnings of the library are messages like others."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: None if is_quiet else say(f"Warning: {message}")
        yield


def print_json(value: object) -> None:
    """One JSON object on standard output."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    print(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def read(
    path: Path,
    layout: Layout | None = None,
    *,
    format: str | None = None,
    encoding: str | None = None,
    needs_tags: bool = True,
) -> Document:
    """The sentences of a file, or of standard input if the path is "-"."""
    from maxmargin.text import read_document

    source, layout, name = _input(path, layout, format, encoding)
    return read_document(source, layout, needs_tags=needs_tags, keeps_lines=False, name=name)


def find_files(given: list[Path]) -> list[Path]:
    """The files that are meant: those of a folder, in the order of their names, in place of it, and so of a pattern."""
    found: list[Path] = []
    for path in given:
        if path == STDIN or path.is_file() or (path.is_dir() and any(path.glob("**/*.ann"))):
            found.append(path)
        elif path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
            if not files:
                raise FileNotFoundError(f"{path}: there are no files in this folder.")
            found += files
        else:
            matches = [Path(name) for name in sorted(glob(str(path), recursive=True))]
            found += [file for file in matches if file.is_file()] or [path]  # which is missed when it is opened
    return found


def read_files(
    given: list[Path],
    layout: Layout | None = None,
    *,
    format: str | None = None,
    encoding: str | None = None,
    needs_tags: bool = True,
) -> Document:
    """The sentences of files, as one document."""
    from maxmargin.text.sentence_files.documents import join_documents

    documents: list[Document] = []
    for path in find_files(given):
        documents.append(read(path, layout, format=format, encoding=encoding, needs_tags=needs_tags))
        layout = documents[0].layout
    return join_documents(documents)


def name_of(path: Path) -> str:
    """The name of a file or folder without its ending, nor that of its compression."""
    from maxmargin.text.sentence_files.line_files import COMPRESSED

    name = Path(path.resolve().name)
    return Path(name.stem).stem if name.suffix.lower() in COMPRESSED else name.stem


def stream(
    path: Path, layout: Layout | None, format: str | None, encoding: str | None, *, are_whole: bool = False
) -> Iterator[Document]:
    """The sentences of a file, or of standard input, part by part, as they come; documents are whole, if said so."""
    from maxmargin.text import stream_documents

    source, layout, name = _input(path, layout, format, encoding)
    return stream_documents(source, layout, most=BATCH, name=name, are_whole=are_whole)


def _input(
    path: Path, layout: Layout | None, format: str | None, encoding: str | None
) -> tuple[Path | BinaryIO, Layout, str | None]:
    """What to read from, where its sentences are, and what it is called."""
    from maxmargin.text import Layout, find_format
    from maxmargin.text.sentence_files.file_layout import TEXT_FORMATS

    by_name = None if path == STDIN else find_format(path)
    if format is None and (layout is None or by_name in TEXT_FORMATS):
        format = by_name or "columns"
    if layout is None or (format is not None and format != layout.format):
        layout = Layout(format or "columns", tokenizer=None if layout is None else layout.tokenizer)
    if encoding is not None:
        layout = replace(layout, encoding=encoding)
    return (sys.stdin.buffer, layout, "standard input") if path == STDIN else (path, layout, None)


@contextmanager
def writing(path: Path | None) -> Iterator[Callable[[Iterable[str]], None]]:
    """What writes lines: to standard output, at once, or to a file that is there when all are written, or not at all.

    A file that is none of a disk, such as a named pipe, is written to at once, too.
    """
    from maxmargin.persist import replacing

    with ExitStack() as stack:
        if path is None:
            file: Any = sys.stdout
        elif path.exists() and not path.is_file() and not path.is_dir():
            file = stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))
        else:
            file = TextIOWrapper(stack.enter_context(replacing(path)), encoding="utf-8", newline="\n")

        seen = plain if path is None and file.isatty() else str  # what is not in a terminal stays as it is

        def write(lines: Iterable[str]) -> None:
            file.write("".join(f"{seen(line)}\n" for line in lines))
            file.flush()

        yield write


@contextmanager
def locate_errors(document: Document) -> Iterator[None]:
    """Errors about tags name the file and the line."""
    from maxmargin.text import TagError

    try:
        yield
    except ValueError as error:
        cause = error if isinstance(error, TagError) else error.__cause__
        if not isinstance(cause, TagError):
            raise
        raise ValueError(f"{document.where(cause.sequence, cause.position)}: the sentence {cause.fault}.") from error


def keep_apart(target: Path, what: str, others: Iterable[Path | None]) -> None:
    """Raise where a file that is to be written is one of those that are read, or written, besides."""
    for other in others:
        is_same = other is not None and os.path.realpath(other) == os.path.realpath(target)
        if is_same or (other is not None and other.is_file() and target.is_file() and other.samefile(target)):
            raise ValueError(f"The {what} would take the place of {other}: give it another name.")


def tell_size(path: Path) -> str:
    """A file and its size."""
    size = path.stat().st_size
    return f"{path}, {size / 1e6:.1f} MB" if size >= 1e6 else f"{path}, {size / 1e3:.0f} kB"


class CommandGroup(TyperGroup):
    """The commands, in the order in which they are needed, which remember what was asked for last."""

    asked: ClassVar[list[str]] = []

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        CommandGroup.asked[:] = args
        return super().parse_args(ctx, args)


def tell_command() -> str:
    """The command that runs, as a shell takes it."""
    return shlex.join(["maxmargin", *CommandGroup.asked])


def load_tagger(path: Path) -> Tagger:
    """The tagger in a file, which predicts on all cores."""
    from maxmargin.persist import load

    return check_tagger(load(path), path)


def check_light(tagger: object, path: Path, jobs: int = -1) -> Tagger | LightTagger:
    """As `check_tagger`, of what `open_tagger` has opened, which may be light."""
    from maxmargin.tagger.light_tagger import LightTagger

    return tagger if isinstance(tagger, LightTagger) else check_tagger(tagger, path, jobs)


def check_tagger(tagger: object, path: Path, jobs: int = -1) -> Tagger:
    """What a file holds, if it is a tagger that is fitted, which predicts on so many threads; -1 is all cores."""
    from maxmargin.tagger.word_tagger import Tagger

    if not isinstance(tagger, Tagger):
        what = "parser" if is_parser(tagger) else type(tagger).__name__
        raise ValueError(f"{str(path)!r} holds a {what}, not a tagger of `maxmargin train`.")
    tagger._fitted()
    return tagger._set_jobs(jobs)


def is_parser(model: object) -> bool:
    """Whether a model is a parser of `maxmargin train --parse`: a pipeline that ends in one of dependency trees."""
    steps: list[tuple[str, object]] = getattr(model, "steps", [])
    if not steps:  # so that nothing is loaded
        return False
    from maxmargin.estimators.syntax.dependency_models import DependencyModel

    return isinstance(steps[-1][1], DependencyModel)


def same_tokens(document: Document, tagger: Tagger | LightTagger, name: str = "the tagger") -> None:
    """Raise unless the tokens of a document have as many parts as those that a tagger was trained on."""
    from maxmargin.wording import count_of

    layout, token = tagger.layout, next((token for tokens in document.X for token in tokens), None)
    if layout is None or layout.format == "json" or token is None:
        return
    wanted, found = (len(value) if isinstance(value, tuple) else 1 for value in (layout.x, token))
    if found != wanted:
        raise ValueError(
            f"{document.where(0)}: tokens have {count_of(found, 'column')}, but {name} was trained on {wanted}."
        )


def in_batches(sentences: list[Sentence], tag: Callable[[list[Sentence]], list[Found]]) -> Iterator[Found]:
    """What is found for each sentence, a few thousand at a time, documents being whole."""
    from maxmargin.text.corpus import document_sizes

    start = end = 0
    for size in document_sizes(sentences):
        end += size
        if end - start >= BATCH:
            yield from tag(sentences[start:end])
            start = end
    if start < end:
        yield from tag(sentences[start:])
