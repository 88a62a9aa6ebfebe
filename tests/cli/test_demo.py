from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import maxmargin
from maxmargin.cli import app


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def error_of(*arguments):
    """The message of a refused call as one line, without the box around it."""
    result = run(*arguments)
    assert result.exit_code == 2
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())


def share(output, row):
    """The percentages of a row of the table of errors."""
    line = next(line for line in output.splitlines() if line.strip().startswith(row))
    return [float(number) for number in re.findall(r"([\d.]+)%", line)]


def test_version():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"maxmargin {maxmargin.__version__}\n")


def test_the_package_is_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "maxmargin", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"maxmargin {maxmargin.__version__}\n"


def test_demo_is_a_command_of_its_own():
    assert "demo" in run("--help").output
    assert "--words" not in run("--help").output
    assert "No such option" in error_of("--words", "20")


def test_help_loads_nothing_heavy():
    code = "import sys, maxmargin.cli; print(sorted({'numba', 'sklearn', 'numpy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_demo_prints_trace_certificate_errors_and_an_example():
    result = run("demo", "--words", "60")
    assert result.exit_code == 0
    output = result.output
    assert "Training a ChainSVM on 60 words" in output
    assert "OPTIMAL: the duality gap reached tol." in output
    gap = re.search(r"no other weights lower the objective by more than\s+([\d.]+)%", output)
    assert float(gap.group(1)) <= 0.5
    linear, chain = share(output, "linear SVM, digit by digit"), share(output, "ChainSVM, whole words")
    assert chain[0] < linear[0]
    assert chain[1] < linear[1]
    truth, read = (
        re.findall(r"\d", re.search(rf"^{row} +((\d +)+)", output, re.M)[1]) for row in ("truth", "ChainSVM")
    )
    assert truth == read[: len(truth)]
    assert re.search(r"^linear SVM .*\[\d\]", output, re.M)
    assert "█" in output


def test_demo_is_determined_by_its_seed():
    def without_seconds(seed):
        output = run("demo", "--words", "20", "--seed", seed).output
        return output[output.index("Errors on") :]

    assert without_seconds("1") == without_seconds("1") != without_seconds("2")


def test_ctrl_c_ends_the_demo(monkeypatch):
    monkeypatch.setattr("maxmargin.cli.digits_demo._warm_up", lambda words: None)
    fit = maxmargin.ChainSVM.fit
    monkeypatch.setattr(maxmargin.ChainSVM, "fit", lambda *a: fit(*a, callback=lambda _: True))
    result = run("demo", "--words", "20")
    assert (result.exit_code, "Errors on" in result.output) == (130, False)


def test_demo_writes_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "a [b].png"
    result = run("demo", "--words", "20", "--plot", str(path))
    assert result.exit_code == 0
    assert f"The plot is in {path}." in result.output
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    ("option", "value"), [("--words", "0"), ("--words", "few"), ("--seed", "-1"), ("--seed", str(2**32))]
)
def test_bad_numbers_name_the_option(option, value):
    assert f"Invalid value for '{option}'" in error_of("demo", option, value)


def test_plots_that_cannot_be_written_are_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "'plot.pdf' must end in .png." in error_of("demo", "--plot", "plot.pdf")
    assert "the folder 'none' does not exist" in error_of("demo", "--plot", "none/plot.png")
    (tmp_path / "folder.png").mkdir()
    assert "is a directory" in error_of("demo", "--plot", "folder.png")


def test_plots_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert 'pip install "maxmargin[plot]"' in error_of("demo", "--plot", "plot.png")


def test_shells_complete_commands(monkeypatch):
    monkeypatch.setenv("_MAXMARGIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "maxmargin tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    result = CliRunner().invoke(app, [], prog_name="maxmargin")
    assert result.output.split() == ["train"]
