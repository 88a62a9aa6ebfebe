"""Lists of names that are made of the training data: cross-fit, or warned of."""

import warnings

import pytest
from sklearn.pipeline import make_pipeline

from maxmargin import ChainSVM, Shards, Tagger
from maxmargin.metrics import entity_recall
from maxmargin.tagger.training_data import describe_shards, prepare_portions
from maxmargin.text import WindowFeatures, find_entities, read_document
from maxmargin.text.token_features.gazetteers import Gazetteers

N = 40
X = [["Mr", f"Name{i}", "met", "Bo", "Li" if i % 2 else "Xu"] for i in range(N)]  # one name each, and two that return
Y = [["O", "B-PER", "O", "B-PER", "I-PER"]] * N
NAMES = [*(f"name{i}" for i in range(N)), "bo li", "Bo Xu"]


def found(rows, title):
    """The words of each sentence that are in a list."""
    return [[t for t, row in enumerate(tokens) if any(name.startswith(f"{title}=") for name in row)] for tokens in rows]


def test_a_list_of_the_training_entities_knows_what_other_parts_have():
    features = WindowFeatures(gazetteers={"PER": NAMES, "city": ["Name7", "Rome"]})
    rows = features.fit_transform(X, Y)
    assert features.cross_fit_ == ["PER"]
    assert found(rows, "PER") == found(rows[:], "PER") == [[3, 4]] * N
    assert found([rows[7]], "city") == [[1]]  # a list that is made of something else
    assert found(features.transform(X), "PER") == [[1, 3, 4]] * N
    returned = features.fit_transform([*X[:-1], X[0]], Y)
    assert found([returned[0], returned[N - 1], returned[1]], "PER") == [[1, 3, 4], [1, 3, 4], [3, 4]]
    assert found([features.fit_transform([X[0], *X[:-1]], Y)[0]], "PER") == [[3, 4]]  # in one of ten parts only


@pytest.mark.parametrize("names", [[*NAMES, *(f"other{i}" for i in range(N))], NAMES[-2:]])
def test_other_lists_stay_as_they_are(names):
    features = WindowFeatures(gazetteers={"PER": names})
    assert [*features.fit_transform(X, Y)] == [*features.transform(X)]
    assert features.cross_fit_ == []
    assert [*features.fit_transform(X)] == [*features.fit_transform(X, [["NN"] * 5] * N)] == [*features.transform(X)]


def test_pipelines_and_taggers_train_on_it():
    features = WindowFeatures(gazetteers={"PER": NAMES}, window=0)
    pipeline = make_pipeline(features, ChainSVM(max_passes=1, random_state=0)).fit(X, Y)
    tagger = Tagger(features=features, model=ChainSVM(max_passes=1, random_state=0)).fit(X[::-1], Y)
    for names in (pipeline[-1].feature_names_in_, tagger.model_.feature_names_in_):
        assert "PER=inside" in names  # of Bo Li
    assert tagger.features_.cross_fit_ == ["PER"]


def test_lists_are_judged_by_all_shards():
    def fit(*data, **held_out):
        model = ChainSVM(max_passes=1, random_state=0)
        return Tagger(features=WindowFeatures(gazetteers=lists, window=0), model=model).fit(*data, **held_out)

    lists, shards = {"PER": NAMES, "city": ["Name7", "Rome"]}, Shards.cut(X[::-1], Y, n_shards=4)
    whole, parted = fit(X[::-1], Y), fit(shards)
    assert parted.features_.cross_fit_ == ["PER"]
    assert parted.model_.feature_names_in_.tolist() == whole.model_.feature_names_in_.tolist()
    chosen, *known = prepare_portions(Tagger(features=WindowFeatures(gazetteers=lists)), Y, X[::-1], "shards")
    described = describe_shards(chosen.features, shards, *known)
    assert [found(shard.X, "PER") for shard in described] == [[[3, 4]] * (N // 4)] * 4
    lists = {"PER": [*NAMES, *(f"other{i}" for i in range(N))]}
    with pytest.warns(UserWarning, match="The list 'PER' has 100% of the entities to train on"):
        fit(Shards.cut(X, Y, n_shards=4), X_dev=[["Mr", f"Nobody{i}", "met"] for i in range(N)], y_dev=[Y[0][:3]] * N)


def test_lists_that_hold_more_are_warned_of():
    mixed = WindowFeatures(gazetteers={"PER": [*NAMES, *(f"other{i}" for i in range(N))]})
    dev = [["Mr", f"Nobody{i}", "met"] for i in range(N)]
    tagger = Tagger(features=mixed, model=ChainSVM(max_passes=1, random_state=0))
    tags = [["O", "B-PER", "O"]] * N
    with pytest.warns(
        UserWarning, match="The list 'PER' has 100% of the entities to train on, but 0% of those held out"
    ):
        tagger.fit(X, Y, X_dev=dev, y_dev=tags)
    with pytest.warns(UserWarning, match="The list 'PER'"):
        tagger.tune(X, Y, dev, tags, Cs=[1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        tagger.fit(X, Y, X_dev=X, y_dev=Y)
        tagger.set_params(features=WindowFeatures(gazetteers={"PER": NAMES})).fit(X, Y, X_dev=dev, y_dev=tags)


@pytest.mark.long
def test_a_list_of_the_training_entities_does_no_harm(data_folder):
    """On real data, where such a list leaves next to nothing of the recall if it is not cross-fit."""
    train, dev = (read_document(data_folder / "wnut17" / name) for name in ("wnut17train.conll", "emerging.dev.conll"))
    X, y = train.X[:800], train.y[:800]
    names = [" ".join(x[e.start : e.end]) for x, found in zip(X, find_entities(y), strict=True) for e in found]

    def recall(features, rows):
        model = ChainSVM(only_observed=True, max_passes=5, random_state=0).fit(rows, y)
        return entity_recall(dev.y, model.predict(features.transform(dev.X)))

    plain, listed = WindowFeatures(), WindowFeatures(gazetteers={"name": names})
    alone, crossed = recall(plain, plain.transform(X)), recall(listed, listed.fit_transform(X, y))
    leaked = recall(listed, listed.transform(X))
    assert leaked < 0.5 * alone
    assert crossed > 0.7 * alone


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["In", "the", "U.S.", ",", "we"], ["U.S."]),
        (["In", "the", "U", ".", "S", ".", "we"], ["U . S"]),
        (["(", "Sao", "Paulo", ")"], ["Sao Paulo"]),
        (["#SãoPaulo"], ["#SãoPaulo"]),
        (["Sao", "Pauli"], []),
        (["COCA", "-", "COLA", "-", "US"], ["COCA - COLA", "US"]),
    ],
)
def test_names_that_are_spelled_loosely(words, found):
    names = Gazetteers({"any": ["U.S.", "São Paulo", "Coca-Cola", "!"]}, loose=True)
    assert [" ".join(words[start:end]) for start, end, _ in names.find(words)] == found


def test_loose_names_are_features():
    rows = WindowFeatures(gazetteers={"city": ["São Paulo"]}, loose_names=True).transform([["SAO", "Paulo", "!"]])[0]
    assert [[name for name in row if name.startswith("city")] for row in rows] == [["city=begin"], ["city=inside"], []]
