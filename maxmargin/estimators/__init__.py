"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.chain import ChainSVM

__all__ = ["ChainSVM"]
