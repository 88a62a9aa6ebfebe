"""Samples are as frequent as they are probable."""

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import Chains, Dependencies, GraphCuts, SpanTrees, decode, log_partition, sample, score

N_SAMPLES = 4000


def chains():
    return Chains(torch.randn(2, 3, 2), torch.randn(2, 2), [3, 2])


def dependencies():
    return Dependencies(torch.randn(2, 3, 4), [3, 2])


def crossing():
    return Dependencies(torch.randn(2, 3, 4), [3, 2], projective=False)


def labelled():
    return Dependencies(torch.randn(2, 2, 3, 2), [2, 1])


def spans():
    return SpanTrees(torch.randn(2, 2, 3, 1), [2, 1])


@pytest.mark.parametrize("make", [chains, dependencies, crossing, labelled, spans])
def test_outputs_are_as_frequent_as_they_are_probable(make, interpreted_loops):
    torch.manual_seed(0)
    potentials = make()
    found = sample(potentials, N_SAMPLES)
    assert found.shape == (N_SAMPLES, *decode(potentials).shape)
    log_z = log_partition(potentials)
    for i in range(2):
        outputs, counts = torch.unique(found[:, i], dim=0, return_counts=True)
        total = 0.0
        for output, count in zip(outputs, counts, strict=True):
            y = decode(potentials)
            y[i] = output
            chance = torch.exp(score(potentials, y) - log_z)[i].item()
            assert count.item() / N_SAMPLES == pytest.approx(chance, abs=4 * (chance / N_SAMPLES) ** 0.5 + 2e-3)
            total += chance
        assert total == pytest.approx(1, abs=0.02)


def test_samples_are_those_of_a_seed(interpreted_loops):
    potentials = chains()
    seeded = [sample(potentials, 20, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(seeded[0], seeded[1])
    assert not torch.equal(seeded[0], seeded[2])
    torch.manual_seed(3)
    first = sample(potentials, 20)
    torch.manual_seed(3)
    assert torch.equal(sample(potentials, 20), first)


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="GraphCuts have no samples: decode finds the best output"):
        sample(GraphCuts(torch.zeros(1, 2), [(0, 1)], torch.ones(1, 1)), 2)
    with pytest.raises(ValueError, match="n_samples must be an integer, at least 1"):
        sample(chains(), 0)
    with pytest.raises(ValueError, match="Batch entry 0 has no possible output"):
        sample(Chains(torch.full((1, 2, 2), -torch.inf), torch.zeros(2, 2)), 2)
