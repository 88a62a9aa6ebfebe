"""Heads: with fixed features they are the models of the library, with the same optimum and certificates."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import ChainCRF, ChainSVM, Loss
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.torch import (
    AlignmentHead,
    CandidateHead,
    ChainHead,
    DependencyHead,
    GraphCutHead,
    MatchingHead,
    SegmentHead,
    SpanHead,
    TreeHead,
    structured_loss,
)

LENGTHS = [4, 2, 3]
EDGES = [(0, 1), (1, 2), (2, 3)]


def features(*shape):
    return torch.tensor(np.random.default_rng(shape).normal(size=shape))


def labels(n_labels, *shape):
    return torch.tensor(np.random.default_rng(shape).integers(n_labels, size=shape))


TREES_OF_SPANS = torch.tensor([[[-1, 0, 1], [-1, -1, -1]], [[-1, 1, -1], [-1, -1, -1]]])
STATES = torch.tensor([[0, 2, 1, 3], [1, 0, -1, -1], [1, 3, 0, -1]])
CASES = {
    "chains": (ChainHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), LENGTHS)),
    "packed chains": (ChainHead(3, 2), labels(2, 9), (features(9, 3), LENGTHS)),
    "trees": (TreeHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), [[-1, 0, 0, 1]] * 3)),
    "candidates": (CandidateHead(3), labels(2, 3), (features(3, 4, 3), LENGTHS)),
    "cuts": (GraphCutHead(3), labels(2, 3, 4), (features(3, 4, 3), EDGES)),
    "cuts of own edges": (GraphCutHead(3, 2), labels(2, 3, 4), (features(3, 4, 3), EDGES, features(3, 3, 2).abs())),
    "packed cuts": (GraphCutHead(3), labels(2, 5), (features(5, 3), [(0, 1), (1, 2), (0, 1)], None, [3, 2], [2, 1])),
    "matchings": (MatchingHead(3), torch.tensor([[1, 0], [0, -1]]), (features(2, 2, 3, 3), [[2, 3], [1, 2]])),
    "alignments": (AlignmentHead(3), torch.tensor([[0, 2], [1, -1]]), (features(2, 2, 3, 3), [[2, 3], [1, 2]])),
    "warped": (
        AlignmentHead(3),
        torch.tensor([[0, 2, 0, -1], [0, 2, -1, -1]]),
        (features(2, 2, 3, 3), [[2, 3], [1, 2]], True),
    ),
    "dependencies": (DependencyHead(3), torch.tensor([[2, 0], [0, -1]]), (features(2, 2, 3, 3), [2, 1])),
    "labelled dependencies": (
        DependencyHead(3, 2),
        torch.tensor([[[2, 1], [0, 0]], [[0, 1], [-1, -1]]]),
        (features(2, 2, 3, 3), [2, 1]),
    ),
    "spans": (SpanHead(3, 2), TREES_OF_SPANS, (features(2, 2, 3, 3), [2, 1])),
    "segments": (SegmentHead(3, 2, 2), STATES, (features(3, 4, 3), LENGTHS)),
    "segments as wholes": (SegmentHead(3, 2, 3, 2), STATES, (features(3, 4, 3), LENGTHS, features(3, 4, 3, 2))),
}


@pytest.fixture(params=CASES)
def case(request):
    torch.manual_seed(0)
    head, y, inputs = CASES[request.param]
    for parameter in head.double().parameters():
        torch.nn.init.normal_(parameter)
    return head, y, inputs


@pytest.mark.parametrize(
    "make", [lambda **kind: ChainHead(3, 2, **kind), lambda **kind: TreeHead(3, 2, **kind),
             lambda **kind: CandidateHead(3, **kind), lambda **kind: GraphCutHead(3, **kind),
             lambda **kind: MatchingHead(3, **kind), lambda **kind: DependencyHead(3, 2, **kind),
             lambda **kind: AlignmentHead(3, **kind), lambda **kind: SpanHead(3, 2, **kind),
             lambda **kind: SegmentHead(3, 2, 4, 5, **kind)],
)  # fmt: skip
def test_parameters_have_the_device_and_dtype_that_is_asked_for(make):
    found = [*make(device="meta", dtype=torch.float64).parameters()]
    assert {(parameter.device.type, parameter.dtype) for parameter in found} == {("meta", torch.float64)}


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


def descend(head, y, inputs, C, loss):
    """Minimise the objective of a head by its gradients alone."""
    optimizer = torch.optim.LBFGS(
        head.parameters(), max_iter=300, tolerance_grad=1e-9, tolerance_change=1e-13, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = mean_loss(head, y, inputs, loss) + penalty(head, C, head(*inputs).n)
        value.backward()
        return value

    optimizer.step(closure)


def test_gradients_of_hinge_losses_lead_to_the_optimum_of_the_library(case):
    """Smoothed less and less: the hinge loss is at most level/2 below the smoothed one."""
    head, y, inputs = case
    for level in (1.0, 0.1, 0.01, 1e-3, 1e-4):
        descend(head, y, inputs, 0.5, Loss("l2", level=level))
    found = head.certificate(y, *inputs, C=0.5)
    result = head.solve(y, *inputs, C=0.5, tol=1e-7, random_state=0)
    assert result.certificate.dual <= found.primal <= result.certificate.primal * (1 + 1e-4)
    np.testing.assert_allclose(found.w, result.w, atol=0.02)  # as strong convexity says


def test_gradients_of_log_losses_lead_to_the_optimum_of_the_library(case):
    head, y, inputs = case
    if isinstance(head, (GraphCutHead, MatchingHead)):  # which have none
        return
    descend(head, y, inputs, 0.5, "log")
    found = head.certificate(y, *inputs, C=0.5, loss="log")
    result = head.solve(y, *inputs, C=0.5, loss="log", tol=1e-8)
    assert found.primal == pytest.approx(result.certificate.primal, rel=1e-7)
    assert 0 <= found.primal - found.dual <= 1e-6 * found.primal  # a certificate of its own
    np.testing.assert_allclose(found.w, result.w, atol=1e-3)  # as strong convexity says


@pytest.mark.parametrize(("loss", "model"), [("hinge", ChainSVM), ("log", ChainCRF)])
def test_a_head_is_the_model_of_the_library(loss, model):
    X, y = features(4, 5, 3), labels(2, 4, 5)
    fitted = model(C=0.5, tol=1e-7, random_state=0, dtype="float64").fit([*X.numpy()], [*y.numpy()])
    head = ChainHead(3, 2).double()
    for smoothed in (Loss("l2", level=level) for level in (1.0, 0.1, 0.01, 1e-3, 1e-4)) if loss == "hinge" else ["log"]:
        descend(head, y, (X,), 0.5, smoothed)
    primal = head.certificate(y, X, C=0.5, loss=loss).primal
    assert primal == pytest.approx(fitted.certificate_.primal, rel=1e-4)
    tables = head.emissions.weight.T.detach().numpy(), head.transitions.detach().numpy()
    for ours, theirs in zip(tables, (fitted.coef_.emissions, fitted.coef_.transitions), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02 if loss == "hinge" else 1e-4)


def test_bad_input():
    with pytest.raises(ValueError, match="n_labels must be an integer"):
        ChainHead(3, 0)
    with pytest.raises(ValueError, match="edge_features must not be negative"):
        GraphCutHead(2)(torch.zeros(1, 2, 2), [(0, 1)], -torch.ones(1, 1))
    with pytest.raises(ValueError, match="segment_features must be there if n_segment_features is not 0"):
        SegmentHead(2, 2, 2)(torch.zeros(1, 2, 2), None, torch.zeros(1, 2, 2, 1))
