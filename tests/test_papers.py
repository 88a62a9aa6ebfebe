"""The list of the papers' figures, and the results that are stored of them."""

import importlib
import shlex

import pytest

from benchmarks import papers


class Begun(Exception):
    """A benchmark has read its arguments, and begins to measure."""


def refuse(*args, **options):
    raise Begun


def begin(command, monkeypatch):
    """Run a command up to where it would measure."""
    module, *arguments = shlex.split(command)
    benchmark = importlib.import_module(f"benchmarks.{module}")
    monkeypatch.setattr("sys.argv", [module, *arguments])
    monkeypatch.setattr(benchmark, "in_fresh_process", refuse)
    benchmark.main()


def test_every_stored_result_is_listed_with_its_command():
    listed = {item.result for item in papers.ITEMS if item.result}
    stored = {path.stem for path in papers.STORED.glob("*")}
    assert listed == stored == {*papers.COMMANDS}
    for name in stored:
        assert papers.load(name).command == papers.RUN + papers.COMMANDS[name]


@pytest.mark.parametrize(
    "command", sorted({*papers.COMMANDS.values(), *(item.command for item in papers.ITEMS)} - {""})
)
def test_every_listed_command_parses(command, monkeypatch):
    with pytest.raises(Begun):
        begin(command, monkeypatch)


def test_a_command_that_does_not_parse_is_noticed(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        begin("egr --nonsense", monkeypatch)


def test_the_page_shows_every_stored_result():
    page = (papers.ROOT / "docs/reproduced.md").read_text()
    for item in papers.ITEMS:
        assert (f'show_item("{item.paper}", "{item.name}")' in page) == (item.result is not None), item


def test_stored_results_are_small():
    assert sum(path.stat().st_size for path in papers.STORED.iterdir()) < 250_000


def test_a_figure_is_reproduced_only_if_all_claims_hold_on_the_papers_data(monkeypatch):
    def item(*agreements, differs=""):
        found = [papers.Finding("a claim", "a number", agrees) for agrees in agreements]
        return papers.Item("Gaps", "Figure 0", "", "egr", differs, lambda figures: found)

    assert papers.status(item(True, True, None)) == "reproduced"
    assert papers.status(item(True, differs="other data")) == "in part"
    assert papers.status(item(True, False)) == "in part"
    assert papers.status(item(False, None)) == "not"
    assert papers.status(papers.Item("Gaps", "Figure 0", "")) == "not"
    assert papers.status(papers.theory("Gaps", "Table 0", "")) == "nothing to run"


def test_the_list_has_all_papers_with_numbers(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["papers"])
    papers.main()
    text = capsys.readouterr().out
    for item in papers.ITEMS:
        assert item.name in text
        for finding in papers.findings(item):
            assert f"{finding.claim}: {finding.numbers}" in text
    assert {item.paper for item in papers.ITEMS} == {*papers.PAPERS}


def test_curves_are_thinned_from_first_to_last():
    curve = [k + 1 / 3 for k in range(1000)]
    thinned = papers.thin({"curve": curve, "runs": [{"C": 1}] * 100})
    assert len(thinned["curve"]) == papers.MOST_POINTS
    assert (thinned["curve"][0], thinned["curve"][-1]) == (0.33333, 999.33)
    assert len(thinned["runs"]) == 100
