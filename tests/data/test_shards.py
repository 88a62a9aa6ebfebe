"""Shards on disk: what is written is read again, and what is wrong is told in a sentence."""

import errno
import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data import shard_files
from maxmargin.data.sharding import Shards
from maxmargin.persist import container, replacing
from maxmargin.persist.container import Broken
from maxmargin.persist.values import Reader, Writer
from maxmargin.text.corpus import Corpus
from tests.sentences import column_text, tagged_sentences

CHUNKS = [
    ([["a", ("b", "c")]], [["x", "y"]]),
    ([np.eye(2), sp.csr_matrix(np.eye(2))], [np.array([0, 1]), [1, 0]]),
    (Corpus([["d"], ["e"]], [1, 2]), [["x"], ["y"]]),
    ([{"f": 1.5, "g": True}], [None]),
]


def test_parts_come_back_as_they_were(tmp_path):
    written = Shards.write(iter(CHUNKS), tmp_path / "shards")
    for shards in (written, Shards(tmp_path / "shards")):
        assert (len(shards), shards.sizes, shards.n_examples) == (4, [1, 2, 2, 1], 6)
        assert shards[0] == CHUNKS[0]
        dense, sparse = shards[1].X
        np.testing.assert_array_equal(dense, sparse.toarray())
        assert shards[2].X.documents == [1, 2]
        assert [shard.y for shard in shards[2:]] == [[["x"], ["y"]], [None]]


def test_temporary_parts_go_away_with_the_shards():
    shards = Shards.write(CHUNKS)
    folder, last = shards.folder, shards[1:]
    assert folder.is_dir()
    del shards
    assert last[0].y[1] == [1, 0]
    del last
    assert not folder.exists()


def test_lists_are_cut_in_memory():
    shards = Shards.cut(np.arange(7), np.arange(7), n_shards=3)
    assert [shard.X.tolist() for shard in shards] == [[0, 1], [2, 3], [4, 5, 6]]
    changed = shards.map(lambda shard, k: shard._replace(X=shard.X + k), range(len(shards)))
    assert [shard.X.tolist() for shard in changed] == [[0, 1], [3, 4], [6, 7, 8]]


def test_files_of_sentences_are_cut_into_parts(tmp_path):
    sentences = tagged_sentences()[:7]
    (tmp_path / "a.txt").write_text(column_text(sentences[:5]))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(column_text(sentences[5:]).encode()))
    shards = Shards.from_files([tmp_path / "a.txt", tmp_path / "b.txt.gz"], folder=tmp_path / "s", size=2)
    assert shards.sizes == [2, 2, 1, 2]
    assert [[*zip(*x, strict=True)] for shard in shards for x in shard.X] == [
        [*zip(*s, strict=True)][:2] for s in sentences
    ]
    assert Shards(tmp_path / "s").layout == shards.layout
    assert shards.layout.width == 3


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "Shards need examples, but there are none"),
        ([([], [])], "Shard 0 holds no examples"),
        ([CHUNKS[0], ([["a"]], None)], "Shard 1 has no y, unlike shard 0"),
        ([([["a"]], [["x"], ["y"]])], "Shard 0 has 1 example in X, but 2 in y"),
        ([CHUNKS[0], 3], "Shard 1 must be a pair of X and y, not 3"),
        ([([object()], [1])], "cannot be saved"),
    ],
)
def test_chunks_that_are_none_leave_nothing_behind(chunks, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        Shards.write(chunks, tmp_path / "shards")
    assert not [*tmp_path.iterdir()]


def test_folders_that_are_no_shards(tmp_path):
    with pytest.raises(TypeError, match="folder must be one of shards, not"):
        Shards(CHUNKS)
    with pytest.raises(FileNotFoundError, match="holds no shards"):
        Shards(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="must be a new folder, or an empty one"):
        Shards.write(CHUNKS, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_shards_of_another_version_and_files_that_have_changed(tmp_path):
    shards = Shards.write(CHUNKS, tmp_path / "s")
    path, other = sorted((tmp_path / "s").glob("shard-*"))[:2]
    kept = path.read_bytes()
    path.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match=r"shard-00000.data' cannot be read: it has changed since it was written"):
        shards[0]
    path.write_bytes(kept[:-1])
    with pytest.raises(ValueError, match="cannot be read: it is truncated"):
        shards[0]
    path.unlink()
    with pytest.raises(ValueError, match="cannot be read: it is no longer there"):
        shards[0]
    manifest = tmp_path / "s" / "shards.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "maxmargin shards": 99}))
    with pytest.raises(ValueError, match="written by another version of maxmargin"):
        Shards(tmp_path / "s")
    manifest.write_text("[]")
    with pytest.raises(ValueError, match="is not a list of shards"):
        Shards(tmp_path / "s")


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    write = container.write

    def fail(path, *arguments):
        if path.name == "shard-00001.data":
            with replacing(path):
                raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *arguments)

    monkeypatch.setattr(container, "write", fail)
    with pytest.raises(OSError, match=r"\.data' cannot be written: No space left on device\."):
        Shards.write(CHUNKS, tmp_path / "s")
    assert not [*tmp_path.iterdir()]


TOKENS = [[("a", "b"), ("c", "d")], [("a",), ("b", "c")], [("a", 1)], [()], [["a"], ("a",)], [], [(("a",),)]]


@pytest.mark.parametrize("sentence", TOKENS)
def test_tokens_are_read_as_they_were_written(sentence, tmp_path):
    shards = Shards.write([([sentence, ["e"]], [["x"], ["y"]])], tmp_path / "s")
    assert [*shards[0].X] == [sentence, ["e"]]


def test_shards_of_the_first_format_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_files, "TokenWriter", Writer)
    monkeypatch.setattr(shard_files, "VERSION", 1)
    Shards.write([([sentence], [["x"]]) for sentence in TOKENS], tmp_path / "s")
    assert [shard.X for shard in Shards(tmp_path / "s")] == [[sentence] for sentence in TOKENS]


@pytest.mark.parametrize("inner", [[2, ["a"]], [0, []], [1, [["a"]]], ["1", ["a"]], [1, []]])
def test_tuples_that_are_none(inner):
    with pytest.raises(Broken, match="tuples that are not of strings, or not of their size"):
        Reader([])({"tuples": inner})
