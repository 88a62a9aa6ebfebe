"""Losses, mean parts and outputs of potentials: against enumeration, and derivatives against differences."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import Loss
from maxmargin.losses.smoothing import smooth_max
from maxmargin.problem import part_sizes
from maxmargin.testing import toy_chains
from maxmargin.torch import (
    Alignments,
    Candidates,
    Chains,
    Dependencies,
    GraphCuts,
    Matchings,
    Parts,
    Segments,
    Trees,
    crf_loss,
    decode,
    hinge_loss,
    log_partition,
    marginals,
    score,
    smooth_hinge_loss,
    structured_loss,
    topk,
)
from tests.naive import alignment_moves, alignments, dependency_trees, labellings, matchings, segmentations

LENGTHS = [3, 1, 2]
PARENTS = [[-1, 0, 0], [-1, 9, 9], [1, -1, 9]]  # what is beyond a length may be anything
EDGES = [(0, 1), (1, 2), (0, 2)]
PACKED_EDGES = [EDGES, [], EDGES[:1]]
HINGE, SMOOTH, ENTROPY, LOG = Loss(), Loss("l2", level=0.7), Loss("entropy", level=0.5), Loss("entropy", margin=False)


def random(*shape, seed=0):
    values = np.random.default_rng([seed, *shape]).normal(size=shape)
    return torch.tensor(values, requires_grad=True)


def packed(tensor, lengths=LENGTHS):
    return torch.cat([rows[:size] for rows, size in zip(tensor, lengths, strict=True)])


class Case:
    """A batch of a structure: tensors, how potentials are made of them, true outputs, and scores by definition.

    With `is_packed`, rows of the first tensor and of outputs of several labels are packed.
    """

    def __init__(self, make, tensors, y, outputs, score, cost, has_sums=True, is_packed=False):
        self.make, self.tensors, self.y, self.outputs, self.score, self.cost = make, tensors, y, outputs, score, cost
        self.has_sums, self.is_packed = has_sums, is_packed

    @property
    def has_packed_outputs(self):
        return self.is_packed and self.y.ndim == 2

    @property
    def potentials(self):
        return self.make(*self.tensors)

    def table(self, i):
        """All outputs of example i, their scores and what they cost."""
        outputs = [as_tuple(y) for y in self.outputs(i)]
        truth = as_tuple(np.atleast_1d(self.y[i])[: len(outputs[0])])
        scores = torch.stack([self.score(self.tensors, i, y) for y in outputs])
        return outputs, scores, torch.tensor([float(self.cost(truth, y)) for y in outputs]), outputs.index(truth)


def as_tuple(y):
    return tuple(row if np.ndim(row) == 0 else as_tuple(row) for row in np.asarray(y).tolist())


def wrong(truth, y):
    return sum(a != b for a, b in zip(truth, y, strict=True))


def chain_score(tensors, i, y):
    emissions, transitions, *ends = tensors
    tables = [transitions if transitions.ndim == 2 else transitions[i]] * (len(y) - 1)
    tables = [table[t] if table.ndim == 3 else table for t, table in enumerate(tables)]
    total = sum(emissions[i, t, a] for t, a in enumerate(y))
    total = total + sum(tables[t][a, b] for t, (a, b) in enumerate(itertools.pairwise(y)))
    return total + ends[0][y[0]] + ends[1][y[-1]] if ends else total


def tree_score(tensors, i, y):
    nodes, pairs = tensors
    total = sum(nodes[i, t, a] for t, a in enumerate(y))
    for t, a in enumerate(y):
        parent = PARENTS[i][t]
        if parent >= 0:
            total = total + (pairs if pairs.ndim == 2 else pairs[i] if pairs.ndim == 3 else pairs[i, t])[y[parent], a]
    return total


def cut_score(tensors, i, y):
    nodes, penalties = tensors
    cut = sum(
        (penalties if penalties.ndim == 1 else penalties[i])[e] * (y[a] != y[b]) for e, (a, b) in enumerate(EDGES)
    )
    return sum(nodes[i, p] * label for p, label in enumerate(y)) - cut


def packed_cut_score(tensors, i, y):
    nodes, penalties = tensors
    pairs = zip(PACKED_EDGES[i], torch.split(penalties, [len(edges) for edges in PACKED_EDGES])[i], strict=True)
    cut = sum(penalty * (y[a] != y[b]) for (a, b), penalty in pairs)
    return sum(nodes[i, p] * label for p, label in enumerate(y)) - cut


def match_score(tensors, i, y):
    scores, unmatched = tensors
    return sum(unmatched[i, v] if z < 0 else scores[i, v, z] for v, z in enumerate(y))


def match_cost(truth, y):
    return sum((z >= 0 and z != a) + (a >= 0 and z != a) for a, z in zip(truth, y, strict=True))


def aligned_matches(i):
    for links in alignments(*SIZES[i]):
        yield [dict(links).get(v, -1) for v in range(SIZES[i][0])]


def alignment_score(tensors, i, y):
    scores, moves, deleted, inserted = tensors
    links, table = [(v, z) for v, z in enumerate(y) if z >= 0], moves if moves.ndim == 2 else moves[i]
    steps = alignment_moves(links, *SIZES[i])
    total = sum([scores[i, a - 1, b - 1], deleted[i, a - 1], inserted[i, b - 1]][move] for move, a, b in steps)
    return total + sum(table[a, b] for a, b in itertools.pairwise([0, *(move for move, _, _ in steps)]))


def warped_moves(i):
    for links in alignments(*SIZES[i], warps=True):
        moves = [move for move, _, _ in alignment_moves(links, *SIZES[i], warps=True)]
        yield moves + [-1] * (sum(SIZES[i]) - 1 - len(moves))


def cells_of(y):
    return np.cumsum([(move != 2, move != 1) for move in y if move >= 0], axis=0) - 1


def warp_score(tensors, i, y):
    scores, moves = tensors
    pairs = itertools.pairwise([0, *(move for move in y if move >= 0)])
    return sum(scores[i, a, b] for a, b in cells_of(y)) + sum(moves[a, b] for a, b in pairs)


def warp_cost(truth, y):
    return len({*map(tuple, cells_of(truth))} ^ {*map(tuple, cells_of(y))})


def chains(*tensors):
    emissions, transitions, *ends = tensors
    return Chains(emissions, transitions, LENGTHS, *ends)


def packed_chains(emissions, transitions):
    return Chains(packed(emissions), transitions, LENGTHS)


def packed_trees(nodes, pairs):
    return Trees(packed(nodes), packed(torch.tensor(PARENTS)), pairs, LENGTHS)


def packed_cuts(nodes, penalties):
    counts = [len(edges) for edges in PACKED_EDGES]
    return GraphCuts(packed(nodes), [*itertools.chain(*PACKED_EDGES)], penalties, lengths=LENGTHS, edge_lengths=counts)


LABELS = torch.tensor([[0, 1, 1], [1, 7, -7], [1, 0, 5]])  # of padding anything


def of_length(i):
    return labellings(LENGTHS[i], 2)


SIZES = [[2, 3], [1, 1], [2, 1]]
TREES = torch.tensor([[2, 0, 2], [0, -1, -1], [2, 0, -1]])


def arc_score(tensors, i, y):
    return sum(tensors[0][i, m, h] for m, h in enumerate(y))


LABELLED_TREES = torch.stack([TREES, LABELS], dim=-1)


def labelled_trees(i, **rules):
    return (np.stack(np.divmod(y, 2), axis=1) for y in dependency_trees(LENGTHS[i], n_labels=2, **rules))


def labelled_arc_score(tensors, i, y):
    return sum(tensors[0][i, m, head, label] for m, (head, label) in enumerate(y))


STATES = torch.tensor([[0, 2, 1], [1, 9, 9], [1, 3, 9]])  # of two labels, segments of up to two rows


def cut_into_segments(i):
    return segmentations(LENGTHS[i], [2, 2])


def segment_score(tensors, i, y):
    emissions, transitions, durations, *others = tensors
    pairs, sizes = (table if table.ndim == 2 else table[i] for table in (transitions, durations))
    begins = [t for t, state in enumerate(y) if state < 2]
    ends = [*begins[1:], len(y)]
    total = sum(emissions[i, t, state // 2, state % 2] for t, state in enumerate(y))
    total = total + sum(pairs[y[a], y[b]] for a, b in itertools.pairwise(begins))
    for begin, end in zip(begins, ends, strict=True):
        total = total + sizes[end - begin - 1, y[begin]]
        if emissions.shape[2] == 3:
            total = total + emissions[i, end - 1, 2, y[begin]]
        for own in others:
            total = total + own[i, begin, end - begin - 1, y[begin]]
    return total


def packed_segments(emissions, transitions, durations, own):
    return Segments(packed(emissions), transitions, durations, LENGTHS, packed(own))


CASES = {
    "chains": Case(
        chains, (random(3, 3, 2), random(2, 2), random(2), random(2, seed=1)), LABELS, of_length, chain_score, wrong
    ),
    "packed chains": Case(
        packed_chains, (random(3, 3, 2), random(2, 2)), LABELS, of_length, chain_score, wrong, is_packed=True
    ),
    "chains of own tables": Case(chains, (random(3, 3, 2), random(3, 2, 2)), LABELS, of_length, chain_score, wrong),
    "chains of steps": Case(chains, (random(3, 3, 2), random(3, 2, 2, 2)), LABELS, of_length, chain_score, wrong),
    "trees": Case(
        lambda nodes, pairs: Trees(nodes, PARENTS, pairs, LENGTHS),
        (random(3, 3, 2), random(2, 2)), LABELS, of_length, tree_score, wrong,
    ),
    "trees of edges": Case(
        lambda nodes, pairs: Trees(nodes, PARENTS, pairs, LENGTHS),
        (random(3, 3, 2), random(3, 3, 2, 2)), LABELS, of_length, tree_score, wrong,
    ),
    "packed trees": Case(
        packed_trees, (random(3, 3, 2), random(2, 2)), LABELS, of_length, tree_score, wrong, is_packed=True
    ),
    "packed candidates": Case(
        lambda scores: Candidates(packed(scores), LENGTHS),
        (random(3, 3),), torch.tensor([1, 0, 0]), lambda i: [(k,) for k in range(LENGTHS[i])],
        lambda tensors, i, y: tensors[0][i, y[0]], wrong, is_packed=True,
    ),
    "packed cuts": Case(
        packed_cuts, (random(3, 3), random(4).detach().abs().requires_grad_()), LABELS, of_length, packed_cut_score,
        wrong, has_sums=False, is_packed=True,
    ),
    "candidates": Case(
        lambda scores: Candidates(scores, LENGTHS),
        (random(3, 3),), torch.tensor([2, 0, 1]), lambda i: [(k,) for k in range(LENGTHS[i])],
        lambda tensors, i, y: tensors[0][i, y[0]], wrong,
    ),
    "cuts": Case(
        lambda nodes, penalties: GraphCuts(nodes, EDGES, penalties),
        (random(3, 3), random(3).detach().abs().requires_grad_()), torch.tensor([[0, 1, 1], [0, 0, 0], [1, 0, 1]]),
        lambda i: labellings(3, 2), cut_score, wrong, has_sums=False,
    ),
    "matchings": Case(
        lambda scores, unmatched: Matchings(scores, SIZES, unmatched),
        (random(3, 2, 3), random(3, 2)), torch.tensor([[2, -1], [0, 9], [-1, 0]]),
        lambda i: matchings(*SIZES[i]), match_score, match_cost, has_sums=False,
    ),
    "alignments": Case(
        lambda scores, moves, *gaps: Alignments(scores, moves, *gaps, sizes=SIZES),
        (random(3, 2, 3), random(3, 3), random(3, 2), random(3, 3, seed=1)), torch.tensor([[0, 2], [-1, 9], [-1, 0]]),
        aligned_matches, alignment_score, match_cost,
    ),
    "alignments of own moves": Case(
        lambda scores, moves, *gaps: Alignments(scores, moves, *gaps, sizes=SIZES),
        (random(3, 2, 3), random(3, 3, 3), random(3, 2), random(3, 3, seed=1)),
        torch.tensor([[0, -1], [0, 9], [-1, 0]]),
        aligned_matches, alignment_score, match_cost,
    ),
    "warped alignments": Case(
        lambda scores, moves: Alignments(scores, moves, sizes=SIZES, warp=True), (random(3, 2, 3), random(3, 3)),
        torch.tensor([[0, 2, 0, -1], [0, -1, -1, -1], [0, 1, -1, -1]]), warped_moves, warp_score, warp_cost,
    ),
    "dependencies": Case(
        lambda scores: Dependencies(scores, LENGTHS),
        (random(3, 3, 4),), TREES, lambda i: dependency_trees(LENGTHS[i], projective=True), arc_score, wrong,
    ),
    "dependencies that cross": Case(
        lambda scores: Dependencies(scores, LENGTHS, projective=False, single_root=False),
        (random(3, 3, 4),), TREES, lambda i: dependency_trees(LENGTHS[i], single_root=False), arc_score, wrong,
    ),
    "labelled dependencies": Case(
        lambda scores: Dependencies(scores, LENGTHS), (random(3, 3, 4, 2),), LABELLED_TREES,
        lambda i: labelled_trees(i, projective=True), labelled_arc_score, wrong,
    ),
    "labelled dependencies that cross": Case(
        lambda scores: Dependencies(scores, LENGTHS, projective=False, single_root=False), (random(3, 3, 4, 2),),
        LABELLED_TREES, lambda i: labelled_trees(i, single_root=False), labelled_arc_score, wrong,
    ),
    "segments": Case(
        lambda *tensors: Segments(*tensors, lengths=LENGTHS),
        (random(3, 3, 3, 2), random(2, 2), random(2, 2, seed=1)), STATES, cut_into_segments, segment_score, wrong,
    ),
    "segments of own tables": Case(
        lambda *tensors: Segments(*tensors[:3], LENGTHS, tensors[3]),
        (random(3, 3, 2, 2), random(3, 2, 2), random(3, 2, 2, seed=1), random(3, 3, 2, 2, seed=1)),
        STATES, cut_into_segments, segment_score, wrong,
    ),
    "packed segments": Case(
        packed_segments, (random(3, 3, 3, 2), random(2, 2), random(2, 2, seed=1), random(3, 3, 2, 2)),
        STATES, cut_into_segments, segment_score, wrong, is_packed=True,
    ),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def true_outputs(case):
    return packed(case.y) if case.has_packed_outputs else case.y


def padded(row):
    """Packed labels, one sequence in each row, -1 beyond its length."""
    return torch.nn.utils.rnn.pad_sequence(torch.split(row, LENGTHS), batch_first=True, padding_value=-1)


@pytest.mark.parametrize("loss", [HINGE, SMOOTH, ENTROPY, LOG], ids=lambda loss: f"{loss.smoothing}-{loss.margin}")
def test_losses_are_those_of_all_outputs(case, loss):
    if loss.smoothing == "entropy" and not case.has_sums:
        with pytest.raises(ValueError, match="have no exp oracle"):
            structured_loss(case.potentials, true_outputs(case), loss)
        return
    expected = []
    for i in range(3):
        _, scores, costs, truth = case.table(i)
        z = (scores + loss.margin * costs).detach().numpy()
        h = z.max() if not loss.is_smooth else smooth_max(z, loss.level, loss.smoothing)[0]
        expected.append(h - scores[truth].item())
    found = structured_loss(case.potentials, true_outputs(case), loss, reduction="none")
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", [HINGE, SMOOTH, ENTROPY, LOG], ids=lambda loss: f"{loss.smoothing}-{loss.margin}")
def test_derivatives(case, loss):
    if loss.smoothing == "entropy" and not case.has_sums:
        return

    def losses(*tensors):
        return structured_loss(case.make(*tensors), true_outputs(case), loss, reduction="none")

    assert torch.autograd.gradcheck(losses, case.tensors)
    assert torch.autograd.gradgradcheck(losses, case.tensors)


def test_marginals_and_their_derivatives(case):
    if not case.has_sums:
        with pytest.raises(ValueError, match="no marginals"):
            marginals(case.potentials)
        return
    own = case.potentials.unshared()
    means = marginals(case.potentials)
    total = 0
    for i in range(3):
        total = total + torch.logsumexp(case.table(i)[1], 0)
    expected = torch.autograd.grad(total, case.tensors[0])[0]
    found = means.tensors[0].detach()
    assert torch.allclose(found, packed(expected) if case.is_packed else expected)
    assert [tensor.shape for tensor in means.tensors] == [tensor.shape for tensor in own.tensors]

    def mean_parts(*tensors):
        return marginals(case.make(*tensors)).tensors

    assert torch.autograd.gradcheck(mean_parts, case.tensors)
    first = torch.autograd.grad(sum(map(torch.sum, mean_parts(*case.tensors))), case.tensors[0], create_graph=True)
    with pytest.raises(NotImplementedError, match="marginals one"):
        torch.autograd.grad(first[0].sum(), case.tensors[0])


def test_log_partition(case):
    if case.has_sums:
        expected = [torch.logsumexp(case.table(i)[1], 0).item() for i in range(3)]
        assert torch.allclose(log_partition(case.potentials), torch.tensor(expected, dtype=torch.float64))


def test_outputs_are_the_best_of_all(case):
    k = 3
    found, scores = topk(case.potentials, k)
    best = decode(case.potentials)
    assert torch.equal(found[0], best)
    if case.has_packed_outputs:
        found = torch.stack([padded(row) for row in found])
    for i in range(3):
        outputs, all_scores, _, _ = case.table(i)
        order = torch.argsort(all_scores, descending=True)[:k]
        size = len(outputs[0])
        assert torch.allclose(scores[: len(order), i], all_scores[order])
        rows = np.atleast_2d(found[:, i].numpy().T).T[: len(order), :size].tolist()
        assert [as_tuple(row) for row in rows] == [outputs[o] for o in order.tolist()]
        assert torch.isinf(scores[len(order) :, i]).all()
        assert (found[len(order) :, i] == -1).all()


def test_scores_and_their_derivatives(case):
    y = true_outputs(case)
    expected = [case.table(i)[1][case.table(i)[3]].item() for i in range(3)]
    assert np.allclose(score(case.potentials, y).detach(), expected)
    assert torch.autograd.gradcheck(lambda *tensors: score(case.make(*tensors), y), case.tensors)

    def best_scores(*tensors):
        values = topk(case.make(*tensors), 2)[1]
        return values[torch.isfinite(values)]

    assert torch.autograd.gradcheck(best_scores, case.tensors)


def test_parts_of_any_problem():
    problem = toy_chains(n=2, max_length=2)
    theta = random(int(part_sizes(problem).sum()))
    assert torch.autograd.gradcheck(lambda t: crf_loss(Parts(problem, t)), theta)
    assert torch.autograd.gradgradcheck(lambda t: crf_loss(Parts(problem, t)), theta)
    rows, lengths = torch.split(theta, part_sizes(problem).tolist()), np.diff(problem.starts)
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        chain = Chains(row[: 3 * length].view(1, length, 3), row[3 * length :].view(3, 3))
        y = torch.as_tensor(problem.supervision.labels[problem.starts[i] : problem.starts[i + 1]][None])
        assert hinge_loss(chain, y).item() == pytest.approx(
            hinge_loss(Parts(problem, theta), reduction="none")[i].item()
        )


def test_squared_slacks():
    scores, y = random(3, 4), torch.tensor([0, 1, 2])
    hinge = hinge_loss(Candidates(scores), y, reduction="none")
    squared = structured_loss(Candidates(scores), y, "squared_hinge", reduction="none")
    assert torch.allclose(squared, hinge**2 / 2)
    (gradient,) = torch.autograd.grad(squared.sum(), scores)
    (expected,) = torch.autograd.grad((hinge**2).sum() / 2, scores)
    assert torch.allclose(gradient, expected)


def test_reductions_costs_and_threads():
    emissions, transitions = random(5, 4, 3), random(3, 3)
    y = torch.randint(0, 3, (5, 4))
    potentials = Chains(emissions, transitions)
    each = hinge_loss(potentials, y, reduction="none")
    assert hinge_loss(potentials, y).item() == pytest.approx(each.mean().item())
    assert hinge_loss(potentials, y, reduction="sum").item() == pytest.approx(each.sum().item())
    by_matrix = hinge_loss(potentials, y, cost=(1 - torch.eye(3)) / 4)
    assert hinge_loss(potentials, y, cost="normalized_hamming").item() == pytest.approx(by_matrix.item())
    one, two = (torch.autograd.grad(crf_loss(potentials, y, n_jobs=j), (emissions, transitions)) for j in (1, 2))
    assert all(map(torch.allclose, one, two))


def test_single_precision_and_half():
    emissions, transitions, y = random(4, 6, 3), random(3, 3), torch.randint(0, 3, (4, 6))
    exact = crf_loss(Chains(emissions, transitions), y).item()
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.05)):
        rounded = emissions.detach().to(dtype).requires_grad_()
        loss = crf_loss(Chains(rounded, transitions.to(dtype)), y)
        loss.backward()
        assert loss.item() == pytest.approx(exact, rel=tolerance)
        assert rounded.grad.dtype == dtype


def test_impossible_labels_and_transitions():
    emissions, transitions = random(1, 3, 2), torch.tensor([[0.0, -torch.inf], [0.0, 0.0]], dtype=torch.float64)
    potentials = Chains(emissions, transitions)
    allowed = [y for y in labellings(3, 2) if not any(a == 0 and b == 1 for a, b in itertools.pairwise(y))]
    scores = torch.stack([chain_score((emissions, torch.zeros(2, 2)), 0, y) for y in allowed])
    assert log_partition(potentials).item() == pytest.approx(torch.logsumexp(scores, 0).item())
    assert marginals(potentials).transitions[0, 0, 1] == 0
    assert len(topk(potentials, 8)[1][:, 0].isfinite().nonzero()) == len(allowed)
    with pytest.raises(ValueError, match="true output of batch entry 0 is impossible"):
        crf_loss(potentials, torch.tensor([[0, 1, 1]]))
    with pytest.raises(ValueError, match="entry 0 has no possible output"):
        decode(Chains(torch.full((1, 2, 2), -torch.inf), torch.zeros(2, 2)))
    gradient = torch.autograd.grad(crf_loss(potentials, torch.tensor([[1, 0, 0]])), emissions, create_graph=True)[0]
    assert torch.autograd.grad(gradient.square().sum(), emissions)[0].isfinite().all()


@pytest.mark.parametrize("seed", range(2, 7))
def test_rows_lengths_and_whole_segments_that_are_ruled_out(seed):
    shapes, rng = [(1, 3, 3, 2), (2, 2), (2, 2), (1, 3, 2, 2)], np.random.default_rng(seed)
    tensors = [random(*shape, seed=seed).detach() for shape in shapes]
    for tensor in tensors:
        tensor[torch.tensor(rng.random(tensor.shape) < 0.15)] = -torch.inf
    potentials = Segments(*tensors[:3], segments=tensors[3])
    outputs = [*cut_into_segments(0)]
    scores = torch.stack([segment_score(tensors, 0, y) for y in outputs])
    possible = int(scores.isfinite().sum())
    if not possible:
        with pytest.raises(ValueError, match="entry 0 has no possible output"):
            log_partition(potentials)
        return
    assert torch.allclose(log_partition(potentials), torch.logsumexp(scores, 0))
    best = torch.argsort(scores, descending=True)[:possible]
    found, values = topk(potentials, len(outputs))
    assert torch.allclose(values[:possible, 0], scores[best])
    assert torch.isinf(values[possible:]).all()
    assert found[:possible, 0].tolist() == [outputs[k].tolist() for k in best]
    assert marginals(potentials).emissions[tensors[0].isinf()].sum() == 0


def test_nodes_and_cuts_of_graphs_that_are_ruled_out():
    rng, n_nodes = np.random.default_rng(0), 5
    pairs, every = [*itertools.combinations(range(n_nodes), 2)], np.array([*labellings(n_nodes, 2)])
    for _ in range(50):
        edges = [pairs[k] for k in rng.permutation(len(pairs))[:6]]
        nodes, penalties = 2 * rng.normal(size=n_nodes), rng.random(6)
        nodes[rng.random(n_nodes) < 0.3], penalties[rng.random(6) < 0.2] = -np.inf, np.inf
        cuts = every[:, [a for a, _ in edges]] != every[:, [b for _, b in edges]]
        scores = np.where(every, nodes, 0).sum(axis=1) - np.where(cuts, penalties, 0).sum(axis=1)
        truth = every[rng.choice(np.flatnonzero(np.isfinite(scores)))]
        potentials = GraphCuts(torch.tensor(nodes[None], requires_grad=True), edges, torch.tensor(penalties))
        assert decode(potentials)[0].tolist() == every[scores.argmax()].tolist()
        best = np.sort(scores[np.isfinite(scores)])[::-1]
        found = topk(potentials, len(every))[1][:, 0]
        assert np.allclose(found[: len(best)].detach(), best)
        assert torch.isinf(found[len(best) :]).all()
        z = scores + (every != truth).sum(axis=1)
        value = score(potentials, torch.tensor(truth[None])).item()
        losses = hinge_loss, lambda *args: smooth_hinge_loss(*args, level=0.5)
        for loss, h in zip(losses, (z.max(), smooth_max(z[np.isfinite(z)], 0.5, "l2")[0]), strict=True):
            reached = loss(potentials, torch.tensor(truth[None]))
            assert reached.item() == pytest.approx(h - value, abs=1e-9)
            assert torch.autograd.grad(reached, potentials.nodes)[0].isfinite().all()


@pytest.mark.parametrize("name", ["chains", "trees", "candidates"])
def test_masks_stand_for_lengths(name):
    first, second = random(3, 3, 2), random(2, 2)
    mask = torch.arange(3) < torch.tensor(LENGTHS)[:, None]
    make = {
        "chains": lambda lengths: Chains(first, second, lengths),
        "trees": lambda lengths: Trees(first, PARENTS, second, lengths),
        "candidates": lambda lengths: Candidates(first[:, :, 0], lengths),
    }[name]
    for lengths in (mask, mask.numpy(), mask.long(), mask.int().tolist()):
        assert torch.equal(log_partition(make(lengths)), log_partition(make(LENGTHS)))
        assert torch.equal(decode(make(lengths)), decode(make(LENGTHS)))


def chain(**changes):
    known = {"emissions": torch.zeros(2, 3, 2), "transitions": torch.zeros(2, 2), "lengths": [3, 2]}
    return Chains(**{**known, **changes})


def cut(y, **changes):
    known = {"emissions": torch.zeros(1, 3, 2, 2), "transitions": torch.zeros(2, 2), "durations": torch.zeros(2, 2)}
    return hinge_loss(Segments(**{**known, **changes}), [y])


def nan_at(i):
    emissions = torch.zeros(2, 3, 2)
    emissions[i, 1, 0] = torch.nan
    return emissions


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decode(chain(emissions=nan_at(1))), "batch entry 1 contain NaN"),
        (lambda: decode(chain(emissions=torch.full((2, 3, 2), 1e20))), "batch entry 0 are too large"),
        (lambda: chain(lengths=[3, 0]), r"lengths\[1\] is 0, but must be 1 to 3"),
        (lambda: chain(lengths=[4, 3]), r"lengths\[0\] is 4"),
        (lambda: chain(lengths=[3]), "lengths must have the shape"),
        (lambda: chain(lengths=torch.ones(3, 2, dtype=bool)), r"or as a mask \(2, 3\), not \(3, 2\)"),
        (lambda: chain(lengths=torch.zeros(2, 3, dtype=bool)), r"lengths\[0\] is 0"),
        (lambda: chain(lengths=[[1, 1, 2], [1, 0, 0]]), r"must hold booleans, or 0 and 1, but it has 2"),
        (lambda: chain(emissions=torch.zeros(4, 2)), "add up to 5, but emissions has 4 rows"),
        (lambda: chain(emissions=torch.zeros(4, 2), lengths=None), "lengths must say"),
        (lambda: chain(emissions=torch.zeros(2)), r"1 axes|2 axes"),
        (lambda: chain(transitions=torch.zeros(3, 3)), "transitions must have one of the shapes"),
        (lambda: chain(start=torch.zeros(3)), "start must have the shape"),
        (lambda: chain(transitions=torch.zeros(2, 2, device="meta")), "transitions is on meta, but emissions on cpu"),
        (lambda: hinge_loss(chain(), torch.full((2, 3), 2)), "y holds 2 at position 0 of batch entry 0"),
        (lambda: hinge_loss(chain(), torch.zeros(2, 4, dtype=int)), "y must have the shape"),
        (lambda: hinge_loss(chain()), "y must be the true outputs"),
        (lambda: hinge_loss(chain(), torch.zeros(2, 3, dtype=int), cost=torch.ones(2, 2)), "zeros on its diagonal"),
        (lambda: hinge_loss(chain(), torch.zeros(2, 3, dtype=int), reduction="max"), "reduction must be one of"),
        (lambda: smooth_hinge_loss(chain(), torch.zeros(2, 3, dtype=int), level=0), "level must be a positive number"),
        (lambda: smooth_hinge_loss(chain(), torch.zeros(2, 3, dtype=int), k=0), "max_k must be"),
        (lambda: smooth_hinge_loss(chain(), torch.zeros(2, 3, dtype=int), smoothing=None), "hinge_loss has none"),
        (lambda: topk(chain(), 0), "k must be an integer, at least 1"),
        (lambda: Candidates(torch.zeros(0, 3)), "must not be empty"),
        (lambda: hinge_loss(Candidates(torch.zeros(1, 3)), [3]), r"y\[0\] is 3, but batch entry 0 has 3 candidates"),
        (lambda: hinge_loss(Candidates(torch.zeros(1, 2)), [0], cost=[[1, 1]]), "zero for true candidates"),
        (lambda: Trees(torch.zeros(1, 2, 2), [[1, 0]], torch.zeros(2, 2)), "batch entry 0 form a cycle"),
        (lambda: Trees(torch.zeros(1, 2, 2), [[-1, 5]], torch.zeros(2, 2)), "parents names 5 at node 1 of batch"),
        (lambda: GraphCuts(torch.zeros(1, 2), [(0, 1)], -torch.ones(1)), "penalties must not be negative"),
        (lambda: GraphCuts(torch.zeros(1, 2), [(0, 2)], torch.ones(1)), "Edge 0 of the batch"),
        (lambda: GraphCuts(torch.zeros(3), [(0, 1)], torch.ones(1), lengths=[2, 1]), "edge_lengths must say"),
        (lambda: Alignments(torch.zeros(1, 2, 2), torch.zeros(2, 2)), r"moves must have the shape \(3, 3\) or \(1, 3"),
        (lambda: Alignments(torch.zeros(1, 2, 2), None, torch.zeros(1, 2), warp=True), "deleted and inserted must"),
        (lambda: hinge_loss(Alignments(torch.zeros(1, 2, 2)), [[1, 0]]), r"y of batch entry 0 has links that cross"),
        (lambda: hinge_loss(Alignments(torch.zeros(1, 2, 2), warp=True), [[0, 3, -1]]), "must hold moves, 0 to 2"),
        (lambda: hinge_loss(Alignments(torch.zeros(1, 2, 2), warp=True), [[0, 1, -1]]), "takes 2 left and 1 right"),
        (lambda: Matchings(torch.zeros(1, 2, 2), [[3, 1]]), r"sizes\[0\] is \[3, 1\]"),
        (lambda: hinge_loss(Matchings(torch.zeros(1, 2, 2)), [[1, 1]]), "y of batch entry 0"),
        (lambda: Dependencies(torch.zeros(1, 2, 2)), r"scores must have the shape \(B, n, n \+ 1\), or"),
        (lambda: Dependencies(torch.zeros(1, 2, 3, 0)), r"of labelled arcs, not \(1, 2, 3, 0\)"),
        (lambda: hinge_loss(Dependencies(torch.zeros(1, 1, 2, 2)), [[0]]), r"y must have the shape \(1, 1, 2\), not"),
        (lambda: hinge_loss(Dependencies(torch.zeros(1, 1, 2, 2)), [[[0, 2]]]), "y holds 2 at position 0 of batch"),
        (lambda: hinge_loss(Dependencies(torch.zeros(1, 2, 3)), [[0, -100]]), "position 1 .* partial_loss takes flags"),
        (lambda: cut([2, 0, 0]), "y holds 2 at position 0 of batch entry 0, but no segment of label 0 goes on there"),
        (lambda: cut([0, 3, 0]), "y holds 3 at position 1 of batch entry 0, but no segment of label 1 goes on there"),
        (lambda: cut([1, 3, 3]), "segment of 3 rows at position 0 of batch entry 0, but durations allow 2"),
        (lambda: cut([0, 4, 0]), "y holds 4 at position 1 of batch entry 0, beyond 0 to 3"),
        (lambda: cut([0, 0, 0], emissions=torch.zeros(1, 3, 4, 2)), "emissions must have 2 or 3 roles of rows"),
        (lambda: cut([0, 0, 0], transitions=torch.zeros(3, 2)), r"transitions must have the shape \(2, 2\) or \(1, 2"),
        (lambda: cut([0, 0, 0], durations=torch.zeros(2)), r"durations must have the shape \(D, 2\) or \(1, D, 2\)"),
        (lambda: cut([0, 0, 0], durations=torch.zeros(0, 2)), r"durations must have the shape \(D, 2\)"),
        (lambda: cut([0, 0, 0], segments=torch.zeros(1, 3, 3, 2)), r"segments must have the shape \(1, 3, 2, 2\)"),
        (lambda: Parts(toy_chains(), torch.zeros(3)), "one per part"),
        (lambda: hinge_loss(Parts(toy_chains(), torch.zeros(int(part_sizes(toy_chains()).sum()))), [0]), "leave out y"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nan_is_found(case):
    first, *others = (tensor.detach().clone() for tensor in case.tensors)
    first[1].view(-1)[0] = torch.nan
    with pytest.raises(ValueError, match="batch entry 1 contain NaN"):
        decode(case.make(first, *others))
    with pytest.raises(ValueError, match="batch entry 1 contain NaN"):
        hinge_loss(case.make(first, *others), true_outputs(case))


def test_wrong_types():
    with pytest.raises(TypeError, match=r"emissions must be a torch\.Tensor"):
        chain(emissions=np.zeros((2, 3, 2)))
    with pytest.raises(TypeError, match="must hold real numbers"):
        chain(transitions=torch.zeros(2, 2, dtype=int))
    with pytest.raises(TypeError, match="y must hold integers"):
        hinge_loss(chain(), torch.zeros(2, 3))
    with pytest.raises(TypeError, match="potentials must be Chains"):
        decode(torch.zeros(2, 3, 2))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("sys.modules['torch'] = None; import maxmargin.torch", "maxmargin.torch"),
        ("from maxmargin.vision import *; sys.modules['torch'] = None; cnn_features([], [], None)", "cnn_features"),
    ],
)
def test_the_extra_is_named_where_pytorch_is_missing(code, name):
    found = subprocess.run([sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=False)
    assert f'{name} needs PyTorch: pip install "maxmargin[torch]"' in found.stderr
