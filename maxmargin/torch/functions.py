"""Losses, mean parts and outputs of potentials, with their derivatives.

All run in compiled kernels on the CPU, whatever the device of the potentials, on as many threads as PyTorch has. The
gradient of a loss is made of the mean parts at which it is attained (`maxmargin.losses`), which the forward pass finds
as well; the backward pass only puts them where the potentials lie. Second derivatives are derivatives of mean parts in
a direction, taken by central differences of fourth order in float64: exact to about nine digits.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from maxmargin.checks import check_choice, check_count
from maxmargin.losses import Loss, attained_on, find_loss
from maxmargin.problem import IMPOSSIBLE, ORACLES, REACH
from maxmargin.runtime.blocks import Blocks, new_blocks
from maxmargin.runtime.dispatch import supports
from maxmargin.runtime.passes import Passes
from maxmargin.torch import kernels
from maxmargin.torch.potentials import Parts, Potentials

REDUCTIONS = ("mean", "sum", "none")
PARTS_PER_THREAD = 2**14  # fewer are not worth a thread
STEPS = {np.dtype(np.float64): 2e-4, np.dtype(np.float32): 0.03}  # of central differences

Some = TypeVar("Some", bound=Potentials)


class Batch:
    """Potentials with true outputs and costs, ready for kernels.

    Parameters
    ----------
    potentials : of the examples
    y, cost : true outputs, and what others cost
    dtype : of the numbers
    n_best : the most outputs that the top-K oracle is asked for
    n_jobs : the number of threads, by default as many as PyTorch uses, or fewer where there is little to do
    """

    def __init__(
        self, potentials: Potentials, y: Any, cost: Any, dtype: Any, n_best: int = 1, n_jobs: int | None = None
    ) -> None:
        self.potentials, self.y, self.cost, self.n_best, self.n_jobs = potentials, y, cost, n_best, n_jobs
        self.segments = potentials.starts, potentials.sizes
        if n_jobs is None:
            n_jobs = min(torch.get_num_threads(), 1 + int(potentials.sizes.sum()) // PARTS_PER_THREAD)
        self.passes = Passes(potentials.problem(y, cost, dtype), n_jobs, n_best)
        self.dtype = self.passes.dtype

    def in_double(self) -> Batch:
        """The same with numbers in float64, if it is not given by a problem."""
        return Batch(self.potentials, self.y, self.cost, np.float64, self.n_best, self.n_jobs)

    def array(self, flat: Tensor) -> np.ndarray:
        """Flat numbers as kernels take them; minus infinity is an impossible part."""
        return np.maximum(flat.detach().cpu().numpy().astype(self.dtype, copy=False), self.dtype.type(IMPOSSIBLE))

    def run(self, function: Any, flat: np.ndarray, *args: Any) -> None:
        """Call a kernel on all examples; raises where one is not sound."""
        for code in self.passes.run(function, flat, *args):
            if code != kernels.FINE:
                i, what = divmod(code, kernels.PROBLEMS)
                raise ValueError(self._complaint(i, what, flat))

    def _complaint(self, i: int, what: int, flat: np.ndarray) -> str:
        if what == kernels.NO_OUTPUT:
            return f"Batch entry {i} has no possible output: minus infinity is on the way of all."
        if what == kernels.NO_TRUTH:
            return f"The true output of batch entry {i} is impossible: it has a potential of minus infinity."
        pieces = [
            flat[at : at + size] for at, size in zip(*(table[i] for table in self.segments), strict=True) if at >= 0
        ]
        if any(np.isnan(piece).any() for piece in pieces):
            return f"The potentials of batch entry {i} contain NaN."
        return f"The potentials of batch entry {i} are too large: they must be within {REACH:g}, or minus infinity."

    def attain(self, flat: np.ndarray, loss: Loss, is_relative: bool) -> tuple[np.ndarray, Blocks]:
        """The losses of all examples and the mean parts at which they are attained."""
        means, values = new_blocks(self.passes.part_sizes, self.dtype), np.zeros(self.passes.n)
        self.run(kernels.attain_losses, flat, loss, *self.segments, is_relative, means, values)
        return values, means

    def gather(self, function: Any, size: int, *args: Any) -> np.ndarray:
        """Call a kernel that adds to an array of the size of the flat potentials, and return it."""
        return self.passes.accumulate(function, *args, size=size)


class Attained(Function):
    """The losses of all examples, from flat potentials."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, batch: Batch, loss: Loss, is_relative: bool) -> Tensor:
        values, means = batch.attain(batch.array(flat), loss, is_relative)
        ctx.save_for_backward(flat)
        ctx.known = batch, loss, means
        return torch.as_tensor(values).to(flat)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return Spread.apply(*ctx.saved_tensors, gradient, *ctx.known), None, None, None


class Spread(Function):
    """The sum of the mean parts of all examples, times a number each, where their potentials lie."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, scale: Tensor, batch: Batch, loss: Loss, means: Blocks) -> Tensor:
        ctx.save_for_backward(flat, scale)
        ctx.known = batch, loss, means
        scales = _float64(scale)
        return torch.as_tensor(batch.gather(kernels.spread_means, flat.numel(), means, scales, *batch.segments)).to(
            flat
        )

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, loss, means = ctx.known
        for_flat, for_scale = Bent.apply(*ctx.saved_tensors, gradient, batch, loss, means, ctx.needs_input_grad[0])
        return for_flat, for_scale, None, None, None


class Bent(Function):
    """The derivatives of `Spread` in a direction: that of its mean parts, if wanted, and that of the numbers."""

    @staticmethod
    def forward(
        ctx: Any,
        flat: Tensor,
        scale: Tensor,
        gradient: Tensor,
        batch: Batch,
        loss: Loss,
        means: Blocks,
        is_wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        direction, values = gradient.detach().cpu().numpy(), np.zeros(batch.passes.n)
        at = np.ascontiguousarray(direction, batch.dtype)
        batch.passes.run(kernels.products, at, means, *batch.segments, values)
        for_scale = torch.as_tensor(values).to(scale)
        if not is_wanted or not loss.is_smooth:  # piecewise linear: zero wherever it is defined
            return torch.zeros_like(flat), for_scale
        fine = batch.in_double()
        args = fine.array(flat), np.ascontiguousarray(direction, fine.dtype), _float64(scale), loss, *fine.segments
        step = STEPS[fine.dtype] * (1.0 if loss.smoothing == "l2" else loss.mu)
        found = fine.gather(kernels.mean_derivatives, flat.numel(), *args, fine.passes.part_sizes, step)
        return torch.as_tensor(found).to(flat), for_scale

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError("Losses of maxmargin.torch have two derivatives, marginals one: no more are known.")


class Scored(Function):
    """The scores of given outputs, (n, K)."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, batch: Batch, outputs: Blocks, counts: np.ndarray, k: int) -> Tensor:
        values = np.full((batch.passes.n, k), -np.inf)
        ctx.known = batch, outputs, counts, flat.numel()
        args = *batch.segments, batch.passes.part_sizes, outputs, counts, values
        batch.run(kernels.score_outputs, batch.array(flat), *args)
        return torch.as_tensor(values).to(flat)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, outputs, counts, size = ctx.known
        args = outputs, counts, _float64(gradient), *batch.segments, batch.passes.part_sizes
        return torch.as_tensor(batch.gather(kernels.spread_outputs, size, *args)).to(gradient), None, None, None, None


def _float64(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float64)


def _dtype_of(flat: Tensor) -> Any:
    return np.float32 if flat.dtype == torch.float32 else np.float64


def _check(potentials: Any) -> None:
    if not isinstance(potentials, Potentials):
        raise TypeError(
            "potentials must be Chains, Trees, Candidates, GraphCuts, Matchings or Parts, "
            f"not a {type(potentials).__name__}."
        )


def _attained(
    potentials: Potentials, y: Any, loss: Loss, cost: Any, n_jobs: int | None, is_relative: bool = True
) -> Tensor:
    """The losses of all examples, (n,)."""
    _check(potentials)
    if is_relative and y is None and not isinstance(potentials, Parts):
        raise ValueError("y must be the true outputs.")
    flat = potentials.flat
    batch = Batch(potentials, y, cost, _dtype_of(flat), loss.n_best, n_jobs)
    if not supports(ORACLES[loss.oracle], batch.passes.problem):
        others = "hinge_loss and smooth_hinge_loss" if loss.oracle == "exp" else "hinge_loss"
        raise ValueError(f"{type(potentials).__name__} have no {loss.oracle} oracle: {others} can do without.")
    return Attained.apply(flat, batch, attained_on(loss, batch.passes.problem), is_relative)


def structured_loss(
    potentials: Potentials,
    y: Any = None,
    loss: Loss | str = "hinge",
    *,
    cost: Any = None,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """Any loss of the library: max_y {score(y) + cost(y)}, or that smoothed, less the score of the true output.

    Parameters
    ----------
    potentials : Chains, Trees, Candidates, GraphCuts, Matchings or Parts
    y : true outputs, integers in the shape that the class of the potentials says; beyond lengths they may be anything
    loss : a `maxmargin.Loss`, "hinge", "smooth_hinge" or "log"
    cost : what wrong outputs cost, by default 1 for each wrong label; of chains and trees also "normalized_hamming" or
        an (L, L) matrix, true labels in rows
    reduction : "mean" or "sum" over the examples, or "none"
    n_jobs : the number of threads, by default up to ``torch.get_num_threads()``

    Examples
    --------
    >>> import torch
    >>> from maxmargin import Loss
    >>> from maxmargin.torch import Candidates, structured_loss
    >>> scores = torch.zeros(1, 4, requires_grad=True)
    >>> structured_loss(Candidates(scores), torch.tensor([0]), Loss("entropy", mu=0.5)).backward()
    >>> scores.grad[0, 0] < 0 < scores.grad[0, 1]
    tensor(True)
    """
    check_choice("reduction", reduction, REDUCTIONS)
    values = _attained(potentials, y, find_loss(loss), cost, n_jobs)
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


def hinge_loss(
    potentials: Potentials, y: Any = None, *, cost: Any = None, reduction: str = "mean", n_jobs: int | None = None
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
    y: Any = None,
    *,
    mu: float = 1.0,
    k: int = 40,
    smoothing: str = "l2",
    cost: Any = None,
    reduction: str = "mean",
    n_jobs: int | None = None,
) -> Tensor:
    """The structural hinge loss with its maximum smoothed (*Smoother*, section 2): `structured_loss` has the rest.

    Parameters
    ----------
    mu : the level of smoothing
    k : the most outputs that l2 smoothing mixes; where these are not enough, the value is an upper bound
    smoothing : "l2", by the top-K oracle, or "entropy", by sums over all outputs

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, smooth_hinge_loss
    >>> smooth_hinge_loss(Candidates(torch.tensor([[0.0, 0.0, -9.0]])), torch.tensor([2]), mu=1.0).item()
    10.25
    """
    loss = Loss(smoothing, mu=mu, max_k=k)
    if not loss.is_smooth:
        raise ValueError('smoothing must be "l2" or "entropy": hinge_loss has none.')
    return structured_loss(potentials, y, loss, cost=cost, reduction=reduction, n_jobs=n_jobs)


def crf_loss(potentials: Potentials, y: Any = None, *, reduction: str = "mean", n_jobs: int | None = None) -> Tensor:
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


def log_partition(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The logarithm of sum_y exp score(y) of each example, (B,).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, log_partition
    >>> log_partition(Candidates(torch.zeros(1, 8))).exp().round().item()
    8.0
    """
    return _attained(potentials, None, find_loss("log"), None, n_jobs, is_relative=False)


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
    _check(potentials)
    own = potentials.unshared()
    flat, loss = own.flat, find_loss("log")
    batch = Batch(own, None, None, _dtype_of(flat), n_jobs=n_jobs)
    if not supports(ORACLES["exp"], batch.passes.problem):
        raise ValueError(f"{type(potentials).__name__} have no marginals: a sum over all outputs is out of reach.")
    _, means = batch.attain(batch.array(flat), loss, is_relative=False)
    found = Spread.apply(flat, torch.ones(own.n, dtype=flat.dtype, device=flat.device), batch, loss, means)
    pieces = torch.split(found, [tensor.numel() for tensor in own.tensors])
    return own.replaced(
        tuple(piece.view(tensor.shape).to(tensor.dtype) for piece, tensor in zip(pieces, own.tensors, strict=True))
    )


def decode(potentials: Potentials, *, n_jobs: int | None = None) -> Tensor:
    """The outputs of the highest scores, in the shape of true outputs; -1 for padding.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, decode
    >>> decode(Chains(torch.eye(3)[None], 2 * torch.eye(3)))
    tensor([[0, 0, 0]])
    """
    _check(potentials)
    flat = potentials.flat
    batch = Batch(potentials, None, None, _dtype_of(flat), n_jobs=n_jobs)
    outputs = new_blocks(batch.passes.output_sizes, np.int32)
    batch.run(kernels.best, batch.array(flat), *batch.segments, batch.passes.part_sizes, outputs)
    return potentials.arranged(np.split(outputs.values, outputs.start[1:-1])).to(flat.device)


def topk(potentials: Potentials, k: int, *, n_jobs: int | None = None) -> tuple[Tensor, Tensor]:
    """The K best outputs, best first, and their scores.

    Returns
    -------
    outputs : (K, *shape of true outputs), -1 where an example has fewer
    scores : (K, B) with derivatives, minus infinity where an example has fewer

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, topk
    >>> topk(Candidates(torch.tensor([[1.0, 3.0, 2.0]])), k=2)
    (tensor([[1],
            [2]]), tensor([[3.],
            [2.]]))
    """
    _check(potentials)
    check_count("k", k)
    flat = potentials.flat
    batch = Batch(potentials, None, None, _dtype_of(flat), k, n_jobs)
    sizes, n = batch.passes.output_sizes, potentials.n
    outputs, counts = new_blocks(sizes * k, np.int32), np.zeros(n, np.int64)
    outputs.values[:] = -1
    values = np.zeros((n, k), batch.dtype)
    if not supports(ORACLES["topk"], batch.passes.problem):
        raise ValueError(f"{type(potentials).__name__} have no topk oracle: decode finds the best output.")
    args = *batch.segments, batch.passes.part_sizes, outputs, values, counts
    batch.run(kernels.best_k, batch.array(flat), *args)
    tables = [block.reshape(k, -1) for block in np.split(outputs.values, outputs.start[1:-1])]
    for table, count in zip(tables, counts, strict=True):
        table[count:] = -1
    rows = torch.stack([potentials.arranged([table[j] for table in tables]) for j in range(k)])
    return rows.to(flat.device), Scored.apply(flat, batch, outputs, counts, k).T


def score(potentials: Potentials, y: Any, *, n_jobs: int | None = None) -> Tensor:
    """The scores of outputs y, (B,).

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Candidates, score
    >>> score(Candidates(torch.tensor([[1.0, 3.0, 2.0]])), torch.tensor([2]))
    tensor([2.])
    """
    _check(potentials)
    flat = potentials.flat
    batch = Batch(potentials, y, None, _dtype_of(flat), n_jobs=n_jobs)
    counts = np.ones(potentials.n, np.int64)
    return Scored.apply(flat, batch, batch.passes.problem.truth, counts, 1)[:, 0]
