"""Structured prediction: structural SVMs and conditional random fields with certified solvers."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

# The public names, and where they are defined; estimators and solvers are registered here, by a line each.
# Loaded on first use: scikit-learn alone takes longer to import than everything else here.
_PUBLIC = {
    "Auto": "maxmargin.solvers.auto",
    "BCFW": "maxmargin.solvers.bcfw",
    "BoxSVM": "maxmargin.estimators.boxes",
    "CandidateCRF": "maxmargin.estimators.candidates",
    "CandidateSVM": "maxmargin.estimators.candidates",
    "Casimir": "maxmargin.solvers.casimir",
    "ChainCRF": "maxmargin.estimators.chain",
    "ChainSVM": "maxmargin.estimators.chain",
    "CustomProblem": "maxmargin.structures.custom",
    "DeformableSVM": "maxmargin.estimators.deformable",
    "ExcessiveGap": "maxmargin.solvers.excessive_gap",
    "ExponentiatedGradient": "maxmargin.solvers.exponentiated_gradient",
    "Extragradient": "maxmargin.solvers.extragradient",
    "FrankWolfe": "maxmargin.solvers.frank_wolfe",
    "GDMM": "maxmargin.solvers.gdmm",
    "Graph": "maxmargin.encode.graph",
    "graph_cut": "maxmargin.estimators.graph_cut",
    "GraphCutSVM": "maxmargin.estimators.graph_cut",
    "GraphCRF": "maxmargin.estimators.graph",
    "GraphSVM": "maxmargin.estimators.graph",
    "IDAL": "maxmargin.solvers.idal",
    "KernelChainCRF": "maxmargin.estimators.kernel",
    "KernelChainSVM": "maxmargin.estimators.kernel",
    "LBFGS": "maxmargin.solvers.lbfgs",
    "load": "maxmargin.persist",
    "Loss": "maxmargin.losses",
    "MatchingSVM": "maxmargin.estimators.matching",
    "MulticlassSVM": "maxmargin.estimators.multiclass",
    "MultiLabelCRF": "maxmargin.estimators.multilabel",
    "MultiLabelSVM": "maxmargin.estimators.multilabel",
    "NSlack": "maxmargin.solvers.n_slack",
    "OneSlack": "maxmargin.solvers.one_slack",
    "Path": "maxmargin.solutions",
    "Perceptron": "maxmargin.solvers.perceptron",
    "Prediction": "maxmargin.inference",
    "ProblemModel": "maxmargin.estimators.custom",
    "register": "maxmargin.persist",
    "regularization_path": "maxmargin.path",
    "RelaxedLoss": "maxmargin.losses",
    "SquaredLoss": "maxmargin.losses",
    "save": "maxmargin.persist",
    "SGD": "maxmargin.solvers.sgd",
    "SoftBCFW": "maxmargin.solvers.soft",
    "SoftSDCA": "maxmargin.solvers.soft",
    "Status": "maxmargin.trace",
    "StructuredSVM": "maxmargin.estimators.custom",
    "SVRG": "maxmargin.solvers.svrg",
    "Tagger": "maxmargin.tagger",
    "Trace": "maxmargin.trace",
    "Tree": "maxmargin.encode.tree",
    "TreeCRF": "maxmargin.estimators.tree",
    "TreeSVM": "maxmargin.estimators.tree",
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
