"""Log-partition functions, mean parts, outputs and scores of potentials, with their derivatives."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maxmargin import inference
from maxmargin.checks import check_count
from maxmargin.losses import find_loss
from maxmargin.problem import IMPOSSIBLE
from maxmargin.torch.autograd import Batch, Scored, Spread, attain, batch_means
from maxmargin.torch.potentials import Numbers, Potentials, Some, check_potentials
from maxmargin.torch.untraced import untraced


@untraced
def log_partition(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The logarithm of sum_y exp score(y) of each example, (B,).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, log_partition
    >>> log_partition(Candidates(torch.zeros(1, 8))).exp().round().item()
    8.0
    """
    return attain(potentials, find_loss("log"), n_jobs=n_jobs, is_relative=False)


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
    batch, *known = batch_means(own, "marginals", n_jobs)
    found = Spread.apply(batch.flat, batch.flat.new_ones(own.n), batch, *known)
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
    """The scores of outputs y, (B,); 0 where all labels are -100.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, score
    >>> score(Candidates(torch.tensor([[1.0, 3.0, 2.0]])), torch.tensor([2]))
    tensor([2.])
    """
    known = check_potentials(potentials).ignoring(y)
    batch = Batch(known, y, n_jobs=n_jobs)
    values = batch.infer(inference.scores_of)[:, np.newaxis]
    counts = np.ones(known.n, np.int64)
    found = Scored.apply(batch.flat, batch, batch.runner.problem.truth, counts, values)[:, 0]
    return known.place(found, potentials.n)
