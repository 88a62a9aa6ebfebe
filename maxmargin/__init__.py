"""Structured prediction: structural SVMs and conditional random fields with certified solvers."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

# Loaded on first use: scikit-learn alone takes longer to import than everything else here.
_PUBLIC = {
    "Auto": "maxmargin.solvers",
    "BCFW": "maxmargin.solvers",
    "BoxSVM": "maxmargin.estimators",
    "CandidateCRF": "maxmargin.estimators",
    "CandidateSVM": "maxmargin.estimators",
    "Casimir": "maxmargin.solvers",
    "ChainCRF": "maxmargin.estimators",
    "ChainSVM": "maxmargin.estimators",
    "CustomProblem": "maxmargin.structures.custom",
    "DeformableSVM": "maxmargin.estimators",
    "FrankWolfe": "maxmargin.solvers",
    "graph_cut": "maxmargin.estimators",
    "GraphCutSVM": "maxmargin.estimators",
    "LBFGS": "maxmargin.solvers",
    "Loss": "maxmargin.losses",
    "MatchingSVM": "maxmargin.estimators",
    "MulticlassSVM": "maxmargin.estimators",
    "NSlack": "maxmargin.solvers",
    "OneSlack": "maxmargin.solvers",
    "Path": "maxmargin.estimators",
    "Perceptron": "maxmargin.solvers",
    "regularization_path": "maxmargin.estimators",
    "SGD": "maxmargin.solvers",
    "Status": "maxmargin.trace",
    "StructuredSVM": "maxmargin.estimators",
    "SVRG": "maxmargin.solvers",
    "Trace": "maxmargin.trace",
    "Tree": "maxmargin.encode.tree",
    "TreeCRF": "maxmargin.estimators",
    "TreeSVM": "maxmargin.estimators",
}

__all__ = [*_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
