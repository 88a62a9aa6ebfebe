"""Positions that are left out of sequences: by masks, and by labels of -100, as those of word pieces."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import ChainHead, Chains, Trees, crf_loss, decode, hinge_loss, marginals, score, topk

MASK = torch.tensor([[0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0]], dtype=bool)
LENGTHS = MASK.sum(dim=1)


def random(*shape):
    return torch.tensor(np.random.default_rng(shape).normal(size=shape), requires_grad=True)


EMISSIONS, TRANSITIONS, START, END = random(3, 6, 2), random(2, 2), random(2), random(2)
LABELS = torch.tensor(np.random.default_rng(0).integers(2, size=(3, 6)))


def both():
    """Sequences with positions that are left out, and packed ones of the others alone."""
    return (Chains(EMISSIONS, TRANSITIONS, MASK, START, END), Chains(EMISSIONS[MASK], TRANSITIONS, LENGTHS, START, END))


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_losses_and_gradients_are_those_of_the_others_alone(loss):
    found = []
    for chains, y in zip(both(), (LABELS, LABELS[MASK]), strict=True):
        value = loss(chains, y, reduction="none")
        found.append([value, *torch.autograd.grad(value.sum(), (EMISSIONS, TRANSITIONS, START, END))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    assert not found[0][1][~MASK].any()


def test_outputs_and_marginals_stand_where_they_were():
    masked, packed = both()
    assert torch.equal(decode(masked)[MASK], decode(packed))
    assert (decode(masked)[~MASK] == -1).all()
    outputs, scores = topk(masked, 2)
    torch.testing.assert_close(scores, topk(packed, 2)[1])
    assert outputs.shape == (2, 3, 6)
    means = marginals(masked)
    torch.testing.assert_close(means.emissions[MASK], marginals(packed).emissions)
    torch.testing.assert_close(means.transitions, marginals(packed).transitions)
    assert not means.emissions[~MASK].any()


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_labels_of_minus_100_leave_positions_out(loss):
    y = LABELS.masked_fill(~MASK, -100)
    attended = torch.ones(3, 6, dtype=bool)
    attended[:, 5] = False  # padding
    expected = loss(both()[0], LABELS)
    for lengths in (None, [6, 5, 5], attended):
        torch.testing.assert_close(loss(Chains(EMISSIONS, TRANSITIONS, lengths, START, END), y), expected)
    torch.testing.assert_close(score(Chains(EMISSIONS, TRANSITIONS, None, START, END), y), score(both()[0], LABELS))


def test_gradients_are_those_of_differences():
    assert torch.autograd.gradcheck(
        lambda *tensors: crf_loss(Chains(tensors[0], tensors[1], MASK, *tensors[2:]), LABELS),
        (EMISSIONS, TRANSITIONS, START, END),
    )


def test_heads_are_solved_without_them():
    head, features = ChainHead(3, 2).double(), random(3, 6, 3).detach()
    y = LABELS.masked_fill(~MASK, -100)
    head.solve(y, features, C=1.0, loss="log", tol=1e-6)
    certificate = head.certificate(LABELS, features, MASK, C=1.0, loss="log")
    assert certificate.primal - certificate.dual < 1e-4 * certificate.primal


def test_bad_input():
    with pytest.raises(ValueError, match=r"y ignores all positions of batch entry 2: each has -100\."):
        crf_loss(Chains(EMISSIONS, TRANSITIONS), torch.tensor([[0] * 6, [0] * 6, [-100] * 6]))
    with pytest.raises(ValueError, match=r"y holds -7 at position 0 of batch entry 0"):
        crf_loss(Chains(EMISSIONS, TRANSITIONS), torch.full((3, 6), -7))
    with pytest.raises(ValueError, match=r"transitions must not differ from step to step"):
        Chains(EMISSIONS, random(3, 5, 2, 2), MASK)
    with pytest.raises(ValueError, match=r"lengths, as a mask, must be True up to a length"):
        Trees(EMISSIONS, [[-1] * 6] * 3, TRANSITIONS, MASK)
    with pytest.raises(ValueError, match=r"lengths\[1\] is 0, but must be 1 to 6"):
        Chains(EMISSIONS, TRANSITIONS, MASK & torch.tensor([[True], [False], [True]]))
