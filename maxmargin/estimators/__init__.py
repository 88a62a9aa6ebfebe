"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.chain_crf import ChainCRF
from maxmargin.estimators.chain_svm import ChainSVM
from maxmargin.estimators.graph_cut import GraphCutSVM, graph_cut
from maxmargin.estimators.path import Path, regularization_path

__all__ = ["ChainCRF", "ChainSVM", "GraphCutSVM", "Path", "graph_cut", "regularization_path"]
