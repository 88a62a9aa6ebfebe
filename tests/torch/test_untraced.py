"""Compilers of networks: what they may trace is traced, the rest is left alone, or refused in one sentence."""

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import Candidates, ChainHead, Chains, GraphCutHead, crf_loss, decode, hinge_loss, marginals


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.below, self.head = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU()), ChainHead(5, 3)

    def forward(self, x):
        return self.head(self.below(x))


class Decoder(Tagger):
    def forward(self, x):
        return decode(super().forward(x))


@pytest.fixture
def data():
    torch.manual_seed(0)
    return torch.randn(2, 6, 4, dtype=torch.float64), torch.randint(0, 3, (2, 6))


def test_compiled_networks_have_the_same_losses_gradients_and_outputs(data):
    x, y = data
    network, cuts, edges, graphs = Tagger().double(), GraphCutHead(5).double(), [(0, 1), (1, 2), (2, 3)], []

    def everything(x, y):
        potentials = network(x)
        loss = crf_loss(potentials, y) + hinge_loss(cuts(network.below(x), edges), y % 2)
        return loss, decode(potentials), marginals(potentials).emissions

    def watch(graph, inputs):
        graphs.append(len(graph.graph.nodes))
        return graph

    plain, compiled = everything(x, y), torch.compile(everything, backend=watch)(x, y)
    assert all(map(torch.allclose, plain, compiled))
    parameters = [*network.parameters()]
    assert all(map(torch.allclose, *(torch.autograd.grad(loss, parameters) for loss in (plain[0], compiled[0]))))
    assert graphs  # of the layers


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_export_is_refused_in_one_sentence(data):
    x, _ = data
    with pytest.raises(RuntimeError, match=r"no trace or exported program can hold: export .* the layers below"):
        torch.export.export(Decoder().double(), (x,))
    with pytest.raises(RuntimeError, match="the layers below, such as head"):
        torch.jit.trace(Decoder().double(), (x,))
    candidates = Candidates(torch.zeros(1, 2))
    with pytest.raises(RuntimeError, match="no trace or exported program can hold"):
        torch.jit.trace(lambda scores: scores + decode(candidates), (torch.zeros(1, 2),))


def test_layers_below_can_be_exported(data):
    x, _ = data
    network = Tagger().double()
    layers = torch.nn.Sequential(network.below, network.head.emissions)
    emissions = torch.export.export(layers, (x,)).module()(x)
    head = network.head
    assert torch.equal(decode(Chains(emissions, head.transitions, None, head.start, head.end)), decode(network(x)))
