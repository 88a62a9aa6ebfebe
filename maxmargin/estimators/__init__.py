"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.boxes import BoxSVM
from maxmargin.estimators.chain_crf import ChainCRF
from maxmargin.estimators.chain_svm import ChainSVM
from maxmargin.estimators.custom import StructuredSVM
from maxmargin.estimators.path import Path, regularization_path

__all__ = ["BoxSVM", "ChainCRF", "ChainSVM", "Path", "StructuredSVM", "regularization_path"]
