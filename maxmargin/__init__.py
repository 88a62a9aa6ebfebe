"""Structured prediction: structural SVMs and conditional random fields with certified solvers."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

# The public names, and where they are defined; estimators and solvers are registered here, by a line each.
# Loaded on first use: scikit-learn alone takes longer to import than everything else here.
_PUBLIC = {
    "Auto": "maxmargin.solvers.automatic.auto",
    "BCFW": "maxmargin.solvers.block_coordinate.bcfw",
    "BoxSVM": "maxmargin.estimators.box_models",
    "CandidateCRF": "maxmargin.estimators.candidate_models",
    "CandidateSVM": "maxmargin.estimators.candidate_models",
    "Casimir": "maxmargin.solvers.stochastic.casimir",
    "ChainCRF": "maxmargin.estimators.chain_models",
    "ChainSVM": "maxmargin.estimators.chain_models",
    "CustomProblem": "maxmargin.structures.derived.custom_problem",
    "DeformableSVM": "maxmargin.estimators.pose_models",
    "ExcessiveGap": "maxmargin.solvers.exponentiated.excessive_gap",
    "ExponentiatedGradient": "maxmargin.solvers.exponentiated.exponentiated_gradient",
    "Extragradient": "maxmargin.solvers.exponentiated.extragradient",
    "FrankWolfe": "maxmargin.solvers.batch.frank_wolfe",
    "GDMM": "maxmargin.solvers.relaxed.gdmm",
    "Graph": "maxmargin.encode.graph_encoder",
    "graph_cut": "maxmargin.estimators.cut_models",
    "GraphCutSVM": "maxmargin.estimators.cut_models",
    "GraphCRF": "maxmargin.estimators.graph_models",
    "GraphSVM": "maxmargin.estimators.graph_models",
    "IDAL": "maxmargin.solvers.relaxed.idal",
    "KernelChainCRF": "maxmargin.estimators.kernel_models",
    "KernelChainSVM": "maxmargin.estimators.kernel_models",
    "LBFGS": "maxmargin.solvers.batch.lbfgs",
    "load": "maxmargin.persist",
    "Loss": "maxmargin.losses",
    "MatchingSVM": "maxmargin.estimators.matching_models",
    "MulticlassSVM": "maxmargin.estimators.class_models",
    "MultiLabelCRF": "maxmargin.estimators.multilabel_models",
    "MultiLabelSVM": "maxmargin.estimators.multilabel_models",
    "NSlack": "maxmargin.solvers.batch.n_slack",
    "OneSlack": "maxmargin.solvers.batch.one_slack",
    "Path": "maxmargin.paths.solutions",
    "Perceptron": "maxmargin.solvers.stochastic.perceptron",
    "Prediction": "maxmargin.inference",
    "ProblemModel": "maxmargin.estimators.custom_models",
    "register": "maxmargin.persist",
    "regularization_path": "maxmargin.paths.regularization",
    "RelaxedLoss": "maxmargin.losses",
    "SquaredLoss": "maxmargin.losses",
    "save": "maxmargin.persist",
    "SGD": "maxmargin.solvers.stochastic.sgd",
    "SoftBCFW": "maxmargin.solvers.relaxed.soft",
    "SoftSDCA": "maxmargin.solvers.relaxed.soft",
    "Status": "maxmargin.trace",
    "StructuredSVM": "maxmargin.estimators.custom_models",
    "SVRG": "maxmargin.solvers.stochastic.svrg",
    "Tagger": "maxmargin.tagger",
    "Trace": "maxmargin.trace",
    "Tree": "maxmargin.encode.tree_encoder",
    "TreeCRF": "maxmargin.estimators.tree_models",
    "TreeSVM": "maxmargin.estimators.tree_models",
}

_PARTS = ("crfsuite", "datasets", "inspection", "metrics", "solvers", "testing", "text", "torch", "vision")

__all__ = [*_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _PARTS:  # so that `import maxmargin` is enough
        return importlib.import_module(f"maxmargin.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *_PARTS]
