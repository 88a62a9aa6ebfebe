"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.candidates import CandidateCRF, CandidateSVM
from maxmargin.estimators.chain_crf import ChainCRF
from maxmargin.estimators.chain_svm import ChainSVM
from maxmargin.estimators.matching import MatchingSVM
from maxmargin.estimators.multiclass import MulticlassSVM
from maxmargin.estimators.path import Path, regularization_path

__all__ = [
    "CandidateCRF",
    "CandidateSVM",
    "ChainCRF",
    "ChainSVM",
    "MatchingSVM",
    "MulticlassSVM",
    "Path",
    "regularization_path",
]
