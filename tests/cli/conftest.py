import re
import signal
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from maxmargin.cli import app
from tests.sentences import column_text, tagged_sentences


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments, text=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def usage_error(*arguments, text=None):
    """The message of a call that is wrong in itself as one line, without the box around it."""
    code, _, message = run(*arguments, text=text)
    assert code == 2
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", message).split())


def input_error(*arguments, text=None):
    """The one sentence about bad input."""
    code, out, message = run(*arguments, text=text)
    assert code == 1
    assert not out
    assert message.splitlines()[-1].startswith("Error: "), message
    return message.splitlines()[-1].removeprefix("Error: ")


@pytest.fixture(autouse=True)
def _interrupts():
    """A command that was interrupted, and has ended, ignores Ctrl-C."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with train.txt, dev.txt and the model of the former, as `maxmargin train` writes it."""
    folder = tmp_path_factory.mktemp("files")
    sentences = tagged_sentences()
    (folder / "train.txt").write_text(column_text(sentences[:18]))
    (folder / "dev.txt").write_text(column_text(sentences[18:]))
    outcome = run("train", folder / "train.txt", "--model", folder / "tagger.model")
    assert outcome.code == 0, outcome
    return folder
