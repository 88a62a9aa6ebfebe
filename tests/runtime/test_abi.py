"""Blocks, tables and calls by address: what loops and structures rely on."""

import gc
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from maxmargin import problem as generics
from maxmargin.execution.runner import Runner, bind
from maxmargin.losses import Loss
from maxmargin.problem import max_oracle, n_examples, scores, squared_norm
from maxmargin.runtime import generic, helper, implements, loop
from maxmargin.runtime.abi import Packed
from maxmargin.runtime.compiling import LOOP, compile_for
from maxmargin.runtime.dispatch import PROBLEM
from maxmargin.runtime.tables import Interface, argument_type
from maxmargin.solvers import BCFW
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import Caller, toy_chains


class Inner(NamedTuple):
    numbers: np.ndarray
    flag: bool


class Outer(NamedTuple):
    table: np.ndarray
    inner: Inner
    count: int
    scale: float
    words: np.ndarray


@generic
def add_up(thing):
    """A number that every field changes."""


@implements(add_up, Outer)
def add_up_outer(thing):
    total = thing.scale * thing.count + thing.words[thing.words.size - 1]
    for a in range(thing.table.shape[0]):
        for b in range(thing.table.shape[1]):
            total += (a + 2 * b) * thing.table[a, b]
    for k in range(thing.inner.numbers.size):
        total += thing.inner.numbers[k] if thing.inner.flag else -thing.inner.numbers[k]
    return total


@loop
def call_add_up(thing):
    return add_up(thing)


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_compiled_code_reads_every_field(flag, dtype):
    thing = Outer(np.arange(6.0).reshape(2, 3), Inner(np.arange(4, dtype=dtype), flag), 7, 0.5, np.array([3, -9]))
    assert call_add_up(thing) == call_add_up.interpreted(thing)


def test_what_compiled_code_cannot_read_is_named():
    inner = Inner(np.zeros((4, 4)).T[1:], True)
    with pytest.raises(TypeError, match=r"Outer.inner.numbers must be a C-contiguous array"):
        Packed(Outer(np.zeros((1, 1)), inner, 1, 1.0, np.zeros(1)))
    with pytest.raises(TypeError, match=r"Inner.numbers is a dict"):
        Packed(Inner({}, True))


def test_blocks_keep_their_arrays_alive():
    packed = Packed(Inner(np.full(100_000, 3.0), True))
    gc.collect()
    others = [np.zeros(100_000) for _ in range(20)]
    assert packed.value.numbers.sum() == 300_000
    assert len(others) == 20

    def solver_of_a_forgotten_problem():
        return Objective(toy_chains(n=20, random_state=3))

    objective, w = solver_of_a_forgotten_problem(), np.ones(21)
    gc.collect()
    assert objective.evaluate(w).value == Objective(toy_chains(n=20, random_state=3)).evaluate(w).value


def test_only_the_oracles_that_are_called_are_compiled():
    bound = bind(toy_chains())
    Objective(bound).evaluate(np.zeros(21))
    assert bound.table.has(generics.max_oracle)
    assert not bound.table.has(generics.exp_oracle)
    assert not bound.table.has(generics.topk_oracle)
    Objective(bound, loss=Loss("entropy")).evaluate(np.zeros(21))
    assert bound.table.has(generics.exp_oracle)
    assert not bound.table.has(generics.topk_oracle)


@loop
def passes_float64(problem, w, i, theta):
    scores(problem, w, i, theta)


def test_two_signatures_on_one_slot_are_an_error():
    bound = bind(toy_chains(dtype="float32"))
    with pytest.raises(TypingError, match=r"scores.* takes a array\(float32, 1d, C\), not a array\(float64"):
        passes_float64(bound, np.zeros(21), 0, np.zeros(12))


def test_what_a_structure_lacks_is_named():
    class Bare(NamedTuple):
        labels: np.ndarray

    @implements(generics.true_outputs, Bare)
    def truth(problem):
        return problem.labels[:, np.newaxis]

    @implements(generics.new_weights, Bare)
    def new(problem):
        return np.zeros(1)

    with pytest.raises(NotImplementedError, match=r"Bare has no scores\(\)"):
        passes_float64(bind(Bare(np.zeros(2, np.int32))), np.zeros(1), 0, np.zeros(1))


class Picky(NamedTuple):
    """Two classes; its max oracle raises, and its norm makes an array of its own."""

    labels: np.ndarray


@implements(generics.true_outputs, Picky)
def picky_truth(problem):
    return problem.labels[:, np.newaxis]


@implements(generics.new_weights, Picky)
def picky_weights(problem):
    return np.zeros(2)


@implements(max_oracle, Picky)
def picky_max(problem, i, theta, y, work):
    if theta[0] < 0:
        raise ValueError("negative potentials")
    y[0] = 1
    return theta[1]


@implements(squared_norm, Picky)
def picky_norm(problem, i, delta, work):
    return np.sum(np.ones(3) * delta[0])


def test_errors_pass_through_calls_by_address():
    call, y = Caller(Picky(np.zeros(2, np.int32))), np.zeros(1, np.int32)
    assert call(max_oracle, 0, np.array([1.0, 5.0]), y, None) == 5.0
    assert y[0] == 1
    for _ in range(3):
        with pytest.raises(ValueError, match="negative potentials"):
            call(max_oracle, 0, np.array([-1.0, 5.0]), y, None)


def test_implementations_may_make_arrays():
    assert Caller(Picky(np.zeros(2, np.int32)))(squared_norm, 0, np.array([2.0, 0.0]), None) == 6.0


def test_the_stamp_covers_the_order_and_the_signatures_of_generics():
    before = PROBLEM.description
    assert before.index("scores(") < before.index("max_oracle(")
    other = Interface("another")
    try:
        assert other.description != before

        @generic(interface=other)
        def first(thing, i: int) -> float:
            """A number."""

        one = other.description

        @generic(interface=other)
        def second(thing, i: int) -> float:
            """A number."""

        assert one in other.description
        assert one != other.description
    finally:
        del Interface.named["another"]


@loop
def count_examples(problem):
    return n_examples(problem)


def test_kernels_are_compiled_once_for_all_structures():
    from maxmargin.runtime import compiling

    assert count_examples(bind(toy_chains(n=4))) == 4
    assert count_examples(bind(Picky(np.zeros(3, np.int32)))) == 3
    (dispatcher,) = [d for (function, _), d in compiling._dispatchers.items() if function is count_examples.interpreted]
    assert len(dispatcher.overloads) == 1


def test_threads_share_what_is_linked():
    problem = toy_chains(n=40, random_state=1)
    one, two = (BCFW().solve(problem, max_passes=3, tol=1e-9, n_jobs=jobs, random_state=0) for jobs in (1, 4))
    assert np.allclose(one.w, two.w)
    assert len(Runner(problem, n_jobs=4).ranges) == 4


class OtherWork(NamedTuple):
    rooms: np.ndarray


class Roomy(NamedTuple):
    """Two classes, whose workspace depends on the number of outputs asked for."""

    labels: np.ndarray
    work: int  # which workspace it makes


@implements(generics.true_outputs, Roomy)
def roomy_truth(problem):
    return problem.labels[:, np.newaxis]


@implements(generics.new_weights, Roomy)
def roomy_weights(problem):
    return np.zeros(2)


@implements(generics.part_sizes, Roomy)
def roomy_parts(problem):
    return np.full(len(problem.labels), 2)


@implements(generics.workspace, Roomy)
def roomy_workspace(problem, n_best):
    if problem.work == 0:
        return np.zeros(3)
    return OtherWork(np.zeros(3)) if n_best == 1 else OtherWork(np.zeros(3, np.float32))


def test_a_workspace_is_one_named_tuple():
    labels = np.zeros(2, np.int32)
    with pytest.raises(TypeError, match="workspace must return a NamedTuple of arrays, or None, not an ndarray"):
        Runner(Roomy(labels, 0))
    bound = bind(Roomy(labels, 1))
    Runner(bound)
    with pytest.raises(TypeError, match="workspace must always return the same NamedTuple"):
        Runner(bound, n_best=2)


def test_true_outputs_are_rows_of_integers():
    for labels in (np.zeros(2), np.zeros(0, np.int32)):
        with pytest.raises(ValueError, match="true_outputs must hold a row of integers for every example"):
            bind(Roomy(labels, 1))


def make_kernel_with_a_module():
    from maxmargin import problem as module

    @loop
    def inside(problem, w, i, theta):
        module.scores(problem, w, i, theta)

    return inside


def test_generics_behind_a_closure_are_linked():
    bound, theta = bind(toy_chains()), np.ones(21)
    make_kernel_with_a_module()(bound, np.zeros(21), 0, theta[: generics.part_sizes(bound)[0]])
    assert (theta[: generics.part_sizes(bound)[0]] == 0).all()


def test_a_function_that_is_not_linked_raises():
    def call_hidden(problem, w, i, theta):
        scores(problem, w, i, theta)

    bound, theta = bind(toy_chains()), np.ones(12)
    bound.table._table[scores.slot] = 0
    arguments = bound.table, np.zeros(21), 0, theta
    compiled = compile_for(call_hidden, tuple(map(argument_type, arguments)), LOOP)
    with pytest.raises(RuntimeError, match="scores is not in the table"):
        compiled.entry_point(*arguments)


def test_a_class_that_is_defined_again_is_another_one():
    def define(value):
        class Cell(NamedTuple):
            x: float

        @implements(add_up, Cell)
        def add(thing):
            return value * thing.x

        return Cell

    one, two = define(1.0), define(2.0)
    assert call_add_up(one(3.0)) == 3.0
    assert call_add_up(two(3.0)) == 6.0


def test_options_of_inlined_generics_are_refused():
    with pytest.raises(TypeError, match="add_up is compiled as part of what calls it"):
        implements(add_up, Inner, fastmath=False)


@pytest.mark.parametrize("dtype", [object, ">f8", np.float16, complex])
def test_dtypes_that_compiled_code_does_not_know_are_named(dtype):
    with pytest.raises(TypeError, match=r"Inner.numbers must .*dtype"):
        Packed(Inner(np.zeros(2, dtype), True))


@helper
def raise_if_negative(x):
    if x < 0:
        raise ValueError("a negative number, deep inside")
    return x


@helper
def pass_on(x):
    return raise_if_negative(x) + 1.0


@implements(generics.score_output, Picky)
def picky_score(problem, i, theta, y):
    return pass_on(theta[y[0]])


def test_inner_functions_compute_and_raise():
    """They are linked into their callers, two levels deep, and have no machine code of their own."""
    call, y = Caller(Picky(np.zeros(2, np.int32))), np.zeros(1, np.int32)
    assert call(generics.score_output, 0, np.array([2.0, 0.0]), y) == 3.0
    with pytest.raises(ValueError, match="deep inside"):
        call(generics.score_output, 0, np.array([-2.0, 0.0]), y)


def test_what_was_packed_for_the_last_call_is_not_read_again():
    known, met = {}, {}
    inner = Inner(np.arange(3.0), True)
    first = Packed(inner, known, met)
    again = Packed(inner, met, {})
    assert met[id(inner)][0] is inner  # which lives, so that no other has its id
    assert again.block == first.block
    assert again.type is first.type
    assert Packed(inner._replace(numbers=np.zeros(3)), met, {}).block != first.block
