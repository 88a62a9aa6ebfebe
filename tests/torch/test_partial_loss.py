"""The loss of outputs of which part is known: against enumeration, and its derivatives against differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import Loss
from maxmargin.torch import (
    Alignments,
    Candidates,
    Chains,
    Dependencies,
    GraphCuts,
    Matchings,
    Segments,
    SpanTrees,
    Trees,
    crf_loss,
    hinge_loss,
    partial_loss,
    score,
    structured_loss,
)
from tests.naive import (
    alignment_parts,
    alignments,
    dependency_trees,
    labellings,
    matchings,
    segmentations,
    span_trees,
)

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


def check_against_all(potentials, outputs, flags, allowed):
    """Of one example, given all outputs and which of their rows are allowed."""
    scores = torch.stack([score(potentials, torch.as_tensor(y)[None])[0] for y in outputs])
    costs = (~torch.as_tensor(np.array(flags))).sum(dim=1)
    assert 0 < (costs == 0).sum() < len(outputs)
    for loss, smooth in (("log", torch.logsumexp), ("hinge", torch.amax)):
        others = scores + costs if loss == "hinge" else scores
        expected = smooth(others, 0) - smooth(scores[costs == 0], 0)
        assert partial_loss(potentials, allowed, loss).item() == pytest.approx(expected.item(), abs=1e-9)
    one = torch.zeros_like(allowed)  # the first output that is allowed, alone
    y = torch.as_tensor(outputs[int((costs == 0).nonzero()[0])])[None]
    return one, y


@pytest.mark.parametrize("n_roles", [2, 3])
def test_segments(n_roles, interpreted_loops):
    allowed = torch.ones(1, 4, 2, 2, dtype=torch.bool)
    allowed[0, 1] = torch.tensor([[False, True], [True, False]])  # a segment of 1 begins, or one of 0 goes on
    allowed[0, 2, 1, 1] = allowed[0, 0, 0, 0] = allowed[0, 3] = False  # and the last row is beyond the length
    potentials = Segments(random(1, 4, n_roles, 2), random(2, 2), random(2, 2, seed=1), [3])
    outputs = [np.append(y, 0).astype(np.int64) for y in segmentations(3, [2, 2])]
    flags = [allowed[0, range(3), y[:3] // 2, y[:3] % 2].tolist() for y in outputs]
    one, y = check_against_all(potentials, outputs, flags, allowed)
    one[0, range(3), y[0, :3] // 2, y[0, :3] % 2] = True
    for loss in ("log", "hinge"):
        assert torch.allclose(partial_loss(potentials, one, loss), structured_loss(potentials, y, loss))
    with pytest.raises(ValueError, match=r"allowed must hold booleans in the shape \(1, 4, 2, 2\), not"):
        partial_loss(potentials, allowed[:, :, 0])


@pytest.mark.parametrize("n_labels", [0, 2])
@pytest.mark.parametrize("projective", [True, False])
def test_arcs(projective, n_labels, interpreted_loops):
    more = (n_labels,) if n_labels else ()
    allowed = torch.ones(1, 4, 5, *more, dtype=torch.bool)
    allowed[0, 0, :2] = allowed[0, 1, 3] = allowed[0, 3] = False
    if n_labels:
        allowed[0, 2, :, 1] = False
    potentials = Dependencies(random(1, 4, 5, *more), [3], projective=projective)
    found = [*dependency_trees(3, n_labels, projective=projective)]
    outputs = [np.append(y, 0).astype(np.int64) for y in found]
    if n_labels:
        outputs = [np.stack([y // n_labels, y % n_labels], axis=-1) for y in outputs]
    places = [(range(3), *(y[:3].T if n_labels else [y[:3]])) for y in outputs]
    one, y = check_against_all(potentials, outputs, [allowed[0][at].tolist() for at in places], allowed)
    one[0][(range(3), *(y[0, :3].T if n_labels else [y[0, :3]]))] = True
    for loss in ("log", "hinge"):
        assert torch.allclose(partial_loss(potentials, one, loss), structured_loss(potentials, y, loss))
    circle = allowed.clone()
    circle[0, :2] = False
    circle[0, 0, 2] = circle[0, 1, 1] = True
    for loss in ("log", "hinge", Loss("entropy", 0.1)):
        with pytest.raises(ValueError, match="Batch entry 0 has no possible output"):
            partial_loss(potentials, circle, loss)
    with pytest.raises(ValueError, match="allowed leaves no head at position 1 of batch entry 0"):
        partial_loss(potentials, allowed & (torch.arange(4) != 1).view(1, 4, 1, *[1] * len(more)))


def check_values(potentials, allowed, scores, costs, y, one):
    """Of one example, given the scores and costs of all outputs; and, where `one` allows nothing else, that of y."""
    scores, costs = torch.stack(scores), torch.tensor(costs)
    assert 0 < (costs == 0).sum() < len(costs)
    for loss, smooth in (("log", torch.logsumexp), ("hinge", torch.amax)):
        if loss == "hinge" or not isinstance(potentials, Matchings):
            others = scores + costs if loss == "hinge" else scores
            expected = smooth(others, 0) - smooth(scores[costs == 0], 0)
            assert partial_loss(potentials, allowed, loss).item() == pytest.approx(expected.item(), abs=1e-9)
            if one is not None:
                assert torch.allclose(partial_loss(potentials, one, loss), structured_loss(potentials, y, loss))


def test_spans_that_a_tree_must_have(interpreted_loops):
    scores = random(1, 4, 5, 2)
    potentials, trees = SpanTrees(scores, [3]), [*span_trees(3, 2)]
    allowed = torch.ones(1, 4, 5, 3, dtype=torch.bool)
    allowed[0, 0, 2] = torch.tensor([True, False, False])  # 0:2 has label 0, so that there is no 1:3
    allowed[0, 1, 2, 2] = allowed[0, 2, 3, 1] = False  # 1:2 has some label, 2:3 not label 1
    allowed[0, 0, 4] = allowed[0, 3] = False  # beyond the length
    consistent = [t for t in trees if {(0, 2, 0), (1, 2)} <= {*t, *(s[:2] for s in t)} and (2, 3, 1) not in t]
    right = {span for tree in consistent for span in tree}
    known = [{(0, 2, 0)}, {(1, 2, 0), (1, 2, 1)}]
    costs = [len({*tree} - right) + sum(not some & {*tree} for some in known) for tree in trees]
    assert [tree for tree, cost in zip(trees, costs, strict=True) if cost == 0] == consistent
    y, one = torch.full((1, 4, 5), -1), torch.zeros(1, 4, 5, 3, dtype=torch.bool)
    one[..., 2] = True
    for lo, hi, label in consistent[-1]:
        y[0, lo, hi], one[0, lo, hi] = label, torch.arange(3) == label
    of_trees = [sum((scores[0][span] for span in tree), scores.new_zeros(())) for tree in trees]
    check_values(potentials, allowed, of_trees, costs, y, one)
    crossing, nothing = allowed.clone(), allowed.clone()
    crossing[0, 1, 3, 2] = nothing[0, 2, 3] = False
    with pytest.raises(ValueError, match="Batch entry 0 has no possible output"):
        partial_loss(potentials, crossing)
    with pytest.raises(ValueError, match="allowed of batch entry 0 leaves the span 2:3 neither a label nor none"):
        partial_loss(potentials, nothing)


@pytest.mark.parametrize("kind", ["aligned", "aligned with gaps", "matched", "matched with gaps"])
def test_links_and_items_without_one(kind, interpreted_loops):
    scores, moves, gaps, inserted = random(1, 3, 4), random(3, 3), random(1, 3), random(1, 4)
    gaps = gaps if "gaps" in kind else None
    given = torch.zeros(2) if gaps is None else gaps[0, :2]
    if "aligned" in kind:
        potentials = Alignments(scores, moves, gaps, inserted, sizes=[[2, 3]])
        theta = torch.cat([scores[0, :2, :3].flatten(), given, inserted[0, :3], moves.flatten()])
        outputs = [np.array([dict(links).get(v, -1) for v in range(2)]) for links in alignments(2, 3)]
        of_all = [(theta * torch.tensor(alignment_parts(links, 2, 3))).sum() for links in alignments(2, 3)]
    else:
        potentials, outputs = Matchings(scores, [[2, 3]], gaps), [*matchings(2, 3)]
        table = torch.cat([scores[0, :2, :3], given[:, None]], dim=1)
        of_all = [sum(table[v, links[v]] for v in range(2)) for links in outputs]
    allowed = torch.ones(1, 3, 5, dtype=torch.bool)
    allowed[0, 0, 1] = allowed[0, 1, 0] = allowed[0, 1, -1] = False  # 0 has no link to 1, 1 has one, but not to 0
    allowed[0, :, 3] = allowed[0, 2] = False  # beyond the sizes
    flags = np.delete(allowed[0].numpy(), 3, axis=1)
    costs = [
        sum(int(not flags[v, links[v]]) * (1 + int(links[v] >= 0 and not flags[v, -1])) for v in range(2))
        for links in outputs
    ]
    one, y = torch.zeros_like(allowed), torch.full((1, 3), -1)
    y[0, :2] = torch.as_tensor(outputs[costs.index(0)])
    one[0, range(2), y[0, :2]] = True
    check_values(potentials, allowed, of_all, costs, y, one)
    with pytest.raises(ValueError, match="allowed leaves left node 1 of batch entry 0 neither a link nor none"):
        partial_loss(potentials, allowed & (torch.arange(3) != 1)[:, None], "hinge")


def test_links_of_what_is_warped(interpreted_loops):
    scores, moves = random(1, 3, 4), random(3, 3)
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    allowed[0, 0, 2] = allowed[0, 1, 0] = allowed[0, 2] = False
    theta = torch.cat([scores[0, :2, :3].flatten(), moves.flatten()])
    ways = [*alignments(2, 3, warps=True)]
    of_all = [(theta * torch.tensor(alignment_parts(links, 2, 3, warps=True))).sum() for links in ways]
    costs = [sum(not allowed[0][link] for link in links) for links in ways]
    check_values(Alignments(scores, moves, sizes=[[2, 3]], warp=True), allowed, of_all, costs, None, None)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_derivatives_of_spans_and_links(loss, interpreted_loops):
    spans, links = torch.ones(1, 2, 3, 2, dtype=torch.bool), torch.ones(1, 2, 3, dtype=torch.bool)
    spans[0, 0, 1, 1] = links[0, 0, -1] = False
    assert torch.autograd.gradcheck(lambda table: partial_loss(SpanTrees(table), spans, loss), random(1, 2, 3, 1))
    of_links = (random(1, 2, 2), random(3, 3))
    assert torch.autograd.gradcheck(lambda *tensors: partial_loss(Alignments(*tensors), links, loss), of_links)


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
    with pytest.raises(TypeError, match=r"partial_loss is for Chains, .* and Matchings, not for GraphCuts"):
        partial_loss(GraphCuts(random(1, 2), [(0, 1)], torch.ones(1)), torch.ones(1, 2, dtype=bool))
