"""The files of the loop cache: where they are, who may write them, and what is left of unfinished ones."""

import errno
import os
import sys
from pathlib import Path

import pytest
from numba.core import config

from maxmargin.runtime import cache_folder, entries
from tests.runtime.test_dispatch import REPORT, project, run_python  # noqa: F401  (a fixture)

CODE = b"code"
posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "package" / "module.run-1111-2222.loop"
    entries.write(path, CODE)
    assert entries.read(path) == CODE
    return path


@posix
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_what_others_can_write_to_is_not_read(path, mode):
    path.chmod(mode)
    with pytest.warns(UserWarning, match="others could have written"), pytest.raises(PermissionError):
        entries.read(path)


@posix
def test_what_belongs_to_others_is_not_read(path, monkeypatch):
    monkeypatch.setattr(entries, "_trusted", lambda: {os.geteuid() + 1})
    with pytest.warns(UserWarning, match="others could have written"), pytest.raises(PermissionError):
        entries.read(path)


@posix
def test_root_and_the_owner_of_the_package_are_trusted(path, monkeypatch):
    """As where an image is built by one user and run by another."""
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(entries, "_trusted", entries._trusted.__wrapped__)
    assert 0 in entries._trusted()
    monkeypatch.setattr(entries, "__file__", str(path))  # which belongs to the owner of the entry
    assert entries.read(path) == CODE
    if owner == 0:
        os.chown(path, owner + 2, -1)
        monkeypatch.setattr(entries, "__file__", str(path.parent))
        with pytest.warns(UserWarning, match="others could have written"), pytest.raises(PermissionError):
            entries.read(path)


def test_an_entry_is_not_read_under_another_name(path):
    other = path.with_name("module.walk-1111-2222.loop")
    path.rename(other)
    with pytest.raises(ValueError, match="damaged"):
        entries.read(other)


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o644), (0o022, 0o644), (0o077, 0o600)])
def test_permissions_go_by_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        entries.write(tmp_path / "a.loop", CODE)
    finally:
        os.umask(before)
    assert (tmp_path / "a.loop").stat().st_mode & 0o777 == mode


def test_a_full_disk_leaves_nothing_behind(path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        entries.write(path.with_name("module.run-1111-3333.loop"), CODE)
    assert [*path.parent.iterdir()] == [path]


def test_what_a_killed_process_has_left_goes_away(path):
    left = path.with_name(f".module.run-1111-0000{path.suffix}.0123456789ab.part")
    others = path.with_name(f".module.walk-1111-0000{path.suffix}.0123456789ab.part")
    for file in (left, others):
        file.write_bytes(b"half")
    newer = path.with_name("module.run-1111-3333.loop")
    entries.write(newer, CODE)
    assert {*path.parent.iterdir()} == {newer, others}


def test_whether_numba_uses_svml_is_part_of_the_key(monkeypatch):
    hash_now = entries.surroundings.__wrapped__
    before = hash_now()
    monkeypatch.setattr(config, "USING_SVML", not config.USING_SVML)
    assert hash_now() != before


FOLDERS = {
    "linux": ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/maxmargin"),
    "linux, moved": ({"XDG_CACHE_HOME": "/fast"}, "/fast/maxmargin"),
    "darwin": ({"HOME": "/Users/me"}, "/Users/me/Library/Caches/maxmargin"),
    "any, by Numba": ({"NUMBA_CACHE_DIR": "/numba"}, "/numba"),
    "any, by name": ({"NUMBA_CACHE_DIR": "/numba", "MAXMARGIN_CACHE_DIR": "/loops"}, "/loops"),
}


@posix
@pytest.mark.parametrize("case", FOLDERS)
def test_where_entries_are(monkeypatch, case):
    given, folder = FOLDERS[case]
    monkeypatch.delenv("MAXMARGIN_CACHE_DIR", raising=False)
    monkeypatch.setattr(config, "CACHE_DIR", given.get("NUMBA_CACHE_DIR", ""))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", case.partition(",")[0])
    assert cache_folder() == Path(folder)


def test_kernels_are_kept_outside_of_packages(project, monkeypatch):  # noqa: F811
    monkeypatch.delenv("MAXMARGIN_CACHE_DIR", raising=False)
    caches = project / "caches"
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(caches))
    assert run_python(REPORT, project, NUMBA_CACHE_DIR="") == ["6.0", "0", "1"]
    (entry,) = project.rglob("user.run-*")
    assert caches in entry.parents


READ_ONLY = """
    import os, sys

    def refuse(event, args):
        if event == "os.mkdir" or (event == "open" and "cache" in str(args[0]) and args[2] & (os.O_WRONLY | os.O_RDWR)):
            raise PermissionError(args[0])

    sys.addaudithook(refuse)
"""


def test_a_warm_cache_that_cannot_be_written_to_is_read(project):  # noqa: F811
    cache = project / "cache"
    assert run_python(REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "0", "1"]
    assert run_python(READ_ONLY + REPORT, project, NUMBA_CACHE_DIR=cache) == ["6.0", "1", "0"]
