"""Structured losses and inference for networks in PyTorch, by the compiled oracles of the library.

Install the extra for it: ``pip install "maxmargin[torch]"``. Nothing else in the package imports PyTorch.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('maxmargin.torch needs PyTorch: pip install "maxmargin[torch]"') from error

from maxmargin.torch.base_head import Head
from maxmargin.torch.choice_potentials import Candidates, GraphCuts, Matchings
from maxmargin.torch.functions import (
    crf_loss,
    decode,
    hinge_loss,
    log_partition,
    marginals,
    partial_loss,
    score,
    smooth_hinge_loss,
    structured_loss,
    topk,
)
from maxmargin.torch.heads import CandidateHead, ChainHead, DependencyHead, GraphCutHead, MatchingHead, TreeHead
from maxmargin.torch.label_potentials import Chains, Dependencies, Trees
from maxmargin.torch.network_training import StochasticSubgradient, Trained
from maxmargin.torch.potentials import Parts, Potentials
from maxmargin.torch.prox_linear import ProxLinear

__all__ = [
    "CandidateHead",
    "Candidates",
    "ChainHead",
    "Chains",
    "Dependencies",
    "DependencyHead",
    "GraphCutHead",
    "GraphCuts",
    "Head",
    "MatchingHead",
    "Matchings",
    "Parts",
    "Potentials",
    "ProxLinear",
    "StochasticSubgradient",
    "Trained",
    "TreeHead",
    "Trees",
    "crf_loss",
    "decode",
    "hinge_loss",
    "log_partition",
    "marginals",
    "partial_loss",
    "score",
    "smooth_hinge_loss",
    "structured_loss",
    "topk",
]
