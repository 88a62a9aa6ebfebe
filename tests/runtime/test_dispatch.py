"""Generics, loops and the cache; what concerns several processes is run in several processes."""

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import maxmargin
from maxmargin import problem as generics
from maxmargin.inference import best_k_outputs, best_outputs
from maxmargin.runtime import compiling, generic, implements, interpreted, loop, supports
from maxmargin.runtime.reach import Reach
from maxmargin.solvers import BCFW, FrankWolfe
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.testing import toy_chains


@generic
def area(shape, factor):
    """The area of a shape."""


class Square(NamedTuple):
    side: float


@implements(area, Square)
def square_area(shape, factor):
    return factor * shape.side**2


@loop
def total_area(shape, n):
    total = 0.0
    for _ in range(n):
        total += area(shape, 2.0)
    return total


class Disc:
    def area(self, factor):
        return factor * 3.0


def test_one_source_runs_compiled_and_interpreted():
    assert total_area(Square(2.0), 3) == 24.0
    assert total_area.interpreted(Square(2.0), 3) == 24.0
    assert total_area(Disc(), 3) == 18.0


def test_kernels_can_be_interpreted():
    seen = []

    @loop
    def watched(shape):
        seen.append(type(shape))  # compiled code has no such list
        return area(shape, 1.0)

    with interpreted():
        assert watched(Square(2.0)) == 4.0
    assert seen == [Square]


def test_unknown_types_are_named():
    with pytest.raises(NotImplementedError, match=r"int has no area\(\)"):
        area(3, 1.0)
    assert supports(area, Square(1.0))
    assert supports(area, Disc())
    assert not supports(area, 3)


def test_signatures_are_checked():
    with pytest.raises(TypeError, match=r"area takes \(shape, factor\), not \(shape\)"):

        @implements(area, Square)
        def wrong(shape):
            return 0.0


class PythonChains:
    """A chain problem as a user would write it: methods that forward to the interpreted implementations."""

    def __init__(self, problem):
        self.problem = problem

    def __getattr__(self, name):
        function = getattr(generics, name, None)
        if not hasattr(function, "implementations") or not supports(function, self.problem):
            raise AttributeError(name)
        return lambda *args: function(self.problem, *args)


VARIANTS = [
    BCFW(averaging=True),
    BCFW(steps="pairwise", sampling="gap", cache=3),
    BCFW(steps="away", sampling="uniform"),
    FrankWolfe(),
]


@pytest.mark.parametrize("solver", VARIANTS, ids=str)
def test_compiled_interpreted_and_python_classes_agree(solver):
    problem = toy_chains(n=5)
    options = {"tol": 1e-9, "max_passes": 12, "random_state": 0, "lower": -0.4}
    compiled = solver.solve(problem, 1.0, **options)
    python = solver.solve(PythonChains(problem), 1.0, **options)
    assert np.allclose(compiled.w, python.w, rtol=1e-10)
    assert np.allclose(compiled.trace.primal, python.trace.primal)
    assert np.allclose(
        Objective(problem).means_of(compiled.dual).values, Objective(PythonChains(problem)).means_of(python.dual).values
    )
    assert np.array_equal(
        best_outputs(problem, compiled.w).values, best_outputs(PythonChains(problem), compiled.w).values
    )
    for (y, scores), (other, same) in zip(
        best_k_outputs(problem, compiled.w, 3), best_k_outputs(PythonChains(problem), compiled.w, 3), strict=True
    ):
        assert np.array_equal(y, other)
        assert np.allclose(scores, same)


def test_a_cache_that_breaks_costs_only_compilation(monkeypatch):
    """If Numba's internals change, loops compile in every process."""

    def broken(function, options):
        raise AttributeError("caching has changed")

    monkeypatch.setattr(compiling, "LoopCache", broken)

    @loop
    def uncached(shape, n):
        return area(shape, 1.0) * n

    assert uncached(Square(2.0), 2) == 8.0


# --- several processes ----------------------------------------------------------------------------------------------


USER_CODE = """
    from typing import NamedTuple
    from maxmargin.runtime.dispatch import generic, implements, loop
    import helper

    @generic
    def value(thing):
        "A number."

    class Thing(NamedTuple):
        x: float

    @implements(value, Thing)
    def thing_value(thing):
        return helper.twice(thing.x)

    @loop
    def run(thing):
        return value(thing)
"""

HELPER = """
    import numba

    @numba.njit
    def twice(x):
        return {factor} * x
"""

REPORT = """
    import user
    from maxmargin.runtime.cache import compiled_anew, loaded
    print(user.run(user.Thing(3.0)), loaded["run"], compiled_anew["run"])
"""


def run_python(code, folder, **environment):
    """Run code in a new process in `folder`; return what it printed."""
    path = os.pathsep.join([str(folder), str(Path(maxmargin.__file__).parents[1])])  # this one, not an installed one
    environment = {
        **os.environ,
        "MAXMARGIN_CACHE_DIR": "",
        "PYTHONPATH": path,
        **{k: str(v) for k, v in environment.items()},
    }
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "user.py").write_text(textwrap.dedent(USER_CODE))
    (tmp_path / "helper.py").write_text(textwrap.dedent(HELPER.format(factor=2)))
    return tmp_path


@pytest.mark.long
def test_a_second_process_hits_the_cache_unless_another_file_was_edited(project):
    """The entry of the edited code takes the place of the older one."""
    cache = project / "cache"
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1"]
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "1", "0"]
    (project / "helper.py").write_text(textwrap.dedent(HELPER.format(factor=5)))
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["15.0", "0", "1"]
    assert len([*cache.rglob("user.run-*")]) == 1


def test_kernels_of_a_factory_keep_their_entries(project):
    code = textwrap.dedent(USER_CODE) + textwrap.dedent("""
        def factory(k):
            @loop
            def run(thing):
                return k * value(thing)
            return run

        one, two = factory(1), factory(2)
    """)
    (project / "user.py").write_text(code)
    report = """
        import user
        from maxmargin.runtime.cache import loaded
        print(user.one(user.Thing(3.0)), user.two(user.Thing(3.0)), loaded["run"])
    """
    assert run_python(report, project, NUMBA_CACHE_DIR=project / "cache") == ["6.0", "12.0", "0"]
    assert run_python(report, project, NUMBA_CACHE_DIR=project / "cache") == ["6.0", "12.0", "2"]


def test_a_field_that_moves_is_noticed(project):
    cache, code = project / "cache", textwrap.dedent(USER_CODE)
    two = code.replace("    x: float", "    x: float\n    y: float = 7.0")
    swapped = two.replace("x: float\n    y: float = 7.0", "y: float\n    x: float = 7.0")
    for text, value in ((two, "6.0"), (swapped, "14.0")):
        (project / "user.py").write_text(text)
        assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache)[0] == value


@pytest.mark.long
def test_a_broken_entry_costs_only_compilation(project):
    cache = project / "cache"
    run_python(REPORT, project, NUMBA_CACHE_DIR=cache)
    (entry,) = cache.rglob("user.run-*")
    content = bytearray(entry.read_bytes())
    entry.write_bytes(content[:100])
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1"]
    content[content.index(b"ELF" if b"ELF" in content else b"user") + 200] ^= 1  # which would still load, and crash
    entry.write_bytes(content)
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1"]


@pytest.mark.long
def test_kernels_that_make_arrays_are_loaded_with_numba_s_runtime_and_others_without(project):
    cache = project / "cache"
    report = REPORT + "    from numba.core.runtime.nrt import rtsys; print(rtsys._init)"
    assert run_python(report, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1", "True"]
    assert run_python(report, project, NUMBA_CACHE_DIR=cache) == ["6.0", "1", "0", "False"]
    sums = HELPER.replace("{factor} * x", "np.full(int(x), 2.0).sum()").replace("numba\n", "numba, numpy as np\n")
    (project / "helper.py").write_text(textwrap.dedent(sums))
    compiles = "    import helper; helper.twice(3.0)  # by itself, so that it may make arrays" + report
    assert run_python(compiles, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1", "True"]
    assert run_python(report, project, NUMBA_CACHE_DIR=cache) == ["6.0", "1", "0", "True"]


SHARED_KERNEL = """
    from maxmargin.runtime.dispatch import generic, loop

    @generic
    def value(thing):
        "A number."

    @loop
    def run(thing):
        return value(thing)
"""

CLASS = """
    from typing import NamedTuple
    import shared
    from maxmargin.runtime.dispatch import implements

    class {name}(NamedTuple):
        x: float

    @implements(shared.value, {name})
    def value_of(thing):
        return {factor} * thing.x
"""

USE = """
    import shared, {module}
    from maxmargin.runtime.cache import loaded
    print(shared.run({module}.{name}(1.0)), loaded["run"])
"""


@pytest.mark.long
def test_an_unimportable_class_breaks_nobody_else(tmp_path):
    (tmp_path / "shared.py").write_text(textwrap.dedent(SHARED_KERNEL))
    (tmp_path / "gone.py").write_text(textwrap.dedent(CLASS.format(name="Gone", factor=2)))
    (tmp_path / "stays.py").write_text(textwrap.dedent(CLASS.format(name="Stays", factor=3)))
    cache = tmp_path / "cache"
    assert run_python(USE.format(module="gone", name="Gone"), tmp_path, NUMBA_CACHE_DIR=cache) == ["2.0", "0"]
    (tmp_path / "gone.py").unlink()
    assert run_python(USE.format(module="stays", name="Stays"), tmp_path, NUMBA_CACHE_DIR=cache) == ["3.0", "0"]
    assert run_python(USE.format(module="stays", name="Stays"), tmp_path, NUMBA_CACHE_DIR=cache) == ["3.0", "1"]


def test_classes_of_the_main_module_are_compiled_and_not_cached(project):
    (project / "main.py").write_text(textwrap.dedent(USER_CODE) + "\nprint(run(Thing(3.0)))")
    for _ in range(2):
        code = "import runpy; runpy.run_path('main.py', run_name='__main__')"
        assert run_python(code, project, NUMBA_CACHE_DIR=project / "cache") == ["6.0"]
        assert not [*(project / "cache").rglob("*.run-*")]


def test_a_read_only_installation_runs(project):
    """No folder can be written: /dev/null is no folder, not even for root."""
    nowhere = {"NUMBA_CACHE_DIR": "/dev/null/cache", "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    assert run_python(REPORT, project, **nowhere)[0] == "6.0"


SCORE = """
    import numpy as np
    from maxmargin.inference import scores_of
    from maxmargin.runtime.cache import loaded
    from maxmargin.testing import toy_chains
    scores = scores_of(toy_chains(n=5), np.random.default_rng(0).normal(size=21))
    print(*(repr(float(score)) for score in scores), loaded["score_true_outputs"])
"""


def test_kernels_are_cached_across_processes_and_agree_with_python(tmp_path):
    folder = Path(__file__).parents[1]
    first = run_python(SCORE, folder, NUMBA_CACHE_DIR=tmp_path)
    second = run_python(SCORE, folder, NUMBA_CACHE_DIR=tmp_path)
    interpreted = run_python(SCORE, folder, NUMBA_DISABLE_JIT=1)
    assert [lines[-1] for lines in (first, second, interpreted)] == ["0", "1", "0"]
    compiled, again, python = (np.array(lines[:-1], float) for lines in (first, second, interpreted))
    assert compiled.any()
    assert np.allclose(compiled, again, rtol=1e-12)
    assert np.allclose(compiled, python, rtol=1e-10)


# --- what an entry of the cache depends on: its stamp ---------------------------------------------------------------


@pytest.fixture
def stamp(tmp_path, monkeypatch):
    """Makes `user.py` and other modules of texts, and returns the stamp of `user.run`, as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # or edits within a second would not be seen
    monkeypatch.setattr(sys, "modules", {**sys.modules})

    def stamp(user, **texts):
        texts = {"user": user, "helper": HELPER.format(factor=2), **texts}
        (tmp_path / "pack").mkdir(exist_ok=True)
        for name, text in texts.items():
            (tmp_path / f"{name.replace('__', '/')}.py").write_text(textwrap.dedent(text))
        for name in ("user", "helper", "far", "pack", "pack.far"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        module = importlib.import_module("user")
        return Reach(module.run.interpreted, [module.Thing]).digest

    return stamp


FAR_AWAY = {
    "a dotted module": (
        "import pack.far",
        "pack.far.f(thing.x)",
        "import numba\n@numba.njit\ndef f(x): return {k} * x",
    ),
    "a closure": (
        "from pack.far import f",
        "f(thing.x)",
        "import numba\ndef make(k):\n    @numba.njit\n    def f(x): return k * x\n    return f\nf = make({k})",
    ),
    "an array": ("from pack.far import A", "A[0] * thing.x", "import numpy as np\nA = np.array([{k}.0])"),
}


@pytest.mark.parametrize("kind", FAR_AWAY)
def test_an_edit_far_away_is_noticed(stamp, kind):
    line, expression, far = FAR_AWAY[kind]
    code = textwrap.dedent(USER_CODE).replace("import helper", line).replace("helper.twice(thing.x)", expression)
    first, again, other = (stamp(code, pack__far=far.format(k=k)) for k in (2, 2, 3))
    assert first == again != other


def test_an_edit_of_an_implementation_is_noticed(stamp):
    assert stamp(USER_CODE) != stamp(USER_CODE.replace("helper.twice(thing.x)", "-thing.x"))


SWAPPED = {
    "two globals": ("A, B = 1.0, 2.0", "A, B = 2.0, 1.0", "10 * A + B"),
    "two cells": ("f = make(1.0, 2.0)", "f = make(2.0, 1.0)", "f(thing.x)"),
    "two defaults": ("def f(x, a=1.0, b=2.0):", "def f(x, a=2.0, b=1.0):", "f(thing.x)"),
    "a member of an Enum": ("class E(IntEnum): A = 12", "class E(IntEnum): A = 21", "E.A"),
    "the middle of a tuple": ("T = (0.0, 12.0, 0.0)", "T = (0.0, 21.0, 0.0)", "T[1]"),
}
FUNCTIONS = """
    from enum import IntEnum
    from maxmargin.runtime import helper

    def make(a, b):
        @helper
        def f(x):
            return 10 * a + b
        return f

    {line}
"""


@pytest.mark.parametrize("kind", SWAPPED)
def test_values_that_are_swapped_are_noticed(stamp, kind):
    before, after, expression = SWAPPED[kind]
    code = textwrap.dedent(USER_CODE).replace("import helper", "from far import *")

    def stamp_with(line):
        far = textwrap.dedent(FUNCTIONS).format(line=line)
        if line.startswith("def"):
            far = far.replace(line, f"@helper\n{line}\n    return 10 * a + b\n")
        return stamp(code.replace("helper.twice(thing.x)", expression), far=far)

    assert stamp_with(before) == stamp_with(before) != stamp_with(after)


UNRELATED = [
    ("return value(thing)", '"""A new docstring."""\n    return value(thing)  # and a comment'),
    ("import helper", "import helper\n\n\ndef unrelated():\n    return 3\n"),
]


@pytest.mark.parametrize(("old", "new"), UNRELATED)
def test_an_unrelated_edit_changes_nothing(stamp, old, new):
    code = textwrap.dedent(USER_CODE)
    assert old in code
    assert stamp(code) == stamp(code.replace(old, new))
