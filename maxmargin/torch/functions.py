"""Losses, mean parts and outputs of potentials, with their derivatives (`maxmargin.torch.autograd`)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maxmargin import inference
from maxmargin.checks import check_choice, check_count
from maxmargin.encode.inputs.example_checks import locate
from maxmargin.losses import BaseLoss, Loss, SquaredLoss, find_loss
from maxmargin.problem import IMPOSSIBLE
from maxmargin.torch.autograd import Attained, Batch, Scored, Spread
from maxmargin.torch.choice_potentials import Candidates
from maxmargin.torch.label_potentials import LabelPotentials
from maxmargin.torch.parses.parse_potentials import Dependencies
from maxmargin.torch.parses.segment_potentials import Segments
from maxmargin.torch.potentials import Costs, Numbers, Parts, Potentials, Some, check_potentials
from maxmargin.torch.untraced import untraced

REDUCTIONS = ("mean", "sum", "none")


@untraced
def _attain(
    potentials: Potentials,
    y: Numbers | None,
    loss: BaseLoss,
    cost: Costs | None,
    n_jobs: int | None,
    is_relative: bool = True,
) -> Tensor:
    """The losses of all examples, (n,)."""
    if is_relative and y is None and not isinstance(check_potentials(potentials), Parts):
        raise ValueError("y must be the true outputs.")
    potentials = potentials if y is None else check_potentials(potentials).ignoring(y)
    batch = Batch(potentials, y, cost, loss.n_best, n_jobs)
    others = "hinge_loss and smooth_hinge_loss" if loss.oracle == "exp" else "hinge_loss"
    batch.need(loss.oracle, f"{loss.oracle} oracle: {others} can do without.")
    return Attained.apply(batch.flat, batch, loss, is_relative)


def structured_loss(
    potentials: Potentials,
    y: Numbers | None = None,
    loss: BaseLoss | str = "hinge",
    *,
    cost: Costs | None = None,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """Any loss of the library: max_y {score(y) + cost(y)}, or that smoothed, less the score of the true output; or half
    of its square.

    Parameters
    ----------
    potentials
        Chains, Segments, Trees, or those of another structure.
    y
        True outputs, integers in the shape that the class of the potentials says; beyond lengths they may be anything.
    loss
        A `maxmargin.Loss`, "hinge", "squared_hinge", "smooth_hinge" or "log".
    cost
        What wrong outputs cost, by default 1 for each wrong label; of chains and trees also "normalized_hamming" or an
        (L, L) matrix, true labels in rows.
    reduction
        "mean" or "sum" over the examples, or "none".
    n_jobs
        The number of threads, by default up to ``torch.get_num_threads()``.

    Examples
    --------
    >>> import torch
    >>> from maxmargin import Loss
    >>> from maxmargin.torch import Candidates, structured_loss
    >>> scores = torch.zeros(1, 4, requires_grad=True)
    >>> structured_loss(Candidates(scores), torch.tensor([0]), Loss("entropy", level=0.5)).backward()
    >>> scores.grad[0, 0] < 0 < scores.grad[0, 1]
    tensor(True)
    """
    check_choice("reduction", reduction, REDUCTIONS)
    chosen = find_loss(loss)
    if isinstance(chosen, SquaredLoss):
        values = _attain(potentials, y, Loss(margin=chosen.margin), cost, n_jobs) ** 2 / 2
    else:
        values = _attain(potentials, y, chosen, cost, n_jobs)
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


def hinge_loss(
    potentials: Potentials,
    y: Numbers | None = None,
    *,
    cost: Costs | None = None,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """The structural hinge loss, max_y {score(y) + cost(y)} - score of the true output: `structured_loss` has the rest.

    Its gradient, where it has several, is that of the output which the oracle finds; its second derivative is zero
    wherever it is defined.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, hinge_loss
    >>> chains = Chains(torch.zeros(1, 4, 3), torch.zeros(3, 3))
    >>> hinge_loss(chains, torch.tensor([[0, 1, 2, 0]])).item()  # all four labels could be wrong
    4.0
    """
    return structured_loss(potentials, y, "hinge", cost=cost, reduction=reduction, n_jobs=n_jobs)


def smooth_hinge_loss(
    potentials: Potentials,
    y: Numbers | None = None,
    *,
    level: float = 1.0,
    k: int = 40,
    smoothing: str = "l2",
    cost: Costs | None = None,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """The structural hinge loss with its maximum smoothed (*Smoother*, section 2): `structured_loss` has the rest.

    Parameters
    ----------
    level
        How much the loss is smoothed.
    k
        The most outputs that l2 smoothing mixes; where these are not enough, the value is an upper bound.
    smoothing
        "l2", by the top-K oracle, or "entropy", by sums over all outputs.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, smooth_hinge_loss
    >>> smooth_hinge_loss(Candidates(torch.tensor([[0.0, 0.0, -9.0]])), torch.tensor([2]), level=1.0).item()
    10.25
    """
    loss = Loss(smoothing, level=level, max_k=k)
    if not loss.is_smooth:
        raise ValueError('smoothing must be "l2" or "entropy": hinge_loss has none.')
    return structured_loss(potentials, y, loss, cost=cost, reduction=reduction, n_jobs=n_jobs)


def crf_loss(
    potentials: Potentials, y: Numbers | None = None, *, reduction: str = "mean", n_jobs: int | None = None
) -> Tensor:
    """Minus the log-likelihood of the true outputs, log sum_y exp score(y) - score: `structured_loss` has the rest.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, crf_loss
    >>> chains = Chains(torch.zeros(1, 4, 2), torch.zeros(2, 2))
    >>> crf_loss(chains, torch.tensor([[0, 1, 1, 0]])).exp().round().item()  # one of 16 labellings
    16.0
    """
    return structured_loss(potentials, y, "log", reduction=reduction, n_jobs=n_jobs)


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
    row or arc that is not costs 1. Where all but one are ruled out everywhere, it is `structured_loss`.

    Parameters
    ----------
    potentials
        Chains, Trees, Candidates, Segments or Dependencies.
    allowed
        Booleans in the shape of the emissions, of the potentials of nodes or of the scores: whether a label, a
        candidate, or an arc to a word agrees with what is known; beyond lengths they may be anything. Of segments they
        are (B, T, 2, L), or packed: whether a row may begin a segment of this label, or go on with it.
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
    chosen = find_loss(loss)
    is_squared = isinstance(chosen, SquaredLoss)
    smoothed = Loss(margin=chosen.margin) if is_squared else chosen
    (first, *others), (is_allowed, costs) = potentials.tensors, _allowed_parts(potentials, allowed)
    consistent = potentials.replaced((first.masked_fill(~is_allowed, -torch.inf), *others))
    augmented = potentials.replaced((first + costs, *others)) if smoothed.margin else potentials
    both = augmented, consistent
    best, best_allowed = (_attain(some, None, smoothed, None, n_jobs, is_relative=False) for some in both)
    values = (best - best_allowed) ** 2 / 2 if is_squared else best - best_allowed
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


def _allowed_parts(potentials: Potentials, allowed: Numbers) -> tuple[Tensor, Tensor]:
    """Flags of the first potentials, of what agrees with `allowed`, and what the others cost; of padding all agree."""
    if not isinstance(potentials, LabelPotentials | Candidates | Segments | Dependencies):
        kinds = "Chains, Trees, Candidates, Segments and Dependencies"
        raise TypeError(f"partial_loss is for {kinds}, not for {type(potentials).__name__}.")
    first, rows = potentials.tensors[0], potentials.rows
    states = first[..., :2, :] if isinstance(potentials, Segments) else first  # that a row is the last one says nothing
    flags = torch.as_tensor(allowed, device=first.device)
    if flags.dtype != torch.bool or flags.shape != states.shape:
        raise ValueError(
            f"allowed must hold booleans in the shape {tuple(states.shape)}, not {flags.dtype} in {tuple(flags.shape)}."
        )
    is_row = torch.zeros(first.shape[: 1 + rows.is_padded], dtype=torch.bool, device=first.device)
    is_row.view(-1)[torch.as_tensor(rows.all, device=first.device)] = True
    flags = flags | ~is_row.view(*is_row.shape, *[1] * (flags.ndim - is_row.ndim))
    left = rows.pack(flags).detach().cpu().numpy()
    is_candidate = isinstance(potentials, Candidates)
    left = np.logical_or.reduceat(left, rows.starts[:-1]) if is_candidate else left.reshape(len(left), -1).any(axis=1)
    if not left.all():
        at = int(np.flatnonzero(~left)[0])
        i, place = (at, None) if is_candidate else locate(at, rows.starts)
        what = "head" if isinstance(potentials, Dependencies) else "label"
        where = "candidate" if place is None else f"{what} at position {place}"
        raise ValueError(f"allowed leaves no {where} of batch entry {i}.")
    if states is not first:
        flags = torch.cat([flags, torch.ones_like(first[..., 2:, :], dtype=torch.bool)], dim=-2)
    return flags, (~flags).to(first.dtype)


def log_partition(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The logarithm of sum_y exp score(y) of each example, (B,).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, log_partition
    >>> log_partition(Candidates(torch.zeros(1, 8))).exp().round().item()
    8.0
    """
    return _attain(potentials, None, find_loss("log"), None, n_jobs, is_relative=False)


@untraced
def marginals(potentials: Some, *, n_jobs: int | None = None) -> Some:
    """Mean parts under p(y) ~ exp score(y), in the shapes of the potentials: probabilities, and expected counts.

    Of potentials that examples share, such as transitions, each example has its own. They have derivatives.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, marginals
    >>> means = marginals(Chains(torch.zeros(2, 5, 4), torch.zeros(4, 4)))
    >>> means.emissions[0, 0], means.transitions[1].sum().round()
    (tensor([0.2500, 0.2500, 0.2500, 0.2500]), tensor(4.))
    """
    own = check_potentials(potentials).unshared()
    batch, loss = Batch(own, n_jobs=n_jobs), find_loss("log")
    batch.need("exp", "marginals: a sum over all outputs is out of reach.")
    _, means = batch.attain(batch.array(batch.flat), loss, is_relative=False)
    found = Spread.apply(batch.flat, batch.flat.new_ones(own.n), batch, loss, means)
    pieces = torch.split(found, [tensor.numel() for tensor in own.tensors])
    return own.replaced(
        tuple(piece.view(tensor.shape).to(tensor.dtype) for piece, tensor in zip(pieces, own.tensors, strict=True))
    )


@untraced
def decode(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The outputs of the highest scores, in the shape of true outputs; -1 for padding.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, decode
    >>> decode(Chains(torch.eye(3)[None], 2 * torch.eye(3)))
    tensor([[0, 0, 0]])
    """
    batch = Batch(potentials, n_jobs=n_jobs)
    outputs, reached = batch.infer(inference.scored_outputs)
    batch.check_possible(reached)
    return potentials.arranged(np.split(outputs.values, outputs.starts[1:-1])).to(batch.flat.device)


@untraced
def topk(potentials: Potentials, k: int, *, n_jobs: int | None = None) -> tuple[Tensor, Tensor]:
    """The K best outputs, best first, and their scores.

    Returns
    -------
    outputs
        K outputs, each of the shape of true ones, -1 where an example has fewer.
    scores
        (K, B) with derivatives, minus infinity where an example has fewer.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, topk
    >>> topk(Candidates(torch.tensor([[1.0, 3.0, 2.0]])), k=2)
    (tensor([[1],
            [2]]), tensor([[3.],
            [2.]]))
    """
    check_count("k", k)
    batch = Batch(potentials, n_best=k, n_jobs=n_jobs)
    batch.need("topk", "topk oracle: decode finds the best output.")
    outputs, values, counts = batch.infer(inference.best_k_tables, k)
    batch.check_possible(values[:, 0])
    values[(values < IMPOSSIBLE / 2) | (np.arange(k) >= counts[:, np.newaxis])] = -np.inf
    counts = np.isfinite(values).sum(axis=1)
    tables = [block.reshape(k, -1) for block in np.split(outputs.values, outputs.starts[1:-1])]
    for table, count in zip(tables, counts, strict=True):
        table[count:] = -1
    rows = torch.stack([potentials.arranged([table[j] for table in tables]) for j in range(k)])
    return rows.to(batch.flat.device), Scored.apply(batch.flat, batch, outputs, counts, values).T


@untraced
def score(potentials: Potentials, y: Numbers, *, n_jobs: int | None = None) -> Tensor:
    """The scores of outputs y, (B,).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, score
    >>> score(Candidates(torch.tensor([[1.0, 3.0, 2.0]])), torch.tensor([2]))
    tensor([2.])
    """
    batch = Batch(check_potentials(potentials).ignoring(y), y, n_jobs=n_jobs)
    values = batch.infer(inference.scores_of)[:, np.newaxis]
    counts = np.ones(potentials.n, np.int64)
    return Scored.apply(batch.flat, batch, batch.runner.problem.truth, counts, values)[:, 0]
