"""What is known of words from outside: classes, patterns, vectors, lists of names and documents."""

import gzip
import io
import json
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

import maxmargin
from maxmargin import ChainCRF, Tagger
from maxmargin.text import (
    Corpus,
    WindowFeatures,
    WordVectors,
    read_classes,
    read_columns,
    read_document,
    read_gazetteers,
    read_vectors,
    stream_documents,
    write_classes,
)
from maxmargin.text.resources import packages
from maxmargin.text.token_features.named_features import dense_factor

SENTENCES = Corpus([["In", "Rome", "1990"], ["Rome", "in"], ["Rome"]], [0, 0, 1])
TAGS = [["O", "B-LOC", "O"], ["B-LOC", "O"], ["B-LOC"]]
CLASSES = {"brown": {"in": "0101101", "rome": "01", "Rome": "11"}, "kind": {"1990": "year"}}
VECTORS = WordVectors(["in", "Rome", "rome"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def added(i=0, **options):
    """The features of a sentence that options add."""
    plain = WindowFeatures(window=1).transform(SENTENCES)[i]
    rows = WindowFeatures(window=1, **options).transform(SENTENCES)[i]
    assert [row[: len(names)] for row, names in zip(rows, plain, strict=True)] == plain
    return [row[len(names) :] for row, names in zip(rows, plain, strict=True)]


def test_classes_of_words():
    found = added(classes=CLASSES, class_prefixes=(4, 6))
    own = ["brown=0101101", "brown4=0101", "brown6=010110"]
    before = [name.replace("=", "[-1]=") for name in own]
    assert found == [[*own, "brown[+1]=11"], [*before, "brown=11", "kind[+1]=year"], ["brown[-1]=11", "kind=year"]]


def test_affixes_patterns_and_characters():
    assert added(near_affixes=2)[0] == ["prefix[+1]=r", "suffix[+1]=e", "prefix[+1]=ro", "suffix[+1]=me"]
    near = WindowFeatures(window=1, near_affixes=1, cased_affixes=True).transform(SENTENCES)[0][0]
    assert near[-2:] == ["prefix[+1]=R", "suffix[+1]=e"]
    assert added(patterns={"year": "[12][0-9]{3}"}) == [[], ["year[+1]=matched"], ["year=matched"]]
    assert added(char_ngrams=3)[0] == ["chars=<I", "chars=In", "chars=n>", "chars=<In", "chars=In>"]


def test_spellings_elsewhere_in_the_document():
    assert added(elsewhere=True) == [["elsewhere=small"], [], []]  # the own occurrence does not count
    assert added(1, elsewhere=True) == [["elsewhere=capital"], []]  # nor does the first word of a sentence
    assert added(2, elsewhere=True) == [[]]  # of another document
    assert WindowFeatures(elsewhere=True).transform([*SENTENCES])[1] == WindowFeatures().transform(SENTENCES)[1]
    assert WindowFeatures(elsewhere=True).transform(SENTENCES)[1:][0][0][-1] == "elsewhere=capital"


def test_classes_of_an_installed_package(tmp_path, monkeypatch):
    data = tmp_path / "spacy_lookups_data" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    (data / "xx_lexeme_cluster.json.gz").write_bytes(gzip.compress(b'{"Rome": 22, "Oslo": 6, "none": 0}'))
    logs = {"the": -3.0, "The": -4.5, "Rome": -9.0, "may": -6.0, "May": -6.0, "usa": -9.0, "rare": -18.9, "x": -19.0}
    (data / "xx_lexeme_prob.json.gz").write_bytes(gzip.compress(json.dumps(logs | {"1990": -8.0}).encode()))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "spacy_lookups_data", raising=False)
    assert read_classes("spacy:xx") == {"Rome": "01101" + 15 * "0", "Oslo": "011" + 17 * "0"}  # lowest bits first
    assert read_classes("spacy-case:xx") == {"the": "3:1", "rome": "0:4", "may": "2:2", "usa": "4:0"}
    for source in ("spacy:", "spacy-case:"):
        with pytest.raises(ValueError, match=f"{source} has no classes of 'nl' in spacy-lookups-data, but of xx."):
            read_classes(f"{source}nl")
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'spacy:en needs spacy-lookups-data: pip install "maxmargin\[classes\]".'):
        read_classes("spacy:en")


def test_names_of_an_installed_package(tmp_path, monkeypatch):
    files = {
        "xx/person.json": {"names": {"female": ["Ann", "Kim"], "male": ["Bob", "Kim"]}, "surnames": ["Lee", " "]},
        "xx/address.json": {"city": ["Rome"], "country": {"code": "XX", "name": ["Italy"]}, "state": {"abbr": ["LA"]}},
        "xx/finance.json": {"company": {"name": ["Acme Inc."], "type": {"abbr": ["Inc."]}}, "banks": ["City Bank"]},
        "xx-yy/person.json": {"surnames": {"female": ["Lee", "Wu"]}, "university": ["Some College"]},
        "zz/person.json": {"surnames": ["Wu"]},
        "int/code.json": {},  # no language
    }
    for name, values in files.items():
        path = tmp_path / "mimesis" / "datasets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    (tmp_path / "mimesis" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mimesis", raising=False)
    assert read_gazetteers("mimesis:xx") == {
        "forename": ["Ann", "Kim", "Bob"],
        "surname": ["Lee", "Wu"],
        "university": ["Some College"],
        "city": ["Rome"],
        "country": ["Italy"],
        "company": ["Acme Inc.", "City Bank"],
    }
    assert read_gazetteers("mimesis:xx-yy") == {"surname": ["Lee", "Wu"], "university": ["Some College"]}
    assert read_gazetteers("mimesis:all")["surname"] == ["Lee", "Wu"]
    with pytest.raises(ValueError, match=r"mimesis has no names of 'int', but of all, xx, xx-yy, zz\."):
        read_gazetteers("mimesis:int")
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'mimesis:xx needs mimesis: pip install "maxmargin\[names\]"\.'):
        read_gazetteers("mimesis:xx")


def test_vectors_are_dense_columns():
    dense = WindowFeatures(vectors=VECTORS, vector_window=1).transform(SENTENCES).dense_columns()
    rows = np.where((dense.which >= 0)[..., None], dense.table[dense.which], 0).reshape(len(dense.which), -1)
    one, none, rome = [1.0, 2.0], [0.0, 0.0], [3.0, 4.0]
    assert rows.tolist() == [
        [*none, *one, *rome],
        [*one, *rome, *none],
        [*rome, *none, *none],
        [*none, *rome, *one],
        [*rome, *one, *none],
        [*none, *rome, *none],
    ]
    assert dense.names == ["vector:0[-1]", "vector:1[-1]", "vector:0", "vector:1", "vector:0[+1]", "vector:1[+1]"]
    assert np.isclose(dense_factor(dense), 1 / np.sqrt(np.square(rows).sum(axis=1).mean()))
    assert dense_factor(dense._replace(length=2.0)) == 2 * dense_factor(dense)
    assert dense_factor(dense._replace(length=None)) == dense_factor(dense._replace(table=0 * dense.table)) == 1
    assert WindowFeatures().transform(SENTENCES).dense_columns() is None


@pytest.mark.parametrize("only_observed", [True, False])
def test_taggers_with_all_of_it_are_saved(only_observed, tmp_path, interpreted_loops):
    features = WindowFeatures(
        classes=CLASSES, vectors=VECTORS, patterns={"year": "[0-9]+"}, elsewhere=True, near_affixes=1, char_ngrams=2
    )
    tagger = Tagger(features=features, model=ChainCRF(only_observed=only_observed, tol=0.1)).fit(SENTENCES, TAGS)
    assert tagger.asks_documents
    tagger.save(tmp_path / "any.model")
    loaded = maxmargin.load(tmp_path / "any.model")
    assert loaded.predict(SENTENCES) == tagger.predict(SENTENCES)
    for a, b in zip(loaded.predict_marginals(SENTENCES), tagger.predict_marginals(SENTENCES), strict=True):
        np.testing.assert_array_equal(a, b)
    found = loaded.explain(["in", "Rome"], 1)
    assert any(contribution.of == "vector:0" for contribution in found.contributions)


def test_files_of_vectors(tmp_path):
    matrix = np.array([[0.5, -1.5, 2.0], [1.0, 0.0, 2.0]], np.float32)
    text = "\n".join(" ".join([word, *map(str, row)]) for word, row in zip(["de", "New York"], matrix, strict=True))
    files = {name: tmp_path / name for name in ("glove.txt", "any.vec", "any.bin", "rows.npy", "rows.txt")}
    files["glove.txt"].write_text(text)
    files["any.vec"].write_text(f"2 3\n{text}\n")
    records = b"".join(
        word + b" " + struct.pack("<3f", *row) for word, row in zip([b"de", b"\nNew_York"], matrix, strict=True)
    )
    files["any.bin"].write_bytes(b"2 3\n" + records)
    np.save(files["rows.npy"], matrix)
    files.pop("rows.txt").write_text("de\nNew York\n")
    for name, path in files.items():
        second = "New_York" if name == "any.bin" else "New York"
        for vectors in (read_vectors(path), read_vectors(path, most_read=0)):
            assert vectors.width == 3
            found, rows = vectors.find(["De", second, "none", "de"])
            assert (rows[2], rows[3]) == (-1, rows[0])
            assert (found[rows[:2]] == matrix).all()
    mapped = read_vectors(files["glove.txt"], most_read=0)
    maxmargin.save(WindowFeatures(vectors=mapped), tmp_path / "any.model")
    files["glove.txt"].write_text("changed")
    with pytest.raises(
        ValueError, match=r"The vectors of words are in the file '.*glove.txt' of .* bytes, which is not"
    ):
        maxmargin.load(tmp_path / "any.model").vectors.find(["de"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nb 1 2 3\n", r"line 2: the vector of 'b' has 3 numbers, but others 2."),
        ("a 1 2\nb 1\n", r"line 2: the vector of 'b' has 1 numbers, but others 2."),
        ("a 1 nan\n", r"line 1: the vector of 'a' contains NaN or infinity."),
        ("a 1 x\n", r"line 1: the vector of 'a' must hold numbers."),
        ("\n", r"line 1: it must have a word and the numbers of its vector."),
        ("", r"holds no vectors: it is empty."),
        (b"3 2\na " + struct.pack("<2f", 1, 2), r"ends within the vector of word 2, but says that it has 3 words"),
        (struct.pack("<i", 793712314) + b"abc", r"is a model of fastText: read the .vec file"),
        (b"1 2\n\xff\xfe 1 2\n", r"line 2: the word is not utf-8: pass the encoding of the file."),
        ("a 1 2\n 3 4 5\n", r"line 2: it begins with a blank, not with a word."),
        ("2 3\na 1 2\nb 3 4\n", r"line 2: the vector of 'a' has 2 numbers, but others 3."),
        ("a 1 2\nb 1 1e99\n", r"line 2: the vector of 'b' contains NaN or infinity."),
        ("3 2\na 1 2\nb 3 4\n", r"says that it has 3 words, but has 2."),
    ],
)
def test_bad_files_of_vectors(content, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=message):
        read_vectors(path)


def test_vectors_of_words_in_another_encoding(tmp_path):
    path, rows = tmp_path / "any.txt", tmp_path / "rows.npy"
    path.write_bytes("Zürich 1 2\nRom 3 4\n".encode("latin-1"))
    np.save(rows, [[1.0, 2.0], [3.0, 4.0]])
    rows.with_suffix(".txt").write_bytes("Zürich\nRom\n".encode("latin-1"))
    for file in (path, rows):
        for options in ({}, {"most_read": 0}):
            with pytest.raises(ValueError, match=r"line 1: .* not utf-8: pass the encoding of the file"):
                read_vectors(file, **options)
            vectors, found = read_vectors(file, encoding="latin-1", **options).find(["Rom", "Zürich"])
            assert vectors[found].tolist() == [[3, 4], [1, 2]]
    with pytest.raises(ValueError, match="encoding must be the name of an encoding of texts, not 'none'"):
        read_vectors(path, encoding="none")


ON_A_SMALL_MACHINE = """
import resource, sys
from maxmargin.text import read_vectors
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))  # bytes that are not those of mapped files
vectors = read_vectors(sys.argv[1])
print(type(vectors).__name__, vectors.width, vectors.find(["w3", "none"])[1])
try:
    read_vectors(sys.argv[2])
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="files of holes, and limits of memory, differ from system to system"
)
def test_a_file_of_10_gigabytes_is_mapped(tmp_path):
    rows, no_text, width = tmp_path / "rows.npy", tmp_path / "no_text.vec", 25 << 20
    with rows.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (100, width)})
        file.truncate(file.tell() + 4 * 100 * width)
    rows.with_suffix(".txt").write_text("".join(f"w{k}\n" for k in range(100)))
    with no_text.open("wb") as file:
        file.write(b"a 1 2\n")
        file.truncate(rows.stat().st_size)
    code = [sys.executable, "-c", ON_A_SMALL_MACHINE, rows, no_text]
    found, told = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == f"VectorFile {width} [0, -1]"
    assert told == f"{no_text}, line 2 is longer than 16 MB, but must have a word and the numbers of its vector."


def test_mapped_vectors_are_checked_when_they_are_read(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("a 1 2\nb 1 nan\nc 1\n")
    vectors = read_vectors(path, most_read=0)
    for word, line in (("b", 2), ("c", 3)):
        with pytest.raises(
            ValueError, match=rf"bad.txt, line {line}: the vector of '{word}' must hold 2 finite numbers."
        ):
            vectors.find([word])


def test_bad_vectors_and_rows(tmp_path):
    with pytest.raises(ValueError, match=r"vectors must be finite, but that of 'b' is not."):
        WordVectors(["a", "b"], [[1.0], [np.inf]])
    with pytest.raises(
        ValueError, match=r"vectors must be a matrix with a row for each of 2 words, not of shape \(1, 1\)."
    ):
        WordVectors(["a", "b"], [[1.0]])
    with pytest.raises(ValueError, match=r"words must be strings that differ from each other."):
        WordVectors(["a", "a"], [[1.0], [2.0]])
    np.save(tmp_path / "rows.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"needs the file .*rows.txt, with the word of each row in a line."):
        read_vectors(tmp_path / "rows.npy")
    (tmp_path / "rows.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match=r"must be a matrix with a row of numbers for each of 2 words in rows.txt"):
        read_vectors(tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", [[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"rows.npy, row 1: the vector of 'b' contains NaN or infinity."):
        read_vectors(tmp_path / "rows.npy")
    with pytest.raises(ValueError, match=r"rows.npy, row 1: the vector of 'b' must hold 1 finite numbers."):
        read_vectors(tmp_path / "rows.npy", most_read=0).find(["b"])
    (tmp_path / "rows.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=r"rows.txt, line 2: it is not utf-8"):
        read_vectors(tmp_path / "rows.npy")
    (tmp_path / "rows.npy").write_bytes(b"no rows")
    with pytest.raises(ValueError, match=r"rows.npy must be an .npy file of numbers, but it is another one"):
        read_vectors(tmp_path / "rows.npy")
    (tmp_path / "rows.gz").write_bytes(b"any")
    with pytest.raises(ValueError, match=r"rows.gz is compressed, and cannot be mapped: unpack it first."):
        read_vectors(tmp_path / "rows.gz")


def test_a_mark_before_the_first_word_is_none_of_it(tmp_path):
    for text in ("a 1 2\nb 3 4\n", "2 2\na 1 2\nb 3 4\n"):
        (tmp_path / "any.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert read_vectors(tmp_path / "any.txt").words == ["a", "b"]


def test_files_of_classes(tmp_path):
    assert read_classes(io.StringIO("0010\tthe\t68\n\n0111\tdog\t3\n")) == {"the": "0010", "dog": "0111"}
    write_classes(tmp_path / "any.tsv", {"New York": "11", "dog": "0"})
    assert read_classes(tmp_path / "any.tsv") == {"New York": "11", "dog": "0"}
    with pytest.raises(ValueError, match=r"line 2: the word 'a' has the class 'Y', but had 'X' before."):
        read_classes(io.StringIO("a X\na Y\n"))
    with pytest.raises(ValueError, match=r"line 1: it must have a word and its class."):
        read_classes(io.StringIO("a\n"))
    with pytest.raises(ValueError, match=r"holds no class of a word."):
        read_classes(io.StringIO("\n"))
    with pytest.raises(ValueError, match=r"classes has 'a': 'b\\tc', but neither may be blank or hold tabs"):
        write_classes(io.StringIO(), {"a": "b\tc"})


def test_lists_of_names(tmp_path):
    folder = tmp_path / "lists"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"holds no lists of names: the folder is empty."):
        read_gazetteers(folder)
    (folder / "city.txt").write_text("Rome\n\nNew York\n")
    (folder / ".hidden").write_text("x")
    assert read_gazetteers(folder) == read_gazetteers(folder / "city.txt") == {"city": ["Rome", "New York"]}
    (folder / "city.lst").write_text("\n \n")
    with pytest.raises(ValueError, match=r"city.lst holds no names, but blank lines at most."):
        read_gazetteers(folder)
    (folder / "city.lst").write_text("Oslo")
    with pytest.raises(ValueError, match=r"has two lists of the title 'city': give one another name."):
        read_gazetteers(folder)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"classes": {"a": {"w": 3}}}, ValueError, r"classes\['a'\] must be a dict of the class of each word"),
        ({"classes": {"a": {}}}, ValueError, r"classes\['a'\] must be a dict of the class of each word"),
        ({"classes": ["a"]}, TypeError, r"classes must be a dict of classes of words by title, not \['a'\]."),
        (
            {"class_prefixes": (0,)},
            ValueError,
            r"class_prefixes must be a tuple of integers from 1 to 1000, not \(0,\).",
        ),
        ({"patterns": {"a": "["}}, ValueError, r"patterns\['a'\] must be a regular expression, not '\['"),
        ({"patterns": "a"}, TypeError, r"patterns must be a dict of regular expressions by title, not 'a'."),
        ({"vectors": "file"}, TypeError, r"vectors must be what maxmargin.text.read_vectors returns"),
        ({"vector_length": 0}, ValueError, r"vector_length must be a positive number, not 0."),
        ({"char_ngrams": -1}, ValueError, r"char_ngrams must be an integer, from 0 to 100, not -1."),
    ],
)
def test_bad_options(options, error, message):
    for use in (lambda features: features.fit([]), lambda features: features.transform([])):
        with pytest.raises(error, match=message):
            use(WindowFeatures(**options))


@pytest.mark.parametrize("title", ["word", "lower[+1]", "tag2", "prefix"])
def test_titles_are_not_those_of_words(title):
    values = {"gazetteers": ["Rome"], "patterns": "a", "classes": {"Rome": "1"}}
    for name, value in values.items():
        with pytest.raises(ValueError, match=rf"{name} must have another title for '{re.escape(title)}', which is one"):
            WindowFeatures(**{name: {title: value}}).fit([])
        WindowFeatures(**{name: {f"my {title}": value, "tags": value}}).fit([])


FILE = "-DOCSTART- O\n\na O\n\nb O\n\n-DOCSTART- O\n\nc O\n\nd O\n"


def test_documents_of_files():
    X, _ = read_columns(io.StringIO(FILE))
    assert (X, X.documents, X[1:3].documents) == ([["a"], ["b"], ["c"], ["d"]], [1, 1, 2, 2], [1, 2])
    assert read_document(io.StringIO(FILE)).X.documents == [1, 1, 2, 2]
    assert type(read_columns(io.StringIO("a O\n"))[0]) is list
    conllu = "# newdoc id = a\n{}\n\n{}\n\n# newdoc\n{}\n".format(*["1\tx\t_\tX" + "\t_" * 6] * 3)
    document = read_document(io.StringIO(conllu), maxmargin.text.Layout("conllu"))
    assert document.X.documents == [1, 1, 2]
    with pytest.raises(ValueError, match=r"documents must say for 2 sentences which document each is of, but has 1."):
        Corpus([["a"], ["b"]], [0])


@pytest.mark.parametrize("most", [1, 2, 3])
def test_streams_keep_documents_whole_if_asked(most):
    parts = [*stream_documents(io.StringIO(FILE), most=most, are_whole=True)]
    assert [part.X for part in parts] == (
        [[["a"], ["b"]], [["c"], ["d"]]] if most < 3 else [[["a"], ["b"], ["c"], ["d"]]]
    )
    assert "\n".join(line for part in parts for line in part.lines) + "\n" == FILE
    assert max(len(part.X) for part in stream_documents(io.StringIO(FILE), most=most)) <= most
