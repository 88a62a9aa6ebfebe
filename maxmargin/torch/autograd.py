"""Batches of potentials as loops take them, and what autograd needs to know of losses, mean parts and scores.

All run in compiled loops on the CPU, whatever the device of the potentials, on as many threads as PyTorch has. The
gradient of a loss is made of the mean parts at which it is attained (`maxmargin.losses`), which the forward pass finds
as well; the backward pass only puts them where the potentials lie. Second derivatives are derivatives of mean parts in
a direction, taken by central differences of fourth order in float64: exact to about nine digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from maxmargin import inference
from maxmargin.arrays.blocks import Blocks, new_blocks
from maxmargin.execution.runner import Runner
from maxmargin.losses import BaseLoss, find_loss
from maxmargin.problem import IMPOSSIBLE, ORACLES, REACH, scores
from maxmargin.runtime.dispatch import supports
from maxmargin.structures.derived.selected import SelectedProblem
from maxmargin.supervision.exclusions import nothing_excluded
from maxmargin.torch import loss_loops
from maxmargin.torch.potentials import Costs, Numbers, Potentials, check_potentials

Found = TypeVar("Found")

PARTS_PER_THREAD = 2**14  # fewer are not worth a thread
STEPS = {np.dtype(np.float64): 2e-4, np.dtype(np.float32): 0.03}  # of central differences


class Batch:
    """Potentials with true outputs and costs, ready for loops.

    Parameters
    ----------
    potentials
        Of the examples.
    y, cost
        True outputs, and what others cost.
    n_best
        The most outputs that the top-K oracle is asked for.
    n_jobs
        The number of threads, by default as many as PyTorch uses, or fewer where there is little to do.
    dtype
        Of the numbers, by default that of the potentials.
    """

    def __init__(
        self,
        potentials: Potentials,
        y: Numbers | None = None,
        cost: Costs | None = None,
        n_best: int = 1,
        n_jobs: int | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        self.args = check_potentials(potentials), y, cost, n_best, n_jobs
        self.flat = potentials.flat
        if n_jobs is None:
            n_jobs = min(torch.get_num_threads(), 1 + int(potentials.sizes.sum()) // PARTS_PER_THREAD)
        base = potentials.problem(y, cost, dtype_of(self.flat) if dtype is None else dtype)
        excluded = nothing_excluded(potentials.n)
        starts, sizes = (np.ascontiguousarray(places, np.int64) for places in (potentials.starts, potentials.sizes))
        problem = SelectedProblem(base, starts, sizes, self.flat.numel(), excluded)
        self.runner = Runner(problem, n_jobs, n_best)
        self.n_jobs = n_jobs
        self.dtype = self.runner.dtype

    def in_double(self) -> Batch:
        """The same with numbers in float64, if it is not given by a problem."""
        return Batch(*self.args, dtype=np.float64)

    def need(self, oracle: str, what: str) -> None:
        """Raise unless the structure has an oracle; `what` says what it cannot do then, or what to do instead."""
        if not supports(ORACLES[oracle], self.runner.problem):
            raise ValueError(f"{type(self.args[0]).__name__} have no {what}")

    def array(self, flat: Tensor) -> np.ndarray:
        """Flat numbers as loops take them; minus infinity is an impossible part."""
        return np.maximum(flat.detach().cpu().numpy().astype(self.dtype, copy=False), self.dtype.type(IMPOSSIBLE))

    def infer(self, function: Callable[..., Found], *args: object) -> Found:
        """What a function of `maxmargin.inference` finds out about all examples."""
        w = self.array(self.flat)
        try:
            return function(self.runner.problem, w, *args, self.n_jobs)
        except inference.BeyondReach as error:
            raise self._complaint(error.example, loss_loops.BEYOND_REACH, w) from None

    def check_possible(self, best: np.ndarray) -> None:
        """Raise unless every example has a possible output, given the scores of the best ones."""
        for i in np.flatnonzero(best < IMPOSSIBLE / 2):
            raise self._complaint(int(i), loss_loops.NO_OUTPUT, best)

    def _complaint(self, i: int, what: int, flat: np.ndarray) -> ValueError:
        if what == loss_loops.NO_OUTPUT:
            return ValueError(f"Batch entry {i} has no possible output: minus infinity is on the way of all.")
        if what == loss_loops.NO_TRUE_OUTPUT:
            return ValueError(
                f"The true output of batch entry {i} is impossible: it has a potential of minus infinity."
            )
        theta = np.zeros(self.runner.part_sizes[i], self.dtype)
        scores(self.runner.problem, flat, i, theta)
        if np.isnan(theta).any():
            return ValueError(f"The potentials of batch entry {i} contain NaN.")
        return ValueError(
            f"The potentials of batch entry {i} are too large: they must be within {REACH:g}, or minus infinity."
        )

    def attain(self, flat: np.ndarray, loss: BaseLoss, is_relative: bool) -> tuple[np.ndarray, Blocks]:
        """The losses of all examples and the mean parts at which they are attained."""
        means, values = new_blocks(self.runner.part_sizes, self.dtype), np.zeros(self.runner.n)
        attained = loss.attained_on(self.runner.problem)
        for code in self.runner.run(loss_loops.attain_losses, flat, attained, is_relative, means, values):
            if code != loss_loops.FINE:
                i, what = divmod(code, loss_loops.PROBLEMS)
                raise self._complaint(i, what, flat)
        return values, means


class Attained(Function):
    """The losses of all examples, from flat potentials."""

    @staticmethod
    def forward(ctx: FunctionCtx, flat: Tensor, batch: Batch, loss: BaseLoss, is_relative: bool) -> Tensor:
        values, means = batch.attain(batch.array(flat), loss, is_relative)
        ctx.save_for_backward(flat)
        ctx.known = batch, loss, means
        return torch.as_tensor(values).to(flat)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return Spread.apply(*ctx.saved_tensors, gradient, *ctx.known), None, None, None


class Spread(Function):
    """The sum of the mean parts of all examples, times a number each, where their potentials lie."""

    @staticmethod
    def forward(ctx: FunctionCtx, flat: Tensor, scale: Tensor, batch: Batch, loss: BaseLoss, means: Blocks) -> Tensor:
        ctx.save_for_backward(flat, scale)
        ctx.known = batch, loss, means
        return torch.as_tensor(batch.runner.accumulate(loss_loops.spread_means, means, _float64(scale))).to(flat)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, loss, means = ctx.known
        for_flat, for_scale = Bent.apply(*ctx.saved_tensors, gradient, batch, loss, means, ctx.needs_input_grad[0])
        return for_flat, for_scale, None, None, None


class Bent(Function):
    """The derivatives of `Spread` in a direction: that of its mean parts, if wanted, and that of the numbers."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        flat: Tensor,
        scale: Tensor,
        gradient: Tensor,
        batch: Batch,
        loss: BaseLoss,
        means: Blocks,
        is_wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        direction, values = gradient.detach().cpu().numpy(), np.zeros(batch.runner.n)
        at = np.ascontiguousarray(direction, batch.dtype)
        batch.runner.run(loss_loops.products, at, means, values)
        for_scale = torch.as_tensor(values).to(scale)
        if not is_wanted or not loss.is_smooth:  # piecewise linear: zero wherever it is defined
            return torch.zeros_like(flat), for_scale
        fine = batch.in_double()
        attained, along = loss.attained_on(fine.runner.problem), np.ascontiguousarray(direction, fine.dtype)
        args = fine.array(flat), along, _float64(scale), attained
        step = STEPS[fine.dtype] * (loss.entropy_level or 1.0)
        found = fine.runner.accumulate(loss_loops.mean_derivatives, *args, fine.runner.part_sizes, step)
        return torch.as_tensor(found).to(flat), for_scale

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError("Losses of maxmargin.torch have two derivatives, marginals one: no more are known.")


class Scored(Function):
    """The scores of outputs, (n, K), of which each example has so many, as functions of flat potentials."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, flat: Tensor, batch: Batch, outputs: Blocks, counts: np.ndarray, values: np.ndarray
    ) -> Tensor:
        ctx.known = batch, outputs, counts
        return torch.as_tensor(values).to(flat)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, outputs, counts = ctx.known
        args = outputs, counts, _float64(gradient), batch.runner.part_sizes
        found = batch.runner.accumulate(loss_loops.spread_outputs, *args)
        return torch.as_tensor(found).to(gradient), None, None, None, None


def attain(
    potentials: Potentials,
    loss: BaseLoss,
    y: Numbers | None = None,
    cost: Costs | None = None,
    n_jobs: int | None = None,
    *,
    is_relative: bool,
) -> Tensor:
    """The losses of all examples, (n,), less the scores of true outputs, if relative."""
    batch = Batch(potentials, y, cost, loss.n_best, n_jobs)
    others = "hinge_loss and smooth_hinge_loss" if loss.oracle == "exp" else "hinge_loss"
    batch.need(loss.oracle, f"{loss.oracle} oracle: {others} can do without.")
    return Attained.apply(batch.flat, batch, loss, is_relative)


def batch_means(potentials: Potentials, what: str, n_jobs: int | None) -> tuple[Batch, BaseLoss, Blocks]:
    """A batch with the log loss and the mean parts at which that is attained; `what` they are, in messages."""
    batch, loss = Batch(potentials, n_jobs=n_jobs), find_loss("log")
    batch.need("exp", f"{what}: a sum over all outputs is out of reach.")
    _, means = batch.attain(batch.array(batch.flat), loss, is_relative=False)
    return batch, loss, means


def dtype_of(flat: Tensor) -> npt.DTypeLike:
    """The dtype of NumPy in which loops take potentials."""
    return np.float32 if flat.dtype == torch.float32 else np.float64


def _float64(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float64)
