"""Entropies and divergences of distributions over outputs: against enumeration, and derivatives against differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import Candidates, Chains, GraphCuts, cross_entropy, entropy, kl_divergence
from tests.torch.test_losses import CASES, as_tuple

SUMS = {name: case for name, case in CASES.items() if case.has_sums}


@pytest.fixture(params=SUMS)
def case(request):
    return SUMS[request.param]


def others(case):
    """Tensors of other potentials of the same shapes."""
    rng = np.random.default_rng(1)
    return [torch.tensor(rng.normal(size=tensor.shape), requires_grad=True) for tensor in case.tensors]


def logarithms(case, tensors, i):
    """The log-probabilities of all outputs of example i."""
    scores = torch.stack([case.score(tensors, i, as_tuple(y)) for y in case.outputs(i)])
    return torch.log_softmax(scores.detach(), 0)


def test_values_are_those_of_all_outputs(case):
    q = others(case)
    of_p, of_q = case.potentials, case.make(*q)
    for i, (own, cross, divergence) in enumerate(
        zip(entropy(of_p), cross_entropy(of_p, of_q), kl_divergence(of_p, of_q), strict=True)
    ):
        log_p, log_q = logarithms(case, case.tensors, i), logarithms(case, q, i)
        torch.testing.assert_close(own.detach(), -(log_p.exp() * log_p).sum())
        torch.testing.assert_close(cross.detach(), -(log_p.exp() * log_q).sum())
        torch.testing.assert_close(divergence.detach(), (log_p.exp() * (log_p - log_q)).sum())


@pytest.mark.parametrize("name", ["chains", "trees", "candidates", "dependencies", "alignments", "segments"])
def test_gradients_are_those_of_differences(name):
    case, n = CASES[name], len(CASES[name].tensors)
    assert torch.autograd.gradcheck(lambda *tensors: entropy(case.make(*tensors)), case.tensors, atol=1e-6)
    assert torch.autograd.gradcheck(
        lambda *tensors: kl_divergence(case.make(*tensors[:n]), case.make(*tensors[n:])),
        (*case.tensors, *others(case)),
        atol=1e-6,
    )


def test_impossible_outputs():
    p = torch.tensor([[0.5, -torch.inf, 0.2]], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([[0.1, -torch.inf, -0.4]], dtype=torch.float64, requires_grad=True)
    chances = torch.softmax(p.detach(), 1)[0, [0, 2]]
    assert torch.isclose(entropy(Candidates(p))[0], -(chances * chances.log()).sum())
    value = kl_divergence(Candidates(p), Candidates(q)).sum()
    found = torch.autograd.grad(value, (p, q))
    assert all(torch.isfinite(gradient).all() for gradient in found)
    known = torch.autograd.grad(
        torch.nn.functional.kl_div(
            torch.log_softmax(q[:, [0, 2]], 1), torch.log_softmax(p[:, [0, 2]], 1), log_target=True, reduction="sum"
        ),
        (p, q),
    )
    for one, other in zip(found, known, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)
    assert cross_entropy(Candidates(torch.zeros(1, 3)), Candidates(q.float())).item() == torch.inf
    sure = torch.full((1, 3), -torch.inf)
    sure[0, 1] = 0
    assert entropy(Candidates(sure)).item() == 0


def test_potentials_that_one_of_them_shares():
    emissions, shared = torch.randn(2, 3, 2), torch.randn(2, 2)
    own = Chains(emissions, shared.expand(2, 2, 2))
    torch.testing.assert_close(kl_divergence(Chains(emissions, shared), own), torch.zeros(2), atol=1e-5, rtol=0)


def test_bad_input():
    chains = Chains(torch.zeros(2, 3, 2), torch.zeros(2, 2))
    with pytest.raises(TypeError, match="p and q must have the same structure, not Chains and Candidates"):
        cross_entropy(chains, Candidates(torch.zeros(2, 3)))
    with pytest.raises(ValueError, match="p and q must have the same shapes"):
        kl_divergence(chains, Chains(torch.zeros(2, 4, 2), torch.zeros(2, 2)))
    with pytest.raises(ValueError, match="p and q must have the same lengths"):
        kl_divergence(chains, Chains(torch.zeros(2, 3, 2), torch.zeros(2, 2), [3, 2]))
    with pytest.raises(ValueError, match="GraphCuts have no entropy"):
        entropy(GraphCuts(torch.zeros(1, 2), [(0, 1)], torch.zeros(1)))
