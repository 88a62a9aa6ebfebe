"""Heads: with fixed features they are the models of the library, with the same optimum and certificates."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import ChainCRF, ChainSVM
from maxmargin.solvers.objective import Objective
from maxmargin.torch import CandidateHead, ChainHead, GraphCutHead, MatchingHead, TreeHead, structured_loss

LENGTHS = [4, 2, 3]
EDGES = [(0, 1), (1, 2), (2, 3)]


def features(*shape):
    return torch.tensor(np.random.default_rng(shape).normal(size=shape))


def labels(n_labels, *shape):
    return torch.tensor(np.random.default_rng(shape).integers(n_labels, size=shape))


CASES = {
    "chains": (ChainHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), LENGTHS)),
    "packed chains": (ChainHead(3, 2), labels(2, 9), (features(9, 3), LENGTHS)),
    "trees": (TreeHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), [[-1, 0, 0, 1]] * 3)),
    "candidates": (CandidateHead(3), labels(2, 3), (features(3, 4, 3), LENGTHS)),
    "cuts": (GraphCutHead(3), labels(2, 3, 4), (features(3, 4, 3), EDGES)),
    "cuts of own edges": (GraphCutHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), EDGES, features(3, 3, 2).abs())),
    "packed cuts": (GraphCutHead(3), labels(2, 5), (features(5, 3), [(0, 1), (1, 2), (0, 1)], None, [3, 2], [2, 1])),
    "matchings": (MatchingHead(3), torch.tensor([[1, 0], [0, -1]]), (features(2, 2, 3, 3), [[2, 3], [1, 2]])),
}


@pytest.fixture(params=CASES)
def case(request):
    torch.manual_seed(0)
    head, y, inputs = CASES[request.param]
    for parameter in head.double().parameters():
        torch.nn.init.normal_(parameter)
    return head, y, inputs


def mean_loss(head, y, inputs, loss="hinge"):
    return structured_loss(head(*inputs), y, loss)


def penalty(head, C, n):
    return sum(weights.square().sum() for weights in head.parameters()) / (2 * n * C)


def test_certificates_are_of_the_weights_of_the_layer(case):
    head, y, inputs = case
    certificate = head.certificate(y, *inputs, C=0.5)
    n = head(*inputs).n
    objective = mean_loss(head, y, inputs) + penalty(head, 0.5, n)
    assert certificate.primal == pytest.approx(objective.item())
    assert certificate.dual <= certificate.primal
    assert Objective(head.problem(y, *inputs), 0.5).evaluate(certificate.w).value == pytest.approx(certificate.primal)


def test_the_layer_alone_is_trained_to_its_optimum(case):
    head, y, inputs = case
    result = head.solve(y, *inputs, C=0.5, tol=1e-6, random_state=0)
    assert result.status.name == "OPTIMAL"
    found = mean_loss(head, y, inputs) + penalty(head, 0.5, head(*inputs).n)
    assert found.item() == pytest.approx(result.trace.primal[-1], rel=1e-5)
    assert found.item() - result.trace.dual[-1] <= 2e-6 * found.item()


@pytest.mark.parametrize(("loss", "model"), [("hinge", ChainSVM), ("log", ChainCRF)])
def test_gradient_descent_on_a_head_finds_the_optimum_of_the_library(loss, model):
    X, y = features(4, 5, 3), labels(2, 4, 5)
    fitted = model(C=0.5, tol=1e-7, random_state=0, dtype="float64").fit([*X.numpy()], [*y.numpy()])
    optimum = fitted.trace_.primal[-1]
    torch.manual_seed(0)
    head = ChainHead(3, 2).double()
    if loss == "hinge":  # subgradients are slow: let the steps shrink
        optimizer = torch.optim.SGD(head.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 4 * 0.5 / (2 + t))
        for _ in range(500):
            optimizer.zero_grad()
            (mean_loss(head, y, (X,), loss) + penalty(head, 0.5, 4)).backward()
            optimizer.step()
            schedule.step()
        assert head.certificate(y, X, C=0.5).primal <= optimum * (1 + 2e-2)
        return
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=200, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = mean_loss(head, y, (X,), loss) + penalty(head, 0.5, 4)
        value.backward()
        return value

    optimizer.step(closure)
    certificate = head.certificate(y, X, C=0.5, loss=loss)
    assert certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert certificate.primal - certificate.dual <= 1e-6 * optimum
    tables = head.emissions.weight.T.detach().numpy(), head.transitions.detach().numpy()
    for ours, theirs in zip(tables, (fitted.coef_.emissions, fitted.coef_.transitions), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_bad_input():
    with pytest.raises(ValueError, match="n_labels must be an integer"):
        ChainHead(3, 0)
    with pytest.raises(ValueError, match="edge_features must not be negative"):
        GraphCutHead(2)(torch.zeros(1, 2, 2), [(0, 1)], -torch.ones(1, 1))
