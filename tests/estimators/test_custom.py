import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from maxmargin import BCFW, Status, StructuredSVM, regularization_path
from tests.toy import Labels, LabelsByArgmax, label_data


@pytest.fixture(scope="module")
def svm():
    return StructuredSVM(LabelsByArgmax(), C=10.0, random_state=0).fit(*label_data(20))


def test_learns_and_predicts(svm):
    X, y = label_data(20)
    assert svm.status_ is Status.OPTIMAL
    assert svm.coef_.shape == (9,)
    assert np.mean(np.array(svm.predict(X)) == y) > 0.9
    assert svm.score(X, y) == -np.mean([Labels().cost(a, b) for a, b in zip(y, svm.predict(X), strict=True)])
    outputs, scores = svm.predict_topk(X[:1], 3)[0]
    assert np.array_equal(outputs[0], svm.predict(X[:1])[0])
    assert np.allclose(scores, [svm.coef_ @ Labels().features(X[0], y) for y in outputs])
    assert len(svm.predict_topk(X[:1], 30)[0][0]) == 8


def test_the_k_best_need_an_oracle():
    class Sign:
        def features(self, x, y):
            return [x * y]

        def cost(self, true, y):
            return float(true != y)

        def argmax(self, x, w, y_true=None):
            return max((-1, 1), key=lambda y: w[0] * x * y + (y_true is not None and y != y_true))

    svm = StructuredSVM(Sign(), random_state=0).fit([1.0, -2.0], [1, -1])
    with pytest.raises(TypeError, match="predict_topk needs the K best outputs: a method k_best or outputs"):
        svm.predict_topk([1.0], 2)


def test_a_warm_start_goes_on(svm):
    X, y = label_data(20)
    model = StructuredSVM(Labels(), C=10.0, random_state=0, warm_start=True, solver=BCFW(steps="pairwise")).fit(X, y)
    assert model.fit(X, y).trace_.passes[-1] <= 1
    assert model.fit(X.copy(), y).trace_.passes[-1] > 1
    assert model.set_params(model=Labels()).fit(X, y).trace_.passes[-1] > 1


def test_model_selection_and_paths():
    X, y = label_data(20)
    y_objects = np.empty(len(y), object)
    y_objects[:] = y
    assert len(cross_val_score(StructuredSVM(Labels(), tol=0.1, random_state=0), X, y_objects, cv=2)) == 2
    path = regularization_path(StructuredSVM(Labels()), X, y, method="grid", lambdas=[1.0, 0.1], eps=0.1)
    assert len(path.model_at(0.1).predict(X)) == 20


def test_bad_input(svm):
    X, y = label_data(4)
    with pytest.raises(TypeError, match="y must be a list with one output per example"):
        StructuredSVM(Labels()).fit(X, None)
    with pytest.raises(ValueError, match="X has 4 examples, but y has 3"):
        svm.score(X, y[:3])
    with pytest.raises(ValueError, match=r"features\(X\[0\], .* must be 9 finite numbers"):
        StructuredSVM(Labels(), tol=0.1).fit(X, y).predict(np.zeros((2, 5)))
