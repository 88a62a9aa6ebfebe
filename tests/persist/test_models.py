"""Models on disk: what comes back, what is refused, and what a file does not hold."""

import copy
import errno
import mmap
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from io import BytesIO

import joblib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import maxmargin
from maxmargin import (
    BCFW,
    LBFGS,
    ChainCRF,
    ChainSVM,
    DeformableSVM,
    DependencySVM,
    GraphSVM,
    Loss,
    MulticlassSVM,
    RelaxedLoss,
    SpanSVM,
    Status,
    StructuredSVM,
    TreeCRF,
)
from maxmargin.encode.inputs.base_encoder import same
from maxmargin.persist.container import MAGIC, PREFIX, VERSION
from maxmargin.persist.registry import Registry
from maxmargin.problem import new_weights
from maxmargin.testing.estimator_checks import _equal
from maxmargin.text import ArcFeatures, SpanFeatures, WindowFeatures
from tests.small import CASES, make
from tests.toy import Labels

pytestmark = pytest.mark.usefixtures("interpreted_loops")

SENTENCES = [["The", "dog", "barks"], ["A", "cat"], ["Dogs", "bark"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["NOUN", "VERB"]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def saved(model, path):
    """The model of a file that it was saved to."""
    model.save(path)
    return maxmargin.load(path)


def assert_same_params(a, b):
    a, b = a.get_params(deep=False), b.get_params(deep=False)
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert type(value) is type(b[name]), name
        assert same(value, b[name]), name


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("ProblemModel", "StructuredSVM")])
def test_every_estimator_comes_back(name, path):
    model, X, y, _ = make(name)
    model.fit(X, y)
    assert model._encoder.n_weights == model._w.size
    again = saved(model, path)
    assert type(again) is type(model)
    assert_same_params(again, model)
    assert again._encoder == model._encoder
    assert again._w.dtype == model._w.dtype
    assert again._w.tobytes() == model._w.tobytes()
    assert _equal(again.predict(X), model.predict(X))
    for (outputs, scores), (others, other_scores) in zip(
        again.predict_topk(X, 2), model.predict_topk(X, 2), strict=True
    ):
        assert _equal(outputs, others)
        assert scores.tobytes() == other_scores.tobytes()
    assert again.score(X, y) == model.score(X, y)
    assert same(tuple(again.coef_), tuple(model.coef_))
    assert (again.status_, again.certificate_, again.n_iter_) == (model.status_, model.certificate_, model.n_iter_)
    assert str(again.trace_) == str(model.trace_)
    assert again.trace_.notes == model.trace_.notes
    assert {*vars(again)} == {*vars(model)} - {"_result", "_dual_shape", "_truth"}
    assert_same_params(saved(make(name)[0], path), make(name)[0])  # not fitted
    assert not hasattr(maxmargin.load(path), "coef_")


def test_arguments_of_all_kinds_come_back(path):
    bounds = {"transitions": (0, None), "emissions": (np.full((3, 3), -5.0), 7)}
    cost = np.array([[0, 1, 1], [2, 0, 1], [1, 1, 0]])
    models = [
        ChainSVM(
            solver=BCFW(averaging=True),
            loss=Loss("l2", level=0.1),
            bounds=bounds,
            cost=cost,
            dtype=np.float64,
            C=np.inf,
        ),
        ChainSVM(
            allowed_transitions={("a", "b"), ("b", "c")}, class_weight={"a": 2.0, "b": np.float32(0.1)}, n_jobs=-1
        ),
        ChainCRF(solver=LBFGS(memory=7), random_state=np.int64(3), scoring="entity_f1", constraints="bio"),
        DeformableSVM(edges=[(0, 1)], reference=(0, 1)),
        GraphSVM(loss=RelaxedLoss(level=0.5, trees=np.ones((2, 2)))),
        MulticlassSVM(class_weight={1: 2, (2, "b"): 3, "x": float("nan")}),
    ]
    for model in models:
        again = saved(model, path)
        expected, found = str(model.get_params(deep=False)), str(again.get_params(deep=False))
        assert expected == found
    assert np.array_equal(saved(models[4], path).loss.trees, np.ones((2, 2)))
    assert type(saved(models[1], path).class_weight["b"]) is np.float32


def test_labels_of_all_kinds_come_back(path):
    X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 1]]]
    for labels in (np.array([4, 2, 9]), np.array([True, False, True]), np.array(["ä", "b\n", "\U0001f600"])):
        y = [labels, labels[[2, 1]]]
        model = ChainSVM(random_state=0).fit(X, y)
        again = saved(model, path)
        assert again.classes_.dtype == model.classes_.dtype
        assert _equal(again.predict(X), model.predict(X))
    rows, classes = np.eye(2), np.array(["x", "y"], object)
    model = MulticlassSVM(random_state=0).fit(rows, classes)
    assert saved(model, path).classes_.tolist() == ["x", "y"]
    model = MulticlassSVM(random_state=0).fit(rows, np.array([0.5, 1.5]).astype(int))
    assert saved(model, path).predict(rows).dtype == model.predict(rows).dtype


@pytest.mark.parametrize("options", [{}, {"only_observed": True}, {"n_hashed": 16}, {"min_count": 2}])
def test_vocabularies_come_back(options, path):
    odd = "\0\n" if "n_hashed" in options else "\udc80\0\n"
    X = [[[word, word.lower(), odd] for word in sentence] for sentence in SENTENCES]
    model = ChainCRF(**options).fit(X, TAGS)
    again = saved(model, path)
    assert again._encoder == model._encoder
    assert _equal(again.predict_marginals(X), model.predict_marginals(X))
    if "n_hashed" not in options:
        assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    trees = [maxmargin.Tree(x, [(0, k) for k in range(1, len(x))]) for x in X]
    model = TreeCRF(**options).fit(trees, TAGS)
    assert _equal(saved(model, path).predict(trees), model.predict(trees))


def test_pipelines_can_be_saved(path):
    tagger = make_pipeline(WindowFeatures(gazetteers={"animal": ["dog", "cat"]}), ChainCRF()).fit(SENTENCES, TAGS)
    maxmargin.save(tagger, path)
    again = maxmargin.load(path)
    assert [name for name, _ in again.steps] == [name for name, _ in tagger.steps]
    assert _equal(again.predict(SENTENCES), tagger.predict(SENTENCES))


def test_pipelines_of_transformers_load_in_a_process_of_their_own(tmp_path):
    pairs = (ArcFeatures(), DependencySVM()), (SpanFeatures(), SpanSVM()), (WindowFeatures(), ChainSVM())
    for k, pair in enumerate(pairs):
        maxmargin.save(make_pipeline(*pair), tmp_path / str(k))
    code = "import sys, maxmargin; print([type(maxmargin.load(path)[0]).__name__ for path in sys.argv[1:]])"
    command = [sys.executable, "-c", code, *map(str, sorted(tmp_path.iterdir()))]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "['ArcFeatures', 'SpanFeatures', 'WindowFeatures']\n"


@maxmargin.register
class KnownLabels(Labels):
    """A structure whose class is registered; it has no arguments."""

    def __init__(self):
        pass


@dataclass
class Stranger:
    x: int = 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (StructuredSVM(Labels()), r"StructuredSVM\.model cannot be saved: .* is a Labels, and files hold only data"),
        (ChainCRF(scoring=lambda a, b: 0.0), r"ChainCRF\.scoring cannot be saved: .* is a function"),
        (ChainCRF(scoring=partial(max)), r"ChainCRF\.scoring cannot be saved: .* is a partial"),
        (ChainCRF(random_state=np.random.default_rng(0)), r"ChainCRF\.random_state cannot be saved: .* give a seed"),
        (ChainCRF(n_jobs=np.zeros(2, "M8[s]")), "ChainCRF.n_jobs cannot be saved: arrays of datetime64"),
        (ChainSVM(class_weight={"a": [Stranger()]}), r"ChainSVM\.class_weight\['a'\]\[0\] cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_written(model, message, path):
    ChainCRF().save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=message):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_structures_of_registered_classes_can_be_saved(path):
    _, X, y, _ = make("StructuredSVM")
    model = StructuredSVM(KnownLabels(), random_state=0).fit(X, y)
    assert saved(model, path).predict(X) == model.predict(X)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'ChainSVM' is taken"):
        maxmargin.register(Stranger, name="ChainSVM")
    assert maxmargin.register(KnownLabels) is KnownLabels


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview | mmap.mmap)


def test_weights_can_be_mapped_and_are_private(path, words):
    model = ChainSVM(random_state=0).fit(*words)
    model.save(path)
    again = maxmargin.load(path, mmap=True)
    assert is_mapped(again._w)
    assert not is_mapped(maxmargin.load(path)._w)
    before = path.read_bytes()
    again.coef_.emissions[:] = 7  # a copy of its own
    assert path.read_bytes() == before
    assert np.array_equal(maxmargin.load(path)._w, model._w)


def test_a_file_that_is_written_over_or_cut_changes_no_model(path):
    """Weights and indices are the model's own, which else would be read, unchecked, from what is there now."""
    names = [[["a", "b"], ["c"]], [["b"], ["c", "a"]]]
    model = ChainCRF(max_passes=3, only_observed=True).fit(names, [["x", "y"], ["z", "x"]])
    model.save(path)
    again = maxmargin.load(path)
    with open(path, "r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
        file.flush()
        assert again._w.tobytes() == model._w.tobytes()
        file.truncate(0)  # reading a page beyond the end of a map ends the process
    assert again._w.tobytes() == model._w.tobytes()
    assert [labels.tolist() for labels in again.predict(names)] == [labels.tolist() for labels in model.predict(names)]


def test_indices_are_never_mapped(path):
    model = ChainCRF(max_passes=3, only_observed=True).fit([[["a"], ["b"]]], [["x", "y"]])
    model.save(path)
    again = maxmargin.load(path, mmap=True)
    pairs = again._encoder.node_pairs
    assert not any(map(is_mapped, (*pairs, *again._encoder.edge_pairs, again.classes_)))


def test_zeros_take_no_room(path, words):
    sizes = []
    for n_zeros in (0, 2000):
        X, y = [np.hstack([x, np.zeros((len(x), n_zeros))]) for x in words[0]], words[1]
        model = ChainSVM(random_state=0, max_passes=1).fit(X, y)
        model._w[-1] = -0.0
        assert saved(model, path)._w.tobytes() == model._w.tobytes()
        sizes.append(path.stat().st_size)
    assert sizes[1] - sizes[0] < model._w.nbytes / 20


def test_names_without_weights_take_no_room(path, interpreted_loops):
    X = [[[f"{word}-{k}-{'x' * 99}" for k in range(20)] + [word] for word in pair] for pair in (("a", "b"), ("b", "c"))]
    y = [["A", "B"], ["B", "C"]]
    model = ChainCRF(only_observed=True, max_passes=5).fit(X, y)
    model.save(path)
    full, names = path.stat().st_size, model.feature_names_in_
    emissions = model.coef_.emissions
    is_kept = np.array(["x" not in name for name in names])
    emissions.data[~np.repeat(is_kept, np.diff(emissions.indptr))] = 0  # as L1 does
    again = saved(model, path)
    assert path.stat().st_size < full / 2
    assert (again.feature_names_in_.tolist(), again.n_features_in_) == (["a", "b", "c"], 3)
    assert (again.coef_.emissions.toarray() == emissions.toarray()[is_kept]).all()
    for name in ("transitions", "bias", "first", "last"):
        assert (again.coef_[name] == model.coef_[name]).all()
    for mine, its in zip(model.predict_marginals(X), again.predict_marginals(X), strict=True):
        assert mine.tobytes() == its.tobytes()
    start = again._encoder.weights_of(again._encoder, again._w)
    assert start is again._w
    assert model._encoder.weights_of(again._encoder, again._w).tobytes() == model._w.tobytes()
    assert again._encoder.weights_of(model._encoder, model._w).tobytes() == again._w.tobytes()  # of what it knows
    model._w[:] = 0
    assert saved(model, path).n_features_in_ == model.n_features_in_  # there must be one


def test_a_file_takes_the_place_of_the_old_one_as_a_whole(path, words, monkeypatch):
    ChainCRF(C=2.0).save(path)
    link = path.with_name("link")
    link.symlink_to(path)
    ChainCRF(C=3.0).save(link)
    assert link.is_symlink()
    assert maxmargin.load(path).C == 3.0

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        ChainCRF(C=4.0).save(path)
    assert maxmargin.load(path).C == 3.0
    assert {*os.listdir(path.parent)} == {"a.model", "link"}


def test_what_a_killed_save_has_left_goes_away_with_the_next(path):
    left, busy, other = (path.with_name(f".{name}.0123456789ab.part") for name in ("a.model", "a.model-2", "b.model"))
    for file in (left, busy, other):
        file.write_bytes(b"half")
    with open(busy, "rb") as file:
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX)  # as one that is being written
        ChainCRF().save(path)
    assert {*path.parent.iterdir()} == {path, busy, other}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_keeps_the_permissions_of_the_one_whose_place_it_takes(path):
    ChainCRF().save(path)
    path.chmod(0o600)
    ChainCRF(C=2.0).save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert maxmargin.load(path).C == 2.0


def test_an_unwritable_target_is_named(tmp_path):
    for target, error, reason in (
        (tmp_path, IsADirectoryError, "it is a folder"),
        (tmp_path / "no" / "where", FileNotFoundError, "its folder does not exist"),
    ):
        with pytest.raises(error, match=f"{target}' cannot be written: {reason}"):
            ChainCRF().save(target)
    with pytest.raises(FileNotFoundError):
        maxmargin.load(tmp_path / "nothing")


def test_a_full_disk_is_one_sentence_that_names_the_file(path, monkeypatch):
    ChainCRF().save(path)

    def is_full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", is_full)
    with pytest.raises(OSError, match=rf"{path.name}' cannot be written: No space left on device\."):
        ChainCRF(C=2.0).save(path)
    assert maxmargin.load(path).C == 1.0
    assert [*path.parent.iterdir()] == [path]


def test_what_is_wrong_with_a_file_is_said(path, words):
    model = ChainCRF(max_passes=3).fit(*words)
    model.save(path)
    whole = path.read_bytes()
    newer = PREFIX.pack(MAGIC, VERSION + 1, 0, 0, 0)
    for content, reason in (
        (b"", "not a file of this library"),
        (pickle.dumps(model), "not a file of this library"),
        (whole[:20], "truncated, after 20 bytes"),
        (whole[:-1], f"truncated: {len(whole) - 1} of {len(whole)} bytes are there"),
        (whole + b"x", "corrupted: its lengths do not fit"),
        (newer, f"written by a newer version of maxmargin, in format {VERSION + 1}"),
        (whole[:100] + b"#" + whole[101:], "corrupted: the checksum of its text is wrong"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"a.model' cannot be loaded: it (is|was) {reason}"):
            maxmargin.load(path)
    at = whole.rindex(model._w.tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ValueError, match=r"corrupted: the checksum of array \d+ is wrong"):
        maxmargin.load(path)


@dataclass
class Forgotten:
    x: int = 1


def test_classes_that_are_not_registered_are_not_made(path, monkeypatch):
    maxmargin.register(Forgotten, name="forgotten")
    maxmargin.save(Forgotten(), path)
    assert maxmargin.load(path) == Forgotten()
    monkeypatch.setattr("maxmargin.persist.values.MODELS", Registry())
    with pytest.raises(ValueError, match="holds an object of the class 'forgotten', which is not registered here"):
        maxmargin.load(path)


@pytest.mark.parametrize("name", [name for name in CASES if "Kernel" not in name])  # which hold support rows
def test_pickles_hold_no_training_data(name):
    model, X, y, _ = make(name)
    model.set_params(warm_start=True, max_passes=1).fit(X, y)
    more = copy.deepcopy(model).fit(
        [*X] * 20 if isinstance(X, list) else np.tile(X, (20, 1)),
        np.concatenate([y] * 20) if isinstance(y, np.ndarray) else [*y] * 20,
    )
    for dump in (pickle.dumps, dump_with_joblib):
        assert abs(len(dump(more)) - len(dump(model))) < 500  # numbers of certificates and of digits
    again = pickle.loads(pickle.dumps(model))
    assert _equal(again.predict(X), model.predict(X))
    again.fit(X, y)


def dump_with_joblib(model):
    buffer = BytesIO()
    joblib.dump(model, buffer)
    return buffer.getvalue()


def test_a_loaded_model_starts_from_its_weights(path, words):
    model = ChainCRF(warm_start=True, tol=1e-6).fit(*words)
    again = saved(model, path)
    again.fit(*words)
    assert again.status_ is Status.OPTIMAL
    assert again.n_iter_ < model.n_iter_ / 2
    other = maxmargin.load(path).fit(words[0][:10], words[1][:10])  # weights mean the same, whatever the examples
    assert other.trace_.primal[0] < ChainCRF(tol=1e-6).fit(words[0][:10], words[1][:10]).trace_.primal[0]
    svm = saved(ChainSVM(warm_start=True, random_state=0).fit(*words), path).fit(*words)
    assert "Started afresh: the start holds no dual point that helps this solver." in svm.trace_.notes


def test_encoders_know_the_number_of_weights():
    for name in CASES:
        model, X, y, _ = make(name)
        task = model._encode(X, y)
        encoder, w = task.encoder.fitted(task.layout.to_model(new_weights(task.problem)))
        assert encoder.n_weights == w.size, name
