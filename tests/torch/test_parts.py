"""A network on top of any structure: `Parts` takes a problem and needs nothing else that is about PyTorch."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin import problem as generics
from maxmargin.structures.second_order.contexts import find_contexts
from maxmargin.structures.second_order.second_order_problem import SecondOrderProblem
from maxmargin.torch import Chains, Parts, crf_loss, decode, entropy, hinge_loss, log_partition, marginals, topk
from tests.naive import labellings
from tests.structures.test_deformable import all_poses
from tests.structures.test_deformable import make_problem as make_poses
from tests.test_adding import OnsetEncoder, onsets

pytestmark = pytest.mark.usefixtures("interpreted_loops")

LENGTHS = [3, 1, 2]


def a_new_structure():
    X, y = onsets(3)
    return OnsetEncoder.learn(X, y, dtype=np.float64).problem, lambda i: [np.array([t]) for t in range(len(X[i]))]


def chains_of_second_order():
    y = torch.tensor([[0, 1, 1], [1, -1, -1], [1, 0, -1]])
    base = Chains(torch.zeros(3, 3, 2), torch.zeros(2, 2), LENGTHS).problem(y, None, np.float64)
    return SecondOrderProblem(base, find_contexts(np.arange(8), 2), 0), lambda i: labellings(LENGTHS[i], 2)


def poses():
    problem = make_poses(np.random.default_rng(0), [(1, 2), (2, 1), (2, 2)], n_joints=2)
    return problem, all_poses(problem)


@pytest.fixture(params=[a_new_structure, chains_of_second_order, poses])
def case(request):
    """A problem, random potentials of its parts, and all outputs of each example as counts of its parts."""
    problem, outputs = request.param()
    sizes, rng = generics.part_sizes(problem), np.random.default_rng(1)
    thetas = [rng.normal(size=size) for size in sizes]
    if request.param is poses:  # springs pull
        for theta in thetas:
            theta[-10:].reshape(2, 5)[:, [0, 2]] = [[0.5, 0.7], [1.1, 0.6]]
    found = []
    for i, size in enumerate(sizes):
        rows = [np.asarray(y, np.int32) for y in outputs(i)]
        counts = np.zeros((len(rows), size))
        for y, count in zip(rows, counts, strict=True):
            generics.add_output(problem, i, y, 1.0, count)
        found.append((rows, torch.tensor(counts)))
    return problem, torch.tensor(np.concatenate(thetas), requires_grad=True), sizes.tolist(), found


def test_losses_are_those_of_all_outputs(case):
    problem, theta, sizes, found = case
    potentials, given = Parts(problem, theta), generics.all_true_outputs(problem)
    truths = np.split(given.values, given.starts[1:-1])
    log_losses, hinges = (loss(potentials, reduction="none") for loss in (crf_loss, hinge_loss))
    for i, (part, (_, counts)) in enumerate(zip(torch.split(theta, sizes), found, strict=True)):
        true, costs = np.zeros(sizes[i]), np.zeros(sizes[i])
        generics.add_output(problem, i, truths[i], 1.0, true)
        generics.augment(problem, i, costs)
        scores, value = counts @ part, torch.tensor(true) @ part
        torch.testing.assert_close(log_losses[i], torch.logsumexp(scores, 0) - value)
        torch.testing.assert_close(hinges[i], (scores + counts @ torch.tensor(costs)).max() - value)
        logs = torch.log_softmax(scores, 0)
        torch.testing.assert_close(entropy(potentials)[i], -(logs.exp() * logs).sum())


def test_derivatives(case):
    problem, theta, sizes, found = case
    assert torch.autograd.gradcheck(lambda t: crf_loss(Parts(problem, t)), theta)
    total = sum(
        torch.logsumexp(counts @ part, 0) for part, (_, counts) in zip(torch.split(theta, sizes), found, strict=True)
    )
    torch.testing.assert_close(marginals(Parts(problem, theta)).tensors[0], torch.autograd.grad(total, theta)[0])
    torch.testing.assert_close(log_partition(Parts(problem, theta)).sum(), total)


def test_outputs_are_the_best_of_all(case):
    problem, theta, sizes, found = case
    best, scores = decode(Parts(problem, theta)), topk(Parts(problem, theta), 2)[1]
    expected = []
    for i, (part, (rows, counts)) in enumerate(zip(torch.split(theta, sizes), found, strict=True)):
        values, order = (counts @ part).sort(descending=True)
        expected.append(rows[order[0]])
        torch.testing.assert_close(scores[: len(rows), i], values[:2])
    assert best.tolist() == [*itertools.chain(*(y.tolist() for y in expected))]
