"""Oracles that are not exact: which weights are returned, and what "auto" does."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import GraphCRF, GraphSVM, Status
from maxmargin.solvers.automatic.auto import AVERAGED_PASSES
from maxmargin.solvers.frame.observation import Observer
from maxmargin.trace import Certificate

pytestmark = pytest.mark.usefixtures("interpreted_loops")


@pytest.fixture
def cliques(monkeypatch):
    """Graphs of four nodes, all joined and too many for elimination, as the limit is zero."""
    monkeypatch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
    rng = np.random.default_rng(0)
    edges = [*itertools.combinations(range(4), 2)]
    y = [rng.integers(0, 3, 4) for _ in range(4)]
    return [(np.eye(3)[labels] + 0.8 * rng.normal(size=(4, 3)), edges) for labels in y], y


def observed(is_bounded, *seen):
    """The weights that an observer keeps of certificates with some primal value and slack."""
    objective = SimpleNamespace(is_bounded=is_bounded, is_convex=True)
    run = SimpleNamespace(w=np.zeros(1), notes=[], held_out=None, objective=objective)
    run.__dict__.update(passes=1, oracle_calls=1, seconds=1.0, cache_hits=0, cache_misses=0, must_stop=False)
    run.target = lambda primal: 0.0
    observer = Observer(run, False, 0, None)
    for k, (primal, slack) in enumerate(seen):
        run.slack = slack
        observer(Certificate(np.array([k]), primal, 0.0))
    return int(observer.best[0]), observer.lowest


def test_weights_are_judged_by_what_the_oracle_attains():
    assert observed(True, (10.0, 1.0), (12.0, 8.0), (13.0, 8.0)) == (1, 12.0)
    assert observed(False, (10.0, 1.0), (12.0, 8.0)) == (0, 10.0)  # where the oracle is exact


def test_auto_averages_few_passes_where_the_oracle_is_not_exact(cliques):
    X, y = cliques
    model = GraphSVM(C=10.0, interaction="full", random_state=0).fit(X, y)
    assert model.status_ is Status.INEXACT
    assert any("Began again with averaged steps" in note for note in model.trace_.notes)
    assert any("judged by what known outputs attain" in note for note in model.trace_.notes)
    assert model.n_iter_ <= 2 * AVERAGED_PASSES  # and not the 1,000 passes of max_passes


def test_a_fit_that_is_resumed_begins_again_all_the_same(cliques, tmp_path):
    X, y = cliques
    options = {"C": 10.0, "interaction": "full", "random_state": 0}
    whole = GraphSVM(**options).fit(X, y)
    for most in (1, 12, None):
        model = GraphSVM(max_passes=most, **options).fit(X, y, checkpoint=(tmp_path / "state", 1e-9))
    assert (model.n_iter_, model.status_) == (whole.n_iter_, whole.status_)
    assert sum("Began again" in note for note in model.trace_.notes) == 1


def test_auto_goes_on_as_before_where_cuts_are_exact(monkeypatch):
    monkeypatch.setattr("maxmargin.structures.graphs.elimination_plan.LARGEST_TABLES", 0)
    rng = np.random.default_rng(0)
    ring = [(t, (t + 1) % 4) for t in range(4)]
    y = [np.roll([0, 0, 1, 1], k) for k in range(4)]
    X = [(labels[:, np.newaxis] + 0.1 * rng.normal(size=(4, 1)), ring) for labels in y]
    model = GraphSVM(C=1.0, interaction="potts", bounds={"edges": (0, None)}, random_state=0).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    assert not any("averaged" in note for note in model.trace_.notes)


def test_a_relaxed_field_that_nobody_asked_for_comes_with_a_warning(cliques, recwarn):
    X, y = cliques
    with pytest.warns(UserWarning, match="a relaxed loss is minimised, of which even the optimum can predict worse"):
        GraphCRF(max_passes=2).fit(X, y)
    recwarn.clear()
    GraphCRF(loss="relaxed", max_passes=2).fit(X, y)
    assert not [warning for warning in recwarn if "relaxed loss" in str(warning.message)]
