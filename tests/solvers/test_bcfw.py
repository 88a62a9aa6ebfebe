"""The variants of *Minding the Gaps*: steps, sampling, caching, box constraints, automatic choice."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import regularization_path
from maxmargin.encode.inputs.rows import Rows
from maxmargin.features import DenseFeatures, Gram
from maxmargin.losses import Loss
from maxmargin.problem import USUAL_WORK, work_of
from maxmargin.runtime import interpreted
from maxmargin.solvers import BCFW, Auto, FrankWolfe
from maxmargin.solvers.automatic import auto
from maxmargin.solvers.automatic.auto import EXPENSIVE
from maxmargin.solvers.block_coordinate import sum_tree
from maxmargin.solvers.block_coordinate.block_steps import Turns, Visits
from maxmargin.solvers.block_coordinate.exact_steps import SMALL_GAP, next_in_turn
from maxmargin.solvers.objective.active_sets import OfStored
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.structures.graphs.elimination import with_elimination
from maxmargin.structures.graphs.graph_problem import make_graph_problem
from maxmargin.structures.graphs.loopy import with_oracles
from maxmargin.supervision.label_supervision import supervise, supervise_evenly
from maxmargin.testing import check_solver, toy_chains
from maxmargin.trace import Status
from tests import naive
from tests.naive import blocks_of
from tests.toy import METHODS, Candidates, chain_encoder, hard_and_easy, tolerance


@pytest.fixture(scope="module")
def problem():
    return toy_chains(n=6, n_labels=3)


@pytest.fixture(scope="module")
def references(problem):
    """Optima of the same problem by an independent solver, without and with a box."""
    blocks = blocks_of(problem)
    lower = np.full(21, -np.inf)
    lower[12:] = 0.0
    upper = np.full(21, 0.4)
    return {
        "free": (None, None, naive.solve(blocks, 1.0)[1]),
        "box": (lower, upper, naive.solve(blocks, 1.0, lower=lower, upper=upper)[1]),
    }


@pytest.mark.parametrize("method", [*METHODS, Auto()], ids=str)
def test_every_method_reaches_the_reference_optimum(method, problem, references):
    check_solver(method, problem, references["free"][2], tol=tolerance(method))


@pytest.mark.parametrize("method", [*METHODS, FrankWolfe(), BCFW(averaging=True)], ids=str)
def test_every_method_obeys_box_constraints(method, problem, references):
    lower, upper, optimum = references["box"]
    result = method.solve(problem, lower=lower, upper=upper, tol=tolerance(method), max_passes=1e5, random_state=0)
    assert result.status is Status.OPTIMAL
    assert (result.w >= lower).all()
    assert (result.w <= upper).all()
    assert optimum > references["free"][2] + 1e-3  # the box matters
    assert (result.trace.dual <= optimum * (1 + 1e-9)).all()
    assert (result.trace.primal >= optimum * (1 - 1e-9)).all()
    recomputed = naive.primal(result.w.astype(float), blocks_of(problem), 1.0)
    assert np.isclose(recomputed, result.trace.primal[-1])


@pytest.mark.parametrize("method", [m for m in METHODS if m.steps != "fw"], ids=str)
def test_active_sets_stay_on_the_simplex_and_agree_with_w(method):
    problem = toy_chains(n=12, n_labels=4, max_length=5)
    result = method.solve(problem, 5.0, tol=1e-8, max_passes=60, random_state=0)
    sets = result.dual.sets
    for i in range(12):
        begin, count = sets.slot_at[i], sets.stored_count[i]
        alpha = sets.alpha[begin : begin + count]
        assert np.isclose(alpha.sum(), 1)
        assert (alpha >= 0).all()
        size = sets.sizes[i]
        rows = sets.outputs[sets.output_at[i] : sets.output_at[i] + count * size].reshape(count, size)
        outputs = {tuple(row) for row in rows}
        assert len(outputs) == count  # no output is stored twice
        if method.cache == 0:
            assert (alpha > 0).all()
    again = Objective(problem, 5.0).at(result.dual)[0]
    assert np.allclose(again, method.solve(problem, 5.0, start=result.dual, tol=1.0).w, atol=1e-6)


@pytest.mark.parametrize("method", [m for m in METHODS if m.cache], ids=str)
def test_a_cache_saves_calls_and_is_bounded(method):
    problem = toy_chains(n=20, n_labels=4, max_length=6)
    result = method.solve(problem, 1.0, tol=1e-3, max_passes=1e4, random_state=0)
    steps = result.trace.passes[-1] * 20
    n_certificates = len(result.trace)
    hits, misses = result.trace.cache_hits[-1], result.trace.cache_misses[-1]
    assert hits > 0
    assert hits + misses == pytest.approx(steps)
    assert result.trace.oracle_calls[-1] == misses + 20 * n_certificates
    sets = result.dual.sets
    if method.steps == "fw":
        assert not sets.sizes.size  # a cache is no part of the dual point
    else:  # only active outputs may exceed the limit
        for i in range(20):
            alpha = sets.alpha[sets.slot_at[i] : sets.slot_at[i] + sets.stored_count[i]]
            assert sets.stored_count[i] <= max(method.cache, (alpha > 0).sum())


def test_the_dual_rises_with_every_step():
    problem = toy_chains(n=4)
    for method in METHODS:
        duals = []
        for k in range(1, 6):
            dual = method.solve(problem, max_passes=k, tol=1e-12, random_state=0).dual
            duals.append(Objective(problem).at(dual)[1])
        assert (np.diff(duals) >= -1e-12).all(), method


@pytest.mark.parametrize(("n", "K"), [(20, 40), (40, 80)])
def test_gap_sampling_spares_the_easy_examples(n, K):
    """Appendix C: about min(n, K, 1/(n eps)) times fewer oracle calls than uniform sampling."""
    problem = hard_and_easy(n, K)
    _, optimum = naive.solve(problem.blocks(), 1.0, tol=1e-12)
    wanted = (1 / (K // 4) - 1 / K) / (4 * n)  # the suboptimality of K/4 perfect steps on the hard example

    def steps_needed(sampling):
        """Steps until the dual is good enough, looked at after each pass; refreshing the gaps is not counted."""
        result = BCFW(sampling=sampling).solve(problem, max_passes=1, tol=1e-12, random_state=0)
        k = 1
        while optimum - result.trace.dual[-1] > wanted:
            result = BCFW(sampling=sampling).solve(problem, start=result.dual, max_passes=1, tol=1e-12, random_state=k)
            k += 1
        return n * k

    assert steps_needed("uniform") / steps_needed("gap") > min(n, K // 4) / 4


class Careless(Candidates):
    """An oracle that now and then returns the worst candidate."""

    calls = 0

    def max_oracle(self, i, theta, y, work):
        self.calls += 1
        y[0] = np.argmin(theta) if self.calls % 7 == 0 else np.argmax(theta)
        return float(theta[y[0]])


@pytest.mark.parametrize("method", [BCFW(), BCFW(steps="pairwise", sampling="gap"), FrankWolfe()], ids=str)
def test_an_oracle_worse_than_the_truth_is_reported(method):
    rng = np.random.default_rng(0)
    phi = [rng.normal(size=(5, 4)) for _ in range(8)]
    costs = [np.concatenate([[0.0], np.ones(4)]) for _ in range(8)]
    result = method.solve(Careless(phi, costs), tol=0.5, max_passes=200, random_state=0)
    assert result.status is Status.INEXACT
    assert "worse than a known one" in result.trace.notes[-1]
    exact = method.solve(Candidates(phi, costs), tol=0.5, max_passes=200, random_state=0)
    assert exact.status is Status.OPTIMAL
    assert not exact.trace.notes


def test_auto_says_what_it_chose():
    quick = Auto().solve(toy_chains(n=30), tol=0.1, random_state=0)
    assert "sampling='gap', cache=0" in quick.trace.notes[0]
    few = Auto().solve(toy_chains(n=4), tol=0.1, random_state=0)
    assert "sampling='permutation'" in few.trace.notes[0]
    again = Auto().solve(toy_chains(n=4), tol=0.1, start=few, random_state=0)
    assert again.trace.notes == few.trace.notes


def test_auto_leaves_few_large_examples_to_one_slack(monkeypatch):
    monkeypatch.setattr(auto, "LARGE", 10)
    few = Auto().solve(toy_chains(n=4), tol=1e-3)
    assert few.trace.notes == ["Chose OneSlack: there are few examples, and these are large."]
    several = Auto().solve(toy_chains(n=60), max_passes=1, random_state=0)
    assert several.trace.notes[0].startswith("Chose steps='pairwise'")
    best = BCFW().solve(toy_chains(n=4), tol=1e-4, random_state=0).certificate
    assert best.dual <= few.certificate.primal <= best.primal * (1 + 2e-3)
    again = Auto().solve(toy_chains(n=4), tol=1e-3, start=few)
    assert len(again.trace) < len(few.trace)
    path = regularization_path(toy_chains(n=4), eps=0.5, lambda_min=0.1, solver="auto", random_state=0)
    assert (path.gap <= 0.5).all()


class Slow(Candidates):
    """An oracle that takes a millisecond by a clock on which everything else takes a microsecond."""

    now, seconds = 0.0, 1e-3

    def max_oracle(self, i, theta, y, work):
        self.now += self.seconds
        return super().max_oracle(i, theta, y, work)

    def clock(self):
        self.now += 1e-6
        return self.now


def test_auto_caches_for_an_oracle_in_python():
    rng = np.random.default_rng(0)
    slow = Slow([rng.normal(size=(6, 4)) for _ in range(25)], [np.concatenate([[0.0], np.ones(5)])] * 25)
    result = Auto().solve(slow, tol=0.05, random_state=0)
    assert "cache=50: the oracle is one in Python" in result.trace.notes[0]
    assert result.trace.cache_hits[-1] > 0


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_auto_reads_no_clock(monkeypatch, n_jobs):
    """The same seed gives the same weights, however long steps seem to take."""
    problem, found = toy_chains(n=25), []
    for seconds in (1e-9, 1e-3, 1.0):
        clock = itertools.count()
        for name in ("perf_counter", "thread_time"):
            monkeypatch.setattr(time, name, lambda clock=clock, seconds=seconds: next(clock) ** 1.5 * seconds)
        found.append(Auto().solve(problem, 10.0, max_passes=12, tol=1e-9, n_jobs=n_jobs, random_state=0))
    assert len({result.trace.notes[0] for result in found}) == 1
    assert all(np.array_equal(result.w, found[0].w) for result in found)


def pairwise_of(n_nodes, pairs):
    """One graph of two states per node."""
    rng = np.random.default_rng(0)
    none = Gram(np.zeros(0), np.zeros(1, np.int64))
    nodes, edges = (DenseFeatures(rng.normal(size=(size, 1)), none) for size in (n_nodes, len(pairs)))
    starts = (np.array([0, size]) for size in (n_nodes, len(pairs)))
    known = supervise_evenly(rng.integers(2, size=n_nodes), np.ones(n_nodes), 2, float)
    return make_graph_problem(nodes, edges, (1, 1), *starts, np.array(pairs), known, n_states=[2])


@pytest.mark.parametrize(("n_labels", "cache"), [(4, 0), (12, 50)])
def test_auto_counts_the_work_of_oracles(n_labels, cache):
    """Labels that all meet take a table of 2^k entries for each k up to their number, of a term per label."""
    pairs = list(itertools.combinations(range(n_labels), 2))
    problem = with_elimination(pairwise_of(n_labels, pairs))
    n_parts = 2 * n_labels + 4 * len(pairs)
    assert work_of(problem) >= sum(2**k * k for k in range(1, n_labels + 1)) / n_parts
    with interpreted():
        note = Auto().solve(problem, max_passes=1, random_state=0).trace.notes[0]
    assert note.startswith(f"Chose steps='pairwise', sampling='permutation', cache={cache}: the oracle takes about")
    assert work_of(toy_chains()) == USUAL_WORK


def test_the_work_of_graphs_of_large_treewidth():
    """Grids of two states are likely to have a cut, labels that all meet are not."""
    grid = [(k, k + 1) for k in range(900) if k % 30 < 29] + [(k, k + 30) for k in range(870)]
    all_pairs = list(itertools.combinations(range(40), 2))
    cuts, labels = (with_oracles(pairwise_of(*graph)) for graph in ((900, grid), (40, all_pairs)))
    assert USUAL_WORK < work_of(cuts) < EXPENSIVE <= work_of(labels)


def test_a_start_without_active_sets_starts_afresh():
    problem = toy_chains(n=5)
    plain = BCFW().solve(problem, random_state=0)
    result = BCFW(steps="pairwise").solve(problem, start=plain.dual, random_state=0)
    assert result.status is Status.OPTIMAL
    assert "Started afresh" in result.trace.notes[0]


def test_the_start_is_not_changed():
    problem = toy_chains(n=5)
    first = BCFW(steps="pairwise").solve(problem, max_passes=3, tol=1e-9, random_state=0)
    before = [array.copy() for array in first.dual.sets], first.dual.means.values.copy()
    BCFW(steps="pairwise").solve(problem, start=first.dual, max_passes=5, tol=1e-9, random_state=1)
    assert all(np.array_equal(a, b) for a, b in zip(before[0], first.dual.sets, strict=True))
    assert np.array_equal(before[1], first.dual.means.values)


@given(values=st.lists(st.floats(0, 10), min_size=1, max_size=20), u=st.floats(0, 1, exclude_max=True))
def test_sum_tree_draws_in_proportion(values, u):
    n = len(values)
    tree = sum_tree.new_tree(n)
    sum_tree.leaves(tree, n)[:] = values
    sum_tree.sum_up(tree)
    assert np.isclose(tree[1], sum(values))
    drawn = sum_tree.draw(tree, n, u)
    if sum(values) > 0:
        assert values[drawn] > 0
        below = sum(values[:drawn])
        assert below - 1e-9 <= u * sum(values) <= below + values[drawn] + 1e-9
    else:
        assert drawn == int(u * n)
    sum_tree.change(tree, drawn, 3.0)
    values[drawn] = 3.0
    assert np.isclose(tree[1], sum(values))


@pytest.mark.parametrize(("n", "expected"), [(3, [6, 9, -1, -1]), (sum_tree.MANY, [6, 9, 6, -1])])
def test_draws_are_made_ahead_of_many(n, expected):
    tree = sum_tree.new_tree(n)
    sum_tree.change(tree, 1, 1.0)
    order = np.array([-1, 9, -1, -1])
    sum_tree.draw_ahead(tree, order, np.full(4, 0.5), 0, 5, n)
    assert order.tolist() == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": "newton"}, "steps must be one of fw, pairwise, away, best, exact, not 'newton'"),
        ({"sampling": "random"}, "sampling must be one of uniform, permutation, gap, not 'random'"),
        ({"cache": -1}, "cache must be an integer, at least 0, not -1"),
        ({"cache": 2.5}, "cache must be an integer, at least 0, not 2.5"),
        ({"cache_factor": 0}, "cache_factor must be a positive number, not 0"),
        ({"cache_nu": -0.1}, "cache_nu must be a positive number, not -0.1"),
        ({"uniform_share": 1.5}, "uniform_share must be a number from 0 to 1, not 1.5"),
        ({"gap_every": 0}, "gap_every must be an integer, at least 1, not 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BCFW(**options)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (1.0, 0.0, "lower must not exceed upper, but for weight 0 it is 1.0 and 0.0"),
        (np.zeros(3), None, r"lower must be a number or hold 21 numbers, but has shape \(3,\)"),
        (None, np.full(21, np.nan), "upper must not contain NaN, nor -inf"),
        (np.inf, None, "lower must not contain NaN, nor inf"),
    ],
)
def test_bad_boxes(problem, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        BCFW().solve(problem, lower=lower, upper=upper)


def test_the_best_step_is_the_best_of_three():
    """From the same point, a step on the only example raises the dual by no less than any kind of steps does.

    By more where the step away is the best one, but that towards the oracle's output is steeper, which "away" takes.
    """
    problem = toy_chains(n=1, n_labels=3, max_length=5)
    chosen = set()
    for seed, C in enumerate(np.geomspace(0.01, 10, 20)):
        start = BCFW(steps="pairwise").solve(problem, C, tol=1e-12, max_passes=1 + seed % 4).dual
        reached = {
            steps: BCFW(steps=steps).solve(problem, 2 * C, start=start, tol=1e-12, max_passes=1).trace.dual[-1]
            for steps in ("fw", "pairwise", "away", "best")
        }
        best = reached.pop("best")
        assert best >= max(reached.values()) * (1 - 1e-9)
        chosen |= {steps for steps, dual in reached.items() if dual >= best * (1 - 1e-9)}
    assert len(chosen) > 1


SEQUENCE = [BCFW(), BCFW(cache=3), BCFW(steps="pairwise", cache=3), BCFW(steps="away"), FrankWolfe()]


@pytest.mark.parametrize("second", SEQUENCE, ids=str)
@pytest.mark.parametrize("first", SEQUENCE, ids=str)
def test_any_solver_goes_on_where_another_ended_or_says_so(first, second):
    problem = toy_chains(n=6)
    before = first.solve(problem, tol=1e-9, max_passes=5, random_state=0)
    after = second.solve(problem, start=before.dual, tol=1e-9, max_passes=1, random_state=1)
    started_afresh = any("Started afresh" in note for note in after.trace.notes)
    assert started_afresh or after.trace.dual[0] >= before.trace.dual[-1] - 1e-9
    needs_sets = getattr(second, "steps", "fw") != "fw"
    assert started_afresh == (needs_sets and getattr(first, "steps", "fw") == "fw")


def test_a_start_of_another_problem_is_refused():
    other = BCFW(steps="pairwise").solve(toy_chains(n=5, n_labels=2), random_state=0)
    with pytest.raises(ValueError, match="start must be a dual point of this problem"):
        BCFW(steps="pairwise").solve(toy_chains(n=6), start=other.dual)


def test_a_harmful_start_is_not_used():
    problem = toy_chains(n=10)
    strong = BCFW(steps="pairwise").solve(problem, 1e-3, random_state=0)
    weak = BCFW(steps="pairwise").solve(problem, 1e3, start=strong.dual, max_passes=1, tol=1e-9, random_state=0)
    assert weak.trace.dual[0] >= 0
    assert "Started afresh" in weak.trace.notes[0]


@pytest.mark.parametrize("weight", [np.ones(3), np.array([1, 1, -1, 1, 1, 1.0]), np.full(6, np.nan)])
def test_bad_sample_weights(problem, weight):
    with pytest.raises(ValueError, match="sample_weight must hold"):
        BCFW().solve(problem, sample_weight=weight)


class Ragged(Candidates):
    """Examples of different sizes, and an oracle that writes the whole output."""

    def max_oracle(self, i, theta, y, work):
        y[:] = np.argmax(theta)
        return float(theta[y[0]])


@pytest.mark.parametrize("solver", [*SEQUENCE, Auto()], ids=str)
def test_examples_of_different_sizes(solver):
    rng = np.random.default_rng(0)
    phi = [rng.normal(size=(2 + i % 4, 3)) for i in range(8)]
    ragged = Ragged(phi, [np.r_[0.0, np.ones(len(p) - 1)] for p in phi])
    assert solver.solve(ragged, tol=0.05, random_state=0).status is Status.OPTIMAL


def test_estimates_need_a_whole_pass_and_exclude_averaging(problem):
    estimated = BCFW(exact_gaps=False).solve(problem, tol=1e-2, random_state=0)
    assert estimated.status is Status.ESTIMATED
    assert "Objectives are estimates" in estimated.trace.notes[-1]
    short = BCFW(exact_gaps=False).solve(problem, tol=1e-2, time_limit=1e-9, random_state=0)
    assert short.status is Status.TIMEOUT
    for averaging in (True, "recent"):
        with pytest.raises(ValueError, match="averaging needs exact_gaps"):
            BCFW(exact_gaps=False, averaging=averaging)
    with pytest.raises(ValueError, match="averaging must be one of False, True, recent, not 'last'"):
        BCFW(averaging="last")


def test_the_mean_of_recent_weights_begins_where_the_run_does(problem):
    """Before the first pass of a warm start it is w(mu), not zero."""
    first = BCFW(steps="pairwise").solve(problem, 1.0, tol=1e-6, max_passes=1e4, random_state=0)
    again = BCFW(steps="pairwise", averaging="recent").solve(problem, 1.0, start=first.dual, tol=1e-2, random_state=0)
    assert again.trace.passes[-1] == 0
    assert np.isclose(again.trace.primal[0], first.trace.primal[-1], rtol=1e-5)


@pytest.mark.parametrize("bounds", [{}, {"lower": -0.05, "upper": 0.05}], ids=["free", "box"])
def test_means_of_recent_weights_are_as_their_definition_has_them(bounds):
    """The weights at the end of each pass, the last ones for 8/(k + 7) of the mean after k passes."""
    problem, options = toy_chains(n=12, n_labels=4, max_length=5), {"tol": 1e-12, "random_state": 0, **bounds}
    objective, mean, values = Objective(problem, 5.0, **bounds), 0.0, []
    for k in range(1, 7):
        last = BCFW(steps="pairwise", gap_every=1).solve(problem, 5.0, max_passes=k, **options)
        mean += 8 / (k + 7) * (objective.weights_of(objective.at(last.dual)[0]) - mean)
        values.append(objective.evaluate(mean).value)
    found = BCFW(steps="pairwise", averaging="recent", gap_every=1).solve(problem, 5.0, max_passes=6, **options)
    assert np.allclose(found.trace.primal, np.minimum.accumulate(values), rtol=1e-9)  # the best so far


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_large_features_do_not_break_steps_in_float32(offset):
    """Terms of direction norms cancel to a millionth of their size; a wrong norm would lower the dual."""
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(60, 3)) + offset, np.arange(0, 61, 4))
    encoder = chain_encoder(np.zeros((3, 3), "float32"))
    large = encoder.assemble(
        rows, supervise(rng.integers(0, 3, 60), 1.0 - np.eye(3), np.ones(60), "float32"), with_grams=True
    )
    objective, start, duals = Objective(large, 1e-4), None, [0.0]
    for k in range(15):
        start = BCFW(steps="pairwise").solve(large, 1e-4, start=start, max_passes=1, tol=1e-9, random_state=k).dual
        duals.append(objective.at(start)[1])
    assert (np.diff(duals) >= -1e-4 * max(duals)).all()


def slow_problem(monkeypatch, n=80):
    """A pass of the oracle takes 1.6 seconds by its clock, and steps on all examples as long."""
    rng = np.random.default_rng(0)
    slow = Slow([rng.normal(size=(3, 2)) for _ in range(n)], [np.r_[0.0, 1, 1]] * n)
    slow.seconds = 1.6 / n
    monkeypatch.setattr(time, "perf_counter", slow.clock)
    return slow


def test_time_limits_leave_room_for_the_last_certificate(monkeypatch):
    slow = slow_problem(monkeypatch)
    result = BCFW().solve(slow, tol=1e-9, time_limit=5.5, random_state=0)
    assert 5.3 <= slow.now < 5.7
    assert result.status is Status.TIMEOUT
    assert result.trace.passes[-1] > 1  # those steps are certified, too
    assert np.isfinite(result.certificate.gap)
    assert result.certificate.primal == result.trace.primal[-1]


def test_weights_come_without_a_certificate_where_no_pass_fits(monkeypatch):
    slow = slow_problem(monkeypatch)
    result = BCFW().solve(slow, tol=1e-9, time_limit=0.4, random_state=0)
    assert slow.now < 0.4 + 1.1  # a second more, in case that the estimate was wrong
    assert result.status is Status.TIMEOUT
    assert result.w.any()
    assert np.isinf([result.certificate.primal, result.certificate.relative_gap]).all()
    assert result.certificate.dual == 0
    assert "inf" in str(result.trace)
    assert str(result.certificate) == "objective not known, optimum at least 0"


@pytest.mark.parametrize("option", ["cache_factor", "cache_nu"])
def test_a_lax_rule_of_cache_hits_calls_the_oracle_less(option):
    problem, limits = toy_chains(n=20, n_labels=4, max_length=5), {"tol": 1e-9, "max_passes": 31, "random_state": 0}
    strict, default, lax = (
        BCFW(steps="pairwise", cache=10, **options).solve(problem, 10.0, **limits).trace.oracle_calls[-1]
        for options in ({option: 1e6}, {}, {option: 1e-6})
    )
    assert strict > default > lax


def test_gap_sampling_with_uniform_draws_only_is_uniform_sampling():
    """At least in the first pass that it draws: later ones have used up other random numbers."""
    options = {"C": 10.0, "tol": 1e-9, "max_passes": 2, "random_state": 0}
    problem = toy_chains(n=20, n_labels=4, max_length=5)
    passes = [BCFW(sampling="gap", uniform_share=share).solve(problem, **options).trace for share in (0.0, 1.0)]
    uniform = BCFW(sampling="uniform").solve(problem, **options).trace
    assert np.isclose(passes[1].gap[1], uniform.gap[1])
    assert not np.isclose(passes[0].gap[1], uniform.gap[1])


@pytest.mark.parametrize("steps", ["fw", "pairwise"])
def test_estimated_gaps_use_the_cache(steps):
    """The rule of cache hits needs the sum of all gaps, which estimates know, too."""
    solver = BCFW(steps=steps, sampling="gap", cache=10, exact_gaps=False)
    result = solver.solve(toy_chains(n=20, n_labels=4, max_length=5), 10.0, tol=1e-4, max_passes=50, random_state=0)
    assert result.trace.cache_hits[-1] > 0


def test_known_gaps_are_no_less_than_stored_outputs_promise():
    problem = toy_chains(n=20, n_labels=4, max_length=5)
    solver = BCFW(steps="pairwise", sampling="gap", cache=10, exact_gaps=False)
    result = solver.solve(problem, 10.0, tol=1e-9, max_passes=6, random_state=0)
    promised = Objective(problem, 10.0).evaluate(
        result.w, loss=OfStored(True, Loss(), result.dual.sets), point=result.dual
    )
    assert (result.dual.gaps >= promised.gaps - 1e-6).all()
    assert result.dual.gaps.sum() > 0


def test_estimates_call_the_oracle_for_all_examples_after_gap_every_passes(problem):
    result = BCFW(sampling="gap", exact_gaps=False, gap_every=5).solve(problem, tol=1e-12, max_passes=8, random_state=0)
    assert result.trace.passes.tolist() == [1, 6, 8]
    assert result.trace.oracle_calls.tolist() == [6, 42, 54]  # the second row cost a pass more


def test_a_warm_start_from_a_result_keeps_its_weights():
    """The best weights are not always those of the last dual point."""
    problem, solver = toy_chains(n=20, n_labels=4, max_length=5, random_state=1), BCFW(steps="pairwise")
    for seed in range(5):
        result = solver.solve(problem, 10.0, tol=0.05, random_state=seed)
        again = solver.solve(problem, 10.0, tol=0.05, start=result, random_state=seed)
        assert again.trace.passes[-1] == 0
        assert again.trace.primal[-1] <= result.trace.primal[-1] * (1 + 1e-9)
        assert np.allclose(again.w, result.w)


def test_frank_wolfe_steps_keep_active_sets_where_mean_parts_are_large(monkeypatch):
    problem = toy_chains(n=12, n_labels=4, max_length=5)
    options = {"tol": 1e-9, "max_passes": 20, "random_state": 0}
    for method in (BCFW(), BCFW(averaging=True)):
        by_means = method.solve(problem, 5.0, **options)
        with monkeypatch.context() as patch:
            patch.setattr("maxmargin.solvers.block_coordinate.block_state.MOST_BYTES", 0)
            by_sets = method.solve(problem, 5.0, **options)
            more = method.solve(problem, 5.0, start=by_means.dual, **options)
        assert not by_sets.dual.means.values.size
        assert not by_means.dual.sets.sizes.size
        assert np.allclose(by_sets.w, by_means.w, atol=1e-6)
        assert np.allclose(by_sets.trace.primal, by_means.trace.primal)
        assert "Started afresh: the start holds no dual point that helps this solver." in more.trace.notes


def test_a_dual_point_of_active_sets_starts_solvers_that_keep_mean_parts():
    problem = toy_chains(n=12, n_labels=4, max_length=5)
    pairwise = BCFW(steps="pairwise").solve(problem, 5.0, tol=1e-3, random_state=0)
    assert not pairwise.dual.means.values.size
    for solver in (BCFW(), FrankWolfe()):
        again = solver.solve(problem, 5.0, start=pairwise.dual, tol=1e-3, random_state=0)
        assert again.trace.passes[-1] <= 1
        assert np.isclose(again.trace.dual[0], pairwise.trace.dual[-1])
    objective = Objective(problem, 5.0)
    assert np.allclose(objective.at(pairwise.dual)[0], objective.at(objective.means_of(pairwise.dual))[0])
    with_sets, with_means = (
        objective.evaluate(pairwise.w, point=point) for point in (pairwise.dual, objective.means_of(pairwise.dual))
    )
    assert np.allclose(with_sets.gaps, with_means.gaps)


@pytest.mark.parametrize(
    "gaps", [[3.0, 0.0, SMALL_GAP / 2, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 7.0, 0.0, 0.0]]
)
def test_turns_pass_over_small_gaps(gaps):
    n, first = len(gaps), 10
    tree = sum_tree.new_tree(n)
    sum_tree.leaves(tree, n)[:] = gaps
    sum_tree.sum_up(tree)
    order = np.array([2, 4, 0, 3, 1])
    point = SimpleNamespace(tree=tree, first=first)
    visits = Visits(np.full(7, -1), np.zeros(0), 7, n, 0, 1.0, Turns(first + order, np.array([n - 1])))
    wanted = [first + i for i in order if gaps[i] >= SMALL_GAP * np.mean(gaps)]
    assert [next_in_turn(point, visits) for _ in range(7)] == (7 * wanted)[:7]
