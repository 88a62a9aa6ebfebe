"""Structures whose potentials are picked from the weights, of compiled and of Python's problems."""

import numpy as np
import pytest

from maxmargin import inference
from maxmargin.arrays.blocks import as_blocks
from maxmargin.problem import bound_oracle, exp_oracle, part_sizes, restrict, topk_oracle
from maxmargin.runtime import supports
from maxmargin.structures.derived.linearized import linearized
from maxmargin.structures.derived.selected import NOTHING, SelectedProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.testing import check_structure, toy_chains
from tests.naive import labellings
from tests.toy import Candidates


def test_generics():
    """Transitions are shared, and those of one example are zero."""
    chains = toy_chains(n=3, max_length=3)
    sizes = part_sizes(chains)
    n_emissions = sizes - 9
    starts = np.stack([9 + np.cumsum(n_emissions) - n_emissions, [0, NOTHING, 0]], axis=1)
    problem = SelectedProblem(
        chains, starts, np.stack([n_emissions, [9, 9, 9]], axis=1), int(9 + n_emissions.sum()), nothing_excluded(3)
    )
    check_structure(problem, outputs=lambda i: labellings(int(n_emissions[i]) // 3, 3))


def test_problems_of_python_are_interpreted():
    base = Candidates([[[0.0], [1.0]], [[0.0], [1.0], [2.0]]], [[0, 1], [0, 1, 1]])
    problem = SelectedProblem(base, np.array([[0], [2]]), np.array([[2], [3]]), 5, nothing_excluded(2))
    outputs, scores = inference.scored_outputs(problem, np.array([1.0, 0, 0, 2, 3]))
    assert outputs.values.tolist() == [0, 2]
    assert scores.tolist() == [1, 3]


@pytest.mark.parametrize("oracle", [bound_oracle, exp_oracle, topk_oracle])
def test_oracles_are_those_of_the_base(oracle):
    for base in (toy_chains(), Candidates([[[0.0]]], [[0]])):
        n = len(part_sizes(base))
        problem = SelectedProblem(base, np.zeros((n, 1), int), np.zeros((n, 1), int), 0, nothing_excluded(n))
        assert supports(oracle, problem) == supports(oracle, base)


@pytest.mark.usefixtures("interpreted_loops")
@pytest.mark.parametrize("kind", ["selected", "linearized"])
def test_parts_are_ruled_out_without_the_features_of_the_base(kind):
    base, rng = toy_chains(n=3, max_length=3), np.random.default_rng(0)
    sizes = part_sizes(base)
    starts = np.cumsum(sizes) - sizes
    if kind == "selected":
        size = int(sizes.sum())
        problem = SelectedProblem(base, starts[:, None], sizes[:, None], size, nothing_excluded(3))
    else:
        problem = linearized(base, rng.normal(size=(int(sizes.sum()), 4)), np.zeros(int(sizes.sum())))
    n_nodes = (sizes - 9) // 3
    is_out = [np.arange(3) != rng.integers(0, 3, n)[:, None] for n in n_nodes]
    for flags in is_out:
        flags[0] = [True, False, False]  # two labels are left at the first node
    restricted = restrict(problem, as_blocks([flags.ravel() for flags in is_out], bool))

    def left(i):
        return [y for y in labellings(n_nodes[i], 3) if not is_out[i][np.arange(n_nodes[i]), y].any()]

    assert [len(left(i)) for i in range(3)] == [2, 2, 2]
    check_structure(restricted, outputs=left)
