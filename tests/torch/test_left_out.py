"""Positions that are left out of sequences: by masks, and by labels of -100, as those of word pieces."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import (
    CandidateHead,
    Candidates,
    ChainHead,
    Chains,
    Dependencies,
    DependencyHead,
    SegmentHead,
    Segments,
    TreeHead,
    Trees,
    crf_loss,
    decode,
    hinge_loss,
    log_partition,
    marginals,
    score,
    topk,
)

MASK = torch.tensor([[0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0]], dtype=bool)
LENGTHS = MASK.sum(dim=1)


def random(*shape):
    return torch.tensor(np.random.default_rng(shape).normal(size=shape), requires_grad=True)


EMISSIONS, TRANSITIONS, START, END = random(3, 6, 2), random(2, 2), random(2), random(2)
ROLES, DURATIONS, SPANS, TABLES = random(3, 6, 2, 2), random(3, 2), random(3, 6, 3, 2), random(3, 6, 2, 2)
LABELS = torch.tensor(np.random.default_rng(0).integers(2, size=(3, 6)))
STATES = torch.zeros(3, 6, dtype=int).masked_scatter(MASK, torch.tensor([0, 2, 1, 1, 3, 0, 1]))
PARENTS = [[-1, 0, 5, 2, 3, 1], [1, 2, -1, 0, 9, 9], [3, 0, 0, -1, 2, 2]]
ABOVE = [
    -1,
    0,
    1,
    1,
    -1,
    0,
    -1,
]  # of the others: 3 of the first tree is below 2, 5 and 1, 3 of the second below 0 and 1
LEAVES = [[3, 3, 4, -1, 3, 1], [2, 2, -1, 2, 9, 9], [7, 8, 9, -1, 3, 2]]  # where only leaves are left out
ABOVE_LEAVES = [1, -1, 1, 1, -1, 1, -1]

CASES = {  # tensors, potentials of all rows or of a mask of them, those of the others alone, true outputs
    "chains": (
        (EMISSIONS, TRANSITIONS, START, END),
        lambda mask: Chains(EMISSIONS, TRANSITIONS, mask, START, END),
        lambda: Chains(EMISSIONS[MASK], TRANSITIONS, LENGTHS, START, END),
        LABELS,
    ),
    "trees": (
        (EMISSIONS, TRANSITIONS),
        lambda mask: Trees(EMISSIONS, PARENTS, TRANSITIONS, mask),
        lambda: Trees(EMISSIONS[MASK], ABOVE, TRANSITIONS, LENGTHS),
        LABELS,
    ),
    "segments": (
        (ROLES, TRANSITIONS, DURATIONS, SPANS),
        lambda mask: Segments(ROLES, TRANSITIONS, DURATIONS, mask, SPANS),
        lambda: Segments(ROLES[MASK], TRANSITIONS, DURATIONS, LENGTHS, SPANS[MASK]),
        STATES,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_losses_and_gradients_are_those_of_the_others_alone(case, loss):
    tensors, masked, packed, labels = case
    found = []
    for potentials, y in ((masked(MASK), labels), (packed(), labels[MASK])):
        value = loss(potentials, y, reduction="none")
        found.append([value, *torch.autograd.grad(value.sum(), tensors)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    assert not found[0][1][~MASK].any()


def test_outputs_and_marginals_stand_where_they_were(case):
    _, make_masked, make_packed, _ = case
    masked, packed = make_masked(MASK), make_packed()
    assert torch.equal(decode(masked)[MASK], decode(packed))
    assert (decode(masked)[~MASK] == -1).all()
    outputs, scores = topk(masked, 2)
    torch.testing.assert_close(scores, topk(packed, 2)[1])
    assert outputs.shape == (2, 3, 6)
    (found, table), (expected, of_others) = (marginals(potentials).tensors[:2] for potentials in (masked, packed))
    torch.testing.assert_close(found[MASK], expected)
    torch.testing.assert_close(table, of_others)
    assert not found[~MASK].any()


def test_edges_of_their_own_where_only_leaves_are_left_out():
    masked, rows = Trees(EMISSIONS, LEAVES, TABLES, MASK), np.split(np.arange(7), [3, 6])
    found = log_partition(masked)
    for i, row in enumerate(rows):
        alone = Trees(EMISSIONS[i][MASK[i]][None], [ABOVE_LEAVES[row[0] : row[-1] + 1]], TABLES[i][MASK[i]][None])
        torch.testing.assert_close(found[i], log_partition(alone)[0])


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_labels_of_minus_100_leave_positions_out(case, loss):
    _, masked, _, labels = case
    y = labels.masked_fill(~MASK, -100)
    attended = torch.ones(3, 6, dtype=bool)
    attended[1, 4:] = False  # padding
    expected = loss(masked(MASK), labels)
    torch.testing.assert_close(loss(masked(attended), y), expected)
    torch.testing.assert_close(loss(masked([6, 4, 6]), y), expected)
    torch.testing.assert_close(score(masked([6, 4, 6]), y), score(masked(MASK), labels))


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_examples_without_labels_are_left_out(case, loss):
    tensors, masked, _, labels = case
    y = labels.masked_fill(~MASK, -100)
    y[1] = -100
    expected = loss(masked(MASK), labels, reduction="none")[[0, 2]]
    found = loss(masked([6, 4, 6]), y, reduction="none")
    assert found[1] == 0
    torch.testing.assert_close(found[[0, 2]], expected)
    torch.testing.assert_close(loss(masked([6, 4, 6]), y), expected.mean())
    torch.testing.assert_close(loss(masked([6, 4, 6]), y, reduction="sum"), expected.sum())
    torch.testing.assert_close(score(masked([6, 4, 6]), y)[[0, 2]], score(masked(MASK), labels)[[0, 2]])
    both = (torch.autograd.grad(losses.sum(), tensors) for losses in (found, expected))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other)


def test_tables_of_each_example_stay_with_it():
    y, own = LABELS.clone(), random(3, 2, 2)
    y[0] = -100
    steps = Chains(EMISSIONS, random(3, 5, 2, 2))
    of_trees = (Trees(EMISSIONS, PARENTS, tables, [6, 4, 6]) for tables in (own, TABLES))
    for potentials in (Chains(EMISSIONS, own), steps, *of_trees):
        found, expected = (crf_loss(potentials, labels, reduction="none")[1:] for labels in (y, LABELS))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_examples_without_labels_are_those_of_cross_entropy(reduction):
    scores, y = random(3, 4), torch.tensor([2, -100, 0])
    expected = torch.nn.functional.cross_entropy(scores, y, reduction=reduction)
    torch.testing.assert_close(crf_loss(Candidates(scores), y, reduction=reduction), expected)
    of_ones = Chains(scores[:, None], random(4, 4))
    torch.testing.assert_close(crf_loss(of_ones, y[:, None], reduction=reduction), expected)
    nothing = torch.full((3,), -100)
    expected = torch.nn.functional.cross_entropy(scores, nothing, reduction=reduction)
    if reduction == "mean":
        assert expected.isnan()
        with pytest.raises(ValueError, match="y ignores all positions of all batch entries"):
            crf_loss(of_ones, nothing[:, None])
        return
    found = crf_loss(of_ones, nothing[:, None], reduction=reduction)
    torch.testing.assert_close(found, expected)
    assert not torch.autograd.grad(found.sum(), scores)[0].any()


def test_sentences_without_heads_are_left_out(interpreted_loops):
    scores, y = random(2, 2, 3), torch.tensor([[-100, -100], [0, 1]])
    found = crf_loss(Dependencies(scores), y, reduction="none")
    torch.testing.assert_close(found, torch.stack([scores.new_zeros(()), crf_loss(Dependencies(scores[1:]), y[1:])]))
    head, features = DependencyHead(3, dtype=torch.double), random(2, 2, 3, 3).detach()
    alone = head.certificate(y[1:], features[1:], loss="log")
    assert head.certificate(y, features, loss="log").primal == pytest.approx(alone.primal)


def test_gradients_are_those_of_differences():
    assert torch.autograd.gradcheck(
        lambda *tensors: crf_loss(Chains(tensors[0], tensors[1], MASK, *tensors[2:]), LABELS),
        (EMISSIONS, TRANSITIONS, START, END),
    )


@pytest.mark.parametrize(
    ("head", "inputs", "labels"),
    [(ChainHead(3, 2), [], LABELS), (TreeHead(3, 2), [PARENTS], LABELS), (SegmentHead(3, 2, 3), [], STATES)],
)
def test_heads_are_solved_without_them(head, inputs, labels):
    features, y = random(3, 6, 3).detach(), labels.masked_fill(~MASK, -100)
    head.double().solve(y, features, *inputs, [6, 4, 6], C=1.0, loss="log", tol=1e-6)
    certificate = head.certificate(labels, features, *inputs, MASK, C=1.0, loss="log")
    assert certificate.primal - certificate.dual < 1e-4 * certificate.primal


@pytest.mark.parametrize(
    ("head", "inputs", "labels"),
    [
        (ChainHead(3, 2), [[6, 4, 6]], LABELS),
        (TreeHead(3, 2), [PARENTS, [6, 4, 6]], LABELS),
        (SegmentHead(3, 2, 3, 2), [[6, 4, 6], random(3, 6, 3, 2).detach()], STATES),
        (CandidateHead(3), [[6, 4, 6]], torch.tensor([5, 0, 2])),
    ],
)
def test_heads_have_the_certificates_of_examples_with_labels(head, inputs, labels, interpreted_loops):
    given, y, kept = (random(3, 6, 3).detach(), *inputs), labels.clone(), [0, 2]
    y[1] = -100
    alone = [x[kept] if isinstance(x, torch.Tensor) else [x[i] for i in kept] for x in given]
    found = tuple(head.double().certificate(y, *given, loss="log"))
    assert found == pytest.approx(tuple(head.certificate(labels[kept], *alone, loss="log")))


def test_bad_input():
    with pytest.raises(ValueError, match=r"y ignores all positions of all batch entries: each has -100\."):
        ChainHead(3, 2).solve(torch.full((3, 6), -100), random(3, 6, 3).detach().float())
    with pytest.raises(ValueError, match=r"y holds -7 at position 5 of batch entry 1"):
        crf_loss(Chains(EMISSIONS, TRANSITIONS), torch.tensor([[-100] * 6, [-100, 0, 0, 0, 0, -7], [0] * 6]))
    with pytest.raises(ValueError, match=r"transitions must not differ from step to step"):
        Chains(EMISSIONS, random(3, 5, 2, 2), MASK)
    with pytest.raises(ValueError, match=r"pairs must not differ from edge to edge, .* where parents are left out"):
        Trees(EMISSIONS, PARENTS, TABLES, MASK)
    with pytest.raises(ValueError, match=r"The edges of batch entry 0 form a cycle, but must form a tree"):
        Trees(EMISSIONS, [[2, 0, 0, 1, 1, 0], PARENTS[1], PARENTS[2]], TRANSITIONS, MASK)
    with pytest.raises(ValueError, match=r"parents names 8 at node 0 of batch entry 1, which has 6 nodes"):
        Trees(EMISSIONS, [PARENTS[0], [8] * 6, PARENTS[2]], TRANSITIONS, MASK)
    with pytest.raises(
        ValueError, match=r"y holds 2 at position 1 of batch entry 0, but no segment of label 0 goes on"
    ):
        crf_loss(Segments(ROLES, TRANSITIONS, DURATIONS), torch.tensor([[-100, 2, 0, 0, 0, 0], [0] * 6, [0] * 6]))
    with pytest.raises(ValueError, match=r"lengths, as a mask, must be True up to a length"):
        Candidates(EMISSIONS[..., 0], MASK)
    with pytest.raises(ValueError, match=r"lengths\[1\] is 0, but must be 1 to 6"):
        Chains(EMISSIONS, TRANSITIONS, MASK & torch.tensor([[True], [False], [True]]))
