"""Plain njit, by the environment or where Numba's private parts have changed: the same results, and one warning."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import maxmargin

SMALL = """
    from typing import NamedTuple
    import numpy as np
    from maxmargin.runtime import generic, helper, implements, loop

    @generic
    def value(thing, k):
        "A number."

    class Inner(NamedTuple):
        numbers: np.ndarray

    class Thing(NamedTuple):
        x: float
        inner: Inner

    @helper
    def twice(x):
        return 2 * x

    @implements(value, Thing)
    def thing_value(thing, k):
        return twice(thing.x) * thing.inner.numbers[k]

    @loop
    def run(thing, n):
        total = 0.0
        for k in range(n):
            total += value(thing, k)
        return total
"""
CALL_SMALL = """
    import numpy as np, user
    print(user.run(user.Thing(0.5, user.Inner(np.arange(4.0))), 4))
"""
CHAINS = """
    import numpy as np
    from maxmargin.inference import best_outputs
    from maxmargin.testing import toy_chains
    print(*best_outputs(toy_chains(n=6), np.random.default_rng(1).normal(size=21)).values)
"""


def run_in(folder, code, **environment):
    """The numbers that code prints in a new process, and its warnings."""
    path = os.pathsep.join([str(folder), str(Path(maxmargin.__file__).parents[1])])
    environment = {**os.environ, "MAXMARGIN_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path, **environment}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.split(), float), done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "user.py").write_text(textwrap.dedent(SMALL))
    return tmp_path


BROKEN = {
    "a product of matrices is gone": "import numba.np.linalg as m; del m.dot_3_mm",
    "something is gone": "import numba.core.untyped_passes as u; del u.InlineClosureLikes",
    "an option is gone": "from numba.core.cpu import CPUTargetOptions as O; del O.__bases__[0]._nrt",
    "results have another form": """
        from numba.core.compiler import CompileResult
        CompileResult._reduce = lambda self: ("changed",)""",
    "a member of libraries has another name": """
        import sys
        from numba.core.codegen import JITCodeLibrary
        link = JITCodeLibrary._get_module_for_linking
        def changed(self):
            assert "maxmargin" not in sys._getframe(1).f_globals["__name__"]
            return link(self)
        JITCodeLibrary._get_module_for_linking = changed""",
}


@pytest.mark.parametrize("what", BROKEN)
def test_where_numba_has_changed_loops_are_compiled_by_plain_njit(folder, what):
    before = "import numba\n" + textwrap.dedent(BROKEN[what])
    numbers, warnings = run_in(folder, before + textwrap.dedent(CALL_SMALL), MAXMARGIN_BITCODE="0")
    assert numbers == [6.0]
    assert warnings.count("is not as maxmargin knows it") == 1


@pytest.mark.long
def test_plain_njit_is_cached_and_an_edit_is_noticed(folder):
    plain = {"MAXMARGIN_PLAIN_NUMBA": "1"}
    for _ in range(2):
        numbers, warnings = run_in(folder, CALL_SMALL, **plain)
        assert numbers == [6.0]
        assert "maxmargin" not in warnings
        assert len([*folder.glob("cache/**/*.nbi")]) == 1
    (folder / "user.py").write_text(textwrap.dedent(SMALL).replace("2 * x", "4 * x"))
    assert run_in(folder, CALL_SMALL, **plain)[0] == [12.0]


@pytest.mark.long
def test_plain_njit_has_the_same_results_on_chains(tmp_path):
    expected, found = (run_in(tmp_path, CHAINS, MAXMARGIN_PLAIN_NUMBA=plain)[0] for plain in ("0", "1"))
    assert np.array_equal(found, expected)
