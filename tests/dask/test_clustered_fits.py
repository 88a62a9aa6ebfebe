"""Every `fit` on a cluster: data of all kinds, the same models as in one process, and what is refused."""

import asyncio
import gc
import time
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

from maxmargin import LBFGS, ChainCRF, ChainSVM, MulticlassSVM, OneSlack, Shards, Tagger

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
dask = pytest.importorskip("dask")

from maxmargin.estimators.foundation.clustered import checksum_of, read_file, submit_sources  # noqa: E402
from maxmargin.execution.dask_tasks import Tasks  # noqa: E402
from maxmargin.tagger import word_tagger  # noqa: E402
from maxmargin.text import Corpus, WindowFeatures  # noqa: E402
from tests.small import CASES, make  # noqa: E402

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"], ["the", "cat"], ["cats", "sleep", "here"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"], ["D", "N"], ["N", "V", "A"]]  # A is in the last portion alone
X = [[{"word": word, "last": word[-1]} for word in words] for words in WORDS]
MODEL = {"C": 1.0, "solver": LBFGS(), "tol": 1e-6}


def pair(lo, hi):
    return X[lo:hi], TAGS[lo:hi]


def test_the_same_model_whatever_the_data_come_in(client, tmp_path):
    import dask.bag

    alone = ChainCRF(**MODEL).fit(X, TAGS)
    shards = Shards.write([pair(0, 2), pair(2, 5)], tmp_path / "shards")
    given = {
        "lists": (X, TAGS),
        "delayed": ([dask.delayed(pair)(0, 2), dask.delayed(pair)(2, 5)], None),
        "one delayed": (dask.delayed(X), dask.delayed(TAGS)),
        "bag": (dask.bag.from_sequence([*zip(X, TAGS, strict=True)], npartitions=3), None),
        "shards": (shards, None),
    }
    for name, (data, labels) in given.items():
        model = ChainCRF(**MODEL).fit(data, labels, client=client)
        assert model.feature_names_in_.tolist() == alone.feature_names_in_.tolist(), name
        assert model.classes_.tolist() == ["A", "D", "N", "V"], name
        np.testing.assert_allclose(model._w, alone._w, atol=1e-5, err_msg=name)
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-9), name
        assert model.predict(X[:1])[0].tolist() == TAGS[0]


@pytest.mark.parametrize("callback", [None, lambda *_: 1 / 0])
def test_nothing_stays_on_workers_when_a_fit_ends(client, callback):
    gc.disable()  # which would find it, at some time
    try:
        with nullcontext() if callback is None else pytest.raises(ZeroDivisionError):
            ChainCRF(**MODEL).fit(X, TAGS, client=client, callback=callback)
        until = time.monotonic() + 5
        while client.futures:
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        gc.enable()


def write_file(path, words, tags):
    """A file of tagged sentences."""
    sentences = [
        "".join(f"{word} {tag}\n" for word, tag in zip(*both, strict=True)) for both in zip(words, tags, strict=True)
    ]
    path.write_text("\n".join(sentences))
    return str(path)


def test_files_are_read_by_workers_and_must_stay_as_they_are(client, tmp_path):
    paths = [write_file(tmp_path / f"{k}.txt", WORDS[k::2], TAGS[k::2]) for k in (0, 1)]
    there = ChainCRF(**MODEL).fit(paths, None, client=client)
    read = [read_file(path, checksum_of(path)) for path in paths]
    alone = ChainCRF(**MODEL).fit(*([*one, *other] for one, other in zip(*read, strict=True)))
    np.testing.assert_allclose(there._w, alone._w, atol=1e-5)
    tasks = Tasks(client)
    sources = submit_sources(tasks, paths, None)
    assert tasks.results(sources)[1] == read[1]
    before = checksum_of(paths[0])
    write_file(tmp_path / "0.txt", WORDS[:1], TAGS[:1])
    with pytest.raises(ValueError, match=r"0\.txt' has changed since the fit began"):
        tasks.results([tasks.submit(read_file, paths[0], before)])  # as a worker does that takes over
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ChainCRF(**MODEL).fit([tmp_path / "nowhere.txt"], None, client=client)


@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_block_steps_and_solvers_of_batches_have_the_same_optimum(client, solver):
    alone, there = (ChainSVM(solver=solver, tol=0.02, random_state=0).fit(X, TAGS, client=c) for c in (None, client))
    assert there.status_ is alone.status_
    assert there.certificate_.dual <= alone.certificate_.primal + 1e-6
    assert alone.certificate_.dual <= there.certificate_.primal + 1e-6


def test_observed_pairs_bounds_and_weights(client):
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    options = {"only_observed": True, "solver": OneSlack(), "tol": 0.02, "bounds": {"transitions": (0.0, None)}}
    alone, there = (ChainSVM(**options).fit(X, TAGS, weight, client=each) for each in (None, client))
    assert there.certificate_.dual <= alone.certificate_.primal + 1e-9
    assert alone.certificate_.dual <= there.certificate_.primal + 1e-9
    assert there.coef_.transitions.min() >= 0
    assert there._w.shape == alone._w.shape


def test_rows_of_numbers_and_held_out_data(client):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    labels = rows.argmax(axis=1)
    options = {"solver": "one-slack", "max_passes": 4}
    held_out = {"X_dev": rows[:10], "y_dev": labels[:10]}
    alone, there = (MulticlassSVM(**options).fit(rows, labels, client=each, **held_out) for each in (None, client))
    assert there.status_ is alone.status_
    np.testing.assert_allclose(there.trace_.dev_score[:2], alone.trace_.dev_score[:2])


@pytest.mark.parametrize("name", ["AlignmentSVM", "BoxSVM", "MatchingSVM"])
def test_models_whose_encoders_learn_sizes_alone(client, name, interpreted_loops):
    case = next(case for case in CASES if str(case) == name)
    model, inputs, outputs, _ = make(case)
    model.set_params(max_passes=3)
    alone, there = (
        type(model)(**model.get_params(deep=False)).fit(inputs, outputs, client=each) for each in (None, client)
    )
    assert there._w.shape == alone._w.shape
    assert there.certificate_.dual <= alone.certificate_.primal * (1 + 1e-6)
    assert alone.certificate_.dual <= there.certificate_.primal * (1 + 1e-6)


def test_rare_names_and_balanced_labels_are_counted_in_all_portions(client):
    model = ChainSVM(C=1.0, tol=1e-3, solver="one-slack", min_count=2, class_weight="balanced")
    alone, there = (ChainSVM(**model.get_params()).fit(X, TAGS, client=each) for each in (None, client))
    assert there.feature_names_in_.tolist() == alone.feature_names_in_.tolist()
    assert there.certificate_.dual <= alone.certificate_.primal
    assert alone.certificate_.dual <= there.certificate_.primal


async def fit_asynchronously(address):
    """A fit by a client whose answers are to be awaited."""
    async with distributed.Client(address, asynchronous=True) as client:
        return ChainCRF().fit(X, TAGS, client=client)


def test_what_is_refused_in_one_sentence(client):
    import dask.array

    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        ChainCRF().fit(X, TAGS, client="tcp://nowhere")
    with pytest.raises(ValueError, match="lengths must be None with client"):
        ChainCRF().fit(np.eye(2), [0, 1], lengths=[1, 1], client=client)
    with pytest.raises(ValueError, match=r"portion 1 .*no examples"):
        ChainCRF().fit([dask.delayed(pair)(0, 2), dask.delayed(pair)(2, 2)], None, client=client)
    with pytest.raises(TypeError, match="delayed objects or futures alone"):
        ChainCRF().fit([dask.delayed(pair)(0, 2), pair(2, 5)], None, client=client)
    with pytest.raises(ValueError, match="The data set holds no examples"):
        ChainCRF().fit([], [], client=client)
    with pytest.raises(TypeError, match=r"may be bags .* not dask\.array"):
        MulticlassSVM().fit(dask.array.eye(4), np.arange(4), client=client)
    with pytest.raises(ValueError, match="must not be asynchronous"):
        asyncio.run(fit_asynchronously(client.scheduler.address))
    parts = [dask.delayed(([np.eye(2)], [[0, 1]])), dask.delayed(([np.eye(3)], [[0, 1, 0]]))]
    with pytest.raises(ValueError, match="features"):
        ChainCRF().fit(parts, None, client=client)
    with pytest.raises((TypeError, ValueError), match="name"):
        ChainCRF().fit([dask.delayed(pair)(0, 2), dask.delayed(([np.eye(3)], [[0, 1, 0]]))], None, client=client)
    with pytest.raises(ValueError, match="known in part"):
        ChainCRF().fit(X, [[None, "N", "V"], *TAGS[1:]], client=client)


def test_taggers_of_shards_are_trained_where_these_are_read(client, tmp_path):
    shards = Shards.write([(WORDS[k::2], TAGS[k::2]) for k in (0, 1)], tmp_path / "shards")
    alone, there = (Tagger(model=ChainCRF(**MODEL)).fit(shards, client=each) for each in (None, client))
    assert there.predict(WORDS) == alone.predict(WORDS)
    np.testing.assert_allclose(there.certificate_.primal, alone.certificate_.primal, rtol=1e-3)


def test_workers_make_the_features_of_sentences_that_they_read(client, tmp_path, monkeypatch):
    import dask.bag

    names = {"thing": ["dog", "cat", "dogs", "cats"] + [f"thing{k}" for k in range(20)]}
    tagger = Tagger(features=WindowFeatures(window=1, gazetteers=names), model=ChainCRF(**MODEL))
    paths = [write_file(tmp_path / f"{k}.txt", WORDS[k::2], TAGS[k::2]) for k in (0, 1)]
    in_files = [[part for k in (0, 1) for part in parts[k::2]] for parts in (WORDS, TAGS)]
    alone = tagger.fit(*in_files).model_
    portions = [dask.delayed((WORDS[k::2], TAGS[k::2])) for k in (0, 1)]
    bag = dask.bag.from_sequence([*zip(*in_files, strict=True)], npartitions=3)
    monkeypatch.setattr(word_tagger, "fit_transform", None)  # which would make them here
    for data in (in_files, (paths, None), (portions, None), (bag, None)):
        there = tagger.fit(*data, client=client)
        assert there.model_.feature_names_in_.tolist() == alone.feature_names_in_.tolist()
        np.testing.assert_allclose(there.model_._w, alone._w, atol=1e-5)
        assert there.predict(WORDS) == TAGS
    with pytest.raises(TypeError, match="Portion 1 of the data has no tags"):
        tagger.fit([portions[0], dask.delayed((WORDS, None))], None, client=client)
    with pytest.raises(ValueError, match="two_stages must be False with client"):
        Tagger(two_stages=True).fit(paths, None, client=client)


def test_what_lists_know_is_decided_over_all_portions(client):
    n = 40
    X, y = [["Mr", f"Name{i}", "met", "Bo"] for i in range(n)], [["O", "B-PER", "O", "B-PER"]] * n
    features = WindowFeatures(window=0, gazetteers={"PER": [*(f"name{i}" for i in range(n)), "Bo"]})
    tagger = Tagger(features=features, model=ChainCRF(**{**MODEL, "tol": 0.1}))
    names = tagger.fit(X, y).model_.feature_names_in_.tolist()
    there = tagger.fit(X, y, client=client)
    assert there.features_.cross_fit_ == ["PER"]
    assert there.model_.feature_names_in_.tolist() == names


def test_documents_stay_whole(client):
    corpus = Corpus(WORDS * 8, [k // 3 for k in range(40)])
    found = Tasks(client).results(submit_sources(Tasks(client), corpus, TAGS * 8))
    assert [x for X, _ in found for x in X] == corpus
    assert all(len({*X.documents} & {*Y.documents}) == 0 for (X, _), (Y, _) in pairwise(found))


@pytest.mark.parametrize(
    ("versions", "message"),
    [({"tcp://a": None}, "The worker tcp://a has no maxmargin, but needs"), ({}, "a cluster with workers")],
)
def test_workers_without_the_library_and_clusters_without_workers(client, monkeypatch, versions, message):
    monkeypatch.setattr(client, "run", lambda function, on_error: versions)
    with pytest.raises(ValueError, match=message):
        ChainCRF().fit(X, TAGS, client=client)


def test_a_worker_that_has_just_died_is_left_out(client, monkeypatch):
    from maxmargin.estimators.foundation import clustered

    answers = {"tcp://dead:1": OSError("closed"), "tcp://alive:1": clustered.__version__}
    monkeypatch.setattr(client, "run", lambda function, on_error: answers)
    assert clustered.check_client(client) is client


def test_workers_of_another_version(client, monkeypatch):
    from maxmargin.estimators.foundation import clustered

    monkeypatch.setattr(clustered, "__version__", "0.0.1")
    with pytest.raises(ValueError, match=r"needs maxmargin 0\.0\.1, as this process has"):
        ChainCRF().fit(X, TAGS, client=client)


def test_commands_train_on_clusters(client, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from maxmargin.cli import app

    monkeypatch.chdir(tmp_path)
    write_file(tmp_path / "train.txt", WORDS, TAGS)
    train = ["train", "train.txt", "--max-passes", "3"]
    result = CliRunner().invoke(app, [*train, "--scheduler", client.scheduler.address])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "train.model").exists()
    assert "There is no scheduler" in CliRunner().invoke(app, [*train, "--scheduler", "nowhere:1"]).output
    assert "name one of them" in CliRunner().invoke(app, [*train, "--scheduler", "nowhere:1", "--local", "2"]).output
