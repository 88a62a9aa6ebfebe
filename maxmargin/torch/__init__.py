"""Structured losses and inference for networks in PyTorch, by the compiled oracles of the library.

Install the extra for it: ``pip install "maxmargin[torch]"``. Nothing else in the package imports PyTorch.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('maxmargin.torch needs PyTorch: pip install "maxmargin[torch]"') from error

from maxmargin.torch.base_head import Head
from maxmargin.torch.choice_potentials import Candidates, GraphCuts, Parts
from maxmargin.torch.functions import decode, log_partition, marginals, score, topk
from maxmargin.torch.heads import CandidateHead, ChainHead, GraphCutHead, TreeHead
from maxmargin.torch.label_potentials import Chains, Trees
from maxmargin.torch.linked.link_heads import AlignmentHead, MatchingHead
from maxmargin.torch.linked.link_potentials import Alignments, Matchings
from maxmargin.torch.measures.divergences import cross_entropy, entropy, kl_divergence
from maxmargin.torch.measures.sampling import sample
from maxmargin.torch.network_training import StochasticSubgradient, Trained
from maxmargin.torch.parses.parse_heads import DependencyHead, SpanHead
from maxmargin.torch.parses.parse_potentials import Dependencies, SpanTrees
from maxmargin.torch.parses.segment_heads import SegmentHead
from maxmargin.torch.parses.segment_potentials import Segments
from maxmargin.torch.potentials import Potentials
from maxmargin.torch.prox_linear import ProxLinear
from maxmargin.torch.supervised.full_losses import crf_loss, hinge_loss, smooth_hinge_loss, structured_loss
from maxmargin.torch.supervised.partial_losses import partial_loss

__all__ = [
    "AlignmentHead",
    "Alignments",
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
    "SegmentHead",
    "Segments",
    "SpanHead",
    "SpanTrees",
    "StochasticSubgradient",
    "Trained",
    "TreeHead",
    "Trees",
    "crf_loss",
    "cross_entropy",
    "decode",
    "entropy",
    "hinge_loss",
    "kl_divergence",
    "log_partition",
    "marginals",
    "partial_loss",
    "sample",
    "score",
    "smooth_hinge_loss",
    "structured_loss",
    "topk",
]
