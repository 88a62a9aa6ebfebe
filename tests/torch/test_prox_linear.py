"""Prox-linear training: its steps against their definition, its promises along runs, and linear networks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import BCFW, Casimir, OneSlack
from maxmargin.testing import check_structure
from maxmargin.torch import (
    CandidateHead,
    ChainHead,
    Chains,
    Dependencies,
    MatchingHead,
    ProxLinear,
    StochasticSubgradient,
    TreeHead,
    structured_loss,
)
from maxmargin.torch.prox_linear import without_costs
from maxmargin.torch.score_map import ScoreMap
from tests.naive import labellings, matchings

rng = np.random.default_rng(0)


def random(*shape):
    return torch.tensor(rng.normal(size=shape))


def labels(n_labels, *shape):
    return torch.tensor(rng.integers(n_labels, size=shape))


class Network(torch.nn.Module):
    """A hidden layer below a head."""

    def __init__(self, head, n_features=3, n_hidden=3):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.head = torch.nn.Linear(n_features, n_hidden), head
        self.double()
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.5)

    def forward(self, features, *args):
        return self.head(torch.nn.functional.elu(self.hidden(features)), *args)


LISTS = [random(1, k, 3) for k in (4, 2, 5, 3, 4, 3)]
BEST = [x[:, :, 0].abs().argmax(dim=1) for x in LISTS]  # which no linear score finds
CASES = {
    "candidates": (CandidateHead(3), LISTS, BEST, lambda i: [(k,) for k in range(LISTS[i].shape[1])]),
    "chains": (
        ChainHead(3, 2),
        [random(1, t, 3) for t in (3, 1, 2)],
        [labels(2, 1, t) for t in (3, 1, 2)],
        lambda i: labellings((3, 1, 2)[i], 2),
    ),
    "trees": (
        TreeHead(3, 2),
        [(random(1, 3, 3), [[-1, 0, 0]]), (random(1, 2, 3), [[1, -1]])],
        [labels(2, 1, 3), labels(2, 1, 2)],
        lambda i: labellings((3, 2)[i], 2),
    ),
    "matchings": (
        MatchingHead(3),
        [random(1, 2, 3, 3), random(1, 1, 2, 3)],
        [torch.tensor([[2, -1]]), torch.tensor([[1]])],
        lambda i: matchings(*((2, 3), (1, 2))[i]),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    head, inputs, y, outputs = CASES[request.param]
    return Network(head), inputs, y, outputs


def objective(network, inputs, y, C, loss="hinge"):
    losses = [
        structured_loss(network(*(x if isinstance(x, tuple) else (x,))), t, loss)
        for x, t in zip(inputs, y, strict=True)
    ]
    squares = sum(parameter.square().sum() for parameter in network.parameters())
    return (sum(losses) / len(losses) + squares / (2 * len(losses) * C)).item()


def test_the_linearized_problem_is_that_of_its_derivatives(case):
    network, inputs, y, outputs = case
    scores = ScoreMap(network, inputs, y, None, False)
    derivatives, potentials, w = scores.derivatives(), scores.potentials(), scores.w
    problem = scores.linearized(derivatives, 0 * potentials)
    check_structure(problem, outputs=outputs)
    for column in range(0, scores.n_weights, 5):
        ends = []
        for sign in (-1, 1):
            moved = w.copy()
            moved[column] += sign * 1e-5
            scores.w = moved
            ends.append(scores.potentials())
        np.testing.assert_allclose((ends[1] - ends[0]) / 2e-5, derivatives[:, column], atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_the_objective_never_increases(case, loss):
    network, inputs, y, _ = case
    if loss == "log" and isinstance(network.head, MatchingHead):
        return
    before = objective(network, inputs, y, 5.0, loss)
    trained = ProxLinear(max_steps=6, solver="lbfgs" if loss == "log" else None, inner_passes=50).solve(
        network, inputs, y, C=5.0, loss=loss, random_state=0
    )
    assert trained.trace.primal[0] == pytest.approx(before)
    assert (np.diff(trained.trace.primal) <= 0).all()
    assert trained.trace.primal[-1] < before
    assert objective(network, inputs, y, 5.0, loss) == pytest.approx(trained.trace.primal[-1])


def test_the_guarantee_along_a_run():
    """Theorem 35: min_k ||stationarity||^2 <= (2/(eta K)) {F(w_0) - inf F + sum of the gaps}, for eta <= 1/L."""
    network, eta = Network(CandidateHead(3)), 0.05
    prox = ProxLinear(eta=eta, solver=OneSlack(), inner_passes=500, inner_tol=1e-6, max_steps=25, tol=1e-12)
    trace = prox.solve(network, LISTS, BEST, C=5.0).trace
    assert all(trace.extras["accepted"])
    bounds, gaps = np.array(trace.extras["stationarity_bound"][1:]), np.array(trace.extras["model_gap"][1:])
    for k in range(1, len(bounds) + 1):
        promise = 2 / (eta * k) * (trace.primal[0] - trace.primal[-1] + gaps[:k].sum())
        assert (bounds[:k] ** 2).min() <= promise + 2 * (gaps[:k].max() / eta)


def stationarity(network, eta, C):
    """||w - argmin of the model at w||/eta at the parameters of a network, by an accurate solver."""
    prox = ProxLinear(eta=eta, solver=OneSlack(), inner_passes=1000, inner_tol=1e-9, max_steps=1, tol=1e9)
    return prox.solve(network, LISTS, BEST, C=C).trace.extras["stationarity"][1]


@pytest.mark.parametrize("options", [{"max_steps": 5}, {"max_steps": 9}, {"tol": 0.2}], ids=str)
def test_the_last_bound_is_one_of_the_parameters_returned(options):
    network, C = Network(CandidateHead(3)), 5.0
    prox = ProxLinear(solver=OneSlack(), inner_passes=500, inner_tol=1e-6, **options)
    trained = prox.solve(network, LISTS, BEST, C=C)
    known = {name: column[-1] for name, column in trained.trace.extras.items()}
    assert stationarity(network, known["eta"], C) <= known["stationarity_bound"] * (1 + 1e-6)
    assert known["stationarity_bound"] <= 2 * stationarity(network, known["eta"], C) + 0.01  # nor is it a loose one
    assert objective(network, LISTS, BEST, C) == pytest.approx(trained.trace.primal[-1])
    if "tol" in options:
        assert known["stationarity_bound"] <= prox.tol


def test_small_steps_decrease_the_objective_as_the_gradient_says():
    network, inputs = Network(CandidateHead(3)), LISTS
    scores = ScoreMap(network, inputs, BEST, None, False)
    w, loss = scores.w, "log"
    sums = [structured_loss(network(x), t, loss) for x, t in zip(inputs, BEST, strict=True)]
    gradient = torch.autograd.grad(sum(sums) / len(inputs), [*network.parameters()])
    gradient = torch.cat([g.reshape(-1) for g in gradient]).numpy() + w / (len(inputs) * 5.0)
    trained = ProxLinear(eta=1e-4, solver="lbfgs", inner_tol=1e-10, inner_passes=100, max_steps=1).solve(
        network, inputs, BEST, C=5.0, loss=loss
    )
    np.testing.assert_allclose((w - trained.w) / 1e-4, gradient, atol=2e-3)
    assert trained.trace.extras["stationarity"][1] == pytest.approx(np.linalg.norm(gradient), rel=1e-2)


def test_a_linear_network_is_the_convex_problem():
    head, C = CandidateHead(3).double(), 2.0
    packed = torch.cat([x[0] for x in LISTS])
    exact = CandidateHead(3).double().solve(torch.cat(BEST), packed, [x.shape[1] for x in LISTS], C=C, tol=1e-6)
    trained = ProxLinear(eta=np.inf, solver="one-slack", inner_passes=500, inner_tol=1e-6, max_steps=1).solve(
        head, LISTS, BEST, C=C
    )
    assert trained.inner.status.name == "OPTIMAL"
    assert trained.trace.primal[-1] == pytest.approx(exact.certificate.primal, rel=1e-4)
    assert trained.inner.certificate.primal == pytest.approx(trained.trace.primal[-1], rel=1e-9)
    assert trained.inner.certificate.dual == pytest.approx(exact.certificate.dual, rel=1e-4)
    np.testing.assert_allclose(trained.w, exact.w, atol=2e-3)
    stepwise = ProxLinear(
        eta=20.0, solver=BCFW(steps="pairwise"), inner_passes=100, inner_tol=1e-5, max_steps=12
    ).solve(CandidateHead(3).double(), LISTS, BEST, C=C, random_state=0)
    assert stepwise.trace.primal[-1] == pytest.approx(exact.certificate.primal, rel=1e-4)


def test_rows_have_the_same_derivatives():
    network = Network(CandidateHead(3))
    slow, fast = (ScoreMap(network, LISTS, BEST, None, way).derivatives() for way in (False, True))
    np.testing.assert_allclose(slow, fast, atol=1e-12)


def test_both_schedules_and_the_rival():
    costs = [torch.rand(len(x[0])).double() * (torch.arange(len(x[0])) != t) for x, t in zip(LISTS, BEST, strict=True)]
    for schedule in ("adaptive", "constant"):
        trained = ProxLinear(schedule=schedule, level=0.5, smoothness=2.0, max_steps=4).solve(
            Network(CandidateHead(3)), LISTS, BEST, C=5.0, cost=costs, is_rowwise=True, random_state=0
        )
        assert trained.trace.primal[-1] < trained.trace.primal[0]
    for schedule in ("constant", "sqrt", "inverse"):
        network = Network(CandidateHead(3))
        trained = StochasticSubgradient(schedule, step=0.05, max_passes=8).solve(
            network, LISTS, BEST, C=5.0, cost=costs, random_state=0
        )
        assert trained.trace.primal[-1] < trained.trace.primal[0]
        assert trained.trace.oracle_calls[-1] == len(LISTS) * 17


def test_solvers_that_smooth_follow_the_schedule():
    def weights(**options):
        network = Network(CandidateHead(3))
        return ProxLinear(smoothness=2.0, max_steps=3, **options).solve(network, LISTS, BEST, C=5.0, random_state=0).w

    expected = weights(level=0.5)
    np.testing.assert_array_equal(weights(level=0.5, solver=Casimir(schedule="constant")), expected)
    np.testing.assert_array_equal(weights(solver=Casimir(schedule="constant", level=0.5)), expected)
    assert not np.array_equal(weights(level=0.5, solver=Casimir(schedule="constant", warm_start="previous")), expected)
    assert not np.array_equal(weights(level=0.5, schedule="constant"), expected)


def test_a_callback_stops():
    seen = []
    trained = ProxLinear().solve(
        Network(CandidateHead(3)), LISTS, BEST, callback=lambda trace: seen.append(len(trace)) or True
    )
    assert seen == [2]
    assert len(trained.trace) == 3  # and what is proven of the parameters
    assert np.isnan(trained.trace.extras["accepted"][-1])


def test_bad_input():
    head = CandidateHead(3).double()
    for call, message in (
        (lambda: ProxLinear(eta=0), "eta must be a positive number"),
        (
            lambda: ProxLinear(max_bytes=1000).solve(Network(CandidateHead(3)), LISTS, BEST),
            "derivatives of 21 potentials by 15 parameters would take 2,520 bytes, but max_bytes is 1,000",
        ),
        (lambda: ProxLinear(schedule="slow"), "schedule must be one of"),
        (lambda: StochasticSubgradient("fast"), "schedule must be one of"),
        (lambda: ProxLinear().solve(head, LISTS, BEST[:2]), "inputs and y must be as many"),
        (lambda: ProxLinear().solve(head.requires_grad_(False), LISTS, BEST), "parameters that require a gradient"),
        (lambda: ProxLinear().solve(ChainHead(3, 2).double(), LISTS, BEST, is_rowwise=True), "is_rowwise is for"),
        (lambda: ProxLinear(eta=np.inf).solve(Network(CandidateHead(3)), LISTS, BEST, C=np.inf), "both be infinite"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="of one example"):
        ProxLinear().solve(torch.nn.Linear(3, 1).double(), LISTS, BEST)
    steps = torch.nn.Module()
    steps.table = torch.nn.Parameter(torch.zeros(1, 1, 2, 2))
    steps.forward = lambda x: Chains(x, steps.table)
    with pytest.raises(ValueError, match="must be shared by the steps"):
        ProxLinear().solve(steps, [torch.zeros(1, 2, 2)], [torch.zeros(1, 2, dtype=int)])


def test_dependency_trees_without_costs():
    problem = Dependencies(torch.zeros(1, 2, 3)).problem(torch.tensor([[2, 0]]), None, "float64")
    assert problem.supervision.word_cost.all()
    assert not without_costs(problem).supervision.word_cost.any()
