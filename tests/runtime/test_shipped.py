"""Bitcode that comes with the package: it is finished into what would be compiled, or left alone if it does not fit."""

import pickle
import re
import shutil
import textwrap

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from maxmargin.runtime import entries, shipped
from tests.runtime.test_dispatch import HELPER, USER_CODE, run_python

RUN = """
    from pathlib import Path
    import user
    from maxmargin.runtime import shipped
    from maxmargin.runtime.cache import compiled_anew, finished, loaded

    def run(x):
        print(user.run(user.Thing(x)), loaded["run"], finished["run"], compiled_anew["run"])
"""
PACK = (
    RUN
    + """
    with shipped.packing(Path("packed")):
        run(3.0)
"""
)
USE = (
    RUN
    + """
    shipped.FOLDER = Path("packed")
    run(3.0)
"""
)
COMPILED, FINISHED, LOADED = ["6.0", "0", "0", "1"], ["6.0", "0", "1", "0"], ["6.0", "1", "0", "0"]


def machine_code(folder):
    """The machine code of the only loop that is kept in a folder."""
    (entry,) = folder.rglob("user.run-*")
    _, (_, form, (code, _)), _ = pickle.loads(entries.read(entry))
    assert form == "object"
    return code


@pytest.fixture(autouse=True)
def bitcode_is_used(monkeypatch):
    """Whatever the environment says."""
    monkeypatch.setenv("MAXMARGIN_BITCODE", "1")
    monkeypatch.setattr(shipped, "is_used", True)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A folder with a loop and its bitcode, and with what was compiled of it in the cache "one"."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "user.py").write_text(textwrap.dedent(USER_CODE))
    (folder / "helper.py").write_text(textwrap.dedent(HELPER.format(factor=2)))
    assert run_python(PACK, folder, NUMBA_CACHE_DIR=folder / "one") == COMPILED
    assert len([*(folder / "packed").glob("user.run-*")]) == 1
    return folder


def test_what_was_packed_is_finished_into_what_is_compiled(packed):
    for expected in (FINISHED, LOADED):
        assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "two") == expected
    assert machine_code(packed / "two") == machine_code(packed / "one")


def test_without_a_cache_it_is_finished_by_every_process(packed):
    for _ in range(2):
        assert run_python(USE, packed, NUMBA_CACHE_DIR="/dev/null/cache") == FINISHED


def test_other_processors_finish_their_own(packed):
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "one", **other) == FINISHED


def use_with(**versions):
    """As USE, with libraries of other versions, as far as they say."""
    lines = [f"import {name}; {name}.__version__ = '{version}'" for name, version in versions.items()]
    return "\n".join([*lines, textwrap.dedent(USE)])


def test_it_goes_with_versions_that_make_no_difference(packed, tmp_path):
    bugfix = ".".join([*numba.__version__.split(".")[:2], "999"])
    assert run_python(use_with(numba=bugfix, numpy="3.0.0"), packed, NUMBA_CACHE_DIR=tmp_path) == FINISHED


@pytest.mark.long
def test_what_does_not_fit_is_compiled(packed, tmp_path):
    packed = shutil.copytree(packed, tmp_path / "copy")
    assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "0", MAXMARGIN_BITCODE="0") == COMPILED
    assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "1", NUMBA_OPT="1") == COMPILED
    assert run_python(use_with(numba="0.999.0"), packed, NUMBA_CACHE_DIR=packed / "4") == COMPILED
    assert run_python(use_with(llvmlite="0.999.0"), packed, NUMBA_CACHE_DIR=packed / "5") == COMPILED
    (entry,) = (packed / "packed").glob("user.run-*")
    entry.write_bytes(entry.read_bytes()[:-1])
    assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "2") == COMPILED
    (packed / "helper.py").write_text(textwrap.dedent(HELPER.format(factor=5)))
    assert run_python(USE, packed, NUMBA_CACHE_DIR=packed / "3") == ["15.0", *COMPILED[1:]]


def test_it_is_trusted_as_the_package_is(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    entries.write(tmp_path / "a-1-2.loop", b"bitcode")
    (tmp_path / "a-1-2.loop").chmod(0o664)  # as pip installs it for those whose groups may write
    assert shipped.read("a-1-2.loop") == b"bitcode"


def test_what_is_used_again_is_packed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "old")
    for name in ("used-1-2.loop", "left-1-2.loop"):
        entries.write(tmp_path / "old" / name, b"bitcode")
    with shipped.packing(tmp_path / "new"):
        shipped.read("used-1-2.loop")
    shipped.keep("later-1-2.loop", lambda: b"bitcode")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["used-1-2.loop"]


PACK_MODEL = """
    from pathlib import Path
    from maxmargin.cli.compiling_ahead import pack
    pack(Path("packed"), ["{name}"])
"""
FIT = """
    from pathlib import Path
    from maxmargin import MulticlassSVM
    from maxmargin.cli.compiling_ahead import make_classes
    from maxmargin.runtime import shipped
    from maxmargin.runtime.cache import compiled_anew, finished
    shipped.FOLDER = Path("packed")
    model = MulticlassSVM(random_state=0).fit(*next(make_classes()))
    print(compiled_anew.total(), finished.total() > 0, *model.coef_.ravel())
"""


@pytest.mark.long
def test_a_model_that_was_packed_is_fitted_as_one_that_is_compiled(tmp_path):
    run_python(PACK_MODEL.format(name="multiclass"), tmp_path, MAXMARGIN_BITCODE="0")
    n_finished, *by_bitcode = run_python(FIT, tmp_path, NUMBA_CACHE_DIR=tmp_path / "one")
    n_compiled, *compiled = run_python(FIT, tmp_path, NUMBA_CACHE_DIR=tmp_path / "two", MAXMARGIN_BITCODE="0")
    assert n_finished == "0"
    assert int(n_compiled) > 0
    assert (by_bitcode[0], compiled[0]) == ("True", "False")
    assert np.allclose(np.array(by_bitcode[1:], float), np.array(compiled[1:], float), rtol=1e-6, atol=1e-9)


KNOWN_BY_NAME = re.compile(r"(llvm\.|_?Py|numba_)")  # what Python and Numba define in C, nothing of NumPy's
LARGE_TAGGER = """
    from pathlib import Path
    import numpy as np
    from maxmargin import Tagger
    from maxmargin.runtime import shipped
    from maxmargin.runtime.cache import compiled_anew, finished
    from maxmargin.tagger.word_tagger import default_model
    shipped.FOLDER = Path("packed")
    rng = np.random.default_rng(0)
    kinds = rng.integers(20, size=(3000, 20))  # of tags, as many as there are in CoNLL-2000
    X = [[f"w{100 * kind + rng.integers(100)}" for kind in row] for row in kinds]
    y = [[f"{'BI'[kind % 2]}-{kind // 2}" for kind in row] for row in kinds]
    tagger = Tagger(model=default_model().set_params(n_jobs={n_jobs}, tol=0.03)).fit(X, y)
    X = X[:9]
    tagger.predict(X), tagger.predict_topk(X, 3), tagger.predict_marginals(X), tagger.predict_entities(X)
    assert "Began" in tagger.model_.trace_.notes[0], "not as large as that"
    print(compiled_anew.total(), finished.total() > 0)
"""


@pytest.mark.long
def test_taggers_of_real_size_compile_nothing_on_one_thread_or_two(tmp_path):
    run_python(PACK_MODEL.format(name="tagger"), tmp_path, MAXMARGIN_BITCODE="0")
    for n_jobs in ("1", "2"):
        code = LARGE_TAGGER.replace("{n_jobs}", n_jobs)
        assert run_python(code, tmp_path, NUMBA_CACHE_DIR=tmp_path / n_jobs) == ["0", "True"]
    contents = [entries.read(path, is_trusted=True) for path in (tmp_path / "packed").glob("maxmargin.*")]
    modules = [llvm.parse_bitcode(pickle.loads(content)[1]) for content in contents]
    declared = {f.name for module in modules for f in module.functions if f.is_declaration}
    assert {"numba_adapt_ndarray", "PyErr_SetString"} <= declared
    assert [name for name in declared if not KNOWN_BY_NAME.match(name)] == []
