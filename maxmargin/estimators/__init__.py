"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.chain import ChainSVM
from maxmargin.estimators.path import Path, regularization_path

__all__ = ["ChainSVM", "Path", "regularization_path"]
