"""What is shown: text of files and models never steers the terminal, and readers may leave."""

import io
import json
import os
import pty
import subprocess
import sys
import textwrap

import pytest

from maxmargin.cli import app
from maxmargin.cli.common import COMMANDS, plain
from maxmargin.cli.terminal import Terminal
from tests.cli.conftest import input_error, run, usage_error

CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"  # which a terminal would put into the clipboard
SENTENCE = [("[/red]", "B-[/red]"), (CLIPBOARD, f"B-{CLIPBOARD}"), ("\x9b31m", "B-\x9b31m"), ("[bold]", "O")]
COMMAND = [sys.executable, "-m", "maxmargin"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}


def is_plain(text):
    return not any((ord(character) < 32 and character != "\n") or 127 <= ord(character) < 160 for character in text)


def test_help_lists_all_commands_in_the_order_in_which_they_are_needed():
    named = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(named) == sorted(COMMANDS)
    listed = [line.split()[1] for line in run("--help").out.splitlines() if line.startswith("│ ") and line[2] != " "]
    assert [name for name in listed if name in COMMANDS] == [*COMMANDS]


def test_what_terminals_act_on_is_escaped():
    assert plain("a\x1b[31m\x9b\x7f\r\b\ud800é\tb\n") == "a\\x1b[31m\\x9b\\x7f\\r\\x08\\ud800é\tb\n"


def test_strings_are_neither_markup_nor_commands():
    out = io.StringIO()
    Terminal(file=out, force_terminal=False).print("[/red] :smile: \x1b[31m")
    assert out.getvalue() == "[/red] :smile: \\x1b[31m\n"


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory):
    """A file, and its model, whose names, words and tags hold commands for terminals and markup."""
    folder = tmp_path_factory.mktemp(f"odd{CLIPBOARD.replace('/', '')}")
    (folder / "a.txt").write_text("".join(f"{word}\t{tag}\n" for word, tag in SENTENCE))
    outcome = run("train", folder / "a.txt", "-o", folder / "a.model", "--separator", "\t", "--max-passes", "5")
    assert outcome.code == 0
    assert is_plain(outcome.err)
    assert "\\x1b]52;c;" in outcome.err  # of the name of the file
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "a.model"],
        ["inspect", "a.model", "--json"],
        ["inspect", "a.model", "a.txt"],
        ["inspect", "a.model", "a.txt", "--word", "2"],
        ["evaluate", "a.model", "a.txt", "--confusion"],
        ["evaluate", "a.model", "a.txt", "--confusion", "--json"],
    ],
)
def test_commands_pass_nothing_on(odd_files, arguments):
    paths = [odd_files / name if name.startswith("a.") else name for name in arguments]
    code, out, err = run(*paths)
    assert code == 0
    assert is_plain(out + err)
    if "--json" in arguments:
        assert repr(CLIPBOARD)[1:-1] in str(json.loads(out))
    else:
        assert "[/red]" in out


def test_messages_pass_nothing_on(odd_files):
    (odd_files / "b.txt").write_text(f"a\t{CLIPBOARD}\n")
    assert is_plain(input_error("evaluate", odd_files / "a.model", odd_files / "b.txt"))
    (odd_files / "c.txt").write_text("a\tB-\x1b[31m\n")
    code, _, err = run("evaluate", odd_files / "a.model", odd_files / "c.txt")
    assert (code, is_plain(err)) == (0, True)
    assert "the tagger does not know B-\\x1b[31m" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "\x1b[31m.model"],
        ["demo", "--plot", "\x1b[31m.pdf"],
        ["train", "a.txt", "--gazetteer", "\x1b[31m"],
        ["train", "a.txt", "--encoding", "\x1b[31m"],
        ["path", "a.txt", "-C", "\x1b[31m"],
    ],
)
def test_wrong_usage_passes_nothing_on(arguments):
    message = usage_error(*arguments)
    assert is_plain(message)
    assert "\\x1b[31m" in message


def test_predictions_are_escaped_in_terminals_only(odd_files):
    command = [*COMMAND, "predict", odd_files / "a.model", odd_files / "a.txt"]
    piped = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True).stdout
    assert CLIPBOARD in piped
    ours, theirs = pty.openpty()
    subprocess.run(command, stdout=theirs, env=ENVIRONMENT, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        shown = file.read1(100_000).decode()
    assert is_plain(shown.replace("\r\n", "\n").replace("\t", " "))
    assert "\\x1b]52;c;" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
def test_features_are_read_on_processes_in_a_terminal_too(files, tmp_path):
    program = """
        import os, sys
        from maxmargin.cli import app
        from maxmargin.encode.names import forked_reading
        forked_reading.LEAST = 1
        read = forked_reading._read_on_processes
        def tell(n, *args):
            os.write(1, f"on {n} processes\\n".encode())
            return read(n, *args)
        forked_reading._read_on_processes = tell
        app(["train", *sys.argv[1:], "--jobs", "2", "--max-passes", "2"])
    """
    command = [sys.executable, "-c", textwrap.dedent(program), files / "train.txt", "-m", tmp_path / "a.model"]
    ours, theirs = pty.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm", "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        shown = file.read1(100_000).decode()
    assert ended.stdout.startswith(b"on 2 processes")
    assert "certified gap" in shown


@pytest.mark.parametrize("arguments", [["inspect", "tagger.model"], ["evaluate", "tagger.model", "dev.txt"]])
def test_readers_may_leave(files, arguments):
    """As `head` does."""
    inner, outer = os.pipe()
    os.close(inner)
    paths = [files / name if "." in name else name for name in arguments]
    ended = subprocess.run([*COMMAND, *paths], stdout=outer, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
    os.close(outer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_training_goes_on_without_readers_of_its_messages(files, tmp_path):
    inner, outer = os.pipe()
    os.close(inner)
    command = [*COMMAND, "train", files / "train.txt", "-o", tmp_path / "a.model", "--max-passes", "5"]
    ended = subprocess.run(command, stderr=outer, env=ENVIRONMENT, check=False)
    os.close(outer)
    assert ended.returncode == 0
    assert (tmp_path / "a.model").exists()
