"""The tagger: features, model and scheme in one."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import maxmargin
from maxmargin import ChainCRF, ChainSVM, GraphSVM, Status, Tagger
from maxmargin.text import Layout, WindowFeatures, convert_tags
from tests.sentences import tagged_sentences

SENTENCES = tagged_sentences()
X = [[token[:2] for token in sentence] for sentence in SENTENCES]
Y = [[token[2] for token in sentence] for sentence in SENTENCES]


@pytest.fixture(scope="module")
def fitted():
    return Tagger(layout=Layout(x=(0, 1), y=2, width=3)).fit(X, Y)


def test_defaults(fitted):
    assert fitted.predict(X) == Y
    assert fitted.score(X, Y) == 1
    assert fitted.scheme_ == "IOB2"
    assert fitted.status_ is Status.OPTIMAL
    assert fitted.certificate_.gap >= 0
    assert fitted.model is None
    marginals = fitted.predict_marginals(X[:2])
    np.testing.assert_allclose(marginals[0].sum(axis=1), 1)
    best, scores = fitted.predict_topk(X[:1], 2)[0]
    assert best[0] == Y[0]
    assert scores[0] >= scores[1]


def test_predictions_keep_to_the_scheme(fitted):
    rng = np.random.default_rng(0)
    words = sorted({word for sentence in X for word in sentence})
    odd = [[words[k] for k in rng.integers(len(words), size=6)] for _ in range(50)]
    maxmargin.text.check_tags(fitted.predict(odd), "IOB2")


def test_other_schemes():
    tagger = Tagger(scheme="bilou", features=WindowFeatures(window=1)).fit(X, Y)
    assert tagger.predict(X) == convert_tags(Y, "BILOU")
    assert tagger.score(X, Y) == 1  # of the same entities
    broken = [["I-PER" if tag == "B-PER" else tag for tag in tags] for tags in Y]
    with pytest.warns(UserWarning, match=r"16 of 142 tags are wrong in IOB2(.|\n)*y\[0\] begins with 'I-PER'"):
        assert Tagger(scheme="iob2").fit(X, broken).predict(X) == Y
    assert Tagger().fit(X, [[pos for _, pos in sentence] for sentence in X]).scheme_ is None
    assert Tagger(scheme=None).fit(X, Y).model_.constraints is None
    with pytest.raises(ValueError, match="scheme must be one of"):
        Tagger(scheme="abc").fit(X, Y)


def test_held_out_sentences_are_scored_by_the_f1_of_entities():
    tagger = Tagger(model=ChainSVM(random_state=0)).fit(X[:12], Y[:12], X_dev=X[12:], y_dev=Y[12:])
    assert max(tagger.trace_.dev_score) == tagger.score(X[12:], Y[12:])
    with pytest.raises(ValueError, match="X_dev and y_dev must be given together"):
        Tagger().fit(X, Y, y_dev=Y)


def test_tuning_keeps_the_best():
    seen = []
    tagger = Tagger(model=ChainCRF(tol=0.01))
    path = tagger.tune(X[:12], Y[:12], X[12:], Y[12:], Cs=[1e-6, 1.0], callback=lambda path: seen.append(len(path)))
    assert seen == [1, 2]
    assert path.best_C == pytest.approx(1)
    assert pytest.approx(1) == tagger.model_.C
    assert tagger.score(X[12:], Y[12:]) == path.scores.max()
    alone = Tagger(model=ChainCRF(tol=1e-6, C=1.0)).fit(X[:12], Y[:12])
    assert path.primal[1] == pytest.approx(alone.certificate_.primal, rel=0.01)
    assert tagger.certificate_.primal == path.primal[1]
    assert path.is_best_at_end


def test_tuning_goes_on_until_scores_stop_rising(interpreted_loops):
    scores = iter([1, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.7, 0.9])  # first that of the truth, which is checked
    model = ChainCRF(tol=0.5, scoring=lambda y_true, y_pred: next(scores))
    path = Tagger(model=model).tune(X[:4], Y[:4], X[4:6], Y[4:6])
    assert path.Cs == pytest.approx([0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300])
    assert path.best_C == pytest.approx(30)
    assert not path.is_best_at_end
    assert not path.interrupted


def test_it_is_cloned_pickled_and_saved(fitted, tmp_path):
    assert clone(fitted).get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
    assert pickle.loads(pickle.dumps(fitted)).predict(X) == Y
    fitted.save(tmp_path / "a.model")
    again = maxmargin.load(tmp_path / "a.model")
    assert again.predict(X) == Y
    assert (again.scheme_, again.layout) == (fitted.scheme_, fitted.layout)
    assert str(again.trace_) == str(fitted.trace_)
    Tagger(scheme="bilou").save(tmp_path / "b.model")
    assert maxmargin.load(tmp_path / "b.model").scheme == "bilou"
    svm = Tagger(model=ChainSVM(random_state=0), features=WindowFeatures(gazetteers={"city": ["Rome"]})).fit(X, Y)
    svm.save(tmp_path / "c.model")
    assert maxmargin.load(tmp_path / "c.model").predict(X) == svm.predict(X)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"model": "crf"}, "model must be a ChainCRF, .* or SegmentSVM, not 'crf'"),
        ({"model": GraphSVM()}, r"model must be a ChainCRF, .* or SegmentSVM, not GraphSVM\(\)"),
        ({"features": "window"}, r"features must be a transformer, such as WindowFeatures\(\), not 'window'"),
    ],
)
def test_parts_of_other_kinds_are_named(arguments, problem):
    with pytest.raises(TypeError, match=problem):
        Tagger(**arguments).fit(X, Y)


@pytest.mark.parametrize("Cs", [1.0, [], [1.0, 0.0], [np.nan]])
def test_strengths_to_try_are_named(Cs):
    with pytest.raises(ValueError, match="Cs must be a list of positive numbers"):
        Tagger().tune(X, Y, X, Y, Cs=Cs)


def test_sentences_that_are_not_there(fitted):
    assert fitted.predict([]) == []
    assert fitted.predict([[]]) == [[]]
    assert fitted.predict([[], X[0], []]) == [[], *fitted.predict(X[:1]), []]
    assert fitted.predict_marginals([[], X[0]])[0].shape == (0, len(fitted.classes_))
    with pytest.raises(ValueError, match="X must hold at least one sequence, but it is empty"):
        fitted.fit([], [])
    with pytest.raises(ValueError, match=r"X\[0\] is empty: every sequence needs at least one item"):
        fitted.fit([[], X[0]], [[], Y[0]])


def test_hashed_names(interpreted_loops):
    tagger = Tagger(model=ChainCRF(n_hashed=1024, max_passes=20)).fit(X, Y)
    assert tagger.predict(X) == tagger.predict(iter(X)) == Y


def test_parameters_of_a_model_that_is_not_given(fitted):
    search = GridSearchCV(Tagger(), {"model__C": [0.01, 10.0], "features__window": [1]}, cv=2, error_score="raise")
    best = search.fit(X + X, Y + Y).best_estimator_
    assert best.model.C == best.model_.C
    assert best.model.only_observed is True
    assert best.features.window == 1
    assert clone(fitted).set_params(model__C=2.0).model.C == 2.0
    assert Tagger().set_params(model=None, scheme=None).model is None
