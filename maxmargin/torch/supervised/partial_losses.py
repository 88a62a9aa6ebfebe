"""Losses of potentials, given what is known of outputs in part."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maxmargin.checks import check_choice
from maxmargin.encode.sentences.span_trees import exclude_spans, signs_of_parts
from maxmargin.losses import BaseLoss
from maxmargin.torch.autograd import attain
from maxmargin.torch.choice_potentials import Candidates
from maxmargin.torch.label_potentials import LabelPotentials
from maxmargin.torch.linked.link_potentials import Alignments, Matchings
from maxmargin.torch.parses.parse_potentials import Dependencies, SpanTrees
from maxmargin.torch.parses.segment_potentials import Segments
from maxmargin.torch.potentials import Numbers, Potentials
from maxmargin.torch.supervised.full_losses import REDUCTIONS, reduce_losses, split_square
from maxmargin.torch.untraced import untraced


@untraced
def partial_loss(
    potentials: Potentials,
    allowed: Numbers,
    loss: BaseLoss | str = "log",
    *,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """The loss of outputs of which only part is known: a maximum over all outputs less that over those allowed.

    With "log" these are log-partition functions, so that it is minus the logarithm of the probability of what is
    allowed; with "hinge" max_y {score(y) + cost(y)} less the best score of an output that is allowed, where each label,
    row, arc or span that is not costs 1, and links cost as in `Alignments`. Where all but one are ruled out everywhere,
    it is `structured_loss`.

    Parameters
    ----------
    potentials
        Chains, Trees, Candidates, Segments, Dependencies, SpanTrees, Alignments or Matchings.
    allowed
        Booleans in the shape of the emissions, of the potentials of nodes or of the scores: whether a label, a
        candidate, or an arc to a word agrees with what is known; beyond lengths they may be anything. Of segments they
        are (B, T, 2, L), or packed: whether a row may begin a segment of this label, or go on with it.

        Of trees of spans they are (B, n, n + 1, L + 1): whether a span may have each label and, last, whether a tree
        may be without it, as it must have the span otherwise. Of links they are (B, n, m + 1): whether a left node may
        have a link to each right one and, last, whether it may have none. Of what is warped they are (B, n, m): the
        links that there may be, of which those that are missing cost nothing.
    loss, reduction, n_jobs
        As those of `structured_loss`; a smoothed loss smoothes both maxima.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, partial_loss
    >>> chains = Chains(torch.zeros(1, 3, 4), torch.zeros(4, 4))
    >>> allowed = torch.ones(1, 3, 4, dtype=bool)
    >>> allowed[0, 1] = torch.tensor([True, False, True, False])  # the second label is 0 or 2, the others are unknown
    >>> partial_loss(chains, allowed).exp().round().item()
    2.0
    >>> partial_loss(chains, allowed, "hinge").item()
    1.0
    """
    check_choice("reduction", reduction, REDUCTIONS)
    chosen, is_squared = split_square(loss)
    consistent, augmented = _find_both(potentials, allowed)
    both = augmented if chosen.margin else potentials, consistent
    best, best_allowed = (attain(some, chosen, n_jobs=n_jobs, is_relative=False) for some in both)
    return reduce_losses(best - best_allowed, is_squared, reduction)


def _find_both(potentials: Potentials, allowed: Numbers) -> tuple[Potentials, Potentials]:
    """The potentials of those outputs that agree with `allowed`, and those of all, with what the others cost."""
    if isinstance(potentials, SpanTrees):
        return _of_spans(potentials, allowed)
    if isinstance(potentials, Alignments) and potentials.warp:
        return _of_first(potentials, ~_read_flags(allowed, potentials.scores, tuple(potentials.scores.shape)))
    if isinstance(potentials, Alignments | Matchings):
        return _of_links(potentials, allowed)
    if isinstance(potentials, LabelPotentials | Candidates | Segments | Dependencies):
        return _of_first(potentials, ~_allowed_rows(potentials, allowed))
    kinds = "Chains, Trees, Candidates, Segments, Dependencies, SpanTrees, Alignments and Matchings"
    raise TypeError(f"partial_loss is for {kinds}, not for {type(potentials).__name__}.")


def _read_flags(allowed: Numbers, scores: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Booleans of this shape."""
    flags = torch.as_tensor(allowed, device=scores.device)
    if flags.dtype != torch.bool or tuple(flags.shape) != shape:
        raise ValueError(f"allowed must hold booleans in the shape {shape}, not {flags.dtype} in {tuple(flags.shape)}.")
    return flags


def _of_first(potentials: Potentials, is_wrong: Tensor) -> tuple[Potentials, Potentials]:
    """Both, where flags of the first potentials say what does not agree, and costs 1."""
    first, *others = potentials.tensors
    consistent = potentials.replaced((first.masked_fill(is_wrong, -torch.inf), *others))
    return consistent, potentials.replaced((first + is_wrong.to(first.dtype), *others))


def _allowed_rows(potentials: LabelPotentials | Candidates | Segments | Dependencies, allowed: Numbers) -> Tensor:
    """Flags of the first potentials, of what agrees with `allowed`; of padding all agree."""
    first, rows = potentials.tensors[0], potentials.rows
    states = first[..., :2, :] if isinstance(potentials, Segments) else first  # that a row is the last one says nothing
    flags = _read_flags(allowed, first, tuple(states.shape))
    is_row = torch.zeros(first.shape[: 1 + rows.is_padded], dtype=torch.bool, device=first.device)
    is_row.view(-1)[torch.as_tensor(rows.all, device=first.device)] = True
    flags = flags | ~is_row.view(*is_row.shape, *[1] * (flags.ndim - is_row.ndim))
    left = rows.pack(flags).detach().cpu().numpy()
    is_candidate = isinstance(potentials, Candidates)
    left = np.logical_or.reduceat(left, rows.starts[:-1]) if is_candidate else left.reshape(len(left), -1).any(axis=1)
    if not left.all():
        at = int(np.flatnonzero(~left)[0])
        i, place = (at, None) if is_candidate else rows.locate(at)
        what = "head" if isinstance(potentials, Dependencies) else "label"
        where = "candidate" if place is None else f"{what} at position {place}"
        raise ValueError(f"allowed leaves no {where} of batch entry {i}.")
    if states is not first:
        flags = torch.cat([flags, torch.ones_like(first[..., 2:, :], dtype=torch.bool)], dim=-2)
    return flags


def _of_links(potentials: Alignments | Matchings, allowed: Numbers) -> tuple[Potentials, Potentials]:
    """Both, of left nodes with at most one link each: a wrong link costs 1, and having none where one must be, too."""
    scores, (n, n_left, n_right) = potentials.scores, potentials.scores.shape
    flags = _read_flags(allowed, scores, (n, n_left, n_right + 1))
    lefts, rights = (torch.as_tensor(side[:, np.newaxis], device=scores.device) for side in potentials.sides.T)
    is_right = torch.arange(n_right, device=scores.device) < rights
    is_open = (flags[..., :-1] & is_right[:, np.newaxis]).any(dim=-1) | flags[..., -1]
    is_stuck = ~is_open & (torch.arange(n_left, device=scores.device) < lefts)
    if is_stuck.any():
        i, left = is_stuck.nonzero()[0].tolist()
        raise ValueError(f"allowed leaves left node {left} of batch entry {i} neither a link nor none.")
    is_wrong = ~flags[..., :-1], ~flags[..., -1]
    alone = scores.new_zeros(n, n_left) if potentials.alone is None else potentials.alone
    links_cost = is_wrong[0] * (1 + is_wrong[1][..., np.newaxis].to(scores.dtype))
    consistent = scores.masked_fill(is_wrong[0], -torch.inf), alone.masked_fill(is_wrong[1], -torch.inf)
    return potentials.scored(*consistent), potentials.scored(scores + links_cost, alone + is_wrong[1].to(scores.dtype))


def _of_spans(potentials: SpanTrees, allowed: Numbers) -> tuple[Potentials, Potentials]:
    """Both, where a span that a tree must have rules those out that cross it, and costs 1 where it is missing."""
    (scores, bare), n_labels = potentials.tensors, potentials.n_labels
    flags = _read_flags(allowed, scores, (*scores.shape[:3], n_labels + 1)).cpu().numpy()
    is_wrong, is_wrong_bare = np.zeros(scores.shape, bool), np.zeros(bare.shape, bool)
    cost, bare_cost = np.zeros(scores.shape), np.zeros(bare.shape)
    for i, n_words in enumerate(potentials.rows.lengths.tolist()):
        lo, hi = np.triu_indices(n_words)
        at, name = (i, lo, hi + 1), f"allowed of batch entry {i}"
        is_open = flags[at]
        if not is_open.any(axis=1).all():
            span = int(np.argmin(is_open.any(axis=1)))
            raise ValueError(f"{name} leaves the span {lo[span]}:{hi[span] + 1} neither a label nor none.")
        forced = np.flatnonzero(~is_open[:, -1]).tolist()
        known = [(int(lo[k]), int(hi[k]) + 1, frozenset(np.flatnonzero(is_open[k]).tolist())) for k in forced]
        excluded = exclude_spans(known, n_words, [*range(n_labels)], name)
        excluded[: -len(lo)] |= ~is_open[:, :-1].ravel()
        is_wrong[at] = excluded[: -len(lo)].reshape(len(lo), n_labels)
        is_wrong_bare[i, : len(lo)] = excluded[-len(lo) :]
        cost[at] = signs_of_parts(excluded, n_labels).reshape(len(lo), n_labels)
        cost[i, 0, 1] += len(forced)  # every tree has the first word, with a label or none
        bare_cost[i, 0] = len(forced)
    of_labels, of_none = (torch.as_tensor(table, device=scores.device) for table in (is_wrong, is_wrong_bare))
    consistent = scores.masked_fill(of_labels, -torch.inf), bare.masked_fill(of_none, -torch.inf)
    augmented = scores + torch.as_tensor(cost).to(scores), bare + torch.as_tensor(bare_cost).to(bare)
    return potentials.replaced(consistent), potentials.replaced(augmented)
