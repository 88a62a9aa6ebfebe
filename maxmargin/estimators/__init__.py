"""The estimators: scikit-learn shells around encoders, solvers and inference."""

from maxmargin.estimators.boxes import BoxSVM
from maxmargin.estimators.candidates import CandidateCRF, CandidateSVM
from maxmargin.estimators.chain_crf import ChainCRF
from maxmargin.estimators.chain_svm import ChainSVM
from maxmargin.estimators.custom import StructuredSVM
from maxmargin.estimators.deformable import DeformableSVM
from maxmargin.estimators.graph_cut import GraphCutSVM, graph_cut
from maxmargin.estimators.matching import MatchingSVM
from maxmargin.estimators.multiclass import MulticlassSVM
from maxmargin.estimators.path import Path, regularization_path
from maxmargin.estimators.tree import TreeCRF, TreeSVM

__all__ = [
    "BoxSVM",
    "CandidateCRF",
    "CandidateSVM",
    "ChainCRF",
    "ChainSVM",
    "DeformableSVM",
    "GraphCutSVM",
    "MatchingSVM",
    "MulticlassSVM",
    "Path",
    "StructuredSVM",
    "TreeCRF",
    "TreeSVM",
    "graph_cut",
    "regularization_path",
]
