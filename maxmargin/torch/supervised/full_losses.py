"""Losses of potentials, given true outputs."""

from __future__ import annotations

from torch import Tensor

from maxmargin.checks import check_choice
from maxmargin.losses import BaseLoss, Loss, SquaredLoss, find_loss
from maxmargin.torch.autograd import attain
from maxmargin.torch.choice_potentials import Parts
from maxmargin.torch.potentials import Costs, NothingKnown, Numbers, Potentials, check_potentials
from maxmargin.torch.untraced import untraced

REDUCTIONS = ("mean", "sum", "none")


def split_square(loss: BaseLoss | str) -> tuple[BaseLoss, bool]:
    """A loss, and whether it is half of the square of that."""
    found = find_loss(loss)
    return (Loss(margin=found.margin), True) if isinstance(found, SquaredLoss) else (found, False)


def reduce_losses(values: Tensor, is_squared: bool, reduction: str) -> Tensor:
    """The mean or the sum of losses, or these."""
    values = values**2 / 2 if is_squared else values
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


@untraced
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
        Examples of which nothing is known, as all their labels are -100, have no loss, as in PyTorch's cross entropy.
    loss
        A `maxmargin.Loss`, "hinge", "squared_hinge", "smooth_hinge" or "log".
    cost
        What wrong outputs cost, by default 1 for each wrong label; of chains and trees also "normalized_hamming" or an
        (L, L) matrix, true labels in rows.
    reduction
        "mean" or "sum" over the examples of which something is known, or "none": (B,), 0 for the others. Where nothing
        is known of any, the mean, which PyTorch has as nan, raises.
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
    if y is None and not isinstance(check_potentials(potentials), Parts):
        raise ValueError("y must be the true outputs.")
    chosen, is_squared = split_square(loss)
    try:
        known = potentials if y is None else check_potentials(potentials).ignoring(y)
    except NothingKnown:
        if reduction == "mean":
            raise
        values = potentials.flat[:0].sum().expand(potentials.n)
    else:
        values = attain(known, chosen, y, cost, n_jobs, is_relative=True)
        values = known.place(values, potentials.n) if reduction == "none" else values
    return reduce_losses(values, is_squared, reduction)


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
