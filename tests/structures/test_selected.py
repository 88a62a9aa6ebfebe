"""Structures whose potentials are picked from the weights, of compiled and of Python's problems."""

import numpy as np
import pytest

from maxmargin import inference
from maxmargin.problem import bound_oracle, exp_oracle, part_sizes, topk_oracle
from maxmargin.runtime import supports
from maxmargin.structures.derived.selected import NOTHING, SelectedProblem
from maxmargin.testing import check_structure, toy_chains
from tests.naive import labellings
from tests.toy import Candidates


def test_generics():
    """Transitions are shared, and those of one example are zero."""
    chains = toy_chains(n=3, max_length=3)
    sizes = part_sizes(chains)
    n_emissions = sizes - 9
    starts = np.stack([9 + np.cumsum(n_emissions) - n_emissions, [0, NOTHING, 0]], axis=1)
    problem = SelectedProblem(chains, starts, np.stack([n_emissions, [9, 9, 9]], axis=1), int(9 + n_emissions.sum()))
    check_structure(problem, outputs=lambda i: labellings(int(n_emissions[i]) // 3, 3))


def test_problems_of_python_are_interpreted():
    base = Candidates([[[0.0], [1.0]], [[0.0], [1.0], [2.0]]], [[0, 1], [0, 1, 1]])
    problem = SelectedProblem(base, np.array([[0], [2]]), np.array([[2], [3]]), 5)
    outputs, scores = inference.scored_outputs(problem, np.array([1.0, 0, 0, 2, 3]))
    assert outputs.values.tolist() == [0, 2]
    assert scores.tolist() == [1, 3]


@pytest.mark.parametrize("oracle", [bound_oracle, exp_oracle, topk_oracle])
def test_oracles_are_those_of_the_base(oracle):
    for base in (toy_chains(), Candidates([[[0.0]]], [[0]])):
        n = len(part_sizes(base))
        problem = SelectedProblem(base, np.zeros((n, 1), int), np.zeros((n, 1), int), 0)
        assert supports(oracle, problem) == supports(oracle, base)
