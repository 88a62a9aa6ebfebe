from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from maxmargin import ChainSVM
from maxmargin.datasets import (
    digit_words,
    digits,
    load_blood_cells,
    load_conll2000,
    load_conll2003,
    load_emotions,
    load_lsp,
    load_msrc,
    load_mulan,
    load_ocr,
    load_scene,
    load_voc,
    load_wnut17,
    load_word_alignment,
)

needs_data = pytest.mark.skipif(
    "MAXMARGIN_DATA" not in os.environ, reason="the environment variable MAXMARGIN_DATA names no folder of data"
)


def same(a, b):
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def test_digit_words_have_the_documented_form():
    words = digit_words(n_train=30, n_test=20)
    assert (len(words.X_train), len(words.X_test), words.X_dev) == (30, 20, [])
    for X, y in zip(words.X_train + words.X_test, words.y_train + words.y_test, strict=True):
        assert X.shape == (len(y), 64)
        assert 0 <= X.min() < X.max() <= 1
        assert 4 <= len(y) <= 8
        assert set(np.diff(y) % 10) <= {1, 3, 6}
    assert {len(y) for y in words.y_train} == {4, 5, 6, 7, 8}


def test_digit_words_are_determined_by_the_seed():
    a, b, other = digit_words(10, 10, 3), digit_words(10, 10, 3), digit_words(10, 10, 4)
    assert same(a.X_train, b.X_train)
    assert same(a.X_test, b.X_test)
    assert same(a.y_train, b.y_train)
    assert not same(a.X_train, other.X_train)


def test_test_words_do_not_depend_on_the_number_of_training_words():
    few, many = digit_words(n_train=10, n_test=5), digit_words(n_train=50, n_test=5)
    assert same(few.X_test, many.X_test)
    assert same(few.X_train, many.X_train[:10])


def test_no_image_is_in_both_training_and_test_words(monkeypatch):
    monkeypatch.setattr(digits, "NOISE", 0.0)
    words = digit_words(n_train=500, n_test=500)
    train, test = ({image.tobytes() for X in part for image in X} for part in (words.X_train, words.X_test))
    originals = {image.tobytes() for image in load_digits().data / 16}
    assert train | test <= originals
    assert not train & test
    assert min(len(train), len(test)) > 700


def test_images_show_the_digits_of_the_word(monkeypatch):
    monkeypatch.setattr(digits, "NOISE", 0.0)
    words = digit_words(n_train=20, n_test=20)
    images, labels = load_digits(return_X_y=True)
    label_of = {image.tobytes(): label for image, label in zip(images / 16, labels, strict=True)}
    for X, y in zip(words.X_test, words.y_test, strict=True):
        assert [label_of[image.tobytes()] for image in X] == y.tolist()


@pytest.mark.parametrize("name", ["n_train", "n_test"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "many"])
def test_digit_words_reject_bad_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
        digit_words(**{name: value})


def test_reading_whole_words_beats_reading_digit_by_digit():
    words = digit_words()
    truth = np.concatenate(words.y_test)
    svm = LinearSVC(C=0.1, random_state=0).fit(np.vstack(words.X_train), np.concatenate(words.y_train))
    linear_error = np.mean(svm.predict(np.vstack(words.X_test)) != truth)
    model = ChainSVM(C=0.1, tol=0.02, random_state=0).fit(words.X_train, words.y_train)
    chain_error = np.mean(np.concatenate(model.predict(words.X_test)) != truth)
    assert 0.08 < linear_error < 0.15
    assert chain_error < linear_error / 2


@pytest.mark.parametrize(
    "load", [load_ocr, load_conll2000, load_conll2003, load_wnut17, load_scene, load_emotions, load_mulan, load_msrc]
)
def test_missing_files_say_how_to_name_the_folder(load, tmp_path, monkeypatch):
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    ways = "was not found.*: pass folder=... or set the environment variable MAXMARGIN_DATA to the folder"
    with pytest.raises(FileNotFoundError, match=ways):
        load()
    with pytest.raises(FileNotFoundError, match=ways) as error:
        load(folder=tmp_path)
    assert str(tmp_path) in str(error.value)


def write_letters(folder):
    path = folder / "ocr_letters" / "letters.npz"
    path.parent.mkdir()
    pixels = np.zeros((6, 128), np.uint8)
    pixels[np.arange(6), np.arange(6)] = 1
    np.savez(path, pixels=pixels, labels=np.arange(6, dtype=np.int16), offsets=[0, 2, 3, 6], folds=[0, 4, 0])


def test_ocr_folds(tmp_path, monkeypatch):
    write_letters(tmp_path)
    small = load_ocr(folder=tmp_path)
    assert same(small.y_train, [[0, 1], [3, 4, 5]])
    assert same(small.y_test, [[2]])
    assert same(small.X_test, [np.eye(128)[2:3]])
    assert small.X_test[0].dtype == np.uint8
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    large = load_ocr(train_on_fold_zero=False)
    assert same(large.X_train, small.X_test)
    assert same(large.y_test, small.y_train)


def test_columns_end_at_blank_lines_and_keep_unusual_characters(tmp_path):
    folder = tmp_path / "wnut17"
    folder.mkdir()
    for name in ("wnut17train.conll", "emerging.dev.conll"):
        (folder / name).write_text("a\tO\n\t\n\nb\u00a0c\u2028\tB-x", encoding="utf-8")
    (folder / "emerging.test.annotated").write_text("d\tO\n", encoding="utf-8")
    entities = load_wnut17(tmp_path)
    assert entities.X_train == entities.X_dev == [["a"], ["b\u00a0c\u2028"]]
    assert entities.y_train == entities.y_dev == [["O"], ["B-x"]]
    assert (entities.X_test, entities.y_test) == ([["d"]], [["O"]])
    assert repr(entities) == "Dataset(2 training, 2 development, 1 test examples)"


@pytest.mark.parametrize(
    "names", [("eng.train", "eng.testa", "eng.testb"), ("train.txt", "valid.txt", "test.txt")], ids=str
)
def test_entities_of_newswire_by_either_names(tmp_path, names):
    """Documents begin with a line that is no token; tags are as in the file, IOB1."""
    folder = tmp_path / "conll2003"
    folder.mkdir()
    start = "-DOCSTART- -X- -X- O\n\n"
    sentences = "EU NNP I-NP I-ORG\nrejects VBZ I-VP O", "Bonn NNP I-NP I-LOC\nFrance NNP I-NP B-LOC", "No DT I-NP O"
    for name, sentence in zip(names, sentences, strict=True):
        (folder / name).write_text(f"{start}{sentence}\n\n")
    news = load_conll2003(tmp_path)
    assert (news.X_train, news.y_train) == ([[("EU", "NNP", "I-NP"), ("rejects", "VBZ", "I-VP")]], [["I-ORG", "O"]])
    assert (news.X_dev, news.y_dev) == ([[("Bonn", "NNP", "I-NP"), ("France", "NNP", "I-NP")]], [["I-LOC", "B-LOC"]])
    assert news.y_test == [["O"]]


@needs_data
def test_ocr_counts():
    small = load_ocr()
    assert (len(small.X_train), len(small.X_test)) == (626, 6251)
    assert sum(map(len, small.y_train + small.y_test)) == 52152
    assert set(np.unique(np.concatenate(small.y_test))) == set(range(26))
    assert all(X.shape == (len(y), 128) for X, y in zip(small.X_train, small.y_train, strict=True))


@needs_data
def test_conll2000_counts():
    chunks = load_conll2000()
    assert (len(chunks.X_train), len(chunks.X_test)) == (8936, 2012)
    assert (sum(map(len, chunks.y_train)), sum(map(len, chunks.y_test))) == (211727, 47377)
    assert (chunks.X_train[0][0], chunks.y_train[0][0]) == (("Confidence", "NN"), "B-NP")
    assert len({tag for sentence in chunks.y_train for tag in sentence}) == 22


@needs_data
def test_wnut17_counts():
    entities = load_wnut17()
    assert [len(entities.X_train), len(entities.X_dev), len(entities.X_test)] == [3394, 1009, 1287]
    assert len({tag for part in (entities.y_train, entities.y_dev, entities.y_test) for y in part for tag in y}) == 13
    assert all(len(X) == len(y) for X, y in zip(entities.X_test, entities.y_test, strict=True))


@needs_data
def test_word_alignment_counts():
    pairs = load_word_alignment("enfr")
    assert len(pairs) == 447
    assert sum(len(pair.sure) for pair in pairs) == 4038
    for pair in pairs:
        assert pair.sure <= pair.possible
        assert all(0 <= i < len(pair.source) and 0 <= j < len(pair.target) for i, j in pair.possible)
    assert len(load_word_alignment("roen")) == 248


def test_word_alignment_languages():
    with pytest.raises(ValueError, match="languages must be enfr or roen, not 'defr'"):
        load_word_alignment("defr")


ANNOTATION = """<annotation>{}</annotation>"""
OBJECT = "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"


def write_voc(root, objects, parts):
    """A folder as that of VOC: the objects of images of 8 x 6 pixels by name, and the names of its parts."""
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name in ("ImageSets/Main", "Annotations", "JPEGImages"):
        (root / name).mkdir(parents=True)
    for name, found in objects.items():
        (root / "Annotations" / f"{name}.xml").write_text(ANNOTATION.format(found))
        image_module.new("RGB", (8, 6)).save(root / "JPEGImages" / f"{name}.jpg")
    for part, names in parts.items():
        (root / "ImageSets" / "Main" / f"{part}.txt").write_text("\n".join(names))


@pytest.mark.parametrize("place", ["VOCdevkit/VOC2007", "VOC2007"])
def test_objects_of_one_class(tmp_path, place):
    """Parts of objects have boxes, too, and sides may have decimals."""
    head = "<part><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"
    cat = OBJECT.format("cat", 2, 1, "6.0", 5).replace("</object>", f"{head}</object>")
    dog = OBJECT.format("dog", 1, 1, 8, 6)
    objects = {"000001": cat + dog, "000002": cat + cat, "000003": dog, "000004": cat}
    write_voc(tmp_path / place, objects, {"train": ["000001", "000002"], "val": ["000004"], "test": ["000003"]})
    cats = load_voc("cat", folder=tmp_path)
    assert (cats.y_train, cats.y_dev, cats.y_test) == ([(0, 1, 5, 6)], [(0, 1, 5, 6)], [])
    assert cats.X_dev[0].shape == (6, 8, 3)
    assert load_voc("dog", folder=tmp_path).y_test == [(0, 0, 6, 8)]
    with pytest.raises(ValueError, match="kind must be one of cat, dog, not 'cow'"):
        load_voc("cow", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"VOCdevkit/VOC2012/.*train.txt or VOC2012/.* not found"):
        load_voc("cat", 2012, tmp_path)


def test_years_of_voc_without_a_test_part(tmp_path):
    cat = OBJECT.format("cat", 1, 1, 6, 5)
    write_voc(tmp_path / "VOC2012", {"a": cat, "b": cat}, {"train": ["a"], "val": ["b"]})
    cats = load_voc("cat", 2012, tmp_path)
    assert (len(cats.X_train), len(cats.X_dev), len(cats.X_test)) == (1, 1, 0)


def test_subtypes_of_white_cells(tmp_path):
    cell = OBJECT.format("WBC", 3, 2, 7, 5)
    names = [f"BloodImage_0000{k}" for k in range(4)]
    write_voc(tmp_path / "bccd", dict.fromkeys(names, cell), {"train": names, "test": names[:1], "val": []})
    with pytest.raises(FileNotFoundError, match=r"bccd/labels.csv was not found"):
        load_blood_cells("LYMPHOCYTE", tmp_path)
    (tmp_path / "bccd" / "labels.csv").write_text(
        ',Image,Category\n,0,NEUTROPHIL\n,1,LYMPHOCYTE\n,2,"NEUTROPHIL, LYMPHOCYTE"\n,3,\n'
    )
    assert len(load_blood_cells("LYMPHOCYTE", tmp_path).X_train) == 1
    neutrophils = load_blood_cells("NEUTROPHIL", tmp_path)
    assert (len(neutrophils.X_train), len(neutrophils.X_test), neutrophils.X_dev) == (1, 1, [])
    assert len(load_blood_cells("WBC", tmp_path).X_train) == 4


def test_blood_cells_of_one_kind(tmp_path):
    one, other = OBJECT.format("WBC", 3, 2, 7, 5), OBJECT.format("RBC", 1, 1, 4, 4)
    objects = {"a": one + other, "b": one + one, "c": other}
    write_voc(tmp_path / "bccd", objects, {"train": ["a", "b"], "test": ["c"], "val": ["a", "c"]})
    cells = load_blood_cells(folder=tmp_path)
    assert (len(cells.X_train), len(cells.X_test), len(cells.X_dev)) == (1, 0, 1)
    assert cells.X_train[0].shape == (6, 8, 3)
    assert cells.y_train == [(1, 2, 5, 7)]  # pixels 2 to 5 and 3 to 7, counted from 1
    assert load_blood_cells("RBC", tmp_path).y_test == [(0, 0, 4, 4)]
    with pytest.raises(ValueError, match=r"kind must be one of WBC, .*, BASOPHIL, not 'cells'"):
        load_blood_cells("cells", tmp_path)


@needs_data
def test_white_blood_cells():
    cells = load_blood_cells()
    assert (len(cells.X_train), len(cells.X_dev), len(cells.X_test)) == (194, 85, 65)
    for image, (top, left, bottom, right) in zip(cells.X_test, cells.y_test, strict=True):
        assert 0 <= top < bottom <= image.shape[0]
        assert 0 <= left < right <= image.shape[1]


def test_poses_are_those_of_the_images(data_folder):
    people = load_lsp(data_folder)
    assert len(people.X_train) == 300
    assert people.X_train[0].name == "im00001.jpg"
    assert people.y_test[-1].shape == (14, 3)
    assert set(np.unique([pose[:, 2] for pose in people.y_train])) == {0.0, 1.0}


def test_poses_without_their_images(tmp_path):
    (tmp_path / "lsp_extended_400").mkdir()
    savemat(tmp_path / "lsp_extended_400" / "joints.mat", {"joints": np.zeros((14, 3, 2))})
    with pytest.raises(ValueError, match="has joints of 2 images, but 0 images"):
        load_lsp(tmp_path)


def test_multi_label_counts(data_folder):
    for load, n_train, n_test, n_features in ((load_scene, 1211, 1196, 294), (load_emotions, 391, 202, 72)):
        data = load(data_folder)
        assert (data.X_train.shape, data.X_test.shape) == ((n_train, n_features), (n_test, n_features))
        assert (data.y_train.shape, data.y_test.shape) == ((n_train, 6), (n_test, 6))
        assert set(np.unique(data.y_train)) == {0, 1}


ARFF = """% a comment
@RELATION genes

@attribute Att1 numeric
@attribute 'Class 2' {0,1}
@attribute\tAtt2\treal
@attribute Class1 {0,1}
@DATA
"""


def write_mulan(folder, train, test):
    root = folder / "genes"
    root.mkdir()
    xmlns = "http://mulan.sourceforge.net/labels"
    (root / "genes.xml").write_text(f'<labels xmlns="{xmlns}"><label name="Class1"/><label name="Class 2"/></labels>')
    for part, lines in (("train", train), ("test", test)):
        (root / f"genes-{part}.arff").write_text(ARFF + lines)


def test_files_of_mulan(tmp_path):
    """Labels may stand anywhere, and rows may be sparse."""
    write_mulan(tmp_path, "0.5,1,-2,0\n% and\n1e-3, 0, 3, 1\n", "{2 -7.5,3 1}\n{}\n{0 2}\n")
    data = load_mulan("genes", tmp_path)
    assert data.X_train.tolist() == [[0.5, -2.0], [1e-3, 3.0]]
    assert data.y_train.tolist() == [[0, 1], [1, 0]]
    assert data.X_test.tolist() == [[0.0, -7.5], [0.0, 0.0], [2.0, 0.0]]
    assert data.y_test.tolist() == [[1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("line", ["1,2,3", "1,?,0,0", "{9 1}", "{1}"])
def test_bad_lines_of_mulan(line, tmp_path):
    write_mulan(tmp_path, "0,0,0,0\n", f"0,0,0,0\n{line}\n")
    with pytest.raises(ValueError, match=r"genes-test.arff, line 10: expected 4 numbers, not "):
        load_mulan("genes", tmp_path)


def test_labels_that_mulan_lacks(tmp_path):
    write_mulan(tmp_path, "0,0,0,0\n", "0,0,0,0\n")
    path = tmp_path / "genes" / "genes.xml"
    path.write_text(path.read_text().replace("Class1", "Class3"))
    with pytest.raises(
        ValueError, match=r"genes-train.arff must have all labels of genes.xml as attributes, but lacks 'Class3'"
    ):
        load_mulan("genes", tmp_path)


def test_photographs_by_their_names(tmp_path):
    io = pytest.importorskip("skimage.io")
    images, maps = (tmp_path / "msrc_v2" / part for part in ("images", "labels"))
    for folder in (images, maps):
        folder.mkdir(parents=True)
    for k in range(1, 12):  # read in this order: 10 comes after 9
        labels = np.array([[0, 5, 8], [k, k, k]], np.uint8)
        io.imsave(images / f"1_{k}_s.jpg", np.dstack([labels] * 3), check_contrast=False)
        io.imsave(maps / f"1_{k}_s.png", labels, check_contrast=False)
    photos = load_msrc(tmp_path)
    assert [labels[1, 0] for labels in photos.y_train] == [1, 2, 3, 6, 7, 0, 11]
    assert [labels[1, 0] for labels in photos.y_test] == [4, 0, 9, 10]
    assert not any(labels[0].any() for labels in photos.y_train)  # void, horse and mountain
    assert all(image.shape == (2, 3, 3) for image in photos.X_test)


def test_photographs_counts(data_folder):
    pytest.importorskip("skimage.io")
    photos = load_msrc(data_folder)
    assert (len(photos.X_train), len(photos.X_test)) == (355, 236)
    for images, labels in ((photos.X_train, photos.y_train), (photos.X_test, photos.y_test)):
        assert all(image.shape == (*found.shape, 3) for image, found in zip(images, labels, strict=True))
        assert len(np.unique(np.concatenate([found.ravel() for found in labels]))) == 22
