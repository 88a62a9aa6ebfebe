"""Arguments are declared in one place, and estimators are made of few classes."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import maxmargin
from maxmargin import CandidateSVM, MatchingSVM, StructuredSVM, Tagger
from maxmargin.checks import check_positive
from maxmargin.crfsuite import CRF
from maxmargin.encode.candidate_encoder import CandidateEncoder
from maxmargin.estimators import all_estimators
from maxmargin.estimators.foundation.fit_options import estimator
from maxmargin.parameters import arguments, parameter
from tests.small import candidates

MOST_CLASSES = 8
ESTIMATORS = {**all_estimators(), "Tagger": Tagger, "crfsuite.CRF": CRF}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_made_of_few_classes(name):
    own = [cls for cls in ESTIMATORS[name].__mro__ if cls is object or cls not in BaseEstimator.__mro__[1:]]
    assert len(own) <= MOST_CLASSES


class ShiftingEncoder(CandidateEncoder):
    @classmethod
    def learn(cls, X, y, *, shift, **options):
        return super().learn([np.asarray(x) + shift for x in X], y, **options)


@estimator
class ShiftingSVM(CandidateSVM):
    """A model with one argument more.

    Attributes
    ----------
    coef_ : (F,) array
        The weights.
    """

    shift: float = parameter("float", "What is added to all features.", default=1.0, check=check_positive)
    C: float = 2.0

    _encoder_type = ShiftingEncoder


def test_a_new_argument_is_written_once(tmp_path, interpreted_loops):
    X, y, *_ = candidates(np.random.default_rng(0))
    model = ShiftingSVM(shift=3.0, random_state=0)
    assert model.get_params()["shift"] == 3.0
    assert repr(model) == "ShiftingSVM(random_state=0, shift=3.0)"
    assert inspect.signature(ShiftingSVM).parameters["shift"].default == 1.0
    assert "shift : float, default=1.0\n    What is added to all features.\n" in ShiftingSVM.__doc__
    assert "C : float, default=2.0\n    Inverse strength" in ShiftingSVM.__doc__
    assert clone(model).shift == 3.0
    model.fit(X, y).save(tmp_path / "shifting.model")
    again = maxmargin.load(tmp_path / "shifting.model")
    assert (again.shift, again.C) == (3.0, 2.0)
    assert (again.predict(X) == model.predict(X)).all()
    shifted = CandidateSVM(C=2.0, random_state=0).fit([np.asarray(x) + 3.0 for x in X], y)
    assert np.array_equal(model.coef_, shifted.coef_)  # the encoder got it
    with pytest.raises(ValueError, match="shift must be a positive number"):
        ShiftingSVM(shift=-1.0).fit(X, y)


def test_declared_arguments_are_read_and_not_inherited_from():
    @arguments
    class Sizes:
        size: int = parameter("int", "How large.", default=3)

    @arguments
    class LargeSizes(Sizes):
        size: int = 30

    @estimator
    class Sized(LargeSizes, CandidateSVM):
        """A model.

        Attributes
        ----------
        coef_ : (F,) array
        """

    assert Sized.__bases__ == (CandidateSVM,)
    assert Sized().size == 30
    assert "size : int, default=30\n    How large.\n" in Sized.__doc__


def test_what_a_model_cannot_do_is_not_there():
    for cls, name in ((MatchingSVM, "predict_marginals"), (StructuredSVM, "decision_function")):
        assert not hasattr(cls, name)
        with pytest.raises(AttributeError, match=f"{cls.__name__} has no {name}: "):
            getattr(cls, name)
