"""Entropy, cross-entropy and Kullback-Leibler divergence of p(y) ~ exp score(y), of potentials that have sums.

With log-partition functions A, potentials theta and mean parts mu, H(p, q) = A_q - <theta_q, mu_p>: what is expected is
linear in mean parts, so that nothing is enumerated.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from maxmargin.arrays.blocks import Blocks
from maxmargin.losses import BaseLoss
from maxmargin.torch import loss_loops
from maxmargin.torch.autograd import Batch, Bent, Spread, batch_means
from maxmargin.torch.functions import log_partition
from maxmargin.torch.potentials import Potentials, check_potentials
from maxmargin.torch.untraced import untraced

ROUNDING = 1e-9  # of mean parts


class Expected(Function):
    """What scores, flat, are expected to be under the distributions of flat potentials, (n,)."""

    @staticmethod
    def forward(ctx: FunctionCtx, flat: Tensor, scores: Tensor, batch: Batch, loss: BaseLoss, means: Blocks) -> Tensor:
        ctx.save_for_backward(flat, scores)
        ctx.known = batch, loss, means
        is_impossible = torch.isinf(scores)
        values, chances = np.zeros(batch.runner.n), np.zeros(batch.runner.n)
        batch.runner.run(loss_loops.products, batch.array(scores.masked_fill(is_impossible, 0)), means, values)
        batch.runner.run(loss_loops.products, batch.array(is_impossible.to(scores)), means, chances)
        values[chances > ROUNDING] = -np.inf
        return torch.as_tensor(values).to(flat)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        flat, scores = ctx.saved_tensors
        possible = scores.masked_fill(torch.isinf(flat) | torch.isinf(scores), 0)  # others have constant mean parts
        for_flat, _ = Bent.apply(flat, gradient, possible, *ctx.known, ctx.needs_input_grad[0])
        return for_flat, Spread.apply(flat, gradient, *ctx.known), None, None, None


@untraced
def _expect(p: Potentials, q: Potentials, n_jobs: int | None) -> Tensor:
    """The expected scores of q under p, (n,)."""
    batch, *known = batch_means(p, "entropy", n_jobs)
    return Expected.apply(batch.flat, q.flat.to(batch.flat), batch, *known)


def entropy(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The entropies of the outputs of all examples under p(y) ~ exp score(y), (B,), in nats, with derivatives.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, entropy
    >>> entropy(Chains(torch.zeros(1, 3, 4), torch.zeros(4, 4))).exp().round().item()  # 64 labellings, all as likely
    64.0
    """
    own = check_potentials(potentials).unshared()
    expected = _expect(own, own, n_jobs)
    return log_partition(own, n_jobs=n_jobs) - expected


def cross_entropy(p: Potentials, q: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The cross-entropies -sum_y p(y) log q(y) of all examples, (B,), with derivatives by the potentials of both.

    As a loss of q it lets one network learn from another, whose p it is.

    Parameters
    ----------
    p, q
        Potentials of the same structure and shapes; those that examples share may have an example each in the other.
    n_jobs
        As that of `structured_loss`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, cross_entropy
    >>> teacher = Candidates(torch.tensor([[0.0, -torch.inf, 0.0, -torch.inf]]))  # the first or the third
    >>> cross_entropy(teacher, Candidates(torch.zeros(1, 4))).exp().round().item()
    4.0
    """
    of_p, of_q = _check_alike(p, q)
    expected = _expect(of_p, of_q, n_jobs)
    return log_partition(of_q, n_jobs=n_jobs) - expected


def kl_divergence(p: Potentials, q: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The Kullback-Leibler divergences sum_y p(y) log {p(y) / q(y)} of all examples, (B,): see `cross_entropy`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, kl_divergence
    >>> sure = Candidates(torch.tensor([[50.0, 0.0, 0.0, 0.0]]))
    >>> kl_divergence(sure, Candidates(torch.zeros(1, 4))).exp().round().item()
    4.0
    """
    return cross_entropy(p, q, n_jobs=n_jobs) - entropy(p, n_jobs=n_jobs)


def _check_alike(p: Potentials, q: Potentials) -> tuple[Potentials, Potentials]:
    """Both with potentials of their own for every example; raises unless these are alike."""
    of_p, of_q = (check_potentials(potentials).unshared() for potentials in (p, q))
    if type(of_p) is not type(of_q):
        raise TypeError(f"p and q must have the same structure, not {type(p).__name__} and {type(q).__name__}.")
    shapes = [[tuple(tensor.shape) for tensor in potentials.tensors] for potentials in (of_p, of_q)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"p and q must have the same shapes, not {shapes[0]} and {shapes[1]}.")
    if not (np.array_equal(of_p.starts, of_q.starts) and np.array_equal(of_p.sizes, of_q.sizes)):
        raise ValueError("p and q must have the same lengths.")
    return of_p, of_q
