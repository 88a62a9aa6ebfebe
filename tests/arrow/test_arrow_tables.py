"""Tables of Arrow and files of Parquet as shards, to train on and to predict."""

import numpy as np
import pytest

from maxmargin import ChainCRF, Shards, Tagger

pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")

TABLE = {"w": [["a", "b"], ["c"], ["d"]], "p": [["A", "B"], ["C"], ["D"]], "t": [["x", "y"], ["x"], ["y"]]}


@pytest.fixture
def table():
    return pa.table(TABLE)


@pytest.fixture
def file(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_rows_are_examples(table, file):
    for source in (table, file, [str(file)], table.to_reader()):
        shards = Shards.from_arrow(source, ["w", "p"], "t", size=2)
        assert shards.sizes == [2, 1]
        assert shards[0] == ([[("a", "A"), ("b", "B")], [("c", "C")]], [["x", "y"], ["x"]])
    assert Shards.from_arrow([file, file], "w", "t", size=2).sizes == [2, 1, 2, 1]
    alone = Shards.from_arrow(file, "w", folder=file.parent / "shards")
    assert alone[0] == (TABLE["w"], None)
    assert Shards(file.parent / "shards")[0] == alone[0]


@pytest.mark.usefixtures("interpreted_loops")
def test_taggers_and_models_of_files(file):
    shards = Shards.from_arrow(file, "w", "t", size=2)
    tagger = Tagger().fit(shards)
    assert tagger.predict(shards) == tagger.predict(TABLE["w"]) == TABLE["t"]
    rows = pa.table({"x": [np.eye(2).tolist(), [[0.0, 1.0]]], "y": [[0, 1], [1]]})
    model = ChainCRF().fit(Shards.from_arrow(rows, "x", "y", size=1))
    assert [labels.tolist() for labels in model.predict([np.eye(2)])] == [[0, 1]]


def test_what_is_no_table(table, file):
    with pytest.raises(ValueError, match="There is no column 'z', only w, p, t"):
        Shards.from_arrow(table, "z")
    with pytest.raises(ValueError, match="There is no column 'z'"):
        Shards.from_arrow(file, "w", "z")
    with pytest.raises(TypeError, match=r"source must be a pyarrow\.Table, .* not 3"):
        Shards.from_arrow(3, "w")
    with pytest.raises(ValueError, match="Shards need examples"):
        Shards.from_arrow(table[:0], "w")
