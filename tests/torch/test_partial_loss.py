"""The loss of outputs of which part is known: against enumeration, and its derivatives against differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import Loss
from maxmargin.torch import Candidates, Chains, GraphCuts, Trees, crf_loss, hinge_loss, partial_loss, structured_loss
from tests.naive import labellings

LENGTHS = [3, 1, 2]
PARENTS = [[-1, 0, 0], [-1, 9, 9], [1, -1, 9]]
ALLOWED = torch.tensor(
    [
        [[True, True, False], [False, True, False], [True, True, True]],
        [[False, True, True], [False, False, False], [True, False, False]],  # beyond the length: anything
        [[True, True, True], [True, True, True], [False, False, False]],
    ]
)


def random(*shape, seed=0):
    return torch.tensor(np.random.default_rng([seed, *shape]).normal(size=shape), requires_grad=True)


def chains(nodes, table):
    return Chains(nodes, table, LENGTHS)


def trees(nodes, table):
    return Trees(nodes, PARENTS, table, LENGTHS)


def scores_of_all(make, nodes, table, i):
    """All labellings of example i, their scores, how many of their labels are not allowed."""
    rows = np.array([*labellings(LENGTHS[i], 3)])
    places = np.arange(LENGTHS[i])
    parents = [t - 1 for t in places] if make is chains else PARENTS[i][: LENGTHS[i]]
    nodes, table = nodes.detach().numpy(), table.detach().numpy()
    scores = nodes[i, places, rows].sum(axis=1)
    for child, parent in enumerate(parents):
        if parent >= 0:
            scores = scores + table[rows[:, parent], rows[:, child]]
    return scores, (~ALLOWED[i].numpy()[places, rows]).sum(axis=1)


@pytest.mark.parametrize("make", [chains, trees])
def test_it_is_a_maximum_less_that_of_what_is_allowed(make):
    nodes, table = random(3, 3, 3), random(3, 3)
    for loss, smooth in (("log", lambda s: np.log(np.exp(s).sum())), ("hinge", np.max)):
        found = partial_loss(make(nodes, table), ALLOWED, loss, reduction="none")
        for i, value in enumerate(found.tolist()):
            scores, costs = scores_of_all(make, nodes, table, i)
            others = scores + costs if loss == "hinge" else scores
            assert value == pytest.approx(smooth(others) - smooth(scores[costs == 0]), abs=1e-10)


@pytest.mark.parametrize("make", [chains, trees])
@pytest.mark.parametrize("loss", ["log", "hinge", "squared_hinge", Loss("l2", level=0.7)])
def test_derivatives(make, loss):
    nodes, table = random(3, 3, 3, seed=1), random(3, 3, seed=1)
    assert torch.autograd.gradcheck(lambda *tensors: partial_loss(make(*tensors), ALLOWED, loss), (nodes, table))


def test_all_known_is_the_loss_of_the_true_outputs():
    nodes, table = random(3, 3, 3), random(3, 3)
    y = torch.tensor([[0, 1, 2], [1, 0, 0], [2, 2, 0]])
    known = torch.nn.functional.one_hot(y, 3).bool()
    potentials = chains(nodes, table)
    for loss in ("log", "hinge", "squared_hinge", Loss("entropy", level=0.5)):
        assert torch.allclose(partial_loss(potentials, known, loss), structured_loss(potentials, y, loss))
    assert torch.allclose(partial_loss(potentials, known), crf_loss(potentials, y))
    assert torch.allclose(partial_loss(potentials, known, "hinge"), hinge_loss(potentials, y))


def test_nothing_known_has_no_loss():
    potentials = chains(random(3, 3, 3), random(3, 3))
    everything = torch.ones(3, 3, 3, dtype=bool)
    for loss in ("log", "hinge"):
        assert partial_loss(potentials, everything, loss, reduction="sum").item() == pytest.approx(0, abs=1e-12)


def test_sets_of_candidates():
    scores = random(2, 3)
    allowed = [[True, True, False], [False, True, False]]  # of two, the third is beyond
    found = partial_loss(Candidates(scores, [3, 2]), allowed, reduction="none").tolist()
    p = [torch.softmax(scores[0], 0)[:2].sum(), torch.softmax(scores[1, :2], 0)[1]]
    assert found == pytest.approx([-np.log(share.item()) for share in p])


def test_packed_rows():
    nodes, table = random(3, 3, 3), random(3, 3)
    is_row = torch.arange(3) < torch.tensor(LENGTHS)[:, None]
    packed = Chains(nodes[is_row], table, LENGTHS)
    assert torch.allclose(partial_loss(packed, ALLOWED[is_row]), partial_loss(chains(nodes, table), ALLOWED))


def test_bad_input():
    potentials = chains(random(3, 3, 3), random(3, 3))
    with pytest.raises(ValueError, match=r"allowed must hold booleans in the shape \(3, 3, 3\), not .* in \(3, 3\)"):
        partial_loss(potentials, ALLOWED[0])
    nothing = ALLOWED.clone()
    nothing[2, 1] = False
    with pytest.raises(ValueError, match="allowed leaves no label at position 1 of batch entry 2"):
        partial_loss(potentials, nothing)
    with pytest.raises(ValueError, match="allowed leaves no candidate of batch entry 0"):
        partial_loss(Candidates(random(2, 3)), torch.zeros(2, 3, dtype=bool))
    with pytest.raises(TypeError, match="partial_loss is for Chains, Trees and Candidates, not for GraphCuts"):
        partial_loss(GraphCuts(random(1, 2), [(0, 1)], torch.ones(1)), torch.ones(1, 2, dtype=bool))
