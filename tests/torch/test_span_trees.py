"""Trees of labelled spans in networks, beside all trees of few words."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import SpanTrees, crf_loss, decode, hinge_loss, log_partition, marginals, score, topk
from tests import naive

LENGTHS = [3, 1, 2]
SCORES = torch.tensor(np.random.default_rng(0).normal(size=(3, 3, 4, 2)), requires_grad=True)
TRUE = [[(0, 3, 1), (1, 3, 0)], [], [(0, 1, 0)]]
TREES = [[*naive.span_trees(n, 2)] for n in LENGTHS]


def as_table(tree):
    table = torch.full((3, 4), -1)
    for lo, hi, label in tree:
        table[lo, hi] = label
    return table


Y = torch.stack([*map(as_table, TRUE)])


def scores_of(i, scores=SCORES):
    return torch.stack([sum((scores[i][place] for place in tree), torch.zeros(()).double()) for tree in TREES[i]])


def costs_of(i):
    return torch.tensor([len({*tree} ^ {*TRUE[i]}) for tree in TREES[i]])


def test_values_are_those_of_all_trees():
    trees = SpanTrees(SCORES, LENGTHS)
    own = torch.stack([sum((SCORES[i][place] for place in tree), SCORES.new_zeros(())) for i, tree in enumerate(TRUE)])
    sums = torch.stack([torch.logsumexp(scores_of(i), 0) for i in range(3)])
    augmented = torch.stack([(scores_of(i) + costs_of(i)).max() for i in range(3)])
    assert torch.allclose(score(trees, Y), own)
    assert torch.allclose(log_partition(trees), sums)
    assert torch.allclose(crf_loss(trees, Y, reduction="none"), sums - own)
    assert torch.allclose(hinge_loss(trees, Y, reduction="none"), augmented - own)
    assert torch.allclose(marginals(trees).scores, torch.autograd.grad(sums.sum(), SCORES)[0])


def test_best_trees():
    outputs, values = topk(SpanTrees(SCORES, LENGTHS), 3)
    assert torch.equal(outputs[0], decode(SpanTrees(SCORES, LENGTHS)))
    for i in range(3):
        best = torch.argsort(scores_of(i), descending=True)[:3]
        assert torch.allclose(values[:, i], scores_of(i)[best])
        assert torch.equal(outputs[:, i], torch.stack([as_table(TREES[i][k]) for k in best]))


@pytest.mark.parametrize("loss", [crf_loss, hinge_loss])
def test_derivatives(loss):
    assert torch.autograd.gradcheck(lambda scores: loss(SpanTrees(scores, LENGTHS), Y), SCORES)
    assert torch.autograd.gradgradcheck(lambda scores: loss(SpanTrees(scores, LENGTHS), Y), SCORES)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (as_table([(0, 2, 0), (1, 3, 0)]), r"y\[0\] has spans that cross: \(0, 2, 0\) and \(1, 3, 0\)"),
        (as_table([(0, 2, 2)]), r"y\[0\] must hold labels 0 to 1, and -1 for spans without one"),
        (torch.zeros(3, 3, dtype=int), r"y must have the shape \(1, 3, 4\)"),
    ],
)
def test_bad_trees(y, message):
    with pytest.raises(ValueError, match=message):
        crf_loss(SpanTrees(SCORES[:1]), y[None])


def test_bad_scores():
    with pytest.raises(ValueError, match=r"scores must have the shape \(B, n, n \+ 1, L\), not \(1, 2, 3\)"):
        SpanTrees(torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="cost must be None for trees of spans"):
        hinge_loss(SpanTrees(SCORES), Y, cost=[1, 2])
