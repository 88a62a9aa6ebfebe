"""What the commands share: messages, exit codes, files and taggers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from maxmargin.tagger import Tagger
    from maxmargin.text import Document, Layout

STDIN = Path("-")
BAD_INPUT, INTERRUPTED = 1, 130  # exit codes; that of wrong usage is 2
BATCH = 2_000  # sentences tagged at a time: the features of more need not be in memory

Command = TypeVar("Command", bound=Callable[..., Any])


def say(message: str) -> None:
    """A message for people, not for pipes."""
    print(message, file=sys.stderr, flush=True)


def fail(message: str) -> NoReturn:
    """End with a message about the input."""
    say(f"Error: {message}")
    raise typer.Exit(BAD_INPUT)


def reports_errors(command: Command) -> Command:
    """A command whose bad input is told in one sentence, and that ends in good order when it is interrupted."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
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

    return wrapped  # type: ignore[return-value]


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


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


def stream(path: Path, layout: Layout | None, format: str | None, encoding: str | None) -> Iterator[Document]:
    """The sentences of a file, or of standard input, part by part, as they come."""
    from maxmargin.text import stream_documents

    source, layout, name = _input(path, layout, format, encoding)
    return stream_documents(source, layout, most=BATCH, name=name)


def _input(
    path: Path, layout: Layout | None, format: str | None, encoding: str | None
) -> tuple[Any, Layout, str | None]:
    """What to read from, where its sentences are, and what it is called."""
    from maxmargin.text import Layout, find_format

    if layout is None or (format is not None and format != layout.format):
        layout = Layout(format or find_format(path))
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

        def write(lines: Iterable[str]) -> None:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()

        yield write


@contextmanager
def located(document: Document) -> Iterator[None]:
    """Errors about tags name the file and the line."""
    from maxmargin.text import TagError

    try:
        yield
    except ValueError as error:
        cause = error if isinstance(error, TagError) else error.__cause__
        if not isinstance(cause, TagError):
            raise
        raise ValueError(f"{document.where(cause.sequence, cause.position)}: the sentence {cause.fault}.") from error


def told(path: Path) -> str:
    """A file and its size."""
    size = path.stat().st_size
    return f"{path}, {size / 1e6:.1f} MB" if size >= 1e6 else f"{path}, {size / 1e3:.0f} kB"


def load_tagger(path: Path) -> Tagger:
    """The tagger in a file."""
    import maxmargin
    from maxmargin.tagger import Tagger

    tagger = maxmargin.load(path)
    if not isinstance(tagger, Tagger):
        raise ValueError(f"{str(path)!r} holds a {type(tagger).__name__}, not a tagger of `maxmargin train`.")
    tagger._fitted()
    return tagger


def same_tokens(document: Document, tagger: Tagger) -> None:
    """Raise unless the tokens of a document have as many parts as those that a tagger was trained on."""
    from maxmargin.checks import counted

    layout, token = tagger.layout, document.X[0][0]
    if layout is None or layout.format == "json":
        return
    wanted, found = (len(value) if isinstance(value, tuple) else 1 for value in (layout.x, token))
    if found != wanted:
        raise ValueError(
            f"{document.where(0)}: tokens have {counted(found, 'column')}, but the tagger was trained on {wanted}."
        )


def in_batches(sentences: list[Any], tag: Callable[[list[Any]], list[Any]]) -> Iterator[Any]:
    """What is found for each sentence, a few thousand at a time."""
    for start in range(0, len(sentences), BATCH):
        yield from tag(sentences[start : start + BATCH])
